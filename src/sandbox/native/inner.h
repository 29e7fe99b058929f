// SPDX-License-Identifier: Apache-2.0
/* inner.h — between the files of the native driver. */
#pragma once

#include "sandbox/follow.h"
#include "sandbox/output.h"
#include "sandbox/sandbox.h"
#include "sandbox/native/msg.h"

struct native;
struct native_driver;

/* One request to the launcher, which answers in its own time and order. fds: what came with the
 * answer, closed afterwards unless taken; r is NULL when there is no launcher any more. */
struct native_call {
    struct list link; /* among asked */
    uint64_t tag;
    void (*fn)(struct native_call *c, const struct native_reply *r, int *fds, struct err *e);
};

struct native_driver {
    struct sbx_driver base;
    struct loop_io io;
    struct list asked;      /* calls that wait for their answer */
    struct list late;       /* requests its socket had no room for */
    struct loop_io notices; /* of logs that are followed: one inotify for all */
    struct list watched;    /* of struct native_watch */
    uint64_t last_tag;
    struct loop_timer watch; /* while anything is asked: whether it answers at all */
    unsigned quiet;          /* looks since it did */
    struct native_call ping; /* if it does not: something that is no work */
};

fallible native_calls_start(struct native_driver *d, struct loop *loop, int launcher);
void native_calls_drop(struct native_driver *d); /* what is not sent yet */
/* Fills in what every request has. On failure fn is not called. */
fallible native_call(struct native_driver *d, struct native_call *c, struct native_request *req,
                     const int *fds, size_t count,
                     void (*fn)(struct native_call *c, const struct native_reply *r, int *fds,
                                struct err *e));

struct native {
    struct sbx base;
    /* make.c: what it is to be */
    struct native_limits limits;
    uint32_t image;
    char *image_name; /* of NATIVE_IMAGE_STORED */
    char hostname[NATIVE_ID_MAX], snapshot[NATIVE_ID_MAX];
    struct native_mount *mounts;
    size_t mount_count;
    char *block; /* of a claim; from args_at on that of a start */
    size_t block_len, args_at;
    bool command, nested;
    bool has_output; /* maybe, a file in launcher->outputs */
    int out_pipe;    /* of a command, until it is started; 0: none */
    char *workspace; /* on the host; NULL: none */

    struct sbx_output *output;  /* of a command; our server's words are in a file; NULL: none */
    struct native_watch *watch; /* of its log; NULL: no reader follows it */
    struct loop_io ready;       /* until the server listens */
    struct loop_timer deadline;
    pid_t pid;
    uint32_t disk;        /* enum native_disk, as the launcher says */
    bool known;           /* to the launcher */
    bool bound, listens;  /* of a claim: the launcher's answer, the server's byte */
    uint64_t answered_ns; /* when the launcher had done its part */
    uint64_t phase_ns[SBX_PHASES];

    struct native_call call; /* one at a time */
    struct native_call slow; /* its end, because it does not listen */
    void (*answered)(struct native *n, const struct native_reply *r, int *fds, struct err *e);
};

/* --- log.c --- */
void native_logs(struct sbx *s, struct buf *out);
/* ": " and why it could not be; or nothing. */
void native_last_words(struct sbx *s, char *text, size_t size);
size_t native_log_read(struct sbx *s, struct sbx_place *at, struct buf *out);
void native_log_end(struct sbx *s, struct sbx_place *ret_end);
fallible native_log_watch(struct sbx *s, bool on);
void native_log_close(struct native_driver *d);
/* A command may say as much as it likes: what it says is read, and the newest kept. */
fallible native_open_output(struct native *n, int *ret_write);
void native_join_output(struct native *n); /* of one that was adopted */
void native_drop_output(struct native *n);
void native_sweep(struct sbx_driver *d, bool (*known)(const void *arg, const char *id),
                  const void *arg);

/* "NAME.KIND" in the directory of sockets. */
void native_set_address(const struct native *n, const char *kind, struct sbx_address *ret);
struct native *native_of(struct sbx *s);
struct native_driver *native_driver_of(const struct native *n);

/* One request to the launcher at a time; answered gets its reply. */
fallible native_ask(struct native *n, struct native_request *req, const int *fds, size_t count,
                    void (*answered)(struct native *n, const struct native_reply *r, int *fds,
                                     struct err *e));
void native_on_done(struct native *n, const struct native_reply *r, int *fds, struct err *e);

/* --- files.c --- */
fallible native_set_snapshot(char to[NATIVE_ID_MAX], struct str name);
fallible native_snapshot(struct sbx *s, struct str name);
fallible native_diff(struct sbx *s, struct str text);
fallible native_apply(struct sbx *s, struct str text);
fallible native_rollback(struct sbx *s, struct str to);

/* NATIVE_DIED came. */
void native_died(struct native_driver *d, const struct native_reply *r);

/* --- make.c --- */

/* On failure n may hold some of it. */
fallible native_set_spec(struct native *n, const struct sbx_spec *spec); /* all but the image */
fallible native_set_new(struct native *n, const struct sbx_spec *spec);
/* A NATIVE_START or NATIVE_CLAIM; then its block, a sealed memory file. */
void native_fill(const struct native *n, struct native_request *req);
fallible native_make_block(const struct native *n, struct native_request *req, int *ret_fd);

fallible native_seal(struct str text, int *ret_fd); /* a sealed memory file, at its beginning */

fallible native_list(struct sbx_query *q);
fallible native_snapshot_list(struct sbx_query *q);
fallible native_snapshot_remove(struct sbx_query *q);
fallible native_image_find(struct sbx_query *q);
fallible native_image_import(struct sbx_query *q);
