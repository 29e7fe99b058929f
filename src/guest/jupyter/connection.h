// SPDX-License-Identifier: Apache-2.0
/* connection.h — where a kernel's sockets are: a private directory, the connection file and the key
 * in it. No port is taken, and only the kernel's user can reach it. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct proc_user;
struct rng;

enum { CONN_SHELL = 1, CONN_IOPUB, CONN_STDIN, CONN_CONTROL, CONN_HB };
#define CONN_PATH_MAX 108 /* of a unix socket */
#define CONN_KEY_LEN  32

struct connection {
    char dir[CONN_PATH_MAX]; /* "": nothing to remove */
    char file[CONN_PATH_MAX];
    char key[CONN_KEY_LEN + 1];
    int hold_fd; /* as long as it is open, the directory is in use */
};

fallible connection_init(struct connection *c, const char *run_dir, struct rng *rng,
                         const struct proc_user *user);
void connection_done(struct connection *c); /* removes the directory; twice is fine */
void connection_path(const struct connection *c, int socket, char out[CONN_PATH_MAX]);
