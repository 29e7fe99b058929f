// SPDX-License-Identifier: Apache-2.0
/* serve_v1_test.c — /croft/v1/sandboxes: limits, host names and mounts of one sandbox; what it
 * changed, and what becomes of that. Rows share a server: a start costs more than a question. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/serve_kit.h"

#define SANDBOXES "/croft/v1/sandboxes"
/* Forks until it may not; those who were made wait for their maker. */
static const char forks[] = "import os\n"
                            "r, w = os.pipe()\n"
                            "n = 0\n"
                            "try:\n"
                            "  while n < 200:\n"
                            "    if not os.fork(): os.close(w), os.read(r, 1), os._exit(0)\n"
                            "    n += 1\n"
                            "except OSError: pass\n"
                            "print(20 < n < 77)\n";

#define FIRST_KEY "first-key-that-is-long-enough"

static const char *dir_path(struct serve *s, const char *name)
{
    return serve_text(s, "%s/%s", test_dir(), name);
}

static void put_file(struct serve *s, const char *name, const char *text)
{
    own_fd fd = open(dir_path(s, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, str_of(text)));
}

static struct str file_text(struct serve *s, const char *name)
{
    own_done(buf) text;

    buf_init(&text, 1u << 20);
    struct err *e = fd_read_file(dir_path(s, name), &text);
    bool there = !e;
    err_free(e);
    return there ? arena_copy(&s->arena, buf_str(&text)) : STR("(none)");
}

/* Two directories: "open" for every key with the scope, "shut" to read, for a key that is not. */
static void open_with_mounts(struct serve *s)
{
    s->key = FIRST_KEY;
    setenv("CROFT_API_KEY", FIRST_KEY, 1);
    serve_prepare(s);
    CHECK_INT(mkdir(dir_path(s, "open"), 0755), 0);
    CHECK_INT(mkdir(dir_path(s, "open/a"), 0755), 0);
    CHECK_INT(mkdir(dir_path(s, "shut"), 0755), 0);
    CHECK_INT(mkdir(dir_path(s, "outside"), 0755), 0);
    put_file(s, "open/a/old", "old\n");
    put_file(s, "open/a/gone", "gone\n");
    put_file(s, "open/a/forks.py", forks);
    put_file(s, "c.toml",
             serve_text(s,
                        "[mount.open]\npath = '%s/open/'\nmodes = ['ro', 'apply', 'rw']\n"
                        "[mount.shut]\npath = '%s/shut'\nmodes = ['overlay']\nkeys = ['default']\n",
                        test_dir(), test_dir()));
    serve_run(s, (const char *const[]){"--config", dir_path(s, "c.toml"), NULL});
}

/* A body whose mounts are of test_dir(): "%s" in quoted stands for it, up to twice. */
static const char *body_of(struct serve *s, const char *session, const char *more)
{
    char text[2048] = "";

    for (const char *p = more; *p;) {
        size_t n = strlen(text);
        if (strncmp(p, "%s", 2) == 0) {
            snprintf(text + n, sizeof text - n, "%s", test_dir());
            p += 2;
        } else
            snprintf(text + n, sizeof text - n, "%c", *p++);
    }
    return serve_text(s, "{'image':'host','session_id':'%s',%s}", session, text);
}

static struct json *make(struct serve *s, const char *session, const char *more)
{
    serve_want(s, 200, "POST", SANDBOXES, body_of(s, session, more));
    return serve_start(s, session, "");
}

static struct json *look(struct serve *s, const struct json *r)
{
    return serve_want(s, 200, "GET",
                      serve_text(s, SANDBOXES "/%s", serve_field(s, r, "runtime_id")), NULL);
}

static const char *path_of(struct serve *s, const struct json *r, const char *rest)
{
    return serve_text(s, SANDBOXES "/%s/%s", serve_field(s, r, "runtime_id"), rest);
}

/* One fork of it. */
static struct json *fork_of(struct serve *s, const struct json *r)
{
    return json_at(
        json_get(serve_want(s, 200, "POST", path_of(s, r, "fork"), "{}"), STR("sandboxes")), 0);
}

/* Why it could not start: told as its status, for the answer does not wait so long. */
static const char *failure_of(struct serve *s, const char *session)
{
    struct json *r;

    do {
        r = serve_want(s, 200, "GET", serve_text(s, "/sessions/%s", session), NULL);
        poll(NULL, 0, 5);
    } while (strcmp(serve_field(s, r, "status"), "starting") == 0);
    return serve_field(s, r, "status_detail");
}

TEST(v1_limits_and_host_name_are_the_sandbox_s_own_warm_or_not)
{
    struct serve s = {0};

    open_with_mounts(&s);
    struct json *r = make(&s, "a",
                          "'memory':'64M','cpus':0.5,'pids':77,'hostname':'field-1',"
                          "'mounts':[{'source':'%s/open/a','target':'/work'}]");
    CHECK_STR(serve_exec(&s, r, "hostname; cat /etc/hostname /work/old"), "field-1\nfield-1\nold");
    struct json *has = look(&s, r);
    CHECK(json_get_int(json_get(has, STR("timeline")), "first_command_ns", 0) > 0);
    CHECK_HAS(serve_get(&s, "/metrics").body, "croft_sandbox_first_command_seconds_count");
    CHECK_INT(json_get_int(has, "memory", 0), 64 << 20);
    CHECK_INT(json_get_int(has, "pids", 0), 77);
    CHECK(json_get(has, STR("cpus"))->d == 0.5);
    CHECK_STR(serve_field(&s, has, "hostname"), "field-1");
    CHECK_STR(json_get_str(json_at(json_get(has, STR("mounts")), 0), "mode", STR("")), "overlay");
    CHECK_STR(serve_exec(&s, r, "python3 /work/forks.py"), "True");
    struct json *plain = look(&s, make(&s, "b", "'resource_factor':2"));
    CHECK_INT(json_get_int(plain, "pids", 0), 8192);
    CHECK_STR(serve_field(&s, plain, "hostname"), serve_field(&s, plain, "runtime_id"));
    serve_kill(&s); /* all of it is in its row */
    serve_run(&s, (const char *const[]){"--config", dir_path(&s, "c.toml"), NULL});
    CHECK_INT(json_get_int(look(&s, r), "pids", 0), 77);
    serve_want(&s, 200, "POST",
               serve_text(&s, SANDBOXES "/%s/stop", serve_field(&s, r, "runtime_id")), NULL);
    r = serve_start(&s, "a", "");
    CHECK_STR(serve_exec(&s, r, "hostname; cat /work/old"), "field-1\nold");
    serve_close(&s);
}

/* One is warm now: the next start of its image is a claim. */
static void wait_for_warm(struct serve *s)
{
    struct json *pools;

    do {
        pools = serve_want(s, 200, "GET", "/croft/v1/pool", NULL);
        poll(NULL, 0, 5);
    } while (!json_get_int(json_at(json_get(pools, STR("pools")), 0), "ready", 0));
}

TEST(v1_binds_limits_and_mounts_at_claim_and_a_disk_limit_needs_a_new_one)
{
    struct serve s = {0};

    open_with_mounts(&s);
    wait_for_warm(&s);
    struct json *r = make(&s, "a",
                          "'memory':'64M','pids':77,'hostname':'field-1',"
                          "'mounts':[{'source':'%s/open/a','target':'/work','mode':'ro'}]");
    CHECK_STR(serve_field(&s, look(&s, r), "launch_type"), "warm");
    CHECK_STR(serve_exec(&s, r, "hostname; cat /work/old; echo x > /work/x || echo no"),
              "field-1\nold\nbash: /work/x: Read-only file system\nno");
    CHECK_STR(serve_exec(&s, r, "python3 /work/forks.py"), "True");
    wait_for_warm(&s);
    struct serve_answer disk = serve_ask(&s, "POST", SANDBOXES, body_of(&s, "b", "'disk':'64M'"));
    if (disk.status == 422) { /* nothing here can limit it, which is said */
        CHECK_HAS(disk.body, "disk: this server cannot enforce");
        serve_close(&s);
        return;
    }
    r = serve_start(&s, "b", "");
    CHECK_STR(serve_field(&s, look(&s, r), "launch_type"), "cold");
    CHECK_HAS(str_of(serve_field(&s, look(&s, r), "status_detail")), "disk limit of its own");
    CHECK_HAS(serve_exec(&s, r, "head -c 80000000 /dev/zero > /workspace/x"), "No space left");
    CHECK_HAS(serve_get(&s, path_of(&s, r, "diff")).body, "\"path\":\"/workspace/x\"");
    serve_exec(&s, r, "echo small > /workspace/x");
    CHECK_STR(serve_exec(&s, fork_of(&s, r), "cat /workspace/x"), "small"); /* both go on */
    serve_want(&s, 200, "POST",
               serve_text(&s, SANDBOXES "/%s/stop", serve_field(&s, r, "runtime_id")), NULL);
    CHECK_HAS(serve_get(&s, path_of(&s, r, "diff")).body, "\"path\":\"/workspace/x\"");
    serve_close(&s);
}

TEST(v1_refuses_what_cannot_be_had_and_names_the_field)
{
    static const struct {
        int status;
        const char *part, *more;
    } cases[] = {
        {422, "memory: wanted bytes", "'memory':'much'"},
        {422, "memory: wanted bytes", "'memory':-1"},
        {422, "memory: 4096 bytes", "'memory':4096"},
        {422, "memory: 1125899906842624 is more", "'memory':'1024T'"},
        {422, "disk: wanted bytes", "'disk':[]"},
        {422, "cpus: wanted a number", "'cpus':'two'"},
        {422, "cpus: wanted a number", "'cpus':0"},
        {422, "cpus: 4000 is more", "'cpus':4000"},
        {422, "pids", "'pids':1"},
        {422, "pids: 4000000 is more", "'pids':4000000"},
        {422, "hostname: wanted", "'hostname':'-x'"},
        {422, "hostname: wanted", "'hostname':'a..b'"},
        {422, "hostname: wanted", "'hostname':7"},
        {422, "mounts: wanted", "'mounts':{}"},
        {422, "mounts[0]: wanted", "'mounts':['/a']"},
        {422, "mounts[0].source", "'mounts':[{'source':'a','target':'/b'}]"},
        {422, "mounts[0].source", "'mounts':[{'source':'%s/open/../outside','target':'/b'}]"},
        {422, "mounts[0].target", "'mounts':[{'source':'%s/open'}]"},
        {422, "mounts[0].target: /proc", "'mounts':[{'source':'%s/open','target':'/proc/1'}]"},
        {422, "mounts[0].mode", "'mounts':[{'source':'%s/open','target':'/b','mode':'w'}]"},
        {422, "mounts[1].target: mounts[0]",
         "'mounts':[{'source':'%s/open','target':'/b'},{'source':'%s/open','target':'/b'}]"},
        {403, "mounts[0].source", "'mounts':[{'source':'/etc','target':'/b'}]"},
        {403, "mounts[0].source", "'mounts':[{'source':'%s/opening','target':'/b'}]"},
        {403, "mounts[0].source", "'mounts':[{'source':'%s/state','target':'/b','mode':'ro'}]"},
        {403, "mounts[0].mode", "'mounts':[{'source':'%s/shut','target':'/b','mode':'rw'}]"},
    };
    struct serve s = {0};

    open_with_mounts(&s);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        serve_refused(&s, cases[i].status, cases[i].part, "POST", SANDBOXES,
                      body_of(&s, "x", cases[i].more));
    CHECK_INT(symlink("../outside", dir_path(&s, "open/out")), 0); /* and the launcher looks too */
    serve_want(&s, 200, "POST", SANDBOXES,
               body_of(&s, "out", "'mounts':[{'source':'%s/open/out','target':'/b'}]"));
    CHECK_HAS(str_of(failure_of(&s, "out")), "mount '/b'");

    const char *mount = body_of(&s, "y", "'mounts':[{'source':'%s/shut','target':'/b'}]");
    struct json *plain = serve_want(&s, 201, "POST", "/croft/v1/tokens", "{'name':'plain'}");
    struct json *other = serve_want(&s, 201, "POST", "/croft/v1/tokens",
                                    "{'name':'other','scopes':['runtime','mount']}");
    s.key = serve_field(&s, plain, "secret");
    serve_refused(&s, 403, "lacks the scope 'mount'", "POST", SANDBOXES, mount);
    s.key = serve_field(&s, other, "secret");
    serve_refused(&s, 403, "no directory that key 'other' may mount", "POST", SANDBOXES, mount);
    s.key = FIRST_KEY;
    serve_close(&s);
}

/* By pause and by stop; a client's start of its session, and an administrator, resume too. */
TEST(v1_resume_asks_again_whether_the_key_may_have_its_mounts)
{
    static const char *const ends[] = {"pause", "stop"};
    struct serve s = {0};

    open_with_mounts(&s);
    struct json *other = serve_want(&s, 201, "POST", "/croft/v1/tokens",
                                    "{'name':'other','scopes':['runtime','mount']}");
    s.key = serve_field(&s, other, "secret");
    struct json *r = make(&s, "a", "'mounts':[{'source':'%s/open/a','target':'/work'}]");
    const char *path = serve_text(&s, SANDBOXES "/%s", serve_field(&s, r, "runtime_id"));
    const char *const with[] = {"--config", dir_path(&s, "c.toml"), NULL};
    const char *const without[] = {"--config", dir_path(&s, "less.toml"), NULL};
    put_file(&s, "less.toml",
             serve_text(&s, "[mount.open]\npath = '%s/open/'\nmodes = ['overlay']\nkeys = ['x']\n",
                        test_dir()));
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        serve_want(&s, 200, "POST", serve_text(&s, "%s/%s", path, ends[i]), NULL);
        serve_kill(&s);
        serve_run(&s, without);
        serve_refused(&s, 403, "no directory that key 'other' may mount", "POST",
                      serve_text(&s, "%s/resume", path), NULL);
        serve_refused(&s, 403, "may not be had any more", "POST", "/start",
                      "{'image':'host','session_id':'a'}");
        s.key = FIRST_KEY;
        serve_refused(&s, 403, "key 'other'", "POST", serve_text(&s, "%s/resume", path), NULL);
        s.key = serve_field(&s, other, "secret");
        serve_kill(&s);
        serve_run(&s, with);
        serve_want(&s, 200, "POST", serve_text(&s, "%s/resume", path), NULL);
        CHECK_STR(serve_exec(&s, serve_start(&s, "a", ""), "cat /work/old"), "old");
    }
    s.key = FIRST_KEY;
    serve_close(&s);
}

/* --- what it changed --- */

static const struct json *change_at(const struct json *diff, const char *path)
{
    const struct json *list = json_get(diff, STR("changes"));

    for (const struct json *c = list ? list->first : NULL; c; c = c->next)
        if (str_eq(json_get_str(c, "path", STR("")), str_of(path)))
            return c;
    return NULL;
}

static const char *kind_at(struct serve *s, const struct json *diff, const char *path)
{
    const struct json *c = change_at(diff, path);

    return c ? serve_field(s, c, "kind") : "none";
}

#define WORKS                                                                                      \
    "cd /work && echo new > old && rm gone && mkdir d && echo x > d/f && chmod 4755 d/f && "       \
    "echo w > /workspace/w && echo h >> /etc/hosts && rm /usr/share/doc/bash/copyright; sync"

TEST(v1_diff_lists_what_a_sandbox_changed_in_words_and_pages)
{
    struct serve s = {0};

    open_with_mounts(&s);
    struct json *r = make(&s, "a", "'mounts':[{'source':'%s/open/a','target':'/work'}]");
    serve_exec(&s, r, WORKS);
    struct json *d = serve_want(&s, 200, "GET", path_of(&s, r, "diff"), NULL);
    CHECK_STR(kind_at(&s, d, "/work/old"), "modified");
    CHECK_STR(kind_at(&s, d, "/work/gone"), "deleted");
    CHECK_STR(kind_at(&s, d, "/work/d/f"), "added");
    CHECK_STR(kind_at(&s, d, "/work"), "none"); /* where it is mounted is no change of its own */
    CHECK_STR(kind_at(&s, d, "/workspace/w"), "added");
    CHECK_STR(kind_at(&s, d, "/etc/hosts"), "modified");
    CHECK_INT(json_get_int(change_at(d, "/workspace/w"), "size", 0), 2);
    CHECK_INT(json_get_int(change_at(d, "/work/old"), "old_size", 0), 4);
    CHECK_INT(json_get(d, STR("next"))->type, JSON_NULL);
    int64_t total = json_get_int(d, "total", 0), seen = 0;
    CHECK(total >= 6);
    for (int64_t next = 0; next >= 0; seen++) {
        struct json *page = serve_want(
            &s, 200, "GET",
            serve_text(&s, "%s?limit=1&offset=%d", path_of(&s, r, "diff"), (int)next), NULL);
        CHECK_INT(json_get(page, STR("changes"))->count, 1);
        next = json_get_int(page, "next", -1);
    }
    CHECK_INT(seen, total);
    CHECK_STR(serve_exec(&s, r, "cat /work/old"), "new"); /* it goes on */
    serve_tell(&s, "/pause", r);
    CHECK_STR(kind_at(&s, serve_want(&s, 200, "GET", path_of(&s, r, "diff"), NULL), "/work/d"),
              "added");
    serve_want(&s, 200, "POST", path_of(&s, r, "stop"), NULL);
    CHECK_STR(kind_at(&s, serve_want(&s, 200, "GET", path_of(&s, r, "diff"), NULL), "/work/d"),
              "added");
    serve_refused(&s, 422, "limit", "GET", path_of(&s, r, "diff?limit=0"), NULL);
    serve_refused(&s, 422, "limit", "GET", path_of(&s, r, "diff?limit=10001"), NULL);
    serve_refused(&s, 422, "offset: wanted a number", "GET", path_of(&s, r, "diff?offset=x"), NULL);
    serve_refused(&s, 404, "not found", "GET", SANDBOXES "/nobody/diff", NULL);
    serve_tell(&s, "/stop", r);
    serve_refused(&s, 409, "is stopped", "GET", path_of(&s, r, "diff"), NULL);
    serve_close(&s);
}

TEST(v1_apply_puts_changes_into_the_directory_where_that_is_granted)
{
    struct serve s = {0};
    struct stat st;

    open_with_mounts(&s);
    struct json *r = make(&s, "a",
                          "'mounts':[{'source':'%s/open/a','target':'/work'},"
                          "{'source':'%s/shut','target':'/copy'}]");
    serve_exec(&s, r, WORKS "; echo c > /copy/c");
    const char *apply = path_of(&s, r, "apply");
    serve_refused(&s, 403, "'/copy' may be worked on as a copy only", "POST", apply, "{}");
    CHECK_STR(file_text(&s, "open/a/old"), "old\n"); /* nothing was done */
    serve_refused(&s, 422, "paths[0]", "POST", apply, "{'paths':['work']}");
    serve_refused(&s, 422, "paths[0]: it is below no", "POST", apply, "{'paths':['/etc/hosts']}");
    serve_refused(&s, 422, "force", "POST", apply, "{'force':'yes'}");
    serve_want(&s, 200, "POST", apply, "{'paths':['/work/d']}");
    CHECK_STR(file_text(&s, "open/a/d/f"), "x\n");
    CHECK_INT(stat(dir_path(&s, "open/a/d/f"), &st), 0);
    CHECK_INT(st.st_mode & 07777, 0755); /* no set-id bit comes through */
    CHECK_INT(st.st_uid, 0);
    CHECK_STR(file_text(&s, "open/a/old"), "old\n");
    put_file(&s, "open/a/old", "theirs\n");
    serve_refused(&s, 409, "changed in the directory too", "POST", apply, "{'paths':['/work']}");
    CHECK_STR(file_text(&s, "open/a/gone"), "gone\n");
    struct json *done = serve_want(&s, 200, "POST", apply, "{'paths':['/work'],'force':true}");
    CHECK_INT(json_get_int(json_at(json_get(done, STR("directories")), 0), "applied", 0), 2);
    CHECK_STR(file_text(&s, "open/a/old"), "new\n");
    CHECK_STR(file_text(&s, "open/a/gone"), "(none)");
    CHECK_STR(file_text(&s, "shut/c"), "(none)");
    CHECK_STR(serve_exec(&s, r, "cat /work/old /work/d/f"), "new\nx");
    CHECK_STR(kind_at(&s, serve_want(&s, 200, "GET", path_of(&s, r, "diff"), NULL), "/work/old"),
              "none");
    struct json *bare = make(&s, "b", "'pids':64");
    serve_refused(&s, 409, "no copy-on-write mount", "POST", path_of(&s, bare, "apply"), NULL);

    struct json *other = serve_want(&s, 201, "POST", "/croft/v1/tokens",
                                    "{'name':'other','scopes':['runtime','mount']}");
    struct json *plain = serve_want(&s, 201, "POST", "/croft/v1/tokens", "{'name':'plain'}");
    s.key = serve_field(&s, other, "secret");
    const char *const routes[] = {"apply", "rollback"};
    for (size_t i = 0; i < ARRAY_LEN(routes); i++)
        serve_refused(&s, 404, "not found", "POST", path_of(&s, r, routes[i]), NULL);
    serve_refused(&s, 404, "not found", "GET", path_of(&s, r, "diff"), NULL);
    s.key = serve_field(&s, plain, "secret");
    serve_refused(&s, 403, "lacks the scope 'mount'", "POST",
                  path_of(&s, make(&s, "c", "'pids':64"), "apply"), NULL);
    s.key = FIRST_KEY;
    serve_close(&s);
}

/* Until a file written now is younger than that one: the clock of files moves in steps. */
static void put_younger(struct serve *s, const char *name, const char *text, const char *than)
{
    struct stat old, now;

    CHECK_INT(stat(dir_path(s, than), &old), 0);
    do {
        put_file(s, name, text);
        CHECK_INT(stat(dir_path(s, name), &now), 0);
    } while (now.st_ctim.tv_sec == old.st_ctim.tv_sec &&
             now.st_ctim.tv_nsec <= old.st_ctim.tv_nsec);
}

/* The copy that a snapshot of a running one makes is younger than the host's edit. */
TEST(v1_apply_finds_the_conflict_of_a_fork_that_came_after_it)
{
    struct serve s = {0};

    open_with_mounts(&s);
    struct json *r = make(&s, "a", "'mounts':[{'source':'%s/open/a','target':'/work'}]");
    serve_exec(&s, r, "echo mine > /work/old");
    put_file(&s, "outside/now", "");
    put_younger(&s, "open/a/old", "theirs\n", "outside/now");
    struct json *forked = fork_of(&s, r);
    serve_refused(&s, 409, "changed in the directory too", "POST", path_of(&s, forked, "apply"),
                  NULL);
    CHECK_STR(file_text(&s, "open/a/old"), "theirs\n");
    const struct json *d = serve_want(&s, 200, "GET", path_of(&s, forked, "diff"), NULL);
    CHECK_INT(json_get_int(json_get(d, STR("counts")), "conflicts", 0), 1);
    serve_want(&s, 200, "POST", path_of(&s, forked, "apply"), "{'force':true}");
    CHECK_STR(file_text(&s, "open/a/old"), "mine\n");
    serve_close(&s);
}

TEST(v1_rollback_leads_to_the_beginning_and_to_a_snapshot)
{
    struct serve s = {0};

    open_with_mounts(&s);
    struct json *r = make(&s, "a", "'mounts':[{'source':'%s/open/a','target':'/work'}]");
    serve_exec(&s, r, "echo 1 > /work/old; echo 1 > /workspace/one");
    serve_want(&s, 200, "POST", path_of(&s, r, "snapshot"), "{'name':'one'}");
    serve_exec(&s, r, "echo 2 > /work/old; rm /workspace/one");
    const char *back = path_of(&s, r, "rollback");
    serve_refused(&s, 409, "stop it first", "POST", back, NULL);
    serve_want(&s, 200, "POST", path_of(&s, r, "stop"), NULL);
    serve_refused(&s, 404, "snapshot 'none' not found", "POST", back, "{'to':'none'}");
    serve_want(&s, 200, "POST", back, "{'to':'one'}");
    r = serve_start(&s, "a", "");
    CHECK_STR(serve_exec(&s, r, "cat /work/old /workspace/one"), "1\n1");
    serve_exec(&s, r, "echo 3 > /work/old");
    serve_want(&s, 200, "POST", path_of(&s, r, "stop"), NULL);
    serve_want(&s, 200, "POST", back, NULL);
    struct json *d = serve_want(&s, 200, "GET", path_of(&s, r, "diff"), NULL);
    CHECK_INT(json_get_int(d, "total", -1), 0);
    r = serve_start(&s, "a", "");
    CHECK_STR(serve_exec(&s, r, "cat /work/old; ls /workspace"), "old");
    struct json *forked = fork_of(&s, r);
    serve_want(&s, 200, "POST", path_of(&s, forked, "stop"), NULL);
    serve_refused(&s, 409, "the snapshot it began from is gone", "POST",
                  path_of(&s, forked, "rollback"), NULL);
    CHECK_INT(serve_ask(&s, "DELETE", "/croft/v1/snapshots/one", NULL).status, 204);
    serve_close(&s);
}

/* Each file is old or new whenever the server dies, and what it had acknowledged is there. */
TEST(v1_apply_cut_short_by_a_kill_leaves_whole_files_and_is_done_again)
{
    struct serve s = {0};
    char name[64];

    open_with_mounts(&s);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "open/a/%d", i);
        put_file(&s, name, "before\n");
    }
    struct json *r = make(&s, "a", "'mounts':[{'source':'%s/open/a','target':'/work'}]");
    serve_exec(&s, r, "cd /work && for i in $(seq 0 299); do echo after > $i; done");
    const char *apply = path_of(&s, r, "apply");
    own_fd conn = wire_connect(&s.wire);
    wire_send(conn, str_of(serve_text(&s,
                                      "POST %s HTTP/1.1\r\nHost: a\r\nX-API-Key: " FIRST_KEY
                                      "\r\nContent-Length: 2\r\n\r\n{}",
                                      apply)));
    while (str_eq(file_text(&s, "open/a/0"), STR("before\n")))
        poll(NULL, 0, 0);
    serve_kill(&s);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "open/a/%d", i);
        struct str text = file_text(&s, name);
        CHECK(str_eq(text, STR("before\n")) || str_eq(text, STR("after\n")));
    }
    serve_run(&s, (const char *const[]){"--config", dir_path(&s, "c.toml"), NULL});
    struct serve_answer again;
    do /* a child of the launcher's may still be at it */
        again = serve_ask(&s, "POST", apply, "{}");
    while (again.status == 503);
    CHECK_INT(again.status, 200);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "open/a/%d", i);
        CHECK_STR(file_text(&s, name), "after\n");
    }
    CHECK_STR(serve_exec(&s, serve_start(&s, "a", ""), "cat /work/299"), "after");
    serve_close(&s);
}

/* With one id, overlay attributes of its own kind, and whatever limits there are. */
TEST(v1_diff_and_rollback_work_for_an_ordinary_user)
{
    struct serve s = {0};

    serve_prepare_user(&s);
    serve_run(&s, NULL);
    struct json *r = serve_start(&s, "a", "");
    serve_exec(&s, r, "echo w > /workspace/w; rm /etc/inputrc");
    serve_want(&s, 200, "POST", path_of(&s, r, "stop"), NULL);
    struct json *d = serve_want(&s, 200, "GET", path_of(&s, r, "diff"), NULL);
    CHECK_STR(kind_at(&s, d, "/workspace/w"), "added");
    CHECK_STR(kind_at(&s, d, "/etc/inputrc"), "deleted");
    serve_want(&s, 200, "POST", path_of(&s, r, "rollback"), NULL);
    r = serve_start(&s, "a", "");
    CHECK_STR(serve_exec(&s, r, "ls /workspace; ls /etc/inputrc"), "/etc/inputrc");
    serve_close(&s);
}
