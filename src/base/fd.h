// SPDX-License-Identifier: Apache-2.0
/* fd.h — files by descriptor: nothing here follows a path out of the directory it was given. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Opens path beneath dir: "..", absolute paths and symlinks may not lead out, magic links are never
 * followed. "." is dir itself; "" is ERR_INVALID. O_CLOEXEC is added. Uses openat2, or a walk that
 * is as strict where that is missing. */
fallible fd_open_beneath(int dir, struct str path, int flags, mode_t mode, int *ret_fd);
/* The walk alone, for the test that holds it against openat2. */
fallible fd_open_beneath_walk(int dir, struct str path, int flags, mode_t mode, int *ret_fd);
/* Makes every missing directory of path beneath dir and opens the last one. */
fallible fd_make_dirs(int dir, struct str path, mode_t mode, int *ret_fd);

fallible fd_write_all(int fd, struct str data);
/* For people, on stdout or stderr; a failure has nowhere to be reported. */
void fd_print(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends up to the buffer's limit; more is ERR_TOO_LARGE. */
fallible fd_read_all(int fd, struct buf *into);
fallible fd_read_file(const char *path, struct buf *into);
/* New content or old content, never a mixture, also after a crash: temporary, fsync, rename, fsync.
 */
fallible fd_replace_file(int dir, const char *name, struct str data, mode_t mode);

/* A file, or a directory with all that is in it, as far as it can be; links are not followed. */
void fd_remove_tree(int dir, const char *name);

fallible fd_set_nonblocking(int fd);
/* An option's value: the number of an open descriptor over 2, which becomes close-on-exec. Standard
 * error must stay what it is: errors go there. */
fallible fd_parse(const char *option, const char *text, int *ret_fd);
/* Waits for POLLIN/POLLOUT on one descriptor outside a loop; ERR_TIMEOUT when time is up. */
fallible fd_wait(int fd, short events, int timeout_ms);

/* Descriptor passing over a unix socket. n data bytes, n >= 1; at most FD_PASS_MAX descriptors. */
#define FD_PASS_MAX 32
fallible fd_send(int sock, struct str data, const int *fds, size_t count);
/* Received descriptors are O_CLOEXEC and owned by the caller; 0 bytes means the peer closed. */
fallible fd_recv(int sock, void *data, size_t size, size_t *ret_len, int *fds, size_t max,
                 size_t *ret_count);
