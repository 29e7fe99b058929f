// SPDX-License-Identifier: Apache-2.0
/* choose.c — which of the changes are meant, and what to say when they cannot be had. */
#include <string.h>

#include "host/changes/inner.h"

static struct str plain_path(struct str p)
{
    while (str_starts(p, STR("./")))
        p = str_from(p, 2);
    while (p.len > 1 && p.p[p.len - 1] == '/')
        p.len--;
    return p;
}

static bool is_named(struct str p, const struct change *c)
{
    return str_eq(c->path, p) || path_beneath(c->path, p) ||
           (c->from.len && (str_eq(c->from, p) || path_beneath(c->from, p)));
}

static bool is_wanted(const struct changes_apply *how, const struct change *c)
{
    for (size_t i = 0; how->paths && how->paths[i]; i++)
        if (is_named(plain_path(str_of(how->paths[i])), c))
            return true;
    return !how->paths;
}

void changes_keep(struct changes *c, const char *const *paths)
{
    const struct changes_apply how = {.paths = paths};
    size_t kept = 0;

    c->conflicts = 0;
    memset(c->kinds, 0, sizeof c->kinds);
    for (size_t i = 0; i < c->count; i++) {
        const struct change *x = &c->list[i];
        if (!is_wanted(&how, x))
            continue;
        c->conflicts += x->conflict;
        c->kinds[x->kind]++;
        c->list[kept++] = *x;
    }
    c->count = kept;
}

/* From the end: what is in a directory follows it, so the last one chosen tells. */
size_t changes_select(struct changes *c, const struct changes_apply *how)
{
    const struct change *last = NULL;
    size_t conflicts = 0;

    for (size_t i = c->count; i--;) {
        struct change *x = &c->list[i];
        bool made = S_ISDIR(x->mode) && (x->kind == CHANGE_ADDED || x->kind == CHANGE_REPLACED);
        x->chosen = is_wanted(how, x) || (made && last && path_beneath(last->path, x->path));
        if (x->chosen)
            last = x;
        conflicts += x->chosen && x->conflict;
    }
    return conflicts;
}

bool changes_have(const struct changes *c, struct str path)
{
    struct str p = plain_path(path);

    for (size_t i = 0; i < c->count; i++)
        if (is_named(p, &c->list[i]))
            return true;
    return false;
}

fallible changes_refuse_deep(const struct changes *c)
{
    const struct change *first = NULL;

    for (size_t i = c->count; i--;)
        if (c->list[i].kind == CHANGE_DEEP)
            first = &c->list[i];
    if (!first)
        return NULL;
    struct str top = first->path;
    ptrdiff_t slash = str_find_char(top, '/');
    return err_new(ERR_TOO_LARGE,
                   "%zu lie too deep to be looked into, so what is in them was left "
                   "out: paths of over %u bytes below '" STR_FMT "'",
                   c->kinds[CHANGE_DEEP], PATH_LEN_MAX,
                   STR_ARG(str_first(top, slash > 0 && slash < 200 ? (size_t)slash : 200)));
}

fallible changes_refuse(const struct changes *c, size_t conflicts)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i].chosen && c->list[i].mounted)
            return err_new(ERR_CONFLICT,
                           "%zu of these are in conflict: a file system is mounted at or in "
                           "'%.200s', which no sandbox sees and nothing of one's is put into; name "
                           "the other paths, or --force leaves it out",
                           conflicts, c->list[i].path.p);
    return err_new(ERR_CONFLICT,
                   "%zu of these changed in the directory too since the sandbox began; look at "
                   "them with 'croft diff', then name the paths to apply or use --force",
                   conflicts);
}
