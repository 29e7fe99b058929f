// SPDX-License-Identifier: Apache-2.0
/* box_inner.h — between the two sides of a start: box.c outside, box_child.c inside. */
#pragma once

#include "base/fd.h"
#include "host/launcher/box.h"

/* Descriptors that go with an order, in this order; then roots, mounts, the sandbox's own. */
enum { ORDER_USERNS, ORDER_EXE, ORDER_BLOCK, ORDER_FIXED };

/* Everything that travels with an order, owned until it is sent. */
struct box_cargo {
    int fds[FD_PASS_MAX];
    size_t count;
    size_t lent; /* the first so many are not ours to close */
};
void box_cargo_done(struct box_cargo *c);
/* Adds its root file systems, then its mounts. dir: box/<ID>; machine_id: for the first of the
 * root's. Sets home and disk, on failure too. */
fallible box_build(struct box_host *h, const struct box_spec *spec, struct box *box, int userns,
                   int dir, const char *machine_id, struct box_cargo *c);

struct box_order {
    struct native_request req;
    uint32_t flags, slot, fd_count;
    uint32_t fd_given; /* bit i: fds[i] is among the descriptors */
    uint32_t oom_at;
    struct native_limits was; /* what its groups are limited to already */
    uint16_t tty_rows, tty_cols;
    uint32_t prefix_count;
    char prefix[BOX_PREFIX]; /* strings, each ended by NUL */
    uint32_t root_count;
    char where[BOX_ROOTS][NATIVE_PATH_MAX]; /* of root 1 and on */
};

enum { REPORT_ERROR = 1, REPORT_TTY };

struct box_report {
    uint32_t kind, code, errnum;
    char text[NATIVE_TEXT_MAX];
};

/* The spare's process; does not return. */
_Noreturn void box_child(const struct box_host *h, struct box_spare *e, int sock);

/* Groups and claim of a slot nobody lives in. */
void box_forget_slot(struct box_host *h, unsigned slot);

/* --- box_used_slot.c --- */

/* False: none is there, or nothing is to be kept. */
bool box_used_slot_take(struct box_host *h, struct box_spare *e);
bool box_used_slot_keep(struct box_host *h, struct box *b);

/* --- box_bare.c --- */

fallible box_bare_open(struct box_host *h);

/* --- layer_cache.c --- */

#define LAYER_CACHE_ROOTS  4 /* of a sandbox, and layers of each, that are kept */
#define LAYER_CACHE_LAYERS 4
#define LAYER_CACHE_HOME   (LAYER_CACHE_ROOTS * LAYER_CACHE_LAYERS) /* state/box; writable */
#define LAYER_CACHE_COPIES (LAYER_CACHE_HOME + 1)

struct layer_cache *layer_cache_new(void);
/* A copy of dir's mount with the ids of a slot, by its number: a kept one, if that is of the same
 * id (else those of the slot go) and directory. The caller's to close. n LAYER_CACHE_COPIES, or no
 * id: none is kept. */
fallible layer_cache_copy(struct box_host *h, unsigned slot, const char *id, unsigned n, int dir,
                          int userns, int *ret_mount);
void layer_cache_drop(struct box_host *h, unsigned slot); /* with the slot */
void layer_cache_clear(struct box_host *h);

/* --- box_net.c --- */

void box_net_drop(struct box_host *h, int *net);
/* In the child, which reads its own /proc: does the namespace it is in look as a new one does? */
bool box_net_is_new(const struct box_host *h);
void box_net_note_new(const struct box_host *h); /* it is one */
