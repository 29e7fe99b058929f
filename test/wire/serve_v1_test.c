// SPDX-License-Identifier: Apache-2.0
/* serve_v1_test.c — /croft/v1/sandboxes: limits, host names and mounts of one sandbox; what it
 * changed, and what becomes of that. Rows share a server: a start costs more than a question. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/v1_kit.h"

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

TEST(v1_limits_and_host_name_are_the_sandbox_s_own_warm_or_not)
{
    struct serve s = {0};

    open_with_mounts(&s);
    put_file(&s, "open/a/forks.py", forks);
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
    struct json *plain = look(&s, make(&s, "b", "'resource_factor':2,'memory':'64M'"));
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

TEST(v1_binds_limits_and_mounts_at_claim_and_a_disk_limit_needs_a_new_one)
{
    struct serve s = {0};

    open_with_mounts(&s);
    put_file(&s, "open/a/forks.py", forks);
    serve_wait_warm(&s);
    struct json *r = make(&s, "a",
                          "'memory':'64M','pids':77,'hostname':'field-1',"
                          "'mounts':[{'source':'%s/open/a','target':'/work','mode':'ro'}]");
    CHECK_STR(serve_field(&s, look(&s, r), "launch_type"), "warm");
    CHECK_STR(serve_exec(&s, r, "hostname; cat /work/old; echo x > /work/x || echo no"),
              "field-1\nold\nbash: /work/x: Read-only file system\nno");
    CHECK_STR(serve_exec(&s, r, "python3 /work/forks.py"), "True");
    serve_wait_warm(&s);
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

/* --- what it changed --- */

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

TEST(v1_apply_wants_the_directory_the_sandbox_worked_on_unless_forced)
{
    struct serve s = {0};

    open_with_mounts(&s);
    struct json *r = make(&s, "a", "'mounts':[{'source':'%s/open/a','target':'/work'}]");
    serve_exec(&s, r, "echo x >/work/x; sync");
    CHECK_INT(rename(dir_path(&s, "open/a"), dir_path(&s, "open/moved")), 0);
    CHECK_INT(mkdir(dir_path(&s, "open/a"), 0755), 0);
    serve_refused(&s, 409, "another directory has its name now", "POST", path_of(&s, r, "apply"),
                  NULL);
    CHECK_STR(file_text(&s, "open/a/x"), "(none)");
    const struct json *diff = serve_want(&s, 200, "GET", path_of(&s, r, "diff"), NULL);
    CHECK_STR(kind_at(&s, diff, "/work/x"), "added");
    CHECK(json_get(json_at(json_get(diff, STR("directories")), 0), STR("other_directory")));
    const struct json *done =
        serve_want(&s, 200, "POST", path_of(&s, r, "apply"), "{'force':true}");
    CHECK(json_get(json_at(json_get(done, STR("directories")), 0), STR("other_directory")));
    CHECK_STR(file_text(&s, "open/a/x"), "x\n");
    const char *notes = serve_text(&s, "%s/box/%s/m0a", s.state, serve_field(&s, r, "runtime_id"));
    CHECK_INT(access(notes, F_OK), -1); /* they are the other one's */
    CHECK_INT(unlink(dir_path(&s, "open/a/x")), 0);
    CHECK_INT(rmdir(dir_path(&s, "open/a")), 0);
    CHECK_INT(rename(dir_path(&s, "open/moved"), dir_path(&s, "open/a")), 0);
    serve_want(&s, 200, "POST", path_of(&s, r, "apply"), NULL);
    CHECK_STR(file_text(&s, "open/a/x"), "x\n");
    CHECK_INT(access(notes, F_OK), 0);
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
    serve_refused(&s, 422, "paths[1]: nothing of that name", "POST", apply,
                  "{'paths':['/work/d', '/work/nosuch']}");
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
    serve_exec(&s, r, "echo newer >/work/old; sync"); /* what we applied is no conflict */
    serve_want(&s, 200, "POST", apply, "{'paths':['/work']}");
    CHECK_STR(file_text(&s, "open/a/old"), "newer\n");
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

TEST(v1_snapshot_that_is_removed_while_it_is_taken_is_gone)
{
    struct serve s = {.key = NULL};
    struct serve_answer a;
    int status;

    serve_open(&s);
    struct json *r = serve_start(&s, "s", "");
    serve_exec(&s, r, "for i in {1..500}; do echo $i > /workspace/$i; done");
    const char *path = path_of(&s, r, "snapshot");
    pid_t taker = fork();
    CHECK(taker >= 0);
    if (taker == 0) { /* taken and removed then, or removed before it was */
        int got = serve_ask(&s, "POST", path, "{'name':'one'}").status;
        _exit(got == 200 || got == 409 ? 0 : 1);
    }
    do {
        a = serve_ask(&s, "DELETE", "/croft/v1/snapshots/one", NULL);
        CHECK(a.status == 204 || a.status == 404);
    } while (a.status != 204);
    CHECK_INT(waitpid(taker, &status, 0), taker);
    CHECK_INT(status, 0);
    const struct json *left =
        json_get(serve_want(&s, 200, "GET", "/croft/v1/snapshots", NULL), STR("snapshots"));
    CHECK_INT(left->count, 0);
    serve_want(&s, 200, "POST", path, "{'name':'one'}");
    serve_close(&s);
}

TEST(v1_names_work_as_ids_and_fork_and_snapshot_need_no_body)
{
    struct serve s = {0};

    open_with_mounts(&s);
    struct json *r = serve_start(&s, "a", "");
    const char *id = serve_field(&s, r, "runtime_id");
    struct json *taken = serve_want(&s, 200, "POST", SANDBOXES "/a/snapshot", NULL);
    CHECK_HAS(json_get_str(taken, "name", STR("")), "snap-");
    serve_want(&s, 200, "POST", SANDBOXES "/a/fork", NULL);
    CHECK_STR(serve_field(&s, serve_want(&s, 200, "GET", SANDBOXES "/a", NULL), "runtime_id"), id);
    CHECK_STR(serve_field(&s, serve_want(&s, 200, "GET", "/runtime/a", NULL), "runtime_id"), id);
    serve_want(&s, 200, "POST", "/pause", "{'runtime_id':'a'}");
    serve_want(&s, 200, "POST", "/resume", "{'runtime_id':'a'}");
    serve_refused(&s, 404, "not found", "POST", "/pause", "{'runtime_id':'b'}");
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
