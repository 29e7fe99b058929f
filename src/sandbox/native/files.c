// SPDX-License-Identifier: Apache-2.0
/* files.c — what a sandbox changed: snapshots of it, and what is asked of its layers. */
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/own.h"
#include "sandbox/native/inner.h"
#include "sandbox/sandbox.h"

fallible native_set_snapshot(char to[NATIVE_ID_MAX], struct str name)
{
    if (name.len >= NATIVE_ID_MAX)
        return err_new(ERR_INVALID, "a snapshot's name has at most %d characters",
                       NATIVE_ID_MAX - 1);
    memcpy(to, name.p, name.len);
    to[name.len] = '\0';
    if (strlen(to) != name.len || !native_id_ok(to, NATIVE_ID_MAX))
        return err_new(ERR_INVALID,
                       "'%.80s' is no name for a snapshot: letters, digits, '-', '_', "
                       "'.', the first a letter or digit",
                       to);
    return NULL;
}

static fallible check_files(const struct native *n)
{
    return n->known ? NULL
                    : err_new(ERR_CONFLICT, "sandbox '%s' has no files before its first start",
                              n->base.id);
}

static void on_taken(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    n->base.copied_bytes = 0;
    if (!e) /* what is no number leaves it as it is */
        str_to_u64(str_n(r->text, strnlen(r->text, sizeof r->text)), &n->base.copied_bytes);
    native_on_done(n, r, fds, e);
}

fallible native_snapshot(struct sbx *s, struct str name)
{
    struct native *n = native_of(s);
    struct native_request req = {.op = NATIVE_SNAPSHOT};

    TRY(check_files(n));
    TRY(native_set_snapshot(req.snapshot, name));
    return native_ask(n, &req, NULL, 0, on_taken);
}

/* --- its changes --- */

#define SAID_MAX (32u << 20)

static void on_output(struct native *n, const struct native_reply *r, int *fds, struct err *e)
{
    own_done(buf) text;

    (void)r;
    buf_init(&text, SAID_MAX);
    if (!e && fds[0] < 0)
        e = err_new(ERR_INTERNAL, "the launcher sent no answer");
    if (!e)
        e = fd_read_all(fds[0], &text);
    if (!e) {
        n->base.report = mem_new(text.len + 1);
        memcpy(n->base.report, text.p, text.len);
    }
    sbx_finish(&n->base, e);
}

static fallible files_ask(struct native *n, enum native_op op, struct str text)
{
    struct native_request req = {.op = op};
    own_fd block = -1;

    TRY(check_files(n));
    TRY(native_seal(text, &block));
    return native_ask(n, &req, &block, 1, on_output);
}

fallible native_diff(struct sbx *s, struct str text)
{
    return files_ask(native_of(s), NATIVE_DIFF, text);
}

fallible native_apply(struct sbx *s, struct str text)
{
    return files_ask(native_of(s), NATIVE_APPLY, text);
}

fallible native_rollback(struct sbx *s, struct str to)
{
    struct native_request req = {.op = NATIVE_ROLLBACK};

    TRY(check_files(native_of(s)));
    if (to.len)
        TRY(native_set_snapshot(req.snapshot, to));
    return native_ask(native_of(s), &req, NULL, 0, native_on_done);
}
