// SPDX-License-Identifier: Apache-2.0
/* box.h — one native sandbox, from clone to removal.
 *
 * It is made in two steps. A spare process ("spare") has namespaces, control groups and a slot,
 * which is a range of ids, and fits any root file system; it is used once. A start gives it a root
 * and runs pid 1. A spare prepares itself while its maker builds the mounts, so a cold start is
 * both steps at once.
 *
 * All that a sandbox leaves on the machine is its process, its control groups s<SLOT>, its claim
 * ids/<SLOT> and its directory box/<ID>: box_remove() removes exactly these. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/launcher/box_host.h"
#include "sandbox/native/msg.h"

#define BOX_FDS     8
#define BOX_PREFIX  512
#define BOX_ROOTS   8
#define BOX_NAME    16
#define BOX_LOWERS  128   /* layers of one overlay */
#define BOX_WAIT_MS 30000 /* for a start or a freeze on a machine that is on its knees */

enum {
    BOX_TTY = 1u << 0,
    BOX_DIE_WITH_PARENT = 1u << 1,
    BOX_DIR_MADE = 1u << 2, /* box_make_dir() has been called */
    BOX_LAUNCHER = 1u << 3, /* the next launcher answers for it */
    BOX_PERSIST = 1u << 4,  /* its files outlive it, until it is removed */
    /* The layers of its overlays stay open. Closing a layer that was mounted nowhere else costs an
     * RCU grace period, and the caller is about to end. */
    BOX_LEAVE_LAYERS = 1u << 5,
    BOX_JOINED = 1u << 6, /* its root file system is, see rootfs.h */
};

/* One overlay of the root file system: overlay does not cross mounts, so there may be several. */
struct box_root {
    const char *where;        /* below the root, "" is the root itself */
    const char *upper, *work; /* names for its directories in box/<ID> */
    const int *lowers;        /* O_PATH, topmost first */
    size_t lower_count;
    size_t frozen;  /* the first so many are a snapshot's, not its image's */
    bool redirects; /* see mounts.h */
};

struct box_spec {
    const struct native_request *req; /* checked */
    unsigned flags;
    const struct box_root *roots; /* in the order to mount them */
    size_t root_count;
    const char *root_id;        /* its layers' id, noted as box/<ID>/root; NULL or "": none */
    int sources[NATIVE_MOUNTS]; /* of req->mounts; O_PATH */
    /* Frozen layers between an overlay mount's upper and its source, topmost first. */
    const int *layers[NATIVE_MOUNTS];
    size_t layer_count[NATIVE_MOUNTS];
    const char *const *prefix; /* arguments before those of the block; NULL: none */
    int block; /* memfd: argc + envc strings, each ended by NUL; -1: with NATIVE_WARM, none */
    int fds[BOX_FDS]; /* fds[i] becomes i inside; -1: /dev/null up to 2, else closed */
    unsigned fd_count;
    unsigned short tty_rows, tty_cols; /* with BOX_TTY: its size until a client sets one; 0: none */
    enum native_disk disk;             /* what limits req's disk space, by disk_choose() */
    unsigned oom_at; /* a descriptor: its counter of kills, opened inside, and behind it what it
                      * uses; 0: none */
};

struct box_spare {
    unsigned slot;
    pid_t pid; /* 0: none */
    int pidfd, sock, userns;
    bool again; /* its slot was another sandbox's */
    struct native_limits limits;
    uint64_t cpu_ns;
    uint64_t made_ns;    /* how long that took */
    uint64_t ordered_ns; /* when it was told what to become */
};

struct box {
    char id[NATIVE_ID_MAX];
    unsigned slot;
    pid_t pid;
    int pidfd;
    int tty; /* master of the sandbox's terminal, with BOX_TTY */
    /* The directory of its upper layers if not box/<ID>, and that directory with the same ids. The
     * caller may read them, and closes them. -1: not there. */
    int disk, home;
    int userns;                  /* for the next one with its slot, -1: not there */
    struct native_limits limits; /* of its groups */
    uint64_t cpu_ns;             /* what those before it used, of what its groups count */
    bool single_use;             /* its slot is not used again */
    bool names_dropped;          /* its names are gone: those in their place are its next life's */
    uint64_t phase_ns[NATIVE_PHASES];
};

/* claim is what ids/<SLOT> says while there is no sandbox yet: its id, if known. */
fallible box_prepare_spare(struct box_host *h, const char *claim, struct box_spare *ret_spare);
void box_drop_spare(struct box_host *h, struct box_spare *e); /* a spare that is not needed */
/* Something is left of the making of the last spare, to be tidied up when there is time. */
bool box_is_untidy(const struct box_host *h);
void box_tidy(struct box_host *h);
void box_clear_fd_slot(struct box_host *h); /* once the last child has left our descriptors */

/* For a caller that puts something in it first; ERR_CONFLICT when the name is taken. */
fallible box_make_dir(const struct box_host *h, const char *id);

/* The spare is used up whatever happens; on failure nothing is left and the error names the step.
 * Returns when pid 1 has been exec'd. */
fallible box_start(struct box_host *h, struct box_spare *e, const struct box_spec *spec,
                   struct box *ret_box);
/* The same without waiting: box_end() can tell when e->sock is readable, and waits for that
 * otherwise. flags are the spec's. After a failure of either nothing is left. */
fallible box_begin(struct box_host *h, struct box_spare *e, const struct box_spec *spec,
                   struct box *ret_box);
fallible box_end(struct box_host *h, struct box_spare *e, unsigned flags, int wait_ms,
                 struct box *b);
/* Binds a warm sandbox, in which only pid 1 and its server run. Limits, host name and mounts become
 * those of spec, as far as they differ from `was`, with which it was started. On failure it is half
 * bound: kill it. */
fallible box_claim(struct box_host *h, struct box *b, const struct box_spec *spec,
                   const struct native_request *was);
fallible box_kill(const struct box_host *h, const struct box *b);
fallible box_pause(const struct box_host *h, struct box *b, bool paused);
/* Once pid 1 is dead: groups, claim and directory. keep: the directory stays, for the changes in
 * it. */
fallible box_remove(struct box_host *h, struct box *b, bool keep);
fallible box_remove_dir(const struct box_host *h, const char *id);
fallible box_delete(int parent, const char *name); /* such a directory; quick when it is bare */

/* Upper layer and work directory of mount n in box/<ID>: "m0u", "m0w". */
void box_upper_name(unsigned mount, char out_upper[BOX_NAME], char out_work[BOX_NAME]);
void box_group_name(unsigned slot, char out[BOX_NAME]);
