// SPDX-License-Identifier: Apache-2.0
/* listen.h — listening sockets, made or inherited. All are non-blocking and O_CLOEXEC. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/str.h"

/* "127.0.0.1:3000", "[::1]:0", "localhost:80" (loopback only), "unix:/run/croft.sock", "fd:3",
 * a listening socket that was inherited. An address without port or host says what is missing. */
fallible listen_open(struct str address, int *ret_fd);
/* How a client would reach it: "http://127.0.0.1:41231" or "unix:/run/croft.sock". */
fallible listen_name(int fd, bool tls, char *out, size_t size);
bool listen_is_loopback(int fd); /* unix sockets count */
/* Removes the file of a unix socket this process made, never of one passed in; then closes. */
void listen_close(int fd);

/* Non-blocking connect; completion is EPOLLOUT. Numeric addresses and unix paths only. */
fallible connect_start(const struct sockaddr_storage *addr, socklen_t len, int *ret_fd);
/* Numeric "127.0.0.1"/"::1"/"localhost" + port, without asking a resolver. False: a name. */
bool addr_numeric(struct str host, uint16_t port, struct sockaddr_storage *ret, socklen_t *ret_len);
fallible addr_unix(struct str path, struct sockaddr_storage *ret, socklen_t *ret_len);
