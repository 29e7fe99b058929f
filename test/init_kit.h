// SPDX-License-Identifier: Apache-2.0
/* init_kit.h — croft-guest as pid 1, or as an ordinary process, with all its descriptors. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "net/listen.h"
#include "test/program.h"
#include "test/test.h"
#include "test/wire.h"

#define KIT_HANG_NS (100 * NS_PER_S)

struct kit {
    struct wire wire, tunnel; /* the server's socket; the one for CONNECT */
    pid_t pid;                /* of init, as we see it */
    int control, oom, log;
    int memory; /* what its control group counts; 0: nothing */
    char dir[200];
    struct arena arena;
    bool pid_one;     /* in a namespace of its own */
    const char *user; /* --username; NULL: none */
    bool unused;      /* its server may end */
    const char *sub;  /* directory of its own, where there are several; NULL: none */
};

static inline int kit_listen(const struct kit *k, struct wire *w, const char *name)
{
    char address[300];
    int fd;

    snprintf(address, sizeof address, "unix:%s/%s", k->dir, name);
    wire_at(w, address);
    CHECK_OK(listen_open(str_of(address), &fd));
    return fd;
}

/* The first line and all else of an answer. */
static inline struct str kit_get(struct kit *k, const char *path)
{
    own_done(buf) got;
    char request[300];

    buf_init(&got, 1u << 20);
    snprintf(
        request, sizeof request,
        "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Session-API-Key: hunter2\r\n\r\n",
        path);
    wire_exchange(&k->wire, str_of(request), &got);
    return arena_copy(&k->arena, buf_str(&got));
}

static inline void kit_open_with(struct kit *k, const char *const *before)
{
    int ready[2], control[2];
    char byte, path[300], view[300];
    const char *argv[32] = {0};
    size_t n = 0;

    snprintf(k->dir, sizeof k->dir, "%s/%s", test_dir(), k->sub ? k->sub : "");
    mkdir(k->dir, 0755);
    arena_init(&k->arena, 64u << 20);
    snprintf(view, sizeof view, "%s/view", k->dir);
    snprintf(path, sizeof path, "%s/oom", k->dir);
    k->oom = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(k->oom >= 0);
    snprintf(path, sizeof path, "%s/log", k->dir);
    k->log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(k->log >= 0);
    int listen_fd = kit_listen(k, &k->wire, "in"), connect_fd = kit_listen(k, &k->tunnel, "con");
    CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
    for (; *before; before++)
        argv[n++] = *before;
    const char *const rest[] = {test_program("croft-guest"),
                                "init",
                                "--listen-fd",
                                "3",
                                "--ready-fd",
                                "4",
                                "--connect-fd",
                                "5",
                                "--control-fd",
                                "6",
                                "--oom-fd",
                                "7",
                                "--",
                                "action-server",
                                "--working-dir",
                                k->dir,
                                "--viewer-url",
                                view};
    for (size_t i = 0; i < ARRAY_LEN(rest); i++) {
        if (k->memory && strcmp(rest[i], "--") == 0) {
            argv[n++] = "--memory-fd";
            argv[n++] = "8";
        }
        argv[n++] = rest[i];
    }
    if (k->user) {
        argv[n++] = "--username";
        argv[n++] = k->user;
    }
    k->pid = program_start(
        &(struct program){.argv = argv,
                          .env = ARGS("SESSION_API_KEY=hunter2", "NO_CHANGE_TIMEOUT_SECONDS=1",
                                      "PATH=/usr/bin:/bin", "HOME=/tmp", "LOG_LEVEL=warn"),
                          .fds = (int[]){-1, -1, k->log, listen_fd, ready[1], connect_fd,
                                         control[1], k->oom, k->memory},
                          .fd_count = k->memory ? 9 : 8});
    close(listen_fd);
    close(connect_fd);
    close(ready[1]);
    close(control[1]);
    k->control = control[0];
    CHECK_INT(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    if (!k->unused)
        CHECK_HAS(kit_get(k, "/croft/v1/shells"), " 200 ");
}

static inline void kit_open(struct kit *k)
{
    *k = (struct kit){0};
    kit_open_with(k, ARGS());
}

/* In a pid namespace of its own; the test is skipped where that is not allowed. */
static inline void kit_open_as_one(struct kit *k)
{
    own_done(buf) said;

    buf_init(&said, 4096);
    if (program_run(ARGS("unshare", "-Ur", "--pid", "--fork", "--mount-proc", "true"), &said) != 0)
        SKIP("no pid namespace: " STR_FMT, STR_ARG(buf_str(&said)));
    *k = (struct kit){.pid_one = true};
    kit_open_with(k, ARGS("unshare", "-Ur", "--pid", "--fork", "--mount-proc", "--kill-child"));
}

static inline struct str kit_log(struct kit *k)
{
    own_done(buf) b;

    buf_init(&b, 1u << 20);
    CHECK_INT(lseek(k->log, 0, SEEK_SET), 0);
    CHECK_OK(fd_read_all(k->log, &b));
    return arena_copy(&k->arena, buf_str(&b));
}

/* The body of the answer to a POST. */
static inline struct str kit_post(struct kit *k, const char *path, const char *body)
{
    own_done(buf) request;
    own_done(buf) got;

    buf_init(&request, 1u << 20);
    buf_init(&got, 16u << 20);
    buf_addf(&request,
             "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Session-API-Key: hunter2\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             path, strlen(body), body);
    wire_exchange(&k->wire, buf_str(&request), &got);
    ptrdiff_t end = str_find(buf_str(&got), STR("\r\n\r\n"));
    if (!str_starts(buf_str(&got), STR("HTTP/1.1 20")) || end < 0)
        FAIL("got " STR_FMT, STR_ARG(buf_str(&got)));
    return arena_copy(&k->arena, str_from(buf_str(&got), (size_t)end + 4));
}

/* What `run` observes; args are those of the action, as JSON. */
static inline struct json *kit_observe(struct kit *k, const char *args)
{
    char body[4096];
    struct json *o;

    snprintf(body, sizeof body, "{\"action\":{\"action\":\"run\",\"args\":{%s}}}", args);
    CHECK_OK(json_parse(&k->arena, kit_post(k, "/execute_action", body), NULL, &o));
    return o;
}

static inline struct str kit_run(struct kit *k, const char *command)
{
    char args[4000];

    snprintf(args, sizeof args, "\"command\":\"%s\",\"blocking\":true", command);
    return json_get_str(kit_observe(k, args), "content", STR("(none)"));
}

static inline void kit_read_proc(pid_t pid, const char *file, struct buf *into)
{
    char path[300];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    err_free(fd_read_file(path, into));
    buf_add_char(into, '\0');
}

#define KIT_SERVER "--init-fd" /* of its command line, unless it is a copy of pid 1 */

/* A child of parent whose command line holds word, 0: none. */
static inline pid_t kit_find_child(pid_t parent, const char *word)
{
    char line[200];
    own_done(buf) b;

    buf_init(&b, 1u << 20);
    snprintf(line, sizeof line, "task/%d/children", (int)parent);
    kit_read_proc(parent, line, &b);
    for (char *at = b.p, *next; at && *at; at = next) {
        pid_t pid = (pid_t)strtol(at, &next, 10);
        own_done(buf) args = {0};
        if (next == at)
            break;
        buf_init(&args, 1u << 16);
        kit_read_proc(pid, "cmdline", &args);
        size_t line_len = args.len;
        kit_read_proc(pid, "comm", &args);
        if (str_starts(str_from(buf_str(&args), line_len), STR("action-server\n")))
            buf_add(&args, STR(KIT_SERVER));
        if (memmem(args.p, args.len, word, strlen(word)))
            return pid;
        next += *next == ' ';
    }
    return 0;
}

/* pid 1 itself, where unshare stands between. */
static inline pid_t kit_init(const struct kit *k)
{
    return k->pid_one ? kit_find_child(k->pid, "init") : k->pid;
}

/* After init has ended. */
static inline void kit_done(struct kit *k)
{
    close(k->control);
    close(k->oom);
    close(k->log);
    arena_done(&k->arena);
}

static inline void kit_close(struct kit *k)
{
    CHECK_INT(kill(kit_init(k), SIGTERM), 0);
    CHECK_INT(program_wait(k->pid), 0);
    kit_done(k);
}

/* Waits for a child other than `not`, hang guard only. */
static inline pid_t kit_await_child(pid_t parent, const char *word, pid_t not_this)
{
    uint64_t end = clock_mono_ns(&clock_system) + KIT_HANG_NS;

    for (;;) {
        pid_t pid = kit_find_child(parent, word);
        if (pid && pid != not_this)
            return pid;
        if (clock_mono_ns(&clock_system) > end)
            FAIL("no child '%s' of %d", word, (int)parent);
        sched_yield();
    }
}

static inline pid_t kit_server(const struct kit *k)
{
    return kit_await_child(kit_init(k), KIT_SERVER, 0);
}

static inline void kit_kill_server(struct kit *k)
{
    pid_t init = kit_init(k), server = kit_server(k);

    CHECK_INT(kill(server, SIGKILL), 0);
    kit_await_child(init, KIT_SERVER, server);
}

static inline unsigned kit_count_fds(pid_t pid)
{
    char path[300];
    unsigned n = 0;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    CHECK(d != NULL);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Waits until the process has something open whose name is like that: what a server keeps with pid
 * 1 is sent to it, and under load the next answer may be there before pid 1 has read it. */
static inline int kit_await_fd(pid_t pid, const char *pattern)
{
    uint64_t end = clock_mono_ns(&clock_system) + KIT_HANG_NS;
    char link[64], name[300];

    for (;; sched_yield()) {
        for (int i = 3; i < 64; i++) {
            snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, i);
            ssize_t n = readlink(link, name, sizeof name - 1);
            name[n < 0 ? 0 : n] = '\0';
            if (fnmatch(pattern, name, 0) == 0)
                return i;
        }
        if (clock_mono_ns(&clock_system) > end)
            FAIL("%d has nothing like '%s' open", (int)pid, pattern);
    }
}
