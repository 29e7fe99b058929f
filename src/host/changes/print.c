// SPDX-License-Identifier: Apache-2.0
/* print.c — changes for people and for programs. A guest chose the names: a terminal must not act
 * on them. */
#include <inttypes.h>

#include "base/b64.h"
#include "base/json.h"
#include "base/plain.h"
#include "base/utf8.h"
#include "host/changes/inner.h"

const char *const change_words[CHANGE_KINDS] = {"added",   "modified", "mode",    "replaced",
                                                "renamed", "deleted",  "special", "deep"};
const char change_letters[CHANGE_KINDS + 1] = "AMPTRD!!";

void changes_put_line(struct buf *out, const struct change *x)
{
    mode_t mode = x->mode ? x->mode : x->old_mode;
    buf_addf(out, "%c%c ", change_letters[x->kind], x->conflict ? '!' : ' ');
    if (x->kind == CHANGE_RENAMED) {
        plain_put_name(out, x->from);
        buf_add_cstr(out, " -> ");
    }
    plain_put_name(out, x->path);
    if (S_ISDIR(mode))
        buf_add_char(out, '/');
    if (S_ISLNK(x->mode)) {
        buf_add_cstr(out, " -> ");
        plain_put_name(out, x->target);
    }
    if (x->kind == CHANGE_MODE)
        buf_addf(out, " %03o -> %03o", x->old_mode & 0777, x->mode & 0777);
    buf_add_char(out, '\n');
}

void changes_put_text(struct buf *out, const struct changes *c)
{
    for (size_t i = 0; i < c->count; i++)
        changes_put_line(out, &c->list[i]);
}

static const char *type_word(mode_t mode)
{
    switch (type_of(mode)) {
    case S_IFREG:
        return "file";
    case S_IFDIR:
        return "directory";
    case S_IFLNK:
        return "link";
    default:
        return mode ? "special" : NULL;
    }
}

/* A name that is not UTF-8 is given exactly as well. */
static void put_name(struct jw *w, const char *key, const char *exact_key, struct str name)
{
    jw_str(w, key, name);
    if (utf8_valid(name))
        return;
    own_done(buf) b;
    buf_init(&b, 64u << 20);
    b64_add(&b, name);
    jw_str(w, exact_key, buf_str(&b));
}

void changes_put_one(struct jw *w, const struct change *x)
{
    JW_OBJECT(w, NULL) {
        jw_cstr(w, "kind", change_words[x->kind]);
        put_name(w, "path", "path_base64", x->path);
        if (x->from.len)
            put_name(w, "from", "from_base64", x->from);
        jw_cstr(w, "type", type_word(x->mode ? x->mode : x->old_mode));
        if (x->kind == CHANGE_REPLACED)
            jw_cstr(w, "old_type", type_word(x->old_mode));
        if (x->target.len)
            put_name(w, "target", "target_base64", x->target);
        if (x->mode && !S_ISLNK(x->mode))
            jw_uint(w, "mode", x->mode & 0777);
        if (x->kind == CHANGE_MODE)
            jw_uint(w, "old_mode", x->old_mode & 0777);
        if (S_ISREG(x->mode))
            jw_uint(w, "size", x->size);
        if (S_ISREG(x->old_mode))
            jw_uint(w, "old_size", x->old_size);
        jw_bool(w, "conflict", x->conflict);
        if (x->mounted)
            jw_bool(w, "mounted", true);
    }
}

void changes_put_counts(struct jw *w, const struct changes *c)
{
    JW_OBJECT(w, "counts") {
        for (size_t i = 0; i < CHANGE_KINDS; i++)
            jw_uint(w, change_words[i], c->kinds[i]);
        jw_uint(w, "conflicts", c->conflicts);
    }
}

void changes_put_json(struct jw *w, const struct changes *c)
{
    changes_put_counts(w, c);
    JW_ARRAY(w, "changes") {
        for (size_t i = 0; i < c->count; i++)
            changes_put_one(w, &c->list[i]);
    }
}

void changes_put_skipped(struct buf *out, size_t skipped, size_t mounted)
{
    if (skipped > mounted)
        buf_add_cstr(out, "; devices, sockets and fifos were left out");
    if (mounted)
        buf_addf(out, "; %zu at or in a file system mounted in the directory were left out",
                 mounted);
}

void changes_put_summary(struct buf *out, const struct changes *c)
{
    const char *comma = "";

    for (size_t i = 0; i < CHANGE_KINDS; i++) {
        if (!c->kinds[i])
            continue;
        buf_addf(out, "%s%zu %s", comma, c->kinds[i], change_words[i]);
        comma = ", ";
    }
    if (!c->count)
        buf_add_cstr(out, "no changes");
    if (c->conflicts)
        buf_addf(out, "; %zu in conflict", c->conflicts);
}
