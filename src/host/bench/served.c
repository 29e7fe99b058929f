// SPDX-License-Identifier: Apache-2.0
/* served.c — see served.h. */
#include "host/bench/served.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"

#define READY_MS  60000
#define END_MS    600000 /* thousands of sandboxes are ended meanwhile */
#define LOOK_MS   1      /* between two looks at the pool, outside of what is measured */
#define LOOKS     60000
#define ARENA_MAX (16u << 20)

/* Without the settings of the user: no key, no pools, no address. */
static fallible served_spawn(struct served *s, const char *self, int out)
{
    char home[SCRATCH_DIR + 8], path[1024], log[SCRATCH_DIR + 16];
    const char *const argv[] = {self,     "serve",     "--listen", "127.0.0.1:0", "--state",
                                s->state, "--at-exit", "delete",   NULL};
    const char *const envp[] = {home, path, NULL};
    posix_spawn_file_actions_t a;

    snprintf(home, sizeof home, "HOME=%s", s->scratch.dir);
    snprintf(path, sizeof path, "PATH=%s", getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    snprintf(log, sizeof log, "%s/log", s->scratch.dir);
    posix_spawn_file_actions_init(&a);
    posix_spawn_file_actions_addopen(&a, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&a, out, 1);
    posix_spawn_file_actions_addopen(&a, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int e = posix_spawn(&s->pid, self, &a, NULL, (char *const *)argv, (char *const *)envp);
    posix_spawn_file_actions_destroy(&a);
    return e ? err_new(ERR_INTERNAL, "start '%.200s': %s", self, strerror(e)) : NULL;
}

/* It prints its address when it is ready, and nothing when it cannot be. */
static fallible read_port(struct served *s, int from)
{
    char text[200] = "", log[SCRATCH_DIR + 16];
    own_done(buf) said;
    uint64_t port;

    buf_init(&said, 1u << 16);
    TRY_WRAP(fd_wait(from, POLLIN, READY_MS), "wait for the server");
    ssize_t n = read(from, text, sizeof text - 1);
    struct str line = str_trim(str_n(text, n > 0 ? (size_t)n : 0));
    const char *colon = n > 0 ? strrchr(text, ':') : NULL;
    if (colon && str_to_u64(str_from(line, (size_t)(colon + 1 - line.p)), &port) && port <= 65535) {
        s->port = (uint16_t)port;
        return NULL;
    }
    snprintf(log, sizeof log, "%s/log", s->scratch.dir);
    err_free(fd_read_file(log, &said)); /* then it says nothing */
    return err_new(ERR_INTERNAL, "the server did not start: %.500s", buf_cstr(&said));
}

static fallible served_start(struct served *s, const char *self)
{
    int out[2];

    if (pipe2(out, O_CLOEXEC) < 0)
        return err_sys("make a pipe");
    own_fd from = out[0], to = out[1];
    TRY(served_spawn(s, self, to));
    close(take_fd(&to));
    own_fd pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
    if (pidfd < 0)
        return err_sys("hold the server");
    TRY(scratch_hand(&s->scratch, pidfd));
    TRY(read_port(s, from));
    return talk_tcp(&s->api, s->port);
}

fallible served_open(struct served *s, const char *tmp, const char *self, const char *state)
{
    *s = (struct served){.api.fd = -1, .scratch.janitor = -1};
    buf_init(&s->api.in, 0);
    arena_init(&s->arena, ARENA_MAX);
    TRY(scratch_open(&s->scratch, tmp));
    if (state)
        snprintf(s->state, sizeof s->state, "%s", state);
    else
        snprintf(s->state, sizeof s->state, "%s/state", s->scratch.dir);
    return served_start(s, self);
}

static fallible served_end(struct served *s)
{
    own_fd pidfd = s->pid ? (int)syscall(SYS_pidfd_open, s->pid, 0) : -1;
    int status = 0;

    if (!s->pid)
        return NULL;
    kill(s->pid, SIGTERM);
    TRY_WRAP(fd_wait(pidfd, POLLIN, END_MS), "end the server");
    waitpid(s->pid, &status, 0);
    s->pid = 0;
    if (status)
        return err_new(ERR_INTERNAL, "the server ended with status %#x", (unsigned)status);
    return NULL;
}

fallible served_close(struct served *s)
{
    talk_close(&s->api);
    arena_done(&s->arena);
    struct err *e = served_end(s), *left = scratch_close(&s->scratch);
    if (e) {
        err_free(left);
        return e;
    }
    return left;
}

fallible served_ask(struct served *s, const char *method, const char *target, const char *body,
                    struct json **ret_json)
{
    struct json *ignored;

    arena_reset(&s->arena);
    TRY(talk_ask(&s->api, method, target, NULL, body));
    return json_parse(&s->arena, s->api.body, NULL, ret_json ? ret_json : &ignored);
}

fallible served_wait_full(struct served *s)
{
    struct json *o;

    for (unsigned i = 0; i < LOOKS; i++) {
        TRY(served_ask(s, "GET", "/croft/v1/pool", NULL, &o));
        const struct json *p = json_at(json_get(o, STR("pools")), 0);
        if (json_get_int(p, "ready", 0) >= json_get_int(p, "target", 1))
            return NULL;
        poll(NULL, 0, LOOK_MS);
    }
    return err_new(ERR_TIMEOUT, "the pool does not fill");
}

fallible served_set_pool(struct served *s, unsigned target)
{
    char body[80];

    snprintf(body, sizeof body, "{\"target\":%u,\"ceiling\":%u}", target,
             target < 64 ? 64 : target);
    TRY(served_ask(s, "PATCH", "/croft/v1/pool/default", body, NULL));
    return served_wait_full(s);
}

fallible served_kb(pid_t pid, const char *file, const char *field, uint64_t *ret_kb)
{
    char path[60];
    own_done(buf) text;
    struct str rest, line, name;

    buf_init(&text, 1u << 16);
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    TRY(fd_read_file(path, &text));
    for (rest = buf_str(&text); rest.len;) {
        str_cut(&rest, '\n', &line);
        if (!str_cut(&line, ':', &name) || !str_eq(name, str_of(field)))
            continue;
        line = str_trim(line);
        str_cut(&line, ' ', &name);
        if (str_to_u64(name, ret_kb))
            return NULL;
    }
    return err_new(ERR_INTERNAL, "'%s' has no %s", path, field);
}
