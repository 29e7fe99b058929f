// SPDX-License-Identifier: Apache-2.0
/* bind.c — see bind.h. */
#include "wire/bind.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

void wire_bind_done(struct wire_bind *b)
{
    free(b->bytes);
    free(b->argv);
    *b = (struct wire_bind){0};
}

/* argv and env are one allocation: argv, NULL, env, NULL. */
static fallible bind_split(struct wire_bind *b, size_t len)
{
    struct bind_head h;
    char *at = b->bytes + sizeof h, *end = b->bytes + len;

    if (len < sizeof h)
        return err_new(ERR_CORRUPT, "too short");
    memcpy(&h, b->bytes, sizeof h);
    if (h.magic != BIND_MAGIC || h.flags > BIND_COMMAND || h.argc < 1 || h.argc > BIND_LIST_MAX ||
        h.envc > BIND_LIST_MAX || end[-1])
        return err_new(ERR_CORRUPT, "a bad head");
    size_t count = 2u + h.argc + h.envc;
    char **list = b->argv = mem_try((count + 2) * sizeof *list);
    if (!list)
        return err_no_memory();
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1) {
        if (at >= end)
            return err_new(ERR_CORRUPT, "fewer strings than announced");
        if (i < 2)
            *(i ? &b->user : &b->cwd) = at;
        else
            list[i - 2 + (i - 2 >= h.argc)] = at;
    }
    if (at != end || (b->cwd[0] && b->cwd[0] != '/'))
        return err_new(ERR_CORRUPT, "a bad end, or directory");
    b->env = list + h.argc + 1;
    b->argc = h.argc;
    b->command = h.flags;
    return NULL;
}

fallible wire_bind_parse(char *bytes, size_t len, struct wire_bind *ret_bind)
{
    struct wire_bind b = {.bytes = bytes};
    struct err *e = bind_split(&b, len);

    if (e)
        wire_bind_done(&b);
    else
        *ret_bind = b;
    return err_wrap(e, "what the sandbox is bound to");
}

fallible wire_bind_read(int fd, struct wire_bind *ret_bind)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *bytes = size > 0 && size <= (off_t)BIND_BYTES_MAX ? mem_try((size_t)size) : NULL;

    if (!bytes || pread(fd, bytes, (size_t)size, 0) != size) {
        free(bytes);
        return err_new(ERR_CORRUPT, "what the sandbox is bound to cannot be read");
    }
    return wire_bind_parse(bytes, (size_t)size, ret_bind);
}
