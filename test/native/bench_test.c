// SPDX-License-Identifier: Apache-2.0
/* croft bench: what it prints is about this machine; how fast that is, no test asks. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

static char state[280]; /* for --state: layers are shared with other tests */

static void be_ready(void)
{
    static char first[300], second[300];

    kit_need_root();
    setenv("TMPDIR", test_dir(), 1);
    snprintf(state, sizeof state, "%s/state", test_dir());
    CHECK_INT(mkdir(state, 0755), 0);
    snprintf(first, sizeof first, "%s/first", state);
    snprintf(second, sizeof second, "%s/second", state);
    kit_share_layers(first);
    kit_share_layers(second);
    CHECK_INT(chmod(test_dir(), 0711), 0); /* the server, of user nobody, passes through */
}

/* The first name in a directory that begins so; false: none. */
static bool find_name(const char *path, const char *begin, char out[64])
{
    DIR *d = opendir(path);
    bool found = false;

    for (struct dirent *e; d && !found && (e = readdir(d));)
        if (strncmp(e->d_name, begin, strlen(begin)) == 0) {
            snprintf(out, 64, "%.63s", e->d_name);
            found = true;
        }
    if (d)
        closedir(d);
    return found;
}

/* No process names the scratch in its arguments: no daemon, shim or client of a container. */
static void check_no_process(const char *name)
{
    DIR *d = opendir("/proc");
    char path[300], text[4096];

    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%.20s/cmdline", e->d_name);
        own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
        if (n > 0 && memmem(text, (size_t)n, name, strlen(name)))
            FAIL("process %s is left: %.300s", e->d_name, text);
    }
    if (d)
        closedir(d);
}

/* A launcher ends behind its server, and holds this lock until then. */
static void settle(const char *server)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s/box", state, server);
    own_fd box = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (box < 0)
        return; /* it was killed before there was a launcher */
    CHECK_INT(flock(box, LOCK_EX), 0);
    snprintf(path, sizeof path, "state/%s/box", server);
    kit_check_empty(path);
}

static void check_nothing_left(const char *scratch)
{
    char name[64];

    CHECK(!find_name(test_dir(), "croft-bench-", name));
    settle("first");
    check_no_process(scratch);
}

/* The scratch is gone, and with it the server and its sandboxes. */
static void check_bench(const char *const *args, const char *const *wanted)
{
    const char *argv[16] = {NULL, "bench", "--state", state};
    own_done(buf) out;
    char left[64];

    be_ready();
    argv[0] = test_program("croft");
    setenv("CROFT_BENCH_CROWD", "12", 1);
    for (size_t i = 0; args[i]; i++)
        argv[i + 4] = args[i];
    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(argv, &out), 0);
    for (size_t i = 0; wanted[i]; i++)
        CHECK_HAS(buf_str(&out), str_of(wanted[i]));
    CHECK_INT(str_find(buf_str(&out), STR("failure")), -1);
    CHECK_INT(str_find(buf_str(&out), STR("not measured")), -1);
    CHECK(!find_name(test_dir(), "croft-bench-", left));
    settle("first");
    settle("second");
    check_no_process(test_dir());
}

TEST_LIMIT(croft_bench_prints_a_start_a_command_and_memory_beside_a_peer, 120)
{
    check_bench(ARGS("--runs", "2", "--json"),
                ARGS("\"what\": \"a start, until it listens\", \"n\": 2, \"failed\": 0",
                     "exec to exit\", \"n\": 2, \"failed\": 0",
                     "bwrap --unshare-all -- true\", \"n\": 2, \"failed\": 0",
                     "\"note\": \"Pss of an idle sandbox: "));
}

TEST_LIMIT(croft_bench_names_the_peer_it_has_to_do_without, 120)
{
    own_done(buf) out;

    be_ready();
    setenv("PATH", test_dir(), 1);
    buf_init(&out, 1u << 16);
    CHECK_INT(
        program_run(ARGS(test_program("croft"), "bench", "--state", state, "--runs", "1"), &out),
        0);
    CHECK_HAS(buf_str(&out),
              "without bwrap: not installed; Debian's package 'bubblewrap' brings it");
    CHECK_HAS(buf_str(&out), "not measured");
}

/* Reads until it has said so; without `what`, until no process can say more. */
static void read_until(int fd, struct buf *seen, const char *what)
{
    char part[512];

    while (!what || str_find(buf_str(seen), str_of(what)) < 0) {
        ssize_t n = read(fd, part, sizeof part);
        if (n <= 0 && !what)
            return;
        CHECK(n > 0);
        buf_add(seen, str_n(part, (size_t)n));
    }
}

/* The janitor holds the bench's output until it is done: its end is the end of all. */
static void kill_bench(int signo, const char *when)
{
    int out[2];
    own_done(buf) seen;
    char scratch[64];

    be_ready();
    buf_init(&seen, 1u << 16);
    CHECK_INT(pipe2(out, O_CLOEXEC), 0);
    struct program p = {.argv =
                            ARGS(test_program("croft"), "bench", "--state", state, "--runs", "60"),
                        .fds = (const int[]){-1, out[1], out[1]},
                        .fd_count = 3};
    pid_t pid = program_start(&p);
    close(out[1]);
    read_until(out[0], &seen, when);
    CHECK(find_name(test_dir(), "croft-bench-", scratch));
    kill(pid, signo);
    CHECK_INT(program_wait(pid), 128 + signo);
    read_until(out[0], &seen, NULL);
    close(out[0]);
    check_nothing_left(scratch);
}

TEST_LIMIT(croft_bench_killed_while_it_makes_sandboxes_leaves_nothing, 120)
{
    kill_bench(SIGKILL, "one after the other");
}

TEST_LIMIT(croft_bench_interrupted_beside_its_peer_leaves_nothing, 120)
{
    kill_bench(SIGINT, "beside bwrap's");
}

TEST(croft_bench_refuses_a_number_of_runs_that_makes_no_sense)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft"), "bench", "--runs", "0"), &out), 2);
    CHECK_HAS(buf_str(&out), "--runs: from 1 to 10000");
}

TEST_LIMIT(croft_bench_tti_prints_starts_beside_bashes, 120)
{
    check_bench(ARGS("tti", "--runs", "2"),
                ARGS("one after another, no pause", "bash on a pty, the same", "100%", " ms: m"));
}

TEST_LIMIT(croft_bench_burst_prints_starts_at_once_beside_bashes, 120)
{
    check_bench(ARGS("burst", "--runs", "2"),
                ARGS("as many 'bash -c :' at once", ", bar >= 500.000 /s: m", "100%",
                     "1,000 at once that succeed                100.000 %",
                     "2,000 by 32 that succeed                  100.000 %",
                     ", bar <= 800.000 ms: m"));
}

TEST_LIMIT(croft_bench_exec_prints_what_the_proxy_adds, 120)
{
    check_bench(ARGS("exec", "--runs", "2"),
                ARGS("straight to its socket", ", bar <= 0.100 ms: m",
                     "bytes by the proxy over a bare relay's", "100%"));
}

TEST_LIMIT(croft_bench_density_prints_a_few_beside_a_crowd, 120)
{
    check_bench(ARGS("density", "--runs", "2"),
                ARGS("GET /runtime, all sandboxes", ", bar <= 20.047 MB: m", "100%"));
}

TEST(croft_bench_refuses_a_measurement_it_does_not_know)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft"), "bench", "speed"), &out), 2);
    CHECK_HAS(buf_str(&out), "no measurement 'speed'; tti, burst, exec or density");
}
