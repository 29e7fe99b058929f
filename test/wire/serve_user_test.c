// SPDX-License-Identifier: Apache-2.0
/* serve_user_test.c — who a sandbox runs as, and where: what is asked for is so, or is refused. */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "test/v1_kit.h"

#define LOOK                                                                                       \
    "id -u; id -g; id -G; pwd; touch ~/a /workspace/b here && stat -c %g /workspace/b; "           \
    "stat -c %a:%g /workspace; echo $HOME"

TEST_LIMIT(serve_gives_a_user_by_number_a_home_and_the_workspace, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *r =
        serve_start(&s, "v1",
                    "'command':['/usr/local/bin/openhands-agent-server','--port','60000'],"
                    "'working_dir':'/workspace/project','run_as_user':10001,"
                    "'run_as_group':10002,'fs_group':10003");
    CHECK_STR(serve_exec(&s, r, LOOK),
              "10001\n10002\n10002 10003\n/workspace/project\n10003\n2775:10003\n/home/10001");
    r = serve_start(&s, "sdk", "'command':null,'run_as_user':10001,'fs_group':10001");
    CHECK_STR(serve_exec(&s, r, "id -u; id -g; touch ~/a b && pwd"), "10001\n10001\n/workspace");
    serve_close(&s);
}

#define NAMES                                                                                      \
    "id -u; whoami; id -gn; echo $USER; sudo -n id -u; sudo -n touch /etc/made && ls /etc/made; "  \
    "sudo -n cut -d: -f1,2 /etc/shadow | tail -n 1; "                                              \
    "id -un openhands; echo that was all"
#define NAMED "10001\nu10001\nu10001\nu10001\n0\n/etc/made\nu10001:!\nopenhands\nthat was all"

static void check_names(struct serve *s, const char *session, const char *how)
{
    struct json *r = serve_start(s, session, "'command':null,'run_as_user':10001");
    CHECK_HAS(str_of(serve_field(s, r, "status_detail")), str_of(how));
    CHECK_STR(serve_exec(s, r, NAMES), NAMED);
}

/* What the V1 clients and the SDK send, of whom neither this machine nor most images know. */
TEST_LIMIT(serve_gives_a_user_by_number_an_account_that_may_sudo, 120)
{
    struct serve s = {.key = NULL};
    own_done(buf) before, after;
    const struct json *pool;

    if (access("/usr/bin/sudo", X_OK) < 0)
        SKIP("this machine has no sudo");
    buf_init(&before, 1u << 20);
    buf_init(&after, 1u << 20);
    CHECK_OK(fd_read_file("/etc/passwd", &before));
    serve_prepare(&s);
    serve_run_with(&s, "[pool.p]\nimage = 'host'\ntarget = 1\nceiling = 1\n");
    serve_wait_warm(&s);
    check_names(&s, "warm", "warm: from pool");
    serve_want(&s, 200, "PATCH", "/croft/v1/pool/p", "{'target':0,'ceiling':0}");
    do {
        struct json *all = serve_want(&s, 200, "GET", "/croft/v1/pool", NULL);
        pool = json_at(json_get(all, STR("pools")), 0);
        poll(NULL, 0, 5);
    } while (json_get_int(pool, "ready", 1) || json_get_int(pool, "starting", 1));
    check_names(&s, "cold", "cold: ");
    struct json *r = serve_start(&s, "given",
                                 "'command':['sh','-c','USER=$(whoami); " NAMES
                                 "; exec sleep 600'],'run_as_user':10001,'run_as_group':10001");
    const char *log = serve_text(&s, SANDBOXES "/%s/logs", serve_field(&s, r, "runtime_id"));
    struct str said = serve_get(&s, log).body;
    for (; str_find(said, STR("that was all\n")) < 0; said = serve_get(&s, log).body)
        poll(NULL, 0, 20);
    CHECK_HAS(said, NAMED);
    CHECK_OK(fd_read_file("/etc/passwd", &after));
    CHECK_STR(buf_str(&after), buf_str(&before)); /* of the machine itself */
    serve_close(&s);
}

TEST_LIMIT(serve_heeds_groups_that_come_without_a_user, 120)
{
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *r = serve_start(&s, "g", "'command':null,'run_as_group':4322");
    CHECK_STR(serve_exec(&s, r, "id -u; id -g; echo $HOME"), "0\n4322\n/root");
    r = serve_start(&s, "f", "'command':null,'fs_group':4323");
    CHECK_STR(serve_exec(&s, r, "id -u; id -G; touch a; stat -c %g a"), "0\n0 4323\n4323");
    serve_close(&s);
}

#define ELSEWHERE                                                                                  \
    "'command':['/usr/local/bin/openhands-agent-server','--port','60000'],"                        \
    "'working_dir':'/tmp/work','run_as_user':10001,'fs_group':10003,"
#define OWNER "stat -c %a:%u:%g /workspace"

TEST_LIMIT(serve_leaves_a_workspace_of_the_host_as_it_is_and_gives_away_a_copy, 120)
{
    struct serve s = {.key = NULL};
    struct stat st;

    open_with_mounts(&s);
    struct json *r = make(
        &s, "own", ELSEWHERE "'mounts':[{'source':'%s/open/a','target':'/workspace','mode':'rw'}]");
    CHECK_STR(serve_exec(&s, r, "id -u; " OWNER), "10001\n755:0:0");
    CHECK_INT(stat(dir_path(&s, "open/a"), &st), 0);
    CHECK(st.st_uid == 0 && st.st_gid == 0 && (st.st_mode & 07777) == 0755);
    r = make(&s, "copy", ELSEWHERE "'mounts':[{'source':'%s/open/a','target':'/workspace'}]");
    CHECK_STR(serve_exec(&s, r, OWNER "; touch /workspace/b && echo made"),
              "2775:10001:10003\nmade");
    CHECK_INT(stat(dir_path(&s, "open/a"), &st), 0);
    CHECK(st.st_uid == 0 && st.st_gid == 0 && (st.st_mode & 07777) == 0755);
    serve_close(&s);
}

/* The action server gives its working directory to who it works as, with all that is in it. */
TEST_LIMIT(serve_changes_no_owner_in_directories_of_the_host, 120)
{
    static const char *const names[] = {"open/a", "open/a/old"};
    struct serve s = {.key = NULL};
    struct stat st;

    open_with_mounts(&s);
    CHECK_INT(mkdir(dir_path(&s, "open/b"), 0755), 0);
    put_file(&s, "open/b/mine", "");
    for (unsigned i = 0; i < 2; i++)
        CHECK_INT(chown(dir_path(&s, names[i]), 4321, 4322), 0);
    struct json *r = make(&s, "rw",
                          "'command':null,'run_as_user':10001,"
                          "'mounts':[{'source':'%s/open/a','target':'/workspace','mode':'rw'}]");
    CHECK_STR(serve_exec(&s, r, "id -u; pwd; stat -c %u:%g . old; touch no || echo refused"),
              "10001\n/workspace\n4321:4322\n4321:4322\n"
              "touch: cannot touch 'no': Permission denied\nrefused");
    /* not as root either, who can write there; one it had to make is its user's */
    r = make(&s, "root",
             "'command':null,"
             "'mounts':[{'source':'%s/open/a','target':'/workspace','mode':'rw'}]");
    CHECK_STR(serve_exec(&s, r, "id -u; stat -c %u:%g . old; touch yes && stat -c %u yes"),
              "0\n4321:4322\n4321:4322\n0");
    r = make(&s, "new",
             "'command':null,'run_as_user':10001,'working_dir':'/workspace/new/dir',"
             "'mounts':[{'source':'%s/open/a','target':'/workspace','mode':'rw'}]");
    CHECK_STR(serve_exec(&s, r, "touch mine && stat -c %u . mine"), "10001\n10001");
    /* nor where one lies in a copy, whose own files are given */
    r = make(
        &s, "in",
        "'command':null,'run_as_user':10001,'mounts':[{'source':'%s/open/b','target':'/workspace'},"
        "{'source':'%s/open/a','target':'/workspace/in','mode':'rw'},"
        "{'source':'%s/open/a/old','target':'/workspace/file','mode':'rw'}]");
    CHECK_STR(serve_exec(&s, r, "stat -c %u . mine in in/old file"),
              "10001\n10001\n4321\n4321\n4321");
    for (unsigned i = 0; i < 2; i++) {
        CHECK_INT(stat(dir_path(&s, names[i]), &st), 0);
        CHECK(st.st_uid == 4321 && st.st_gid == 4322 && (st.st_mode & 020) == 0);
    }
    serve_close(&s);
}

static struct str wait_for_error(struct serve *s, const char *session, const char *more)
{
    const char *path = serve_text(s, "/sessions/%s", session);

    serve_want(s, 200, "POST", "/start",
               serve_text(s, "{'image':'host','session_id':'%s',%s}", session, more));
    for (unsigned i = 0; i < 3000; i++) {
        const struct json *r = serve_get(s, path).json;
        if (strcmp(serve_field(s, r, "status"), "error") == 0)
            return str_of(serve_field(s, r, "status_detail"));
        poll(NULL, 0, 20);
    }
    FAIL("%s never fails", session);
}

TEST_LIMIT(serve_names_a_working_directory_that_cannot_be_used, 120)
{
    static const struct {
        const char *more, *dir, *why;
    } starts[] = {
        {"'command':null,'run_as_user':1000,'working_dir':'/root/x'", "'/root/x'", "may not enter"},
        {"'command':null,'working_dir':'/etc/hostname'", "'/etc/hostname'", "Not a directory"},
        {"'command':['sleep','600'],'run_as_user':1000,'working_dir':'/root/x'", "'/root/x'",
         "Permission denied"},
        {"'command':['sleep','600'],'working_dir':'/etc/hostname'", "'/etc/hostname'",
         "Not a directory"},
    };
    struct serve s = {.key = NULL};

    serve_open(&s);
    for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
        struct str detail = wait_for_error(&s, serve_text(&s, "s%zu", i), starts[i].more);
        CHECK_HAS(detail, "working");
        CHECK_HAS(detail, str_of(starts[i].dir));
        CHECK_HAS(detail, str_of(starts[i].why));
    }
    serve_close(&s);
}

/* What OpenHands sends must work on a laptop too: as the one user there is, and it says so. */
TEST_LIMIT(serve_of_an_ordinary_user_runs_the_oldest_start_line_as_root_inside, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare_user(&s);
    serve_run(&s, NULL);
    struct json *r = serve_start(
        &s, "v0",
        "'command':['python','-u','-m','openhands.runtime.action_execution_server','60000',"
        "'--working-dir','/workspace','--plugins','agent_skills','jupyter',"
        "'--username','openhands','--user-id','1000']");
    CHECK_STR(serve_exec(&s, r, "id -un; pwd; echo $HOME $USER; touch a && stat -c %u a ."),
              "root\n/workspace\n/root root\n0\n0");
    CHECK_HAS(str_of(serve_field(&s, r, "status_detail")), "no user but root");
    struct serve_answer got = serve_get(
        &s, serve_text(&s, "/croft/v1/sandboxes/%s/logs", serve_field(&s, r, "runtime_id")));
    CHECK_HAS(got.body, "no user but root");
    serve_close(&s);
}
