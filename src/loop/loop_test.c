// SPDX-License-Identifier: Apache-2.0
/* loop_test.c — descriptors, laters, signals and children; timers and work have files of their own.
 */
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "test/test.h"

static struct loop *new_loop(void)
{
    struct loop *l;

    CHECK_OK(loop_new(&clock_system, &l));
    return l;
}

static void turn(struct loop *l)
{
    CHECK_OK(loop_turn(l, 0));
}

struct pipe_io {
    struct loop_io io;
    int write_fd, calls;
    uint32_t ready;
    struct pipe_io *stops, *frees;
};

static void on_pipe(struct loop_io *io)
{
    struct pipe_io *p = container_of(io, struct pipe_io, io);

    p->calls++;
    p->ready = io->ready;
    if (p->stops)
        loop_io_stop(&p->stops->io);
    if (p->frees) {
        loop_io_stop(&p->frees->io);
        close(p->frees->io.fd);
        close(p->frees->write_fd);
        free(take(&p->frees));
    }
}

static struct pipe_io *pipe_new(struct loop *l, bool readable)
{
    struct pipe_io *p = mem_new(sizeof *p);
    int fds[2];

    CHECK_INT(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK_OK(loop_io_start(l, &p->io, fds[0], EPOLLIN, on_pipe));
    p->write_fd = fds[1];
    if (readable)
        CHECK_INT(write(fds[1], "x", 1), 1);
    return p;
}

static void pipe_drop(struct pipe_io *p)
{
    loop_io_stop(&p->io);
    close(p->io.fd);
    close(p->write_fd);
    free(p);
}

TEST(a_readable_descriptor_is_called_every_turn_until_it_is_read)
{
    own(loop) l = new_loop();
    struct pipe_io *p = pipe_new(l, false);
    char c;

    turn(l);
    CHECK_INT(p->calls, 0);
    CHECK_INT(write(p->write_fd, "x", 1), 1);
    turn(l);
    turn(l);
    CHECK_INT(p->calls, 2);
    CHECK(p->ready & EPOLLIN);
    CHECK_INT(read(p->io.fd, &c, 1), 1);
    turn(l);
    CHECK_INT(p->calls, 2);
    pipe_drop(p);
}

TEST(want_zero_is_silent_and_the_same_want_costs_no_system_call)
{
    own(loop) l = new_loop();
    struct pipe_io *p = pipe_new(l, true);

    CHECK_OK(loop_io_want(&p->io, 0));
    turn(l);
    CHECK_INT(p->calls, 0);
    fault_at(UINT32_MAX);
    CHECK_OK(loop_io_want(&p->io, 0));
    CHECK_INT(fault_calls(), 0);
    CHECK_OK(loop_io_want(&p->io, EPOLLIN));
    CHECK_INT(fault_calls(), 1);
    fault_at(0);
    turn(l);
    CHECK_INT(p->calls, 1);
    pipe_drop(p);
}

TEST(a_stopped_descriptor_is_not_called_and_stopping_twice_is_fine)
{
    own(loop) l = new_loop();
    struct pipe_io *p = pipe_new(l, true);

    loop_io_stop(&p->io);
    loop_io_stop(&p->io);
    turn(l);
    CHECK_INT(p->calls, 0);
    CHECK_OK(loop_io_start(l, &p->io, p->io.fd, EPOLLIN, on_pipe));
    turn(l);
    CHECK_INT(p->calls, 1);
    pipe_drop(p);
}

TEST(a_callback_may_stop_itself)
{
    own(loop) l = new_loop();
    struct pipe_io *p = pipe_new(l, true);

    p->stops = p;
    turn(l);
    turn(l);
    CHECK_INT(p->calls, 1);
    pipe_drop(p);
}

/* Both are ready in the same turn; whichever comes first takes the other away. */
TEST(a_callback_may_free_the_owner_of_another_event_of_the_turn)
{
    own(loop) l = new_loop();
    struct pipe_io *a = pipe_new(l, true), *b = pipe_new(l, true), *c = pipe_new(l, true);

    b->frees = a;
    turn(l); /* a was called before b freed it: in the order of becoming ready */
    CHECK_INT(b->calls, 1);
    CHECK(b->frees == NULL);
    b->frees = c;
    c = NULL;
    turn(l);
    CHECK_INT(b->calls, 2);
    CHECK(b->frees == NULL);
    turn(l);
    CHECK_INT(b->calls, 3);
    pipe_drop(b);
}

struct end_timer {
    struct loop_timer timer;
    struct pipe_io *stops;
};

static void on_end_timer(struct loop_timer *t)
{
    loop_io_stop(&take(&container_of(t, struct end_timer, timer)->stops)->io);
}

TEST(a_descriptor_that_a_timer_stopped_is_not_called_in_the_same_turn)
{
    own(loop) l = new_loop();
    struct pipe_io *p = pipe_new(l, true);
    struct end_timer end = {.stops = p};

    loop_timer_start(l, &end.timer, 1, on_end_timer);
    while (end.stops) {
        p->calls = 0;
        turn(l);
    }
    CHECK_INT(p->calls, 0);
    pipe_drop(p);
}

TEST(two_callbacks_of_one_turn_that_stop_each_other_run_once_in_all)
{
    own(loop) l = new_loop();
    struct pipe_io *a = pipe_new(l, true), *b = pipe_new(l, true);

    a->stops = b;
    b->stops = a;
    turn(l);
    CHECK_INT(a->calls + b->calls, 1);
    pipe_drop(a);
    pipe_drop(b);
}

TEST(more_ready_descriptors_than_one_batch_are_all_called)
{
    own(loop) l = new_loop();
    struct pipe_io *all[200];

    for (int i = 0; i < 200; i++)
        all[i] = pipe_new(l, true);
    for (int i = 0; i < 4; i++)
        turn(l);
    for (int i = 0; i < 200; i++) {
        CHECK(all[i]->calls >= 1);
        pipe_drop(all[i]);
    }
}

TEST(starting_on_a_bad_descriptor_fails_and_leaves_it_stopped)
{
    own(loop) l = new_loop();
    struct loop_io io = {0};

    CHECK_ERR(loop_io_start(l, &io, 9999, EPOLLIN, on_pipe), ERR_IO, "epoll_ctl");
    CHECK(io.loop == NULL);
    loop_io_stop(&io);
}

TEST_LIMIT(ten_thousand_idle_descriptors_cost_nothing_per_turn, 60)
{
    own(loop) l = new_loop();
    int pair[2];

    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct pipe_io *many = mem_new(10000 * sizeof *many);
    int count = 0;
    for (; count < 10000; count++) {
        int fd = fcntl(pair[0], F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
            break; /* the limit on descriptors: fewer will do */
        CHECK_OK(loop_io_start(l, &many[count].io, fd, EPOLLIN, on_pipe));
    }
    CHECK(count > 500);
    fault_at(UINT32_MAX);
    for (int i = 0; i < 100; i++)
        turn(l);
    CHECK_INT(fault_calls(), 0);
    fault_at(0);
    for (int i = 0; i < count; i++) {
        CHECK_INT(many[i].calls, 0);
        close(many[i].io.fd);
    }
    free(many);
}

/* --- laters --- */

struct later_owner {
    struct loop_later later;
    struct loop *loop;
    struct later_owner *cancels;
    int calls;
    bool again, frees_itself;
    int *freed;
};

static void on_later(struct loop_later *later)
{
    struct later_owner *o = container_of(later, struct later_owner, later);

    o->calls++;
    if (o->cancels)
        loop_later_cancel(&o->cancels->later);
    if (o->again)
        loop_later(o->loop, &o->later, on_later);
    if (o->frees_itself) {
        ++*o->freed;
        free(o);
    }
}

TEST(a_later_runs_once_after_the_turn_however_often_it_was_asked)
{
    own(loop) l = new_loop();
    struct later_owner o = {.loop = l};

    loop_later(l, &o.later, on_later);
    loop_later(l, &o.later, on_later);
    CHECK_INT(o.calls, 0);
    turn(l);
    turn(l);
    CHECK_INT(o.calls, 1);
}

TEST(a_later_that_asks_again_runs_in_the_next_turn_so_io_is_not_starved)
{
    own(loop) l = new_loop();
    struct later_owner o = {.loop = l, .again = true};

    loop_later(l, &o.later, on_later);
    turn(l);
    CHECK_INT(o.calls, 1);
    CHECK_OK(loop_turn(l, 60000)); /* must not wait: something is due */
    CHECK_INT(o.calls, 2);
    loop_later_cancel(&o.later);
    turn(l);
    CHECK_INT(o.calls, 2);
}

TEST(a_later_may_cancel_the_next_one_of_the_same_turn)
{
    own(loop) l = new_loop();
    struct later_owner a = {.loop = l}, b = {.loop = l};

    a.cancels = &b;
    loop_later(l, &a.later, on_later);
    loop_later(l, &b.later, on_later);
    turn(l);
    turn(l);
    CHECK_INT(a.calls, 1);
    CHECK_INT(b.calls, 0);
}

TEST(what_waits_to_be_freed_is_freed_with_the_loop)
{
    struct loop *l = new_loop();
    int freed = 0;

    for (int i = 0; i < 3; i++) {
        struct later_owner *o = mem_new(sizeof *o);
        o->frees_itself = true;
        o->freed = &freed;
        loop_later(l, &o->later, on_later);
    }
    loop_free(l);
    CHECK_INT(freed, 3);
}

/* --- run and stop --- */

static void on_stop(struct loop_later *later)
{
    loop_stop(container_of(later, struct later_owner, later)->loop);
}

TEST(run_goes_on_until_it_is_stopped_and_may_run_again)
{
    own(loop) l = new_loop();
    struct later_owner o = {.loop = l};

    for (int i = 0; i < 2; i++) {
        loop_later(l, &o.later, on_stop);
        CHECK_OK(loop_run(l));
    }
}

TEST(a_wake_is_kept_for_the_turn_that_comes)
{
    own(loop) l = new_loop();

    errno = EDOM;
    loop_wake(l);
    CHECK_INT(errno, EDOM);
    CHECK_OK(loop_turn(l, 60000));
    turn(l);
}

/* --- signals --- */

struct sig_owner {
    struct loop_signal sig;
    struct sig_owner *drops;
    int calls;
};

static void on_sig(struct loop_signal *s)
{
    struct sig_owner *o = container_of(s, struct sig_owner, sig);

    o->calls++;
    if (o->drops) {
        loop_signal_stop(&o->drops->sig);
        free(take(&o->drops));
    }
}

TEST(a_signal_reaches_each_of_its_owners_and_no_other)
{
    own(loop) l = new_loop();
    struct sig_owner a = {0}, b = {0}, other = {0};

    CHECK_OK(loop_signal_start(l, &a.sig, SIGUSR1, on_sig));
    CHECK_OK(loop_signal_start(l, &other.sig, SIGUSR2, on_sig));
    CHECK_OK(loop_signal_start(l, &b.sig, SIGUSR1, on_sig));
    CHECK_INT(raise(SIGUSR1), 0);
    turn(l);
    CHECK_INT(a.calls, 1);
    CHECK_INT(b.calls, 1);
    CHECK_INT(other.calls, 0);
    loop_signal_stop(&a.sig);
    loop_signal_stop(&a.sig);
    CHECK_INT(raise(SIGUSR1), 0);
    CHECK_INT(raise(SIGUSR2), 0);
    turn(l);
    CHECK_INT(a.calls, 1);
    CHECK_INT(b.calls, 2);
    CHECK_INT(other.calls, 1);
}

TEST(a_signal_callback_may_free_the_next_owner)
{
    own(loop) l = new_loop();
    struct sig_owner *a = mem_new(sizeof *a), *b = mem_new(sizeof *b), c = {0};

    CHECK_OK(loop_signal_start(l, &a->sig, SIGUSR1, on_sig));
    CHECK_OK(loop_signal_start(l, &b->sig, SIGUSR1, on_sig));
    CHECK_OK(loop_signal_start(l, &c.sig, SIGUSR1, on_sig));
    a->drops = b;
    CHECK_INT(raise(SIGUSR1), 0);
    turn(l);
    CHECK_INT(a->calls, 1);
    CHECK_INT(c.calls, 1);
    c.drops = a;
    CHECK_INT(raise(SIGUSR1), 0);
    turn(l);
    CHECK_INT(c.calls, 2);
}

/* --- children --- */

struct kid {
    struct loop_child child;
    int calls;
};

static void on_kid(struct loop_child *c)
{
    container_of(c, struct kid, child)->calls++;
}

static pid_t spawn(int exit_code)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        if (exit_code < 0)
            for (;;)
                pause();
        _exit(exit_code);
    }
    return pid;
}

static void wait_for(struct loop *l, struct kid *k)
{
    while (!k->calls)
        CHECK_OK(loop_turn(l, 10000));
}

TEST(a_child_that_exits_is_reaped_with_its_code)
{
    own(loop) l = new_loop();
    struct kid k = {0};
    unsigned fds = test_open_fds();
    pid_t pid = spawn(7);

    CHECK_OK(loop_child_start(l, &k.child, pid, -1, on_kid));
    wait_for(l, &k);
    CHECK_INT(k.child.code, CLD_EXITED);
    CHECK_INT(k.child.status, 7);
    CHECK_INT(waitpid(pid, NULL, WNOHANG), -1);
    CHECK_INT(test_open_fds(), fds);
    loop_child_stop(&k.child);
}

TEST(a_killed_child_tells_its_signal)
{
    own(loop) l = new_loop();
    struct kid k = {0};
    pid_t pid = spawn(-1);
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    CHECK_OK(loop_child_start(l, &k.child, pid, pidfd, on_kid));
    turn(l);
    CHECK_INT(k.calls, 0);
    kill(pid, SIGKILL);
    wait_for(l, &k);
    CHECK_INT(k.child.code, CLD_KILLED);
    CHECK_INT(k.child.status, SIGKILL);
}

TEST(a_child_that_somebody_else_reaped_is_told_without_its_status)
{
    own(loop) l = new_loop();
    struct kid k = {0};
    pid_t pid = spawn(3);
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    CHECK_INT(waitpid(pid, NULL, 0), pid);
    CHECK_OK(loop_child_start(l, &k.child, pid, pidfd, on_kid));
    wait_for(l, &k);
    CHECK_INT(k.child.code, CLD_EXITED);
    CHECK_INT(k.child.status, -1);
}

TEST(a_child_that_is_forgotten_can_be_reaped_by_hand)
{
    own(loop) l = new_loop();
    struct kid k = {0};
    unsigned fds = test_open_fds();
    pid_t pid = spawn(0);

    CHECK_OK(loop_child_start(l, &k.child, pid, -1, on_kid));
    loop_child_stop(&k.child);
    loop_child_stop(&k.child);
    CHECK_INT(test_open_fds(), fds);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
    turn(l);
    CHECK_INT(k.calls, 0);
}

TEST(a_child_that_does_not_exist_is_refused)
{
    own(loop) l = new_loop();
    struct kid k = {0};
    pid_t pid = spawn(0);

    CHECK_INT(waitpid(pid, NULL, 0), pid);
    CHECK_ERR(loop_child_start(l, &k.child, pid, -1, on_kid), ERR_NOT_FOUND, "pidfd_open");
}

/* --- faults --- */

TEST(a_fault_in_loop_new_leaves_nothing_open)
{
    unsigned fds = test_open_fds(), n = 0;
    struct loop *l = NULL;

    for (bool fired = true; fired;) {
        fault_at(++n);
        struct err *e = loop_new(&clock_system, &l);
        fired = fault_fired();
        fault_at(0);
        CHECK(fired == (e != NULL));
        err_free(e);
        if (!fired)
            loop_free(l);
        CHECK_INT(test_open_fds(), fds);
    }
    CHECK(n >= 6);
}

TEST(a_fault_at_any_start_leaves_nothing_open_and_the_loop_usable)
{
    own(loop) l = new_loop();
    struct pipe_io *p = pipe_new(l, true);
    struct loop_io io = {0};
    struct sig_owner s = {0};
    struct kid k = {0};
    unsigned fds = test_open_fds();
    pid_t pid = spawn(-1);

    loop_io_stop(&p->io);
    for (unsigned n = 1; n <= 2; n++) {
        fault_at(n);
        struct err *e = loop_signal_start(l, &s.sig, SIGUSR1, on_sig);
        fault_at(0);
        CHECK(e != NULL);
        err_free(e);
        CHECK_INT(test_open_fds(), fds);
    }
    fault_at(1);
    struct err *e = loop_io_start(l, &io, p->io.fd, EPOLLIN, on_pipe);
    fault_at(1);
    struct err *e2 = loop_child_start(l, &k.child, pid, -1, on_kid);
    fault_at(0);
    CHECK(e && e2 && !io.loop && !k.child.io.loop);
    err_free(e);
    err_free(e2);
    CHECK_INT(test_open_fds(), fds);
    CHECK_OK(loop_io_start(l, &p->io, p->io.fd, EPOLLIN, on_pipe));
    turn(l);
    CHECK_INT(p->calls, 1);
    kill(pid, SIGKILL);
    pipe_drop(p);
}
