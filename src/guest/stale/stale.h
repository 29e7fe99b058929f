// SPDX-License-Identifier: Apache-2.0
/* stale.h — private directories of servers that were killed.
 *
 * The server's directories outside of the workspace (undo, shells, kernels) go when it ends. One
 * that is killed leaves them, so the next one looks: a directory of ours is in use as long as a
 * descriptor that was marked with stale_hold, of it or of a file in it, is open anywhere, be it in
 * pid 1 alone. */
#pragma once

#include <stdint.h>

#define STALE_UNDO   "croft-undo-"
#define STALE_SHELL  "croft-shell-"
#define STALE_KERNEL "croft-kernel-"
#define STALE_UPLOAD                                                                               \
    ".upload-" /* and RNG_HEX_LEN digits; in the workspace, so not after an hour                   \
                * but at once */

/* Not being able to is no harm but that the next server may sweep it in an hour. */
void stale_hold(int fd);
/* Removes what is not held and, but for uploads, was not touched for an hour; a bounded part of
 * it per call. */
void stale_sweep(const char *place, uint64_t now_s);
