// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of this folder: the store of frozen layers.
 *
 * A stack is written as a link whose text names its layers, topmost first. Such a link beside a
 * sandbox's upper layer names the layers below it. */
#pragma once

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "host/snaps/snaps.h"

#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define NAME_LIMIT 64
#define SNAPS_NOTE 40 /* the name of a note */
#define PART_MAX   24 /* the name of an upper */

struct snapstore {
    int dir, layers, boxes, lock;
};

/* change: alone, until it is closed. */
fallible snapstore_open(int state, bool change, struct snapstore *ret);
void snapstore_close(struct snapstore *s);

fallible snapstore_check_name(const char *name);
bool snapstore_is_taken(const struct snapstore *s, const char *name); /* of either kind */
bool snapstore_is_layer(struct str s);
void snapstore_mount_name(unsigned n, char kind, char out[16]); /* "m0u" */
fallible snapstore_link(int box, const char *name, char out[PATH_MAX]);

/* Only layers, layer_count and since_ns of a snap are read and set. No note: none. */
fallible snapstore_note(int box, const char *note, const struct snap *s);
fallible snapstore_read(const struct snapstore *s, int box, const char *note, struct arena *a,
                        struct snap *ret);
fallible snapstore_read_plain(int box, const char *note, struct arena *a, struct snap *ret);
bool snapstore_is_noted(int box, const char *note); /* or about to be */
fallible snapstore_open_stack(const struct snapstore *s, const struct snap *snap,
                              struct snaps_stack *ret);

fallible snapstore_layer_name(struct arena *a, struct str *ret);
/* The lowest layer of snap is, or will be, a copy of dir/name: when did that begin? */
void snapstore_keep_since(struct snap *snap, int dir, const char *name);
void snapstore_push(struct snap *snap, struct str name);
/* Fills layers/NAME, under another name until it is whole. */
fallible snapstore_make(const struct snapstore *s, const char *name, const int *from, size_t count,
                        bool link);
/* The upper becomes layer with->layers[0]; an empty one of the same owner and mode takes its place,
 * and the note says with. */
fallible snapstore_freeze(const struct snapstore *s, int box, const char *upper, const char *note,
                          const struct snap *with);
fallible snapstore_empty(int box, const char *upper, const struct stat *like);
fallible snapstore_flatten(const struct snapstore *s, struct arena *a, struct snap *snap);

/* whole.c: is it what launchers call an upper layer, and what is the note beside it? */
bool whole_is_upper(const char *name);
void whole_note_of(const char *upper, char out[SNAPS_NOTE]);
