// SPDX-License-Identifier: Apache-2.0
/* watch.h — the host's eyes on a probe: a process that traces it and all its children, from
 * outside, and writes down what the kernel answered to what each row attempts. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "test/escape/trace.h"

#define WATCH_ROWS 400

struct watch_row {
    char name[80]; /* family/name */
    enum trace trace;
    unsigned deeds, failed_steps;
    bool open;   /* by one of TRACE_CALL … TRACE_LIMIT */
    bool killed; /* by the filter */
    bool lost;   /* ended by another signal: nothing is known */
    long answer; /* the one that made it open, or the last one */
};

struct watch {
    pid_t pid; /* who watches */
    unsigned count;
    bool ended;      /* saw the probe's end */
    char walls[300]; /* first thing that was not as it is for who is shut in; "": all were */
    struct watch_row rows[WATCH_ROWS];
};

/* Begins to look for a probe that was told this word; that one waits until it is watched. */
struct watch *watch_begin(const char *word);
/* Waits until the probe has ended; the rows stay. */
void watch_end(struct watch *w);
void watch_free(struct watch *w);
/* A process that runs the probe and was told this word; 0: there is none. */
pid_t watch_find(const char *word);
