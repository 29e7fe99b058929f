// SPDX-License-Identifier: Apache-2.0
/* inner.h — the launcher and its sandboxes, for the files of its process. launcher.c has its
 * sockets and its life, ops.c what a server may ask of it, life.c how sandboxes end. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "host/launcher/box.h"
#include "host/launcher/deleter.h"
#include "host/launcher/host_layers.h"
#include "host/launcher/image.h"
#include "host/launcher/launcher.h"
#include "host/launcher/spares.h"
#include "loop/loop.h"

struct launcher_start; /* see start.c */
struct launcher_job;   /* a child that works on files, see job.h */

#define LAUNCHER_KILLERS 4 /* requests that may wait for one end */

enum launcher_removal {                  /* when it has ended: */
                        REMOVAL_NONE,    /* its files stay */
                        REMOVAL_ASKED,   /* they go, and a request waits for that */
                        REMOVAL_UNASKED, /* they go: the server that asked, or that it waited for,
                                            is gone */
};

struct launcher_box {
    struct box box; /* once it has ended and !holds_slot, slot and pid mean nothing */
    struct launcher *launcher;
    struct list link;
    struct loop_child child;
    struct loop_io orphan; /* in its place, of a sandbox that another launcher made */
    bool adopted;
    bool holds_slot;              /* groups and ids, given back when it ends */
    bool tells_end;               /* by NATIVE_DIED */
    int control;                  /* to its pid 1 until it is claimed; else -1 */
    struct native_request *waits; /* what it was started with, until it is claimed */
    struct launcher_start *start; /* its pid 1 has not been exec'd yet; NULL: it has */
    struct launcher_job *job;     /* its files are being copied; NULL: not */
    enum native_state state;
    int exit_code, signal;
    bool code_unknown;
    uint64_t oom_kills; /* once it has ended */
    off_t log_left;     /* bytes of its log after the last cut, or fewer if it lost some since */
    enum native_disk disk;
    enum launcher_removal removal;
    uint64_t remove_tag, kill_tags[LAUNCHER_KILLERS]; /* of the requests that wait for its end */
    uint8_t killers;
};

struct launcher {
    struct loop *loop;
    struct launcher_policy own;           /* with roots as the launcher sees them */
    const struct launcher_policy *policy; /* that */
    struct box_host host;
    struct loop_io io, next_server;
    struct launcher_inbox *inbox; /* requests; on the stack every fork would copy them */
    int sock;                     /* the server's, -1: none */
    int listener;                 /* where the next server comes, -1: nowhere */
    int sockets;                  /* the directory of the sandboxes' sockets */
    bool sockets_near;            /* it is in the mount that the sandboxes' directories are in */
    int lock;                     /* one launcher for one state directory */
    struct loop_signal term;
    struct list boxes;
    struct map by_id; /* the same */
    unsigned box_count;
    struct list jobs;
    struct loop_io written; /* inotify: logs of sandboxes; stopped: they are not watched */
    struct spares spares;
    struct host_layers host_layers;
    struct deleter deleter;
    struct image_names image_names;
    bool ending;
};

/* Descriptors that came with a request; those still here afterwards are closed. */
struct launcher_fds {
    int fds[32];
    size_t count;
};

/* --- launcher.c --- */

/* Takes e, and the descriptors. May wait 5 s for a server that does not read. */
void launcher_answer(struct launcher *l, struct native_reply *reply, struct err *e,
                     struct launcher_fds *fds);

/* --- ops.c --- */

/* Fills *reply; its descriptors go to *out. *ret_later: the answer comes later, or has gone. */
fallible launcher_do(struct launcher *l, const struct native_request *r, struct launcher_fds *in,
                     struct native_reply *reply, struct launcher_fds *out, bool *ret_later);
struct launcher_box *launcher_find(struct launcher *l, const char *id);
/* Its state, and how it ended. */
void launcher_describe(const struct launcher_box *b, struct native_reply *reply);

/* --- life.c --- */

void launcher_insert(struct launcher *l, struct launcher_box *b);
void launcher_forget(struct launcher *l, struct launcher_box *b); /* and frees it */
/* On failure the sandbox is dead: its end must be seen. keep: its files stay, for it had a life
 * before. */
fallible launcher_watch(struct launcher *l, struct launcher_box *b, bool keep);
/* It has ended: deletes its directory and sockets, and frees b. */
fallible launcher_delete(struct launcher *l, struct launcher_box *b);
/* The same, but its directory stays for its next life. */
void launcher_replace(struct launcher *l, struct launcher_box *b);
/* launcher_delete(), and answers; reply NULL: no request waits. */
void launcher_remove(struct launcher *l, struct launcher_box *b, struct native_reply *reply);
bool launcher_any_alive(const struct launcher *l);
/* Takes over what the last launcher left alive, forgets what is dead. */
fallible launcher_adopt_all(struct launcher *l);
void launcher_kill_all(struct launcher *l);
/* At the end: sandboxes that live are left alone with policy.persist, and waited for without. */
void launcher_drop_all(struct launcher *l);

/* --- changes.c, log.c, strip.c --- */

/* NATIVE_DIFF and NATIVE_APPLY. */
fallible launcher_changes(struct launcher *l, struct launcher_box *b,
                          const struct native_request *r, struct launcher_fds *in, bool *ret_later);
/* Cuts the logs of sandboxes above a limit. */
void launcher_log_start(struct launcher *l);
void launcher_log_end(struct launcher *l);
/* It has ended: a child takes set-id files out of the host's directories it had writable. */
void launcher_strip(struct launcher *l, const char *id);
