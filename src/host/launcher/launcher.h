// SPDX-License-Identifier: Apache-2.0
/* launcher.h — the one privileged process, which makes sandboxes for a server it does not trust.
 *
 * It is forked first, before any input is read; single-threaded, in a session and a mount namespace
 * of its own. Its policy is fixed before the fork. A server names roots and images by index, asks
 * for limits below the ceilings, and gets nothing else whatever it sends. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "sandbox/native/msg.h"

#define LAUNCHER_ROOTS 64

struct launcher_root { /* modes 0: none, a number that is not used any more */
    const char *path;  /* absolute; opened by the launcher, in its own mount namespace */
    int dir;           /* O_PATH, borrowed: the directory that path must still be */
    unsigned modes;    /* bit per enum native_mount_mode, and LAUNCHER_APPLY */
};
#define LAUNCHER_APPLY (1u << 8) /* changes of an overlay may be put into the directory */

struct launcher_policy {
    const char *state; /* absolute */
    struct launcher_root roots[LAUNCHER_ROOTS];
    size_t root_count;
    const char *const *images; /* directories; NULL: the machine's own system; ended by count */
    size_t image_count;
    /* Whole images of state/images, by id, those that come later included; and may a server add
     * some? import_bytes: what one may unpack to, 0: LAYER_BYTES_DEFAULT. */
    bool stored_images, import_images;
    uint64_t import_bytes;
    bool nested;                             /* NATIVE_NESTED may be asked for */
    struct native_limits otherwise, ceiling; /* otherwise: for what is not asked for; 0: no bound */
    unsigned most;                           /* sandboxes at once */
    unsigned spares;                         /* kept ready */
    /* When the server goes: false, the launcher ends its sandboxes and itself. True, it waits for
     * the next server as long as a sandbox lives, and files stay until they are removed. */
    bool persist;
    /* The directory where sandboxes ("ID.s", "ID.c") and, with persist, the launcher ("launcher")
     * listen: absolute; NULL: state/run. All users may pass through it, only the server can
     * connect. */
    const char *sockets;
    uid_t server; /* its user, if the launcher is root */
};

/* Gives the server's end of the socket. Sandboxes that a killed launcher left in this state are
 * taken over. One launcher for one state. */
fallible launcher_fork(const struct launcher_policy *policy, int *ret_sock, pid_t *ret_pid);
/* A launcher that lives, with persist; ERR_NOT_FOUND when there is none, ERR_BUSY is told by its
 * first answer: it has a server. */
fallible launcher_connect(const char *sockets, int *ret_sock);
