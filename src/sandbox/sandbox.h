// SPDX-License-Identifier: Apache-2.0
/* sandbox.h — a sandbox of any backend: what callers do with one, and what drivers say of it. */
#pragma once

#include "sandbox/backend.h"
#include "sandbox/waiters.h"

#define SBX_ID_MAX  63
#define SBX_KEY_MAX 255

enum sbx_op {
    SBX_NO_OP,
    SBX_START,
    SBX_STOP,
    SBX_PAUSE,
    SBX_RESUME,
    SBX_SNAPSHOT,
    SBX_REMOVE,
    SBX_ADOPT,
    SBX_CLAIM,
    SBX_MEASURE,
    SBX_FILES,
    SBX_LOOK
};

struct sbx { /* drivers embed it first */
    struct sbx_driver *driver;
    struct list sibling; /* among the driver's */
    char id[SBX_ID_MAX + 1];
    struct sm state;
    enum sbx_op op; /* under way */
    sbx_done *done;
    void *done_arg;
    struct loop_later answer; /* a callback never comes from inside the call */
    struct err *result;
    void (*on_gone)(void *arg, struct sbx *s);
    void (*on_listens)(void *arg, struct sbx *s);
    void *arg;
    char *failure;
    enum sbx_state found;   /* by SBX_ADOPT, and by a SBX_CLAIM that failed */
    bool warm;              /* its next start ends in SBX_WARM */
    bool binding;           /* claimed, and its server does not listen yet */
    uint64_t begun_ns;      /* the operation under way */
    struct sbx_usage usage; /* of the last sbx_measure() */
    uint64_t copied_bytes;  /* by the last sbx_snapshot(); 0: none, or not known */
    char *report;           /* by the last sbx_files(); NULL: nothing */
    struct list followers;  /* see follow.h */
};

fallible sbx_driver_open(const struct sbx_backend *backend, const struct sbx_host *host,
                         struct sbx_driver **ret_driver);
/* All its sandboxes are freed; what was asked of it has no answer any more. */
void sbx_driver_close(struct sbx_driver *d);

fallible sbx_create(struct sbx_driver *d, const struct sbx_spec *spec, struct sbx **ret_sbx);
/* A new sandbox over what a snapshot froze: new keys, nothing writable shared. */
fallible sbx_fork(struct sbx_driver *d, struct str snapshot, const struct sbx_spec *spec,
                  struct sbx **ret_sbx);
/* done is called once, never from inside. ERR_BUSY while another operation is under way,
 * ERR_CONFLICT in a state that does not allow it, ERR_UNSUPPORTED when the backend cannot. */
fallible sbx_start(struct sbx *s, sbx_done *done, void *arg);
/* Instead of the first start: one of this id, started by a program that is gone. Its state is then
 * what it is: running, paused, or stopped with its files. ERR_NOT_FOUND: there is none. */
fallible sbx_adopt(struct sbx *s, sbx_done *done, void *arg);
/* Binds environment, key, user, directory, hostname, limits, mounts and command of a warm one and
 * lets its server begin; done when all of that is in its hands. It can be reached from then on:
 * while s->binding connections wait, until on_listens or, if it fails after all, on_gone. A
 * command as given runs when it is done. spec's id, image and warm do not count; on_gone,
 * on_listens and arg are spec's from now on. Refused before anything was bound it is warm as
 * before, after that it is stopped: what was bound to one is never given to another. */
fallible sbx_claim(struct sbx *s, const struct sbx_spec *spec, sbx_done *done, void *arg);
/* All that are there, of programs that are gone too. done once, never from inside. */
fallible sbx_list(struct sbx_driver *d, sbx_list_done *done, void *arg);
fallible sbx_stop(struct sbx *s, sbx_done *done, void *arg);
fallible sbx_pause(struct sbx *s, sbx_done *done, void *arg);
fallible sbx_resume(struct sbx *s, sbx_done *done, void *arg);
/* Asks for its state, which others may have changed; if it has ended, on_gone comes.
 * ERR_UNSUPPORTED: only we can change it. */
fallible sbx_look(struct sbx *s, sbx_done *done, void *arg);
/* It answers 503: others have paused it, where they can (not SBX_IS_HERE). From now on it is paused
 * and can be resumed. One that is not running is left as it is. */
void sbx_found_paused(struct sbx *s);
fallible sbx_snapshot(struct sbx *s, struct str name, sbx_done *done, void *arg);
bool sbx_is_snapshot_name(struct str name); /* as of an id, and not a dash first */
/* Its changes; it stands still meanwhile, and must have ended to be rolled back. */
fallible sbx_files(struct sbx *s, enum sbx_files what, struct str text, sbx_done *done, void *arg);
/* What it uses now, in s->usage when done. ERR_UNSUPPORTED: the backend does not count. */
fallible sbx_measure(struct sbx *s, sbx_done *done, void *arg);
/* What a started server gets at claim, before it is started: environment, key, workspace. */
fallible sbx_bind(struct sbx *s, const struct sbx_spec *spec);
fallible sbx_expose(struct sbx *s, uint16_t port, struct sbx_address *ret_address);
fallible sbx_logs(struct sbx *s, struct buf *out); /* the newest, up to out's limit */
void sbx_inspect(struct sbx *s, struct sbx_info *ret_info);
/* Removes all it left and frees it, before done is called: the pointer is then only a name. */
fallible sbx_remove(struct sbx *s, sbx_done *done, void *arg);

/* Snapshots of a driver, in the order of their names: names one after the other, each with its NUL,
 * borrowed for the call; e borrowed. done is called once, never from inside. */
typedef void sbx_query_done(void *arg, const char *names, size_t count, const struct err *e);
fallible sbx_snapshot_list(struct sbx_driver *d, sbx_query_done *done, void *arg);
/* Sandboxes that were forked from it keep what they stand on. ERR_NOT_FOUND: there is none. */
fallible sbx_snapshot_remove(struct sbx_driver *d, struct str name, sbx_query_done *done,
                             void *arg);

/* Images of a driver's store. names is then what is known of it, JSON as host/images writes it;
 * ERR_NOT_FOUND: there is none. */
fallible sbx_image_find(struct sbx_driver *d, struct str name, sbx_query_done *done, void *arg);
/* The same for a caller that waits for the answer, see waiters.h: ERR_BUSY. */
fallible sbx_image_ask(struct sbx_driver *d, struct str name, sbx_query_done *done, void *arg);
/* file: an archive, a regular file, borrowed for the call. names is then its id. */
fallible sbx_image_import(struct sbx_driver *d, int file, struct str name, sbx_query_done *done,
                          void *arg);

/* --- for drivers --- */

/* Something asked of a driver that is not about one of its sandboxes. */
struct sbx_query {
    struct sbx_driver *driver;
    struct list sibling;
    char name[256];   /* what it is about; empty: everything */
    int file;         /* what is given with it, inside the call; -1: nothing */
    struct buf names; /* the answer: each with its NUL */
    size_t count;
    void *mine;                            /* the driver's; freed with the query */
    fallible (*call)(struct sbx_query *q); /* until it is asked; NULL: the backend has it */
    sbx_query_done *done;
    sbx_list_done *listed; /* instead of done */
    void *arg;
    struct sbx_waiter waiter; /* its caller, if that waits */
    struct loop_later answer;
    struct err *result;
};

void sbx_query_finish(struct sbx_query *q, struct err *e); /* takes e over */
void sbx_query_drop(struct sbx_query *q);                  /* without an answer */
/* ERR_UNSUPPORTED unless it has all of cap; ERR_BUSY while that is not known yet. */
fallible sbx_need(const struct sbx_driver *d, unsigned cap, const char *what);
void sbx_finish(struct sbx *s, struct err *e);     /* the operation under way; takes e over */
void sbx_listens(struct sbx *s);                   /* the server of one that was binding */
void sbx_gone(struct sbx *s, const char *fmt, ...) /* it ended by itself: why */
    __attribute__((format(printf, 2, 3)));
