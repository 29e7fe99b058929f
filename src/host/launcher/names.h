// SPDX-License-Identifier: Apache-2.0
/* names.h — what sandboxes have in the directory of sockets: two sockets and a log each. */
#pragma once

#include "base/err.h"
#include "sandbox/native/msg.h"

struct launcher;
struct sockaddr_un;

#define LAUNCHER_SOCKET_NAME (NATIVE_ID_MAX + 8)
/* "ID.s", "ID.c", "ID.l" */
enum launcher_name {
    LAUNCHER_NAME_SERVER = 's',
    LAUNCHER_NAME_CONNECT = 'c',
    LAUNCHER_NAME_LOG = 'l'
};

fallible launcher_address(const struct launcher *l, const char *id, enum launcher_name kind,
                          struct sockaddr_un *ret);
/* A socket in the directory of sockets, the server's to connect to. */
fallible launcher_listen(const struct launcher *l, int type, const char *name, int *ret_fd);
/* The same, and the log, of the sandbox with the directory dir; again: it had a life before. */
fallible launcher_listen_at(const struct launcher *l, int dir, const char *id,
                            enum launcher_name kind, int *ret_fd);
fallible launcher_open_log(const struct launcher *l, int dir, bool again, const char *id,
                           int *ret_fd);
void launcher_socket_name(const char *id, enum launcher_name kind, char out[LAUNCHER_SOCKET_NAME]);
void launcher_drop_sockets(const struct launcher *l, const char *id); /* not its log */
void launcher_drop_log(const struct launcher *l, const char *id);
