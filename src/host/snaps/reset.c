// SPDX-License-Identifier: Apache-2.0
/* reset.c — a sandbox's files are again what they were: see whole_reset().
 *
 * An upper is put aside, an empty one made in its place, and only then is the old one removed.
 * After a kill in between, the next reset finds all it needs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "host/snaps/inner.h"
#include "host/snaps/whole.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define ASIDE     ".old-"
#define ASIDE_LEN (sizeof ASIDE - 1)
#define ASIDE_MAX (ASIDE_LEN + PART_MAX)

typedef fallible name_fn(int box, const char *name);

static fallible each_name(int box, name_fn *fn)
{
    own_done(buf) names = {0};
    size_t count = 0;

    TRY(tree_read_names(box, 1u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1)
        TRY_WRAP(fn(box, name), "'%s'", name);
    return NULL;
}

static bool is_aside(const char *name)
{
    return strncmp(name, ASIDE, ASIDE_LEN) == 0 && whole_is_upper(name + ASIDE_LEN);
}

static fallible forget_note(int box, const char *note)
{
    char next[SNAPS_NOTE + 1];

    snprintf(next, sizeof next, ".%s", note);
    if ((unlinkat(box, note, 0) < 0 && errno != ENOENT) ||
        (unlinkat(box, next, 0) < 0 && errno != ENOENT))
        return err_sys("forget its layers");
    return NULL;
}

/* Which directory a mount's changes were made over, and what was applied to it: the next life works
 * on what is there then. */
static void forget_which(int box, const char *upper)
{
    char note[SNAPS_NOTE];

    for (const char *kind = "ia"; *kind && upper[0] == 'm'; kind++) {
        snprintf(note, sizeof note, "%.2s%c", upper, *kind);
        unlinkat(box, note, 0); /* older versions noted none */
    }
}

static fallible put_aside(int box, const char *upper)
{
    char aside[ASIDE_MAX], note[SNAPS_NOTE];

    if (!whole_is_upper(upper))
        return NULL;
    snprintf(aside, sizeof aside, ASIDE "%s", upper);
    TRY(tree_remove(box, aside)); /* of a reset that was cut short: what is to go is in both */
    whole_note_of(upper, note);
    TRY(forget_note(box, note)); /* first: the next reset finds no upper to ask for */
    if (renameat(box, upper, box, aside) < 0)
        return err_sys("put its changes aside");
    forget_which(box, upper);
    return NULL;
}

static fallible make_missing(int box, const char *aside)
{
    struct stat like;

    if (!is_aside(aside) || faccessat(box, aside + ASIDE_LEN, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return NULL;
    if (fstatat(box, aside, &like, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys("look at its changes");
    return snapstore_empty(box, aside + ASIDE_LEN, &like);
}

static fallible drop_aside(int box, const char *name)
{
    return is_aside(name) ? tree_remove(box, name) : NULL;
}

fallible whole_reset(int state, int box, const char *name)
{
    if (symlinkat(name ? name : "-", box, WHOLE_RESET) < 0 && errno != EEXIST)
        return err_sys("note what is under way");
    TRY(each_name(box, put_aside));
    if (name)
        TRY(whole_stand(state, name, box));
    TRY(each_name(box, make_missing));
    TRY(each_name(box, drop_aside));
    if (unlinkat(box, WHOLE_RESET, 0) < 0)
        return err_sys("note that it is done");
    return NULL;
}
