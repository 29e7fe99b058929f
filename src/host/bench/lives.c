// SPDX-License-Identifier: Apache-2.0
/* lives.c — see lives.h. */
#include "host/bench/lives.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/own.h"

#define LOOK_MS   10 /* between two looks at one that is starting; its clients take longer */
#define SEEN      4096
#define BASH_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum { NEW, STARTING, LATER, LOOKING, RUNNING, STOPPING, TYPING, OVER };

struct crowd {
    const struct lives_plan *plan;
    struct life *lives;
    struct talk *talks; /* connections to the server, kept */
    struct talk **idle;
    size_t idle_count, active, over;
    struct pollfd *polls;
    struct life **polled;
};

double lives_now_ms(void)
{
    return (double)clock_mono_ns(&clock_system) / 1e6;
}

void lives_init(struct life *l, size_t count)
{
    for (size_t i = 0; i < count; i++)
        l[i] = (struct life){.box.fd = -1, .pty = -1};
}

void lives_done(struct life *l, size_t count)
{
    for (size_t i = 0; i < count; i++)
        err_free(l[i].error);
}

static void lives_finish(struct crowd *c, struct life *l, struct err *e)
{
    l->end_ms = lives_now_ms() - l->begin_ms;
    if (l->error)
        err_free(e); /* of its end: what went wrong first is told */
    else
        l->error = e;
    l->step = OVER;
    c->active--;
    c->over++;
    if (l->api)
        c->idle[c->idle_count++] = l->api;
    l->api = NULL;
    if (l->box.fd >= 0)
        talk_close(&l->box);
    if (l->pty >= 0) {
        close(l->pty);
        buf_done(&l->box.in);
    }
    l->pty = -1;
    if (l->pid > 0) {
        kill(l->pid, SIGKILL);
        waitpid(l->pid, NULL, 0);
    }
    l->pid = 0;
}

/* --- a bash --- */

/* As a new user of this machine has it, and as a sandbox does: interactive, with the start-up files
 * of /etc/skel, in a language; without what a copy of this process would cost. */
static fallible spawn_bash(const char *terminal, pid_t *ret_pid)
{
    static const char *const argv[] = {"bash", "-i", NULL};
    static const char *const env[] = {"HOME=/etc/skel",
                                      "HISTFILE=/dev/null",
                                      "LANG=C.UTF-8",
                                      "TERM=xterm-256color",
                                      "SHELL=/bin/bash",
                                      BASH_PATH,
                                      NULL};
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t files;
    sigset_t none;

    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attr, &none);
    int e = posix_spawn_file_actions_addopen(&files, 0, terminal, O_RDWR, 0);
    for (int fd = 1; !e && fd < 3; fd++)
        e = posix_spawn_file_actions_adddup2(&files, 0, fd);
    if (!e)
        e = posix_spawn(ret_pid, "/bin/bash", &files, &attr, (char *const *)argv,
                        (char *const *)env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return e ? err_sysno(e, "start a bash") : NULL;
}

static fallible begin_bash(struct life *l)
{
    static const char line[] = LIVES_COMMAND "\n";
    own_fd pty = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64];

    if (pty < 0 || unlockpt(pty) < 0 || ptsname_r(pty, name, sizeof name) != 0)
        return err_sys("make a terminal");
    TRY(spawn_bash(name, &l->pid));
    if (write(pty, line, sizeof line - 1) != (ssize_t)sizeof line - 1)
        return err_sys("type");
    buf_init(&l->box.in, SEEN);
    l->pty = take_fd(&pty);
    l->step = TYPING;
    return NULL;
}

static fallible hear_bash(struct crowd *c, struct life *l)
{
    char part[512];
    ssize_t n = read(l->pty, part, sizeof part);

    if (n < 0 && errno == EINTR)
        return NULL;
    if (n <= 0)
        return err_sys("the bash ended");
    buf_add(&l->box.in, str_n(part, (size_t)n));
    TRY(buf_check(&l->box.in));
    if (str_find(buf_str(&l->box.in), STR(LIVES_OUTPUT)) < 0)
        return NULL;
    lives_finish(c, l, NULL);
    return NULL;
}

/* --- a sandbox --- */

static fallible lives_tell(struct life *l, int step, const char *method, const char *target,
                           const char *body)
{
    l->step = step;
    return talk_send(l->api, method, target, NULL, body);
}

static fallible lives_stop(struct life *l)
{
    char body[80];

    snprintf(body, sizeof body, "{\"runtime_id\":\"%s\"}", l->id);
    return lives_tell(l, STOPPING, "POST", "/stop", body);
}

static fallible run_first(struct life *l)
{
    static const char run[] = LIVES_ACTION("echo \\\"c\\\"roft-$((6*7))");

    TRY(talk_tcp(&l->box, l->port));
    l->step = RUNNING;
    return talk_send(&l->box, "POST", "/execute_action", l->key, run);
}

static fallible lives_begin(struct crowd *c, struct life *l)
{
    char body[100];

    if (c->plan->kind == LIVES_BASH)
        return begin_bash(l);
    if (c->plan->kind == LIVES_FIRST)
        return run_first(l);
    l->api = c->idle[--c->idle_count];
    if (c->plan->kind == LIVES_STOP)
        return lives_stop(l);
    snprintf(body, sizeof body, "{\"image\":\"host\",\"session_id\":\"s%u\"}",
             ++c->plan->server->sessions);
    return lives_tell(l, STARTING, "POST", "/start", body);
}

static void lives_copy(char *to, size_t size, struct str from)
{
    snprintf(to, size, STR_FMT, STR_ARG(from));
}

/* It runs: what its kind does next. */
static fallible go_on(struct crowd *c, struct life *l)
{
    if (c->plan->kind == LIVES_WHOLE)
        return lives_stop(l);
    if (c->plan->kind == LIVES_START) {
        lives_finish(c, l, NULL);
        return NULL;
    }
    return run_first(l);
}

static fallible hear_start(struct crowd *c, struct life *l)
{
    own_done(arena) a;
    struct json *o;
    uint64_t port;

    arena_init(&a, 1u << 20);
    TRY(json_parse(&a, l->api->body, NULL, &o));
    struct str status = json_get_str(o, "status", STR("")), url = json_get_str(o, "url", STR(""));
    lives_copy(l->id, sizeof l->id, json_get_str(o, "runtime_id", STR("")));
    lives_copy(l->key, sizeof l->key, json_get_str(o, "session_api_key", STR("")));
    if (str_eq(status, STR("starting"))) {
        l->step = LATER;
        l->due_ms = lives_now_ms() + LOOK_MS;
        return NULL;
    }
    if (!str_eq(status, STR("running")))
        return err_new(ERR_INTERNAL, "runtime '%s' is " STR_FMT, l->id, STR_ARG(status));
    const char *colon = memrchr(url.p, ':', url.len);
    struct str rest = colon ? str_from(url, (size_t)(colon + 1 - url.p)) : STR(""), digits;
    str_cut(&rest, '/', &digits);
    if (!str_to_u64(digits, &port) || port > 65535)
        return err_new(ERR_INTERNAL, "url '" STR_FMT "' has no port", STR_ARG(url));
    l->port = (uint16_t)port;
    return go_on(c, l);
}

static fallible lives_hear(struct crowd *c, struct life *l)
{
    bool whole;

    if (l->step == TYPING)
        return hear_bash(c, l);
    TRY(talk_read(l->step == RUNNING ? &l->box : l->api, &whole));
    if (!whole)
        return NULL;
    if (l->step == STARTING || l->step == LOOKING) {
        l->claim_ms = lives_now_ms() - l->begin_ms; /* it is here; what we make of it is ours */
        return hear_start(c, l);
    }
    if (l->step == RUNNING && str_find(l->box.body, STR(LIVES_OUTPUT)) < 0)
        return err_new(ERR_INTERNAL, "the command's output is not in " STR_FMT,
                       STR_ARG(str_first(l->box.body, 200)));
    if (l->step == STOPPING)
        l->id[0] = '\0';
    lives_finish(c, l, NULL);
    return NULL;
}

/* --- all of them --- */

static fallible lives_look(struct life *l)
{
    char target[60];

    snprintf(target, sizeof target, "/runtime/%s", l->id);
    return lives_tell(l, LOOKING, "GET", target, NULL);
}

/* Begins those that are due. Gives the ms until the next is due, -1: none waits for a time. */
static int begin_due(struct crowd *c)
{
    double next = -1;

    for (size_t i = 0; i < c->plan->count; i++) {
        struct life *l = &c->lives[i];
        bool waits = l->step == LATER || (l->step == NEW && c->active < c->plan->most);
        if (!waits)
            continue;
        double now = lives_now_ms();
        if (l->due_ms > now && (next < 0 || l->due_ms - now < next))
            next = l->due_ms - now;
        if (l->due_ms > now)
            continue;
        struct err *e;
        if (l->step == NEW) {
            l->begin_ms = now;
            c->active++;
            e = lives_begin(c, l);
        } else {
            e = lives_look(l);
        }
        if (e)
            lives_finish(c, l, e);
    }
    return next < 0 ? -1 : (int)next + 1;
}

static fallible lives_turn(struct crowd *c)
{
    int wait_ms = begin_due(c);
    nfds_t n = 0;

    for (size_t i = 0; i < c->plan->count; i++) {
        struct life *l = &c->lives[i];
        if (l->step == NEW || l->step == LATER || l->step == OVER)
            continue;
        int fd = l->step == TYPING ? l->pty : l->step == RUNNING ? l->box.fd : l->api->fd;
        c->polls[n] = (struct pollfd){fd, POLLIN, 0};
        c->polled[n++] = l;
    }
    int got = poll(c->polls, n, wait_ms < 0 ? TALK_WAIT_MS : wait_ms);
    if (got < 0 && errno != EINTR)
        return err_sys("poll");
    if (got == 0 && wait_ms < 0 && c->over < c->plan->count)
        return err_new(ERR_TIMEOUT, "no answer for %d s", TALK_WAIT_MS / 1000);
    for (nfds_t i = 0; i < n && got > 0; i++) {
        struct err *e = c->polls[i].revents ? lives_hear(c, c->polled[i]) : NULL;
        if (e)
            lives_finish(c, c->polled[i], e);
    }
    return NULL;
}

static void crowd_done(struct crowd *c)
{
    for (size_t i = 0; i < c->plan->count; i++)
        if (c->lives[i].step != NEW && c->lives[i].step != OVER)
            lives_finish(c, &c->lives[i], err_new(ERR_TIMEOUT, "not waited for"));
    for (size_t i = 0; c->talks && i < c->plan->most; i++)
        talk_close(&c->talks[i]);
    free(c->talks);
    free(c->idle);
    free(c->polls);
    free(c->polled);
}

static fallible crowd_open(struct crowd *c)
{
    const struct lives_plan *p = c->plan;

    c->polls = mem_new(p->count * sizeof *c->polls);
    c->polled = mem_new(p->count * sizeof *c->polled);
    if (p->kind == LIVES_BASH || p->kind == LIVES_FIRST)
        return NULL;
    c->talks = mem_new(p->most * sizeof *c->talks);
    c->idle = mem_new(p->most * sizeof(void *));
    for (size_t i = 0; i < p->most; i++)
        c->talks[i].fd = -1;
    for (size_t i = 0; i < p->most; i++) { /* as clients have them: kept, and accepted long ago */
        TRY(talk_tcp(&c->talks[i], p->server->port));
        TRY(talk_ask(&c->talks[i], "GET", "/health", NULL, NULL));
        c->idle[c->idle_count++] = &c->talks[i];
    }
    return NULL;
}

fallible lives_run(const struct lives_plan *plan, struct life *l, double *ret_ms)
{
    struct crowd c = {.plan = plan, .lives = l};
    struct err *e = crowd_open(&c);
    double first = lives_now_ms();

    for (size_t i = 0; i < plan->count; i++) {
        bool skip =
            (plan->kind == LIVES_STOP && !l[i].id[0]) || (plan->kind == LIVES_FIRST && !l[i].port);
        l[i].step = skip ? OVER : NEW;
        l[i].due_ms = first + (double)i * plan->every_ms;
        c.over += skip;
    }
    while (!e && c.over < plan->count)
        e = lives_turn(&c);
    *ret_ms = lives_now_ms() - first;
    crowd_done(&c);
    return e;
}
