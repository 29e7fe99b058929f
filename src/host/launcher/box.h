// SPDX-License-Identifier: Apache-2.0
/* box.h — one native sandbox, from clone to removal.
 *
 * Made in two steps. A spare has namespaces, control groups and a range of ids, and is good for
 * any root file system; a start gives it one and runs pid 1. The spare's process prepares itself
 * while we build its mounts, so a cold start is both steps at once. A spare is used once.
 *
 * Everything a sandbox leaves on the machine is its process, its control groups s<SLOT>, its claim
 * ids/<SLOT> and its directory box/<ID>: box_remove() removes exactly these. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/launcher/cg.h"
#include "host/kernel/confine.h"
#include "host/launcher/ids.h"
#include "host/launcher/fd_slot.h"
#include "host/subids/subids.h"
#include "sandbox/native/msg.h"

#define BOX_FDS     8
#define BOX_PREFIX  512
#define BOX_ROOTS   8
#define BOX_NAME    16
#define BOX_STATE   4096
#define BOX_PLACE   "mnt"   /* in the state: where things are mounted by who sees it alone, */
#define BOX_LOOK    "look"  /* and where a launcher's children do, which see each other's */
#define BOX_GONE    "gone"  /* in the state: what has been removed and is not deleted yet */
#define BOX_UPPER   "upper" /* in box/<ID>: layers of a root file system that is one overlay */
#define BOX_WORK    "work"
#define BOX_LOWERS  128   /* layers of one overlay */
#define BOX_WAIT_MS 30000 /* for a start or a freeze on a machine that is on its knees */

/* What all sandboxes of a process share. */
struct box_host {
    char state[BOX_STATE]; /* the directory below which everything is kept, 0700 */
    int dir;               /* that directory */
    int boxes, ids;        /* directories in it */
    int exe;               /* croft-guest, through a read-only mount */
    bool by_path;          /* how overlays take their layers here, see mounts.h */
    int look;              /* then: BOX_LOOK, whatever is mounted on it */
    bool user;             /* not root: what the kernel grants, with one id or */
    struct subids sub;     /* with a range */
    int landlock;          /* version, 0: none */
    struct cg cg;
    struct confine_filter filter, nested; /* nested: of NATIVE_NESTED */
    struct rng *rng;
    char boot[40]; /* which run of the machine this is */
    struct fd_slot fd_slot;
    struct ids_holder holder;
    bool many;           /* box_host_many(): */
    int bare;            /* a mount namespace with nothing in it, see box_bare.c; -1: none */
    int names;           /* a file system in memory for their names, see identity.h; -1: none */
    int noted;           /* the box/<ID>/root made last, */
    char noted_id[72];   /* and what it says; -1: none */
    struct reuse *reuse; /* parts of removed sandboxes; NULL: none is used again */
};

fallible box_host_open(struct box_host *h, const char *state, struct rng *rng);
/* What the machine gives; good for layers.h only. state: the directory it would be kept in, which
 * need not be there; NULL: none. */
void box_host_look(struct box_host *h, const char *state);
void box_host_close(struct box_host *h);
/* For who makes many: on ext4 without a journal a new inode passes by all that were freed in its
 * group within the last minute, so sandboxes are spread over the disk (a "top directory"). With a
 * journal they stay together, for each group of inodes must be read once. */
void box_host_spread(const struct box_host *h);
/* The same; namespaces of mounts start empty, and names are in memory. */
fallible box_host_many(struct box_host *h);
/* In a child that makes sandboxes too: what both would wait for is its own from now on. */
fallible box_host_forked(struct box_host *h);

enum {
    BOX_TTY = 1u << 0,
    BOX_DIE_WITH_PARENT = 1u << 1,
    BOX_DIR_MADE = 1u << 2, /* box_make_dir() has been called */
    BOX_LAUNCHER = 1u << 3, /* the next launcher answers for it */
    BOX_PERSIST = 1u << 4,  /* its files outlive it, until it is removed */
    /* What its overlays were built from stays open: a layer that was mounted nowhere else costs an
     * RCU grace period to close, and the caller's end is near. */
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
    const char *root_id; /* whose layers they are, noted as box/<ID>/root; NULL or "": nobody's */
    int sources[NATIVE_MOUNTS]; /* of req->mounts; O_PATH */
    /* Frozen layers between an overlay mount's upper and its source, topmost first. */
    const int *layers[NATIVE_MOUNTS];
    size_t layer_count[NATIVE_MOUNTS];
    const char *const *prefix; /* arguments before those of the block; NULL: none */
    int block; /* memfd: argc + envc strings, each ended by NUL; -1: with NATIVE_WARM, none */
    int fds[BOX_FDS]; /* fds[i] becomes i inside; -1: /dev/null up to 2, else closed */
    unsigned fd_count;
    unsigned short tty_rows, tty_cols; /* with BOX_TTY: its size, before anybody asks; 0: none */
    enum native_disk disk;             /* what limits req's disk space, by disk_choose() */
    unsigned oom_at; /* a descriptor: its counter of kills, opened inside; 0: none */
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
    /* Where its upper layers are, if not in box/<ID>, and that directory with the same ids, for who
     * wants to take something out; whoever does not closes them. -1: not there. */
    int disk, home;
    int userns;                  /* for the next one with its slot, -1: not there */
    struct native_limits limits; /* of its groups */
    uint64_t cpu_ns;             /* what those before it used, of what its groups count */
    bool worn;                   /* its slot is not used again */
    bool nameless;               /* its names are gone: those in their place are its next life's */
    uint64_t phase_ns[NATIVE_PHASES];
};

/* claim is what ids/<SLOT> says while there is no sandbox yet: its id, if known. */
fallible box_prepare_spare(struct box_host *h, const char *claim, struct box_spare *ret_spare);
void box_drop_spare(struct box_host *h, struct box_spare *e); /* a spare nobody wants */
/* Something is left of the making of the last spare, for who has nothing else to do. */
bool box_is_untidy(const struct box_host *h);
void box_tidy(struct box_host *h);
void box_clear_fd_slot(struct box_host *h); /* once the last child has left our descriptors */

/* For those who put something in it first; ERR_CONFLICT when the name is taken. */
fallible box_make_dir(const struct box_host *h, const char *id);
/* Mount i is a directory of the machine's that it may write: box_sweep() takes set-id bits off what
 * it made there, should whoever runs it be killed. */
fallible box_note_writable(const struct box_host *h, const char *id, unsigned i, const char *path);

/* The spare is used up whatever happens; on failure nothing is left and the error names the step.
 * Returns when pid 1 has been exec'd. */
fallible box_start(struct box_host *h, struct box_spare *e, const struct box_spec *spec,
                   struct box *ret_box);
/* The same for who has other things to do: e->sock is readable when box_end() can tell, which waits
 * for that otherwise. flags are the spec's. After a failure of either nothing is left. */
fallible box_begin(struct box_host *h, struct box_spare *e, const struct box_spec *spec,
                   struct box *ret_box);
fallible box_end(struct box_host *h, struct box_spare *e, unsigned flags, int wait_ms,
                 struct box *b);
/* A warm one, whose pid 1 runs and nothing else: limits, host name and mounts (sources and layers)
 * of spec as far as they differ from `was`, what it was started with. On failure it is half bound:
 * kill it. */
fallible box_claim(struct box_host *h, struct box *b, const struct box_spec *spec,
                   const struct native_request *was);
fallible box_kill(const struct box_host *h, const struct box *b);
fallible box_pause(const struct box_host *h, struct box *b, bool paused);
/* Once pid 1 is dead: groups, claim and directory. keep leaves the directory to those who want the
 * changes in it. */
fallible box_remove(struct box_host *h, struct box *b, bool keep);
fallible box_remove_dir(const struct box_host *h, const char *id);
fallible box_delete(int parent, const char *name); /* such a directory; quick when it is bare */

/* What others left behind, if no other croft uses this state: claims without a living process go,
 * with their groups and directories. Each box_host holds a shared lock on state/box until it and
 * all its children are gone. gone: state/gone is emptied too, by who has nobody for that. */
fallible box_sweep(struct box_host *h, bool gone);

/* What a launcher that was killed left, for the one that holds the lock of launchers now.
 * box_adopt(): a sandbox by its name; *ret_alive says whether its process lives, is the one of the
 * record, and is in its control group: only then are slot, pid and pidfd set. ERR_NOT_FOUND for
 * what no launcher made. box_clear_claims(): ends and forgets what holds a slot and is not in use.
 */
struct record;
fallible box_adopt(struct box_host *h, const char *id, struct box *ret_box,
                   struct record *ret_record, bool *ret_alive);
fallible box_clear_claims(struct box_host *h, bool (*in_use)(void *arg, unsigned slot), void *arg);
/* Of one that does not run: its directory, unless it holds changes to somebody's files. */
fallible box_clear_dir(const struct box_host *h, const char *id);
/* A directory whose maker died before it wrote a record; croft run claims its name before that. */
fallible box_clear_unrecorded(const struct box_host *h, const char *id);

/* The ids a sandbox has: a range of its own, or all that an ordinary user has. */
struct ids_range box_ids(const struct box_host *h, unsigned slot);

/* Upper layer and work directory of mount n in box/<ID>: "m0u", "m0w". */
void box_upper_name(unsigned mount, char out_upper[BOX_NAME], char out_work[BOX_NAME]);
void box_group_name(unsigned slot, char out[BOX_NAME]);
