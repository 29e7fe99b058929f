// SPDX-License-Identifier: Apache-2.0
/* held.h — what pid 1 holds for the server, so that it outlives one.
 *
 * The server hands it items: a few bytes, descriptors, the process they belong to. When the server
 * dies the next one gets them back before anything else, and hears of every process that ended
 * meanwhile; processes of no item are killed. Both ends of the wire are here. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/str.h"
#include "guest/spawn/spawn.h"
#include "loop/loop.h"

#define HELD_DATA_MAX  4096
#define HELD_FDS_MAX   8
#define HELD_OOM_MAX   4
#define HELD_ITEMS_MAX 256

enum held_kind {
    HELD_HELLO, /* to the server, first: forker, then what the bits in id name; the key */
    HELD_ITEM,  /* both ways */
    HELD_END,   /* to the server: that was all */
    HELD_EXIT,  /* to the server: a process ended */
    HELD_DROP,  /* to pid 1 */
    HELD_READY, /* to pid 1: the server listens */
};
enum {
    HELD_HAS_LISTEN = 1,
    HELD_HAS_READY = 2,
    HELD_AGAIN = 4,  /* a server was there before */
    HELD_INSIDE = 8, /* pid 1 is that: all files are those of a sandbox */
    HELD_HAS_MEMORY = 16,
    HELD_OOM_SHIFT = 5 /* a number */
};
#define HELD_IDLE   79       /* the exit code of an idle server: pid 1 has its socket */
#define HELD_VIEWER "viewer" /* an item: the file viewer's socket, at which pid 1 waits as well */

struct held_message {
    uint32_t kind, id;
    int32_t pid, code, status;
    char data[HELD_DATA_MAX];
};
#define HELD_HEAD offsetof(struct held_message, data)

/* One message; the lengths are those of data and fds. */
fallible held_send(int sock, const struct held_message *m, size_t len, const int *fds,
                   size_t count);
/* *ret_len is SIZE_MAX when the other end is gone. */
fallible held_recv(int sock, struct held_message *m, size_t *ret_len, int fds[FD_PASS_MAX],
                   size_t *ret_count);

struct held_item { /* taken back from pid 1; a descriptor that is taken leaves -1 */
    struct list link;
    uint32_t id;
    pid_t pid;
    int fds[HELD_FDS_MAX];
    size_t fds_len, len;
    bool sent; /* pid 1: to the server that is there now */
    char data[];
};

/* From a message; the descriptors are taken over. NULL, and they are closed: no memory. */
struct held_item *held_item_new(const struct held_message *m, size_t len, const int *fds,
                                size_t count);
void held_item_free(struct held_item *t);
OWNABLE(held_item)

/* --- the server's end --- */
struct held {
    int sock;
    struct loop *loop;
    struct loop_io io;
    struct spawner spawner;
    int listen_fd, ready_fd; /* -1: none; the server takes them */
    int memory_fd;           /* what the sandbox uses; -1: not counted */
    int oom_fds[HELD_OOM_MAX];
    size_t oom_len;
    struct str session_key; /* ours */
    struct list items;
    bool inside, again; /* as the bits say */
    bool listens;       /* pid 1 has our socket: we may end with HELD_IDLE */
    uint32_t last_id;
    void (*on_gone)(struct held *k); /* pid 1 has died */
};

/* Waits for the hello and everything that was held. sock is taken over. */
fallible held_open(struct held *k, int sock);
void held_done(struct held *k); /* what was not taken is closed */
fallible held_watch(struct held *k, struct loop *loop, void (*on_gone)(struct held *k));

uint32_t held_new_id(struct held *k);
/* An item of this id, new or instead of the old one; pid 0: of no process. Descriptors are copied.
 */
fallible held_put(struct held *k, uint32_t id, struct str data, const int *fds, size_t count,
                  pid_t pid);
void held_drop(struct held *k, uint32_t id);
fallible held_ready(struct held *k);
/* The first item with this start of its data, off the list; NULL: none is left. */
struct held_item *held_take(struct held *k, struct str prefix);
/* How many processes of the sandbox were killed for lack of memory. */
uint64_t held_oom_kills(const struct held *k);
/* What its control group counts; false: nobody counts. */
bool held_memory(const struct held *k, uint64_t *ret_bytes);
/* The counter in a memory.events or memory.oom_control. */
uint64_t held_parse_oom(struct str text);
