// SPDX-License-Identifier: Apache-2.0
/* plain.c — a start, a whole command beside bubblewrap's, and what an idle sandbox weighs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "host/bench/bars_inner.h"

#define IDLE       8  /* sandboxes that are weighed */
#define GENERATION 16 /* of processes: no tree here is deeper */

extern char **environ;

/* --- a whole program --- */

/* The janitor waits for it: `croft run` has a sandbox to remove. */
static int plain_spawn(const struct served *s, const char *const *argv, pid_t *ret_pid)
{
    posix_spawn_file_actions_t a;

    posix_spawn_file_actions_init(&a);
    posix_spawn_file_actions_addopen(&a, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&a, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&a, s->scratch.word, s->scratch.word);
    int e = posix_spawnp(ret_pid, argv[0], &a, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&a);
    return e;
}

/* From exec to exit, which must be 0. */
static fallible run_whole(const struct served *s, const char *const *argv, double *ret_ms)
{
    double begin = lives_now_ms();
    int status = -1;
    pid_t pid;
    int e = plain_spawn(s, argv, &pid);

    if (e)
        return err_sysno(e, "run '%s'", argv[0]);
    waitpid(pid, &status, 0);
    *ret_ms = lives_now_ms() - begin;
    return status ? err_new(ERR_INTERNAL, "'%s' ended with status %#x", argv[0], (unsigned)status)
                  : NULL;
}

static fallible plain_commands(struct served *s, const struct bars_plan *plan, struct bars *b,
                               struct bench_row *row, struct bench_row *peer_row)
{
    static const char *const peer[] = {
        "bwrap",  "--unshare-all", "--ro-bind", "/usr", "/usr",      "--symlink", "usr/bin",
        "/bin",   "--symlink",     "usr/lib",   "/lib", "--symlink", "usr/lib64", "/lib64",
        "--proc", "/proc",         "--dev",     "/dev", "true",      NULL};
    const char *const ours[] = {plan->self, "run", "--bare", "--discard", "--", "true", NULL};
    double ms;

    setenv("CROFT_SERVER_STATE_DIR", s->state, 1);
    struct err *e = run_whole(s, peer, &ms);
    bool there = !e || err_errno(e) != ENOENT;
    if (!there)
        snprintf(b->note, sizeof b->note,
                 "without bwrap: not installed; Debian's package 'bubblewrap' brings it");
    err_free(e); /* its row tells what else is wrong */
    double begin = lives_now_ms();
    for (unsigned i = 0; bars_go_on(begin, i, BARS_LEAST, plan->runs); i++) {
        e = run_whole(s, ours, &ms);
        bars_count_err(b, row, ms, e);
        e = there ? run_whole(s, peer, &ms) : NULL;
        if (there)
            bars_count_err(b, peer_row, ms, e);
    }
    return NULL;
}

/* --- memory --- */

static pid_t parent_of(pid_t pid)
{
    char path[40];
    own_done(buf) text;
    int parent = 0;

    buf_init(&text, 4096);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    err_free(fd_read_file(path, &text)); /* it has ended */
    const char *name_end = strrchr(buf_cstr(&text), ')');
    if (name_end)
        parent = atoi(name_end + 4); /* ") S 123" */
    return parent;
}

static bool is_below(pid_t pid, pid_t root)
{
    for (unsigned i = 0; i < GENERATION && pid > 1; i++) {
        if (pid == root)
            return true;
        pid = parent_of(pid);
    }
    return false;
}

/* A page that several have counts as its part in each. */
static uint64_t tree_pss_kb(pid_t root)
{
    DIR *d = opendir("/proc");
    uint64_t sum = 0, kb;

    for (struct dirent *entry; d && (entry = readdir(d));) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid <= 0 || !is_below(pid, root))
            continue;
        struct err *e = served_kb(pid, "smaps_rollup", "Pss", &kb);
        sum += e ? 0 : kb;
        err_free(e); /* it has ended */
    }
    if (d)
        closedir(d);
    return sum;
}

/* The first few are weighed as well. */
static fallible plain_starts(struct served *s, const struct bars_plan *plan, struct bars *b,
                             struct bench_row *row)
{
    double begin = lives_now_ms(), ms;
    struct life l[IDLE];

    for (unsigned i = 0; bars_go_on(begin, i, 1, plan->runs); i += IDLE) {
        size_t n = plan->runs - i < IDLE ? plan->runs - i : IDLE, used = strlen(b->note);
        struct lives_plan one = {s, LIVES_START, n, 1, 0};
        lives_init(l, n);
        uint64_t before = tree_pss_kb(s->pid);
        TRY(lives_run(&one, l, &ms));
        for (size_t k = 0; k < n; k++)
            bars_count(b, row, l[k].end_ms, &l[k]);
        if (i == 0)
            snprintf(b->note + used, sizeof b->note - used, "%sPss of an idle sandbox: %.2f MB",
                     used ? "; " : "", (double)(tree_pss_kb(s->pid) - before) / 1024 / (double)n);
        TRY(bars_stop_all(s, l, n));
        lives_done(l, n);
    }
    return NULL;
}

fallible bars_plain(struct served *s, const struct bars_plan *plan, struct bars *b)
{
    struct bench_row *start = bars_add_row(b, "a start, until it listens", plan->runs + IDLE);
    struct bench_row *command = bars_add_row(b, "croft run -- true, exec to exit", plan->runs);
    struct bench_row *peer = bars_add_row(b, "  bwrap --unshare-all -- true", plan->runs);

    TRY(served_set_pool(s, 0));
    TRY(bars_settle(s)); /* the first start makes the layers of this machine's system */
    bars_say(plan, "starts, one after the other");
    TRY(plain_starts(s, plan, b, start));
    bars_say(plan, "whole commands, beside bwrap's");
    TRY(plain_commands(s, plan, b, command, peer));
    bars_sort(b);
    bars_set(bars_add_bar(b, "croft run over bwrap, p50", 1.5, "x"),
             bars_median(command) / bars_median(peer), command->count && peer->count);
    return NULL;
}
