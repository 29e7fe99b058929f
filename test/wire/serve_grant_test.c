// SPDX-License-Identifier: Apache-2.0
/* serve_grant_test.c — directories of the host in sandboxes: who may have them, now and later, and
 * what becomes of changes to them when somebody dies or edits meanwhile. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/program.h"
#include "test/v1_kit.h"

/* --- who may have them --- */

/* "open/a" is a grant of its own within "open", to look at alone; "open/b" is only key b's. */
#define NESTED                                                                                     \
    "[mount.open]\npath = '%s/open'\nmodes = ['rw', 'apply']\n"                                    \
    "[mount.inner]\npath = '%s/open/a'\nmodes = ['ro', 'overlay']\n"                               \
    "[mount.b]\npath = '%s/open/b'\nmodes = ['apply']\nkeys = ['b']\n"

static const char *new_key(struct serve *s, const char *name)
{
    return serve_field(
        s,
        serve_want(s, 201, "POST", "/croft/v1/tokens",
                   serve_text(s, "{'name':'%s','scopes':['runtime','mount']}", name)),
        "secret");
}

static void open_nested(struct serve *s)
{
    prepare_mounts(s);
    CHECK_INT(mkdir(dir_path(s, "open/b"), 0755), 0);
    put_file(s, "open/b/old", "old\n");
    put_file(s, "c.toml", serve_text(s, NESTED, test_dir(), test_dir(), test_dir()));
    CHECK_INT(symlink("../b", dir_path(s, "open/a/out")), 0);
    run_with_mounts(s);
}

TEST(v1_of_nested_grants_the_inner_one_counts)
{
    struct serve s = {0};

    open_nested(&s);
    const char *a = new_key(&s, "a"), *b = new_key(&s, "b");
    s.key = a;
    serve_refused(&s, 403, "(mount.inner.modes of the server's settings)", "POST", SANDBOXES,
                  body_of(&s, "x", "'mounts':[{'source':'%s/open/a','target':'/w','mode':'rw'}]"));
    serve_refused(&s, 403, "no directory that key 'a' may mount", "POST", SANDBOXES,
                  body_of(&s, "x", "'mounts':[{'source':'%s/open/b','target':'/w'}]"));
    serve_want(
        &s, 200, "POST", SANDBOXES, /* no link leads out of the inner one */
        body_of(&s, "out", "'mounts':[{'source':'%s/open/a/out','target':'/w','mode':'ro'}]"));
    CHECK_HAS(str_of(failure_of(&s, "out")), "mount '/w'");
    struct json *r = make(&s, "y",
                          "'mounts':[{'source':'%s/open/a','target':'/in'},"
                          "{'source':'%s/open','target':'/all'}]");
    serve_exec(&s, r, "echo new > /in/old; echo new > /all/f");
    serve_refused(&s, 403, "'/in' may be worked on as a copy only", "POST", path_of(&s, r, "apply"),
                  NULL);
    serve_want(&s, 200, "POST", path_of(&s, r, "apply"), "{'paths':['/all']}");
    CHECK_STR(file_text(&s, "open/f"), "new\n");
    CHECK_STR(file_text(&s, "open/a/old"), "old\n");
    s.key = b;
    r = make(&s, "z", "'mounts':[{'source':'%s/open/b','target':'/w'}]");
    serve_exec(&s, r, "echo new > /w/old");
    serve_want(&s, 200, "POST", path_of(&s, r, "apply"), NULL);
    CHECK_STR(file_text(&s, "open/b/old"), "new\n");
    s.key = FIRST_KEY;
    serve_close(&s);
}

static int boxes(struct serve *s)
{
    DIR *d = opendir(dir_path(s, "state/box"));
    int n = 0;

    CHECK(d);
    for (const struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void wait_for_warm(struct serve *s)
{
    const struct json *o;

    do {
        poll(NULL, 0, 10);
        o = serve_want(s, 200, "GET", "/croft/v1/pool", NULL);
    } while (json_get_int(json_at(json_get(o, STR("pools")), 0), "ready", 0) != 1);
}

/* It waited for ever, beyond every bound, and the pool made another one. */
TEST_LIMIT(v1_a_warm_sandbox_whose_claim_is_refused_does_not_stay, 120)
{
    struct serve s = {0};

    prepare_mounts(&s);
    put_file(&s, "c.toml",
             serve_text(&s,
                        "[mount.open]\npath = '%s/open'\nmodes = ['ro']\n"
                        "[pool.default]\nimage = 'host'\ntarget = 1\nceiling = 1\n",
                        test_dir()));
    run_with_mounts(&s);
    wait_for_warm(&s);
    serve_want(
        &s, 200, "POST", SANDBOXES,
        body_of(&s, "x", "'mounts':[{'source':'%s/open/nosuch','target':'/w','mode':'ro'}]"));
    CHECK_HAS(str_of(failure_of(&s, "x")), "nosuch");
    wait_for_warm(&s);
    for (int i = 0; boxes(&s) != 1; i++) {
        CHECK(i < 2000);
        poll(NULL, 0, 10);
    }
    serve_close(&s);
}

/* A service manager may leave that capability out, and Docker does: such claims were cold. */
TEST_LIMIT(v1_mounts_and_a_host_name_are_claimed_without_cap_sys_ptrace, 120)
{
    struct serve s = {0};

    prepare_mounts(&s);
    put_file(&s, "c.toml",
             serve_text(&s,
                        "[mount.open]\npath = '%s/open'\nmodes = ['overlay']\n"
                        "[pool.default]\nimage = 'host'\ntarget = 1\nceiling = 1\n",
                        test_dir()));
    CHECK(prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE) == 0); /* of what we run from here on */
    run_with_mounts(&s);
    wait_for_warm(&s);
    struct json *r =
        make(&s, "x", "'hostname':'claimed','mounts':[{'source':'%s/open/a','target':'/in'}]");
    CHECK_HAS(serve_field(&s, r, "status_detail"), "warm: from pool 'default'");
    CHECK_STR(serve_exec(&s, r, "cat /in/old; cat /proc/sys/kernel/hostname"), "old\nclaimed");
    serve_close(&s);
}

/* The launcher would do it for anybody: that another key has the grant is no grant for this one. */
TEST(v1_apply_and_fork_need_a_grant_of_the_keys_own)
{
    struct serve s = {0};

    open_nested(&s);
    const char *b = new_key(&s, "b"), *c = new_key(&s, "c");
    s.key = b;
    struct json *r = make(&s, "z", "'mounts':[{'source':'%s/open/b','target':'/w'}]");
    serve_exec(&s, r, "echo new > /w/old");
    serve_kill(&s);
    put_file(&s, "c.toml",
             serve_text(&s,
                        "[mount.b]\npath = '%s/open/b'\nmodes = ['apply']\nkeys = ['c']\n"
                        "[mount.d]\npath = '%s/open/b'\nmodes = ['overlay']\nkeys = ['d']\n",
                        test_dir(), test_dir()));
    run_with_mounts(&s);
    serve_refused(&s, 403, "key 'b' may mount any more", "POST", path_of(&s, r, "apply"), NULL);
    serve_refused(&s, 403, "no directory that key 'b' may mount", "POST", path_of(&s, r, "fork"),
                  "{}");
    CHECK_STR(file_text(&s, "open/b/old"), "old\n");
    s.key = c;
    struct json *theirs = make(&s, "z", "'mounts':[{'source':'%s/open/b','target':'/w'}]");
    serve_exec(&s, theirs, "echo theirs > /w/new");
    serve_want(&s, 200, "POST", path_of(&s, theirs, "apply"), NULL);
    CHECK_STR(serve_exec(&s, fork_of(&s, theirs), "cat /w/new"), "theirs");
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

/* The names of snapshots are the tenant's, not the administrator's. */
TEST(v1_rollback_by_an_administrator_leads_to_the_snapshot_of_its_owner)
{
    struct serve s = {0};

    open_with_mounts(&s);
    struct json *own = make(&s, "mine", "'pids':64");
    serve_exec(&s, own, "echo admin > /workspace/f");
    serve_want(&s, 200, "POST", path_of(&s, own, "snapshot"), "{'name':'one'}");
    serve_want(&s, 200, "POST", path_of(&s, own, "snapshot"), "{'name':'admins'}");
    s.key = new_key(&s, "other");
    struct json *r = make(&s, "a", "'pids':64");
    serve_exec(&s, r, "echo theirs > /workspace/f");
    serve_want(&s, 200, "POST", path_of(&s, r, "snapshot"), "{'name':'one'}");
    serve_exec(&s, r, "echo later > /workspace/f");
    serve_want(&s, 200, "POST", path_of(&s, r, "stop"), NULL);
    const char *theirs = s.key;
    s.key = FIRST_KEY;
    serve_refused(&s, 404, "snapshot 'admins' not found", "POST", path_of(&s, r, "rollback"),
                  "{'to':'admins'}");
    serve_want(&s, 200, "POST", path_of(&s, r, "rollback"), "{'to':'one'}");
    s.key = theirs;
    CHECK_STR(serve_exec(&s, serve_start(&s, "a", ""), "cat /workspace/f"), "theirs");
    serve_refused(&s, 404, "not found", "POST", path_of(&s, own, "rollback"), "{'to':'one'}");
    s.key = FIRST_KEY;
    serve_close(&s);
}

/* --- what becomes of changes --- */

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

/* Each file is old or new whenever the server or its launcher dies, who asked hears nothing or an
 * error, and asked again it is done. */
static void check_cut_short(bool of_launcher)
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
    pid_t launcher = serve_launcher(&s);
    own_fd conn = wire_connect(&s.wire);
    wire_send(conn, str_of(serve_text(&s,
                                      "POST %s HTTP/1.1\r\nHost: a\r\nX-API-Key: " FIRST_KEY
                                      "\r\nContent-Length: 2\r\n\r\n{}",
                                      apply)));
    while (str_eq(file_text(&s, "open/a/0"), STR("before\n")))
        poll(NULL, 0, 0);
    if (of_launcher) { /* the server ends by itself: it cannot have another */
        CHECK_INT(kill(launcher, SIGKILL), 0);
        CHECK_INT(program_wait(s.wire.pid), 1);
    } else
        serve_kill(&s);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "open/a/%d", i);
        struct str text = file_text(&s, name);
        CHECK(str_eq(text, STR("before\n")) || str_eq(text, STR("after\n")));
    }
    run_with_mounts(&s);
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

TEST(v1_apply_cut_short_by_a_kill_leaves_whole_files_and_is_done_again)
{
    check_cut_short(false);
}

TEST(v1_apply_cut_short_by_the_end_of_the_launcher_leaves_whole_files_and_is_done_again)
{
    check_cut_short(true);
}

/* With one id, overlay attributes of its own kind, and whatever limits there are. */
TEST(v1_apply_works_for_an_ordinary_user)
{
    struct serve s = {0};

    serve_prepare_user(&s);
    CHECK_INT(mkdir(dir_path(&s, "mine"), 0755), 0);
    put_file(&s, "mine/old", "old\n");
    put_file(&s, "c.toml",
             serve_text(&s, "[mount.mine]\npath = '%s/mine'\nmodes = ['apply']\n", test_dir()));
    run_with_mounts(&s);
    struct json *r = make(&s, "a", "'mounts':[{'source':'%s/mine','target':'/work'}]");
    serve_exec(&s, r, "cd /work && echo new > old && mkdir d && echo x > d/f && chmod 4755 d/f");
    serve_want(&s, 200, "POST", path_of(&s, r, "stop"), NULL);
    CHECK_STR(kind_at(&s, serve_want(&s, 200, "GET", path_of(&s, r, "diff"), NULL), "/work/old"),
              "modified");
    serve_want(&s, 200, "POST", path_of(&s, r, "apply"), NULL);
    CHECK_STR(file_text(&s, "mine/old"), "new\n");
    CHECK_STR(file_text(&s, "mine/d/f"), "x\n");
    struct stat st;
    CHECK_INT(stat(dir_path(&s, "mine/d/f"), &st), 0);
    CHECK_INT(st.st_uid, geteuid());
    CHECK_INT(st.st_mode & 07777, 0755);
    serve_close(&s);
}

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
