// SPDX-License-Identifier: Apache-2.0
/* msg.h — what the server and the launcher say to each other.
 *
 * One SEQPACKET message each way, of fixed size, with descriptors beside it. The launcher treats
 * every request as hostile: native_check() is the whole of its parsing, and it looks at nothing a
 * stranger wrote: arguments and environment are a memfd that only the sandboxed child opens. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define NATIVE_MAGIC     0x54465243u /* "CRFT" */
#define NATIVE_VERSION   8
#define NATIVE_ID_MAX    64
#define NATIVE_PATH_MAX  256
#define NATIVE_MOUNTS    8
#define NATIVE_TEXT_MAX  256
#define NATIVE_LIST_MAX  64 /* ids in one answer; ask again with the last one */
#define NATIVE_IMAGE_MAX 256
#define NATIVE_BLOCK_MAX (4u << 20) /* arguments and environment of pid 1 */

enum native_op {
    /* fds: the block, a sealed memfd, then a pipe for its output if FD_LOG. The answer brings two:
     * a pipe that gets one byte when it is ready, and its control connection (EOF: it is dead).
     * The id of one that has ended: it is started again, with the files it left. */
    NATIVE_START = 1,
    NATIVE_KILL,   /* answered when it is dead, with how it ended */
    NATIVE_REMOVE, /* answered when it is dead and gone */
    NATIVE_PAUSE,
    NATIVE_RESUME,
    NATIVE_INSPECT,
    NATIVE_LIST,    /* ids after `id`, in order */
    NATIVE_CONNECT, /* answers with a connection to its server, or with TUNNEL to pid 1 */
    /* For a server that came later: state as INSPECT gives it and, of one that lives, a descriptor
     * that becomes readable when it is dead and is good for nothing else (a pidfd). */
    NATIVE_ADOPT,
    /* All files of the sandbox as they are now, under the name `snapshot`. One that runs stands
     * still meanwhile. */
    NATIVE_SNAPSHOT,
    NATIVE_SNAPSHOT_REMOVE, /* sandboxes started from it keep what is below */
    NATIVE_SNAPSHOT_LIST,   /* names after `snapshot`, in order */
    /* The image that the store has by the name, or the id, `image_name`: answers with a descriptor
     * of its record (host/images), to be read. */
    NATIVE_IMAGE_FIND,
    /* fds: an archive as 'docker save' writes it, a regular file. Answered when it is in the store,
     * named `image_name`; text is its id. */
    NATIVE_IMAGE_IMPORT,
    /* Gives a warm sandbox its limits, host name and mounts. fds: what it is bound to
     * (wire/bind.h), a sealed memfd that goes to pid 1 unread, and with FD_LOG a pipe for a
     * command's output.
     *
     * Possible once only. If `image_name` is not empty, the sandbox must stand on the image of that
     * id. Refused with state NATIVE_WAITING, nothing was done; after any other failure it ends. */
    NATIVE_CLAIM,
    /* The directory that root number `image` of the policy is: text its path, count how many roots
     * there are, flags what may be done there. For a server that came after the launcher. */
    NATIVE_ROOT,
    /* All that the sandbox changed; it is paused meanwhile. fds: the question (wire/files.h), a
     * sealed memfd that only a confined child reads. The answer brings a descriptor of the result,
     * JSON. */
    NATIVE_DIFF,
    /* Its changes of overlay mounts go into the directories themselves, as far as the policy lets
     * them. fds and answer as of DIFF. */
    NATIVE_APPLY,
    /* For a sandbox that has ended: its files are again as when it began, or those of
     * `snapshot`. */
    NATIVE_ROLLBACK,
    NATIVE_OP_END
};

/* The op of a message without a request, tag 0: the sandbox ids[0], for which there was TELL, has
 * ended, as INSPECT would say. Not when it was killed or removed: the answer to that tells. */
#define NATIVE_DIED 100u

enum native_flag {
    NATIVE_NO_NEW_PRIVS = 1u << 0, /* sudo and set-uid programs gain nothing inside */
    NATIVE_FD_LOG = 1u << 1,
    NATIVE_TUNNEL = 1u << 2,
    /* At a start: pid 1 waits for NATIVE_CLAIM; there is no block. The ready pipe gets one byte now
     * and one when the sandbox listens. */
    NATIVE_WARM = 1u << 3,
    NATIVE_OWN_ARGS = 1u << 4, /* the block begins with options of pid 1, and has its "--" */
    /* At a start or adoption: NATIVE_DIED instead of a control connection or pidfd. */
    NATIVE_TELL = 1u << 5,
    NATIVE_FILE_LOG = 1u << 6, /* output goes to the file ID.l beside its sockets, the server's */
    /* At a start: it may make namespaces of its own, below its own, and mount in them. For
     * sandboxes that build images. Landlock is left out, because it forbids mounts. */
    NATIVE_NESTED = 1u << 7,
    NATIVE_FLAGS = (1u << 8) - 1
};

/* In a reply: it was not the launcher's child when it ended, so its code is not known. */
#define NATIVE_CODE_UNKNOWN 1u

enum native_mount_mode { NATIVE_RO = 1, NATIVE_RW, NATIVE_OVERLAY };
enum native_network { NATIVE_NET_NONE = 0, NATIVE_NET_HOST };
enum native_state { NATIVE_RUNNING = 1, NATIVE_PAUSED, NATIVE_EXITED, NATIVE_WAITING };
enum native_phase { NATIVE_NAMESPACES, NATIVE_MOUNTING, NATIVE_EXEC, NATIVE_PHASES };

/* 0 means: the launcher's default, which its ceilings bound. */
/* The mechanism that limits a sandbox's disk space. */
enum native_disk { NATIVE_DISK_NONE, NATIVE_DISK_PROJECT, NATIVE_DISK_TMPFS, NATIVE_DISK_LOOP };
const char *native_disk_word(unsigned disk); /* "none", "project", … */

struct native_limits {
    uint64_t memory_bytes, disk_bytes;
    uint32_t pids, cpu_milli, nofile; /* cpu: thousandths of one processor */
    uint32_t pad;
};

/* For a new sandbox, as NATIVE_OVERLAY: the image of the store with the name or id `path`. */
#define NATIVE_ROOT_IMAGE UINT32_MAX

struct native_mount {
    uint32_t mode;                /* 0: no mount */
    uint32_t root;                /* index of a root the policy holds, or NATIVE_ROOT_IMAGE */
    char path[NATIVE_PATH_MAX];   /* below it, resolved beneath; "." is the root itself */
    char target[NATIVE_PATH_MAX]; /* absolute, in the sandbox */
};

/* The image of the store with the name or id `image_name`. */
#define NATIVE_IMAGE_STORED UINT32_MAX

struct native_request {
    uint32_t magic, version, op, flags;
    uint64_t tag; /* comes back with the answer, for answers overtake each other */
    char id[NATIVE_ID_MAX];
    struct native_limits limits;
    uint32_t image; /* index of a root file system the policy holds, or NATIVE_IMAGE_STORED */
    uint32_t network;
    uint32_t argc, envc; /* strings in the block */
    char hostname[NATIVE_ID_MAX];
    /* At a start: the snapshot a new sandbox goes on from; empty: its root file system alone. */
    char snapshot[NATIVE_ID_MAX];
    char image_name[NATIVE_IMAGE_MAX];
    struct native_mount mounts[NATIVE_MOUNTS];
};

struct native_usage { /* 0: not counted */
    uint64_t memory_bytes, cpu_ns, pids;
};

struct native_reply {
    uint32_t magic, version, op;
    uint32_t code; /* enum err_code + 1; 0: done */
    uint64_t tag;
    char text[NATIVE_TEXT_MAX];
    uint32_t state, exit_code, signal, count;
    int32_t pid;
    uint32_t flags;     /* NATIVE_CODE_UNKNOWN */
    uint32_t disk, pad; /* enum native_disk; of START, INSPECT, ADOPT */
    uint64_t oom_kills;
    struct native_usage usage;        /* of INSPECT */
    uint64_t phase_ns[NATIVE_PHASES]; /* of a start */
    uint8_t states[NATIVE_LIST_MAX];  /* of LIST: enum native_state */
    char ids[NATIVE_LIST_MAX][NATIVE_ID_MAX];
};

/* Refuses what no honest server sends: wrong size, magic or version, unknown bits, text that is not
 * terminated, ids that are not names, paths that climb. Policy comes after, in the launcher. */
fallible native_check(const void *data, size_t size);
/* Letters, digits, '-', '_' and '.', no dot first: fit for a file name. */
bool native_id_ok(const char *id, size_t size);
/* A name as registries have them; ERR_INVALID otherwise. */
fallible native_image_check(const char *name);
/* Absolute, no "..", no empty or "." parts, no trailing slash, not "/" itself. */
bool native_target_ok(const char *path, size_t size);
