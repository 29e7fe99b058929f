// SPDX-License-Identifier: Apache-2.0
/* proc_test.c — processes: their words, their end, and what fails on the way. */
#include "guest/proc/proc.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/rng.h"
#include "guest/jupyter/connection.h"
#include "guest/jupyter/spec.h"
#include "guest/proc/env.h"
#include "test/test.h"

struct run {
    struct proc proc;
    struct buf text;
    bool ended;
};

static void on_text(struct proc *p, struct str text)
{
    buf_add(&container_of(p, struct run, proc)->text, text);
}

static void on_exit_(struct proc *p)
{
    container_of(p, struct run, proc)->ended = true;
}

static fallible start_with(struct run *r, struct loop *loop, const char *script, int extra_fd)
{
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, NULL};
    char *env[] = {(char *)"PATH=/usr/bin:/bin", NULL};
    struct proc_config c = {.argv = argv, .env = env, .extra_fd = extra_fd};

    *r = (struct run){.proc = {.on_text = on_text, .on_exit = on_exit_}};
    buf_init(&r->text, 1u << 20);
    return proc_start(&r->proc, loop, &c);
}

static fallible start(struct run *r, struct loop *loop, const char *script)
{
    return start_with(r, loop, script, -1);
}

static void check(const char *script, const char *text, const char *end)
{
    own(loop) loop = NULL;
    struct run r;
    char how[64];

    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK_OK(start(&r, loop, script));
    while (!r.ended)
        CHECK_OK(loop_turn(loop, 5000));
    CHECK_STR(buf_str(&r.text), text);
    proc_describe(&r.proc, how, sizeof how);
    CHECK_STR(how, end);
    proc_stop(&r.proc);
    proc_stop(&r.proc);
    buf_done(&r.text);
}

TEST(proc_tells_words_and_end)
{
    check("echo out; echo err >&2; pwd; exit 3", "out\nerr\n/\n", "exit status 3");
    check("kill -9 $$", "", "signal 9 (Killed)");
    check("read x || echo no input", "no input\n", "exit status 0");
    check("ls /proc/self/fd", "0\n1\n2\n3\n", "exit status 0"); /* 3: the directory itself */
}

TEST(proc_stop_ends_what_it_started)
{
    own(loop) loop = NULL;
    struct run r;
    int ends[2];

    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    CHECK_OK(start_with(&r, loop, "sleep 1000 & echo; wait", ends[1]));
    close(ends[1]);
    while (!r.text.len)
        CHECK_OK(loop_turn(loop, 5000));
    CHECK_ERR(fd_wait(ends[0], POLLIN, 0), ERR_TIMEOUT, ""); /* both hold the other end */
    proc_stop(&r.proc);
    CHECK_OK(fd_wait(ends[0], POLLIN, 5000)); /* and now nobody does */
    CHECK(!r.ended);
    close(ends[0]);
    buf_done(&r.text);
}

TEST(proc_start_that_fails_leaves_nothing)
{
    own(loop) loop = NULL;

    CHECK_OK(loop_new(&clock_system, &loop));
    unsigned fds = test_open_fds();
    for (unsigned n = 1;; n++) {
        struct run r;
        fault_at(n);
        struct err *e = start(&r, loop, "exit 0");
        bool fired = fault_fired();
        fault_at(0);
        CHECK_INT(e != NULL, fired);
        err_free(e);
        proc_stop(&r.proc);
        buf_done(&r.text);
        CHECK_INT(test_open_fds(), fds);
        if (!fired)
            return;
    }
}

TEST(connection_that_fails_leaves_nothing)
{
    for (unsigned n = 1;; n++) {
        struct connection c;
        fault_at(n);
        struct err *e = connection_init(&c, test_dir(), rng_system(), NULL);
        bool fired = fault_fired();
        fault_at(0);
        CHECK_INT(e != NULL, fired);
        err_free(e);
        connection_done(&c);
        CHECK_INT(rmdir(test_dir()), 0); /* it is empty */
        CHECK_INT(mkdir(test_dir(), 0700), 0);
        if (!fired)
            return;
    }
}

TEST(connection_refuses_a_place_that_is_too_deep)
{
    struct connection c;

    CHECK_ERR(connection_init(&c,
                              "/a/very/long/directory/name/that/no/unix/socket/would/ever/fit/"
                              "into/because/paths/are/short",
                              rng_system(), NULL),
              ERR_INVALID, "too long a place for sockets");
}

TEST(spec_environment_replaces_by_name)
{
    own_done(arena) a;
    char *env[] = {(char *)"A=1", (char *)"AB=2", (char *)"C=3", NULL};
    char *more[] = {(char *)"AB=x", NULL};

    arena_init(&a, 4096);
    char **all = proc_env_with(&a, env, more);
    CHECK_STR(all[0], "AB=x");
    CHECK_STR(all[1], "A=1");
    CHECK_STR(all[2], "C=3");
    CHECK(!all[3]);
    CHECK_STR(proc_env_get(all, "AB"), "x");
    CHECK(!proc_env_get(all, "B"));
}

TEST(spec_of_another_kernel_is_read_from_its_file)
{
    own_done(arena) a;
    struct spec s;
    char dir[300], file[400], var[320];

    snprintf(dir, sizeof dir, "mkdir -p %s/kernels/mine", test_dir());
    CHECK_INT(system(dir), 0);
    snprintf(file, sizeof file, "%s/kernels/mine/kernel.json", test_dir());
    FILE *f = fopen(file, "w");
    fputs("{\"argv\": [\"sh\", \"-c\", \"{resource_dir}/x\", \"--file={connection_file}\"],"
          " \"language\": \"sh\", \"interrupt_mode\": \"message\", \"env\": {\"K\": \"v\"}}",
          f);
    fclose(f);
    snprintf(var, sizeof var, "JUPYTER_PATH=%s", test_dir());
    char *env[] = {var, (char *)"K=old", (char *)"PATH=/bin", NULL};
    arena_init(&a, 64u << 10);
    CHECK_OK(spec_find(&a, "mine", "/usr/bin/python3", env, "/c.json", &s));
    CHECK_STR(s.argv[0], "/bin/sh");
    CHECK_HAS(s.argv[2], "/kernels/mine/x");
    CHECK_STR(s.argv[3], "--file=/c.json");
    CHECK(!s.argv[4] && !s.python && s.interrupt_message);
    CHECK_STR(proc_env_get(s.env, "K"), "v");
    f = fopen(file, "w");
    fputs("{\"argv\": []}", f);
    fclose(f);
    CHECK_ERR(spec_find(&a, "mine", "/usr/bin/python3", env, "/c.json", &s), ERR_INVALID,
              "kernel.json': 'argv' must be a list");
}

TEST(spec_out_of_memory_is_an_error)
{
    char *env[] = {(char *)"PATH=/bin", NULL};

    for (unsigned n = 1;; n++) {
        own_done(arena) a;
        struct spec s;
        arena_init(&a, 64u << 10);
        fault_at(n);
        struct err *e = spec_find(&a, NULL, "/usr/bin/python3", env, "/c.json", &s);
        bool fired = fault_fired();
        fault_at(0);
        CHECK_INT(e != NULL, fired);
        err_free(e);
        if (!fired)
            return;
    }
}
