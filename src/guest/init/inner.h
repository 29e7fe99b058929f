// SPDX-License-Identifier: Apache-2.0
/* inner.h — the state of pid 1. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/passwd.h"
#include "guest/init/tunnel.h"
#include "guest/held/held.h"
#include "wire/bind.h"

#define INIT_CGROUPS_MAX    8
#define INIT_DEATHS_MAX     8 /* of the server */
#define INIT_DEATHS_MS      30000
#define INIT_SIGNALS        8
#define INIT_SERVER_SIGNALS 6 /* the first ones: all that concern a server */

struct init_config {
    int listen_fd, connect_fd, control_fd, ready_fd, end_fd, memory_fd; /* -1: none */
    int cgroup_fds[INIT_CGROUPS_MAX]; /* directories the work belongs to */
    size_t cgroup_len;
    int oom_fds[HELD_OOM_MAX];
    size_t oom_len;
    const char *program;     /* of the server; NULL: ours, at first as our copy */
    const char *const *argv; /* of the server, or of the one command */
    const char *const *env;
    struct str key; /* SESSION_API_KEY, which is in no environment; ours: in short_key if it fits */
    char short_key[128];
    bool exec;       /* one command, no server */
    bool await;      /* all of the above comes with the claim, see wire/bind.h */
    const char *cwd; /* of the job */
    struct proc_user user;
    struct passwd_user account;
    bool has_user;
};

struct init_born { /* a process of the forker */
    pid_t pid;
    bool ended;
    int code, status;
};

struct init;
struct init_signal {
    struct loop_signal signal;
    struct init *in;
};

struct init {
    struct init_config *config;
    struct wire_bind bound;
    struct loop *loop; /* in loop_room: pid 1 has no heap, which is pages, and tables for them */
    _Alignas(max_align_t) char loop_room[LOOP_ROOM];
    struct init_signal signals[INIT_SIGNALS];
    struct loop_signal child;
    /* To the forker, -1 until a server is there: the server's end, the forker's end. Then the pipe
     * on which each new process tells its number. */
    int requests[2], births[2];
    pid_t forker;          /* 0: none yet, or between two */
    uint64_t forker_ns;    /* when it was started */
    struct loop_io wanted; /* a request waits, and there is no forker */
    struct loop_timer forker_again;

    pid_t job; /* the server, or the command; 0: between two servers */
    int wire;  /* to the server; -1: none */
    struct loop_io wire_io;
    struct loop_io inbound, viewer; /* watched while there is no server */
    bool hello_sent, end_sent;
    bool ready; /* a server once was */
    struct loop_later settled;
    struct list items;
    size_t items_len;
    struct init_born *born;
    size_t born_len, born_cap;
    struct spawner spawner; /* for the one command */
    struct spawn_child command;
    bool command_failed; /* at start: not we */

    uint64_t deaths[INIT_DEATHS_MAX]; /* when, the oldest first */
    size_t deaths_len;
    struct loop_timer restart, kill;
    struct loop_io control_io;
    struct tunnels tunnels;
    bool stopping;
    int exit_code;
};

/* args.c */
fallible init_parse_user(struct init_config *c, const char *text);
void init_take_key(struct init_config *c, char **envp);
void init_drop_key(struct init_config *c);

/* init.c */
fallible init_start(struct init *in, struct init_config *config);
fallible init_serve(struct init *in, int *ret_code); /* until the job is over */
void init_done(struct init *in);

fallible init_start_command(struct init *in);
/* Says that the sandbox listens; the first connection makes the server inside. Without a socket
 * from outside, with plugins to start or with wrong words, the server is made now, and says so
 * itself. */
fallible init_begin(struct init *in);

/* bind.c: what comes over the control connection, the claim above all */
void init_on_control(struct loop_io *io);

/* forker.c */
/* A process with short slices gets its turn earlier, and no more time in all. */
void init_set_slice(uint64_t ns);
fallible init_start_forker(struct init *in);
void init_be(const char *name); /* a child of ours: it dies with us */

/* wire.c: the server's end is in guest/held */
fallible init_wire_open(struct init *in, int *ret_theirs);
void init_wire_close(struct init *in);
void init_settle(struct init *in);    /* much has been done, and little will be */
void init_wire_pump(struct init *in); /* tells the server what it does not know yet */
void init_read_births(struct init *in);
void init_note_end(struct init *in, pid_t pid, int code, int status);
void init_kill_born(struct init *in, bool all); /* or but for what is kept */
void init_drop_items(struct init *in);
int init_find_socket(const struct init *in, struct str name); /* an item's; -1: there is none */
