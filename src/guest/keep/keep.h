// SPDX-License-Identifier: Apache-2.0
/* keep.h — what pid 1 holds for the server, so that it outlives one.
 *
 * The server hands it things: a few bytes, descriptors, the process they belong to. When the server
 * dies the next one gets them back before anything else, and hears of every process that ended
 * meanwhile; processes nobody kept are killed. Both ends of the wire are here. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/str.h"
#include "guest/spawn/spawn.h"
#include "loop/loop.h"

#define KEEP_DATA_MAX   4096
#define KEEP_FDS_MAX    8
#define KEEP_OOM_MAX    4
#define KEEP_THINGS_MAX 256

enum keep_kind {
    KEEP_HELLO, /* to the server, first: nursery, then what the bits in id name; the key */
    KEEP_THING, /* both ways */
    KEEP_END,   /* to the server: that was all that was kept */
    KEEP_EXIT,  /* to the server: a process ended */
    KEEP_DROP,  /* to pid 1 */
    KEEP_READY, /* to pid 1: the server listens */
    KEEP_BIND,  /* to a server that awaits its claim: a memory file, see wire/bind.h */
};
enum {
    KEEP_HAS_LISTEN = 1,
    KEEP_HAS_READY = 2,
    KEEP_AWAITS = 4,
    KEEP_MAY_REST = 8, /* it may exit with KEEP_RESTS: the next connection starts it again */
    KEEP_TELLS = 16,   /* that it waits for a claim; otherwise pid 1 has told already */
    KEEP_INSIDE = 32,  /* pid 1 is that: all files are those of a sandbox */
    KEEP_OOM_SHIFT = 6 /* a number */
};
#define KEEP_RESTS 79 /* the exit code of a server nobody has asked for anything */

struct keep_message {
    uint32_t kind, id;
    int32_t pid, code, status;
    char data[KEEP_DATA_MAX];
};
#define KEEP_HEAD offsetof(struct keep_message, data)

/* One message; the lengths are those of data and fds. */
fallible keep_send(int sock, const struct keep_message *m, size_t len, const int *fds,
                   size_t count);
/* *ret_len is SIZE_MAX when the other end is gone. */
fallible keep_recv(int sock, struct keep_message *m, size_t *ret_len, int fds[FD_PASS_MAX],
                   size_t *ret_count);

struct keep_thing { /* taken back from pid 1; whoever takes a descriptor leaves -1 */
    struct list link;
    uint32_t id;
    pid_t pid;
    int fds[KEEP_FDS_MAX];
    size_t fds_len, len;
    bool sent; /* pid 1: to the server that is there now */
    char data[];
};

/* From a message; the descriptors are taken over. NULL, and they are closed: no memory. */
struct keep_thing *keep_thing_new(const struct keep_message *m, size_t len, const int *fds,
                                  size_t count);
void keep_thing_free(struct keep_thing *t);
OWNABLE(keep_thing)

/* --- the server's end --- */
struct keep {
    int sock;
    struct loop *loop;
    struct loop_io io;
    struct spawner spawner;
    int listen_fd, ready_fd; /* -1: none; the server takes them */
    int oom_fds[KEEP_OOM_MAX];
    size_t oom_len;
    struct str session_key; /* ours */
    struct list things;
    bool awaits; /* a claim, see keep_await() */
    bool may_rest, tells, inside;
    uint32_t last_id;
    void (*on_gone)(struct keep *k); /* pid 1 has died */
};

/* Waits for the hello and everything that was kept. sock is taken over. */
fallible keep_open(struct keep *k, int sock);
/* The memory file with what we are to be; the caller's. Waits as long as pid 1 is there. */
fallible keep_await(struct keep *k, int *ret_fd);
void keep_done(struct keep *k); /* what nobody took is closed */
fallible keep_watch(struct keep *k, struct loop *loop, void (*on_gone)(struct keep *k));

uint32_t keep_new_id(struct keep *k);
/* A thing of this id, new or instead of the old one; pid 0: of no process. Descriptors are copied.
 */
fallible keep_put(struct keep *k, uint32_t id, struct str data, const int *fds, size_t count,
                  pid_t pid);
void keep_drop(struct keep *k, uint32_t id);
fallible keep_ready(struct keep *k);
/* The first thing whose data starts so, off the list; NULL: none is left. */
struct keep_thing *keep_take(struct keep *k, struct str prefix);
/* How many processes of the sandbox were killed for lack of memory. */
uint64_t keep_oom_kills(const struct keep *k);
/* The counter in a memory.events or memory.oom_control. */
uint64_t keep_parse_oom(struct str text);
