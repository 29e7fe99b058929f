// SPDX-License-Identifier: Apache-2.0
/* inner.h — the server's state, for the files below exec/. */
#pragma once

#include "base/list.h"
#include "base/rows.h"
#include "guest/edit/editor.h"
#include "guest/exec/act.h"
#include "guest/exec/exec.h"
#include "guest/exec/start.h"
#include "guest/transfer/transfer.h"
#include "loop/loop.h"

struct answers;
struct http_server;
struct net;
struct proc_user;
struct router;
struct exec_shell;
struct spawner;

struct exec {
    struct transfer transfer;
    const struct exec_config *config;
    struct start start;
    struct loop *loop;
    struct net *net;
    struct router *router;
    struct http_server *server;
    struct list acts;         /* that run */
    struct act_policy policy; /* allow NULL: every action may start */
    struct answers *answers;
    struct loop_signal term, interrupt;
    struct loop_timer tick; /* is it used? */
    bool swept, was_idle;   /* by, and at, a tick before */
    int ready_fd;           /* config's, until the byte is written */
    struct exec_clock {
        uint64_t start_ns, last_action_ns;
    } clock;

    const char *working_dir;        /* config's, terminated */
    struct spawner *spawner;        /* NULL: fork here */
    const struct proc_user *run_as; /* NULL: as we are */
    const char *const *env;         /* of everything we start */
    struct list shells;             /* all shells, see actions/run/exec_shell.h */
    struct exec_shell *main;        /* the one of actions that name none */
    unsigned shell_number;          /* of the last that was given a name by us */
    bool closing;
    struct loop_later settled;
    int listen_fd;     /* the server has it */
    unsigned starting; /* what parts still wait for: no request is taken before */
    void **part_states;
    struct editor editor;
    struct editor_undo undo;
    char undo_path[32]; /* goes with the server */
};

/* What a build of the server may have or lack: a folder below parts/, ending in its row. */
struct exec_part {
    size_t state_bytes; /* of its own state: zeroed by exec_new, freed by exec_free; 0: none */
    void (*add_routes)(struct exec *e, void *state); /* each may be NULL */
    fallible (*start)(struct exec *e, void *state);  /* before the server takes requests */
    void (*close)(struct exec *e, void *state);      /* of one that did not start too */
    bool (*is_busy)(const void *state);              /* it holds what would end with the server */
};
#define EXEC_PART(id) ROW(exec_parts, struct exec_part, id)
void *exec_part_state(const struct exec *e, const struct exec_part *part);

/* Actions can be started from here on; what serves them is exec_run's. After a failure too, and
 * once, exec_close: nothing runs after it. */
fallible exec_open(struct exec *e, const struct exec_config *config);
void exec_close(struct exec *e);
/* actions/run/exec_shell.c: the default shell is there from start to end; closing ends every one,
 * and all actions. */
fallible exec_open_shells(struct exec *e);
void exec_close_shells(struct exec *e);
bool exec_shells_are_used(const struct exec *e); /* there is one, or its output */
/* The start of relative paths for read and write: the default shell's directory. */
struct str exec_cwd(const struct exec *e);
