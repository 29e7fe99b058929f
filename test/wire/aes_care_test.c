// SPDX-License-Identifier: Apache-2.0
/* aes_care_test.c — what a server leaves behind, and what it never loses. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "test/aes_run.h"
#include "test/program.h"

/* The directory in the path of an open file of the process that holds word. */
static const char *open_dir(struct aes *a, const char *word)
{
    char path[300];

    for (int i = 3; i < 64; i++) {
        ssize_t n = readlink(aes_text(a, "/proc/%d/fd/%d", (int)a->wire.pid, i), path, 299);
        path[n < 0 ? 0 : n] = '\0';
        char *at = strstr(path, word);
        if (!at)
            continue;
        at[1 + strcspn(at + 1, "/ ")] = '\0';
        return aes_text(a, "%s", path);
    }
    FAIL("nothing like '%s' is open", word);
}

AES_TEST(aes_server_that_was_killed_is_tidied_up_after_by_the_next)
{
    static const char *const words[] = {"/croft-undo-", "/croft-shell-", "/croft-kernel-"};
    const struct timespec old[2] = {{time(NULL) - 7200, 0}, {time(NULL) - 7200, 0}};
    char dirs[3][300];
    struct aes a;
    struct stat st;

    aes_open_plain(&a, program);
    aes_act(&a, "edit", aes_text(&a, "'command':'create','path':'%s/f','file_text':'x'", a.dir));
    aes_run_plain(&a, "true");
    aes_act(&a, "run_ipython", "'code':'1'");
    for (int i = 0; i < 3; i++) {
        snprintf(dirs[i], sizeof dirs[i], "%s", open_dir(&a, words[i]));
        CHECK(stat(dirs[i], &st) == 0 && S_ISDIR(st.st_mode));
    }
    CHECK_INT(kill(a.wire.pid, SIGKILL), 0);
    CHECK_INT(program_wait(a.wire.pid), 128 + SIGKILL);
    CHECK_INT(unlink(aes_text(&a, "%s/sock", test_dir())), 0);
    arena_done(&a.arena);
    for (int left = 3, tries = 0; left; tries++) { /* what dies of it may touch them once more */
        for (int i = 0; i < 3; i++)
            utimensat(AT_FDCWD, dirs[i], old, 0);
        aes_open_plain(&a, program);
        left = 0;
        for (int i = 0; i < 3; i++)
            left += stat(dirs[i], &st) == 0;
        if (left && tries == 50)
            FAIL("%d directories are left", left);
        aes_close(&a);
    }
}

AES_TEST(aes_upload_whose_server_was_killed_leaves_nothing)
{
    static const char form[] = "--b\r\nContent-Disposition: form-data; name=\"file\"; "
                               "filename=\"up.bin\"\r\n\r\nthe first half";
    struct aes a;

    aes_open_plain(&a, program);
    int fd = wire_connect(&a.wire);
    wire_send(fd, str_of(aes_text(&a,
                                  "POST /upload_file?destination=%s HTTP/1.1\r\nHost: localhost\r\n"
                                  "Content-Type: multipart/form-data; boundary=b\r\n"
                                  "Content-Length: 100000\r\n\r\n%s",
                                  a.dir, form)));
    CHECK_HAS(aes_print(&a, aes_act(&a, "run",
                                    "'command':'until ls -d .upload-*; do :; done 2>/dev/null',"
                                    "'blocking':true")),
              ".upload-");
    CHECK_INT(kill(a.wire.pid, SIGKILL), 0);
    CHECK_INT(program_wait(a.wire.pid), 128 + SIGKILL);
    close(fd);
    CHECK_INT(unlink(aes_text(&a, "%s/sock", test_dir())), 0);
    arena_done(&a.arena);
    aes_open_plain(&a, program);
    aes_run(&a, &(struct run_step){0, "ls -A", .want = {"="}});
    aes_close(&a);
}

/* --- a request that is sent again --- */

/* Counts its runs; waits at the fifos of aes_meet. */
#define COUNTED                                                                                    \
    "'command':'echo x >> count; : > seen; until read < gate; do :; done; wc -l < count; touch "   \
    "done','blocking':true"

static const struct retried {
    const char *target, *body;
} retried[] = {
    {"/execute_action", "{'action':{'action':'run','args':{" COUNTED "}}}"},
    {"/croft/v1/shells/other/run", "{" COUNTED "}"},
};

static void open_retry(struct aes *a, const char *program)
{
    aes_open_plain(a, program);
    aes_run_plain(a, "mkfifo gate seen");
    CHECK_INT(aes_ask_post(a, "/croft/v1/shells", "{'name':'other'}").status, 201);
}

static int send_counted(struct aes *a, const struct retried *r)
{
    int fd = aes_send(a, "POST", r->target, "", aes_quoted(a, r->body));

    CHECK_INT(aes_ask_get(a, "/alive").status, 200); /* it is in: requests are taken in order */
    return fd;
}

static void cut(struct aes *a, int fd)
{
    close(fd);
    CHECK_INT(aes_ask_get(a, "/alive").status, 200);
}

/* A command of another shell sees the file, so the server is running, too. */
static void await(struct aes *a, const char *file)
{
    aes_act(a, "run",
            aes_text(a,
                     "'command':'until [ -e %s ]; do sleep 0.01; done; rm %s',"
                     "'is_static':true,'blocking':true",
                     file, file));
}

AES_TEST(aes_retry_after_every_cut_is_attached_while_it_runs_and_when_it_has_ended)
{
    struct aes a;

    open_retry(&a, program);
    for (size_t i = 0; i < ARRAY_LEN(retried); i++) {
        int fd = send_counted(&a, &retried[i]);
        aes_meet(&a, "s");
        for (int k = 0; k < 4; k++) { /* four of five are cut */
            cut(&a, fd);
            fd = send_counted(&a, &retried[i]);
        }
        cut(&a, fd);
        aes_meet(&a, "g");
        await(&a, "done"); /* nobody was there when it ended */
        struct aes_answer r = aes_take(&a, send_counted(&a, &retried[i]));
        CHECK_INT(r.status, 200);
        CHECK_HAS(r.body, "\"content\":\"1\"");
        CHECK_STR(aes_get(&a, "count"), "x\n");
        fd = send_counted(&a, &retried[i]); /* that one was answered: this is another command */
        aes_meet(&a, "s");
        aes_meet(&a, "g");
        CHECK_HAS(aes_take(&a, fd).body, "\"content\":\"2\"");
        CHECK_INT(unlink(aes_path(&a, "count")), 0);
        await(&a, "done");
    }
    aes_close(&a);
}

AES_TEST(aes_same_request_of_two_clients_runs_twice)
{
    struct aes a;

    open_retry(&a, program);
    for (size_t i = 0; i < ARRAY_LEN(retried); i++) {
        int first = send_counted(&a, &retried[i]);
        aes_meet(&a, "s");
        int second = send_counted(&a, &retried[i]);
        aes_meet(&a, "g");
        CHECK_HAS(aes_take(&a, first).body, "\"content\":\"1\"");
        aes_meet(&a, "s");
        aes_meet(&a, "g");
        CHECK_HAS(aes_take(&a, second).body, "\"content\":\"2\"");
        CHECK_INT(unlink(aes_path(&a, "count")), 0);
    }
    aes_close(&a);
}

AES_TEST(aes_retry_for_one_shell_is_never_the_command_of_another)
{
    static const char body[] = "{'command':'echo x >> count; until [ -e go ]; do sleep 0.01; done; "
                               "wc -l < count','blocking':true}";
    const struct retried rows[] = {{"/croft/v1/shells/other/run", body},
                                   {"/croft/v1/shells/third/run", body}};
    struct aes a;

    open_retry(&a, program);
    CHECK_INT(aes_ask_post(&a, "/croft/v1/shells", "{'name':'third'}").status, 201);
    cut(&a, send_counted(&a, &rows[0]));
    int fd = send_counted(&a, &rows[1]);
    aes_act(&a, "run",
            "'command':'until [ $(wc -l < count) = 2 ]; do sleep 0.01; done; touch go',"
            "'blocking':true");
    CHECK_HAS(aes_take(&a, fd).body, "\"content\":\"2\"");
    aes_close(&a);
}

/* The end of the command and of the connection come to the server at the same time. */
AES_TEST(aes_answer_is_kept_when_the_cut_comes_with_it)
{
    struct aes a;

    open_retry(&a, program);
    int fd = send_counted(&a, &retried[0]);
    aes_meet(&a, "s");
    CHECK_INT(kill(a.wire.pid, SIGSTOP), 0);
    aes_meet(&a, "g");
    for (struct stat st; stat(aes_path(&a, "done"), &st) < 0;)
        sched_yield();
    close(fd);
    CHECK_INT(kill(a.wire.pid, SIGCONT), 0);
    CHECK_INT(aes_ask_get(&a, "/alive").status, 200);
    CHECK_HAS(aes_take(&a, send_counted(&a, &retried[0])).body, "\"content\":\"1\"");
    CHECK_STR(aes_get(&a, "count"), "x\n");
    aes_close(&a);
}
