// SPDX-License-Identifier: Apache-2.0
/* wire.h — real programs from the outside: start them and speak raw bytes. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/str.h"

struct wire {
    pid_t pid;
    char url[160];  /* the first line it printed */
    uint16_t port;  /* of that URL; 0 for unix sockets */
    char path[120]; /* of a unix socket */
};

/* Starts a program of the build under test ("croft") and waits for the line with its address. */
void wire_start(struct wire *w, const char *program, const char *const *args);
/* The same, with its standard error to log. */
void wire_start_log(struct wire *w, const char *program, const char *const *args, int log);
/* For what prints no line: where it is, "http://127.0.0.1:3000" or "unix:/path". */
void wire_at(struct wire *w, const char *url);
/* SIGTERM, then its exit status. */
int wire_stop(struct wire *w);
/* A connected blocking socket with a receive deadline. */
int wire_connect(const struct wire *w);
void wire_send(int fd, struct str bytes);
/* Reads until the peer closes (or the deadline ends the test). */
void wire_read_to_end(int fd, struct buf *into);
/* Reads one answer with Content-Length, head included. */
void wire_read_answer(int fd, struct buf *into);
/* Sends bytes on a new connection and gives all that comes until the peer closes. */
void wire_exchange(const struct wire *w, struct str bytes, struct buf *into);
