// SPDX-License-Identifier: Apache-2.0
/* bind.h — what a warm sandbox is given at its claim, as bytes in a sealed memory file.
 *
 * A head, then strings, each ended by NUL: working directory, user, arguments, environment. The
 * host writes it. Only pid 1 reads it, and the server inside, to which pid 1 hands it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define BIND_MAGIC     0x33444e42u /* "BND3" */
#define BIND_BYTES_MAX (4u << 20)
#define BIND_LIST_MAX  4096u /* arguments, variables: each */
#define BIND_BYTE      'b'   /* goes with the descriptor, over the control connection */

enum { BIND_COMMAND = 1 }; /* flags: run the arguments as they are, instead of our server */

struct bind_head {
    uint32_t magic, flags, argc, envc;
};

struct wire_bind {
    char *bytes; /* all strings are in here */
    bool command;
    const char *cwd;  /* ""; or absolute */
    const char *user; /* ""; or a number, or two with ':' between */
    char **argv, **env;
    uint32_t argc;
};

/* Takes bytes over, from malloc; on failure too. */
fallible wire_bind_parse(char *bytes, size_t len, struct wire_bind *ret_bind);
/* From the memory file, which stays open. */
fallible wire_bind_read(int fd, struct wire_bind *ret_bind);
void wire_bind_done(struct wire_bind *b);
