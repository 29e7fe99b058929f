// SPDX-License-Identifier: Apache-2.0
/* deleter.h — the files of removed sandboxes, see deleter.c. */
#pragma once

#include "base/err.h"
#include "loop/loop.h"

struct launcher;
struct launcher_job;

struct deleter {
    int dir;                  /* state/gone, -1: none */
    struct launcher_job *job; /* the process that deletes what is there; NULL: none */
    int tell;                 /* the pipe to it */
    uint64_t next;            /* name */
    struct deleter_count {    /* directories put there, and deleted; shared with it */
        uint64_t put, done;
    } * count;
    struct loop_timer again; /* it could not be started, or died */
    uint8_t logged;          /* 1: that; 2: and that there is no room for more */
    bool hurries;            /* it has so much to do that it is no longer nice */
};

void deleter_open(struct launcher *l);
fallible deleter_discard(struct launcher *l,
                         const char *id); /* box/<ID> is no sandbox's from now on */
void deleter_drain(struct launcher *l);   /* at the end; ends it */
