// SPDX-License-Identifier: Apache-2.0
/* job.h — children of the launcher that work on files while it goes on: copying, flattening,
 * sweeping, importing. They die with the launcher. */
#pragma once

#include "host/launcher/inner.h"

struct launcher_job {
    struct loop_child child;
    struct list link;
    struct launcher *launcher;
    struct launcher_box *box; /* the sandbox that is copied; NULL: none */
    /* In the child. It may fill reply.text for the launcher. */
    fallible (*run)(struct launcher_job *j);
    /* In the launcher; e is the callee's. The job is freed after it. */
    void (*ended)(struct launcher_job *j, struct err *e);
    int dir;           /* the box's, or what is worked on; -1: none */
    int heard;         /* the pipe's end we read */
    int out;           /* in the child: the other end */
    int asked, result; /* of changes.c: what is wanted, where the answer goes; else -1 */
    char name[NATIVE_IMAGE_MAX];
    char id[NATIVE_ID_MAX];    /* of the sandbox that stands on the long stack; empty: none */
    struct native_reply reply; /* op 0: no request waits */
    bool unasked;              /* the server that asked is gone */
    bool thaw;
    uint64_t since_wall_ns; /* of strip.c */
};

struct launcher_job *launcher_job_new(struct launcher *l, fallible (*run)(struct launcher_job *j),
                                      void (*ended)(struct launcher_job *j, struct err *e));
fallible launcher_job_start(struct launcher_job *j); /* on failure it is still the caller's */
void launcher_job_free(struct launcher_job *j);
/* It has ended; takes e and fds over. An answer that no request waits for is not sent, to the next
 * server least of all: the log has what failed. */
void launcher_job_answer(struct launcher_job *j, struct err *e, struct launcher_fds *fds);
void launcher_end_jobs(struct launcher *l);
void launcher_jobs_unasked(struct launcher *l); /* the server that asked for them is gone */
unsigned launcher_job_count(const struct launcher *l, fallible (*run)(struct launcher_job *j));

/* --- snap.c --- */

/* A snapshot's child was ended before it was done. */
void launcher_snap_cut(struct launcher_job *j);
/* launcher_job_start() while the sandbox b, the owner of the files, is paused; j->dir is its
 * directory. Refused where it cannot be. */
fallible launcher_job_start_still(struct launcher *l, struct launcher_box *b,
                                  struct launcher_job *j);
/* In the child: where the upper layers of a sandbox are that has an image of its own, to be read.
 */
fallible launcher_job_disk(const struct launcher_job *j, int *ret_disk);
/* It may move again; e, or why it cannot. */
fallible launcher_job_move_on(struct launcher_job *j, struct err *e);
