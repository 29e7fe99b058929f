// SPDX-License-Identifier: Apache-2.0
/* croft bench: what it prints is about this machine; how fast that is, no test asks. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

static void be_ready(void)
{
    char state[300];

    kit_need_root();
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    setenv("TMPDIR", test_dir(), 1);
    kit_share_layers(state);
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

static void check_no_groups(const char *name)
{
    DIR *d = opendir("/sys/fs/cgroup");
    char path[600];

    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "/sys/fs/cgroup/%s/%s", e->d_name, name);
        if (access(path, F_OK) == 0)
            FAIL("control group '%s' is left", path);
    }
    if (d)
        closedir(d);
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
            FAIL("process %s is left", e->d_name);
    }
    if (d)
        closedir(d);
}

static void check_nothing_left(const char *scratch)
{
    char name[64], boxes[300];

    CHECK(!find_name(test_dir(), "croft-bench-", name));
    check_no_groups(scratch);
    check_no_process(scratch);
    kit_settle();
    snprintf(boxes, sizeof boxes, "%s/state/box", test_dir());
    if (access(boxes, F_OK) == 0) /* else it was killed before there was a launcher */
        kit_check_empty("state/box");
}

TEST_LIMIT(croft_bench_prints_every_row_without_a_failure, 120)
{
    own_done(buf) out;
    char name[64];

    be_ready();
    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft"), "bench", "--runs", "2", "--json"), &out), 0);
    CHECK_HAS(buf_str(&out), "\"what\": \"pause\", \"n\": 2, \"failed\": 0");
    CHECK_HAS(buf_str(&out), "\"what\": \"end and remove\", \"n\": 2, \"failed\": 0");
    CHECK_HAS(buf_str(&out), "exec to exit\", \"n\": 2, \"failed\": 0");
    CHECK_HAS(buf_str(&out), "exec to an answer\", \"n\": 2, \"failed\": 0");
    CHECK_HAS(buf_str(&out),
              "\"what\": \"snapshot of 1,000 files, 50 MB\", \"n\": 10, \"failed\": 0");
    CHECK(!find_name(test_dir(), "croft-bench-", name));
    kit_settle();
    kit_check_empty("state/box");
}

TEST_LIMIT(croft_bench_names_the_peers_it_has_to_do_without, 120)
{
    own_done(buf) out;

    be_ready();
    setenv("PATH", test_dir(), 1);
    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft"), "bench", "--runs", "1"), &out), 0);
    CHECK_HAS(buf_str(&out),
              "without bwrap: not installed; Debian's package 'bubblewrap' brings it");
    CHECK_HAS(buf_str(&out), "without crun: not installed; Debian's package 'crun' brings it");
    CHECK_HAS(buf_str(&out),
              "without docker: not installed; Debian's package 'docker.io' brings it");
}

/* Reads until it has said so; the rest goes on being read until nobody can say more. */
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
    struct program p = {.argv = ARGS(test_program("croft"), "bench", "--runs", "60"),
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

TEST_LIMIT(croft_bench_interrupted_among_its_peers_leaves_nothing, 120)
{
    kill_bench(SIGINT, "all peers in turns");
}

TEST(croft_bench_refuses_a_number_of_runs_that_makes_no_sense)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft"), "bench", "--runs", "0"), &out), 2);
    CHECK_HAS(buf_str(&out), "--runs: from 1 to 10000");
}

/* The scratch is gone, and with it the server, its sandboxes and their groups. */
static void check_server_bench(const char *name, const char *row, const char *bar, const char *note)
{
    own_done(buf) out;
    char left[64];

    be_ready();
    CHECK_INT(chmod(test_dir(), 0711), 0); /* the server, who is nobody, passes through */
    setenv("CROFT_BENCH_CROWD", "12", 1);
    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft"), "bench", name, "--runs", "2"), &out), 0);
    CHECK_HAS(buf_str(&out), str_of(row));
    CHECK_HAS(buf_str(&out), str_of(bar));
    CHECK_HAS(buf_str(&out), str_of(note));
    CHECK_HAS(buf_str(&out), "100%");
    CHECK_INT(str_find(buf_str(&out), STR("failure")), -1);
    CHECK_INT(str_find(buf_str(&out), STR("not measured")), -1);
    CHECK(!find_name(test_dir(), "croft-bench-", left));
    check_no_process(test_dir());
}

TEST_LIMIT(croft_bench_tti_prints_starts_beside_bashes_and_a_timeline, 120)
{
    check_server_bench("tti", "one after another, no pause", ", bar <= 0.500 ms: m",
                       "a median start, ms: queue");
}

TEST_LIMIT(croft_bench_burst_prints_starts_at_once_beside_bashes, 120)
{
    check_server_bench("burst", "as many 'bash -c :' at once", ", bar >= 500.000 /s: m",
                       " bashes at once a second, ");
}

TEST_LIMIT(croft_bench_exec_prints_what_the_proxy_adds, 120)
{
    check_server_bench("exec", "straight to its socket", ", bar <= 0.100 ms: m",
                       "bytes by the proxy over a bare relay's");
}

TEST_LIMIT(croft_bench_density_prints_a_few_beside_a_crowd, 120)
{
    check_server_bench("density", "GET /runtime, all sandboxes", ", bar <= 20.047 MB: m",
                       "own processor time of a start and stop, ms: ");
}

TEST(croft_bench_refuses_a_measurement_it_does_not_know)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS(test_program("croft"), "bench", "speed"), &out), 2);
    CHECK_HAS(buf_str(&out), "no measurement 'speed'; tti, burst, exec or density");
}
