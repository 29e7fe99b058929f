// SPDX-License-Identifier: Apache-2.0
/* changes.h — what a sandbox changed below a copy-on-write directory: list it, put it into the
 * directory, or find out that the directory has changed meanwhile.
 *
 * A guest wrote the layers, so every entry is input. They are read without following a link, and
 * may change meanwhile: a swapped entry is refused, not believed.
 *
 * Mount with redirect_dir=off and metacopy=off; a layer that has such entries is refused. In a
 * layer of the user's own, directories that the guest closed are opened for us; user.croft.mode
 * says how they were. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct buf;

enum change_kind {
    CHANGE_ADDED,
    CHANGE_MODIFIED, /* other bytes, or a link that points elsewhere */
    CHANGE_MODE,     /* nothing but the permissions */
    CHANGE_REPLACED, /* by something of another type */
    CHANGE_RENAMED,  /* an added file with the bytes of one that was deleted, which is not listed */
    CHANGE_DELETED,  /* of a directory: with all in it */
    CHANGE_SPECIAL,  /* a device, socket or fifo, or what cannot be read: shown, never applied */
    CHANGE_DEEP,     /* a directory too deep to be gone into: shown, never applied */
    CHANGE_KINDS
};
extern const char *const change_words[CHANGE_KINDS];
extern const char change_letters[CHANGE_KINDS + 1];

struct change_link { /* a file of a layer that has several names; 0: one name */
    uint64_t inode, layer;
};

struct change {
    enum change_kind kind;
    bool conflict;         /* the directory's own entry changed since the sandbox began */
    bool mounted;          /* a file system is mounted there, on the way or in it: never applied */
    bool chosen, done;     /* by changes_select(); by changes_apply() */
    struct str path;       /* below the directory */
    struct str from;       /* CHANGE_RENAMED: the old path */
    struct str target;     /* what a link points to */
    mode_t mode, old_mode; /* with the type; 0: not there */
    uint64_t size, old_size;
    struct timespec old_changed; /* when the directory's own entry, or from, last changed */
    uint8_t layer;               /* which of the uppers has it */
    struct str origin; /* added: what overlay wrote when it copied it up; .p NULL: a new one */
    struct change_link link;
};

#define CHANGES_MAX_LAYERS 128
#define CHANGES_NEVER      ((uint64_t)INT64_MAX) /* as since_ns: no other program changes it */

struct changes_source {
    const int *uppers; /* topmost first */
    size_t upper_count;
    int lower; /* the directory itself */
    bool user; /* the overlay was mounted by an ordinary user: its attributes are user.overlay's */
    /* Anything of the directory's that changed later is a conflict. 0: when the oldest upper was
     * made; of a copy it must be said, that is younger. */
    uint64_t since_ns; /* wall clock */
    /* A file opened to read and append, where apply notes its own changes, so that they do not
     * count as foreign ones. 0: none. */
    int notes;
    /* Places below the directory, NULL at the end, where the sandbox had something mounted: what is
     * still empty there is no change. NULL: none. */
    const char *const *places;
    bool deep; /* entries of any depth, else those of more than 4,096 bytes are shown only */
};

struct changes {
    struct arena arena;
    struct change *list; /* in the order of the paths */
    size_t count, conflicts, kinds[CHANGE_KINDS];
    /* Unchanged entries that have other names in the layer, which are perhaps new. */
    struct change *linked;
    size_t linked_count;
};

#define CHANGES_MAX    1000000    /* entries of a layer; more is ERR_TOO_LARGE */
#define CHANGES_MEMORY (1u << 30) /* bytes for all of it */
#define CHANGES_HASH_BYTES                                                                         \
    (256u << 20) /* read to recognise renames; what is beyond is not tried                         \
                  */

fallible changes_scan(const struct changes_source *src, struct changes *ret);
void changes_done(struct changes *c);

struct changes_apply {
    bool force;               /* conflicts too: the sandbox's version wins */
    const char *const *paths; /* only these and what is below them; NULL ends; NULL: all */
    /* written */
    size_t applied, skipped;
    size_t mounted, deep; /* of those skipped */
};
/* Whether something of that name, or below it, changed. */
bool changes_have(const struct changes *c, struct str path);
/* Leaves only those named and what is below them; paths NULL: all. */
void changes_keep(struct changes *c, const char *const *paths);
/* The bytes of a changed file: the directory's (old) or the sandbox's. They may have changed since
 * the scan, or gone: ERR_NOT_FOUND; ERR_CONFLICT when it is no file now; ERR_TOO_LARGE. */
fallible changes_read(const struct changes_source *src, const struct change *c, bool old,
                      size_t limit_bytes, struct buf *out);
/* Which of them apply would take: those named, and the new directories these lie in. Gives how many
 * are in conflict. */
size_t changes_select(struct changes *c, const struct changes_apply *how);
/* The error that says so: ERR_CONFLICT. */
fallible changes_refuse(const struct changes *c, size_t conflicts);
/* Puts the changes into the directory, as the caller: no set-id bit, no owner and no attribute of
 * the guest's comes through; new files belong to the owner of the directory they are in. Each file
 * is old or new, never half. With conflicts and without force nothing is done (ERR_CONFLICT).
 * Nothing is deleted before all that is new is there. */
fallible changes_apply(const struct changes_source *src, struct changes *c,
                       struct changes_apply *how);

/* Refuses entries that were left out as too deep: ERR_TOO_LARGE; NULL: none were. */
fallible changes_refuse_deep(const struct changes *c);

struct jw;
void changes_put_text(struct buf *out, const struct changes *c);
void changes_put_line(struct buf *out, const struct change *x); /* one of them */

void changes_put_counts(struct jw *w, const struct changes *c); /* a member of an open object */
void changes_put_json(struct jw *w, const struct changes *c);   /* the same, and all of them */
void changes_put_one(struct jw *w, const struct change *x);     /* an object */
/* The changes that apply left out, in words; "" when it did all. */
void changes_put_skipped(struct buf *out, size_t skipped, size_t mounted);
/* "3 added, 1 deleted", "no changes" */
void changes_put_summary(struct buf *out, const struct changes *c);
