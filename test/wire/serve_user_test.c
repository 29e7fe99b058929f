// SPDX-License-Identifier: Apache-2.0
/* serve_user_test.c — who a sandbox runs as, and where: what is asked for is so, or is refused. */
#include <poll.h>
#include <string.h>

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

/* Its working directory is given away by the action server, wherever that is. */
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
