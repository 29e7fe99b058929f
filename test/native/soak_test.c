// SPDX-License-Identifier: Apache-2.0
/* soak_test.c — sandboxes come and go, and whoever runs them is killed at a bad moment: at the end
 * there is what there was at the beginning.
 *
 * CROFT_SOAK_CYCLES and CROFT_SOAK_KILLS make it longer (`make soak`), CROFT_SOAK_SEED another,
 * CROFT_SOAK_PROGRESS names a file to tell how far it is. */
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/rng.h"
#include "test/native/census.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"
#include "test/test.h"

#define SPARES 2
#define KEPT   3 /* sandboxes that live while something is killed */

static unsigned from_env(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);

    return text && *text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void progress(const char *what, unsigned done, unsigned all, uint64_t begin_ns)
{
    const char *path = getenv("CROFT_SOAK_PROGRESS");
    unsigned step = all / 20 ? all / 20 : 1;

    if (!path || done % step)
        return;
    own_fd fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    double seconds = (double)(clock_mono_ns(&clock_system) - begin_ns) / 1e9;
    if (fd >= 0)
        fd_print(fd, "%u of %u %s, %.1f s, %.0f/s\n", done, all, what, seconds, done / seconds);
}

/* The launcher makes one spare per turn: after so many answers all are there. */
static void settle(struct rig *r)
{
    for (unsigned i = 0; i < SPARES + 2; i++)
        rig_tell(r, NATIVE_LIST, "");
}

static void cycle(struct rig *r, struct census_groups *groups)
{
    rig_start(r, "a");
    census_note_groups(groups, r->state);
    rig_tell(r, NATIVE_REMOVE, "a");
}

TEST_LIMIT(sandboxes_made_and_removed_many_times_leave_nothing, 3600)
{
    unsigned cycles = from_env("CROFT_SOAK_CYCLES", 300);
    struct rig r;
    struct census ours[2], launchers[2];
    struct census_groups groups;

    kit_need_root();
    census_open_groups(&groups);
    rig_open(&r, SPARES);
    cycle(&r, &groups);
    settle(&r);
    census_take(&ours[0], getpid(), r.state);
    census_take(&launchers[0], r.pid, r.state);
    uint64_t begin = clock_mono_ns(&clock_system);
    for (unsigned i = 1; i <= cycles; i++) {
        cycle(&r, &groups);
        progress("sandboxes made and removed", i, cycles, begin);
    }
    settle(&r);
    census_take(&ours[1], getpid(), r.state);
    census_take(&launchers[1], r.pid, r.state);
    census_compare(&ours[0], &ours[1]);
    census_compare(&launchers[0], &launchers[1]);
    rig_close(&r);
    census_check_groups(&groups, r.state);
}

/* --- kills --- */

struct soak {
    struct rig r;
    struct rng_fixed rng;
    struct census_groups groups;
    char sockets[4300];
};

static void reap_dead(void)
{
    while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
        ;
}

/* A moment that is never the same: what runs meanwhile decides how far it gets. */
static void let_others_run(struct soak *s)
{
    for (uint64_t n = rng_below(&s->rng.rng, 400); n > 0; n--)
        sched_yield();
}

static void new_launcher(struct soak *s)
{
    rig_kill(&s->r);
    rig_fork(&s->r);
}

static void new_server(struct soak *s)
{
    own_close_p(&s->r.ready);
    own_close_p(&s->r.control);
    s->r.ready = s->r.control = -1;
    close(s->r.sock);
    CHECK_OK(launcher_connect(s->sockets, &s->r.sock));
}

static void ask_and_leave(struct soak *s, enum native_op op, const char *id)
{
    struct native_request req = rig_request(op, id);
    own_fd block = rig_block(ARGS("action-server", "--no-auth"), ARGS("PATH=/usr/bin:/bin"));

    req.envc = 1;
    req.argc = 2;
    CHECK_OK(fd_send(s->r.sock, str_n(&req, sizeof req), &block, op == NATIVE_START));
    let_others_run(s);
}

static void kill_something(struct soak *s)
{
    switch (rng_below(&s->rng.rng, 7)) {
    case 0:
        new_server(s);
        return;
    case 1:
        CHECK_INT(kill(rig_tell(&s->r, NATIVE_INSPECT, "k0").pid, SIGKILL), 0);
        return;
    case 2:
        new_launcher(s);
        return;
    case 3:
        ask_and_leave(s, NATIVE_START, "torn");
        new_server(s);
        return;
    case 4:
        ask_and_leave(s, NATIVE_REMOVE, "k0");
        new_launcher(s);
        return;
    case 5:
        ask_and_leave(s, NATIVE_PAUSE, "k0");
        new_launcher(s);
        return;
    default:
        ask_and_leave(s, NATIVE_START, "torn");
        new_launcher(s);
    }
}

/* The victim of a round is k0 at most: the others must be as they were. */
static void check_survivors(struct soak *s)
{
    for (unsigned i = 1; i < KEPT; i++) {
        char id[8];
        snprintf(id, sizeof id, "k%u", i);
        CHECK_INT(rig_tell(&s->r, NATIVE_ADOPT, id).state, NATIVE_RUNNING);
        rig_check_answers(&s->r, id);
    }
}

static void remove_listed(struct soak *s)
{
    struct native_reply list = rig_tell(&s->r, NATIVE_LIST, "");

    CHECK(list.count >= KEPT - 1);
    for (unsigned i = 0; i < list.count; i++)
        rig_tell(&s->r, NATIVE_REMOVE, list.ids[i]);
    CHECK_INT(rig_tell(&s->r, NATIVE_LIST, "").count, 0);
    kit_check_empty("state/box");
}

static void round_of_kills(struct soak *s)
{
    for (unsigned i = 0; i < KEPT; i++) {
        char id[8];
        snprintf(id, sizeof id, "k%u", i);
        rig_start(&s->r, id);
    }
    census_note_groups(&s->groups, s->r.state);
    kill_something(s);
    check_survivors(s);
    census_note_groups(&s->groups, s->r.state);
    remove_listed(s);
    reap_dead();
}

/* Whether the last round ended with a start is chance. */
static void forget_last(struct rig *r)
{
    own_close_p(&r->ready);
    own_close_p(&r->control);
}

TEST_LIMIT(kills_at_random_lose_nothing_and_leave_nothing, 3600)
{
    unsigned kills = from_env("CROFT_SOAK_KILLS", 10);
    struct soak s = {.groups = {.at = NULL}};
    struct census before, after;

    rig_prepare(&s.r, SPARES);
    census_open_groups(&s.groups);
    s.r.policy.persist = true;
    rng_fixed_init(&s.rng, from_env("CROFT_SOAK_SEED", (unsigned)getpid()));
    snprintf(s.sockets, sizeof s.sockets, "%s/run", s.r.state);
    rig_fork(&s.r);
    round_of_kills(&s);
    new_launcher(&s); /* which has no used slots: how many there are is chance */
    settle(&s.r);
    forget_last(&s.r);
    census_take(&before, getpid(), s.r.state);
    uint64_t begin = clock_mono_ns(&clock_system);
    for (unsigned i = 1; i <= kills; i++) {
        round_of_kills(&s);
        progress("kills", i, kills, begin);
    }
    new_launcher(&s);
    settle(&s.r);
    reap_dead();
    forget_last(&s.r);
    census_take(&after, getpid(), s.r.state);
    after.children =
        before.children; /* orphans may still be dying: rig_reap() waits for the last */
    census_compare(&before, &after);
    rig_close(&s.r);
    rig_reap();
    census_check_groups(&s.groups, s.r.state);
}
