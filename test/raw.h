// SPDX-License-Identifier: Apache-2.0
/* raw.h — a server that plays back canned bytes, on the test's own loop.
 *
 * Connection i follows script i (the last one repeats): when what came in ends in `until`, the next
 * answer goes out, `piece` bytes a turn. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "loop/loop.h"

enum raw_end {
    RAW_KEEP,  /* after the last answer: stay open and silent */
    RAW_CLOSE, /* after the last answer: close */
    RAW_RESET, /* the same with RST */
    RAW_HANGUP /* at the request after the last answer: close */
};

struct raw_script {
    struct str answers[6];
    const char *until; /* NULL: the empty line of a head */
    size_t piece;      /* 0: all at once */
    enum raw_end end;
};

struct raw {
    struct loop *loop;
    const struct raw_script *scripts;
    size_t script_count;
    unsigned accepted, requests;
    struct buf seen; /* all that came in, of all connections */
    struct loop_io io;
    int fd;
    struct list conns;
    char url[160]; /* "http://127.0.0.1:port" or "unix:/path" */
};

void raw_start(struct raw *r, struct loop *loop, const char *address,
               const struct raw_script *scripts, size_t count);
void raw_stop(struct raw *r);
void raw_close_conns(struct raw *r);
