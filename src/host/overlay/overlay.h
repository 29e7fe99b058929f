// SPDX-License-Identifier: Apache-2.0
/* overlay.h — layers over directories of the host, which hold a sandbox's changes to them.
 *
 * In state/box/ID, mNu is the layer of mount N, the text of the link mNs names the directory, and
 * mNi says which directory that was. Changes can be listed and applied while the sandbox runs, and
 * dropped when it has ended. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "host/changes/changes.h"
#include "host/snaps/snaps.h"
#include "sandbox/native/msg.h"

#define OVERLAY_LAYERS_MAX 8
#define OVERLAY_ID_MAX     64

enum overlay_end { /* what became of a run's changes */
                   OVERLAY_KEPT,
                   OVERLAY_NOTHING,   /* it changed nothing */
                   OVERLAY_DISCARDED, /* it was told to throw them away */
                   OVERLAY_DROPPED,   /* by rollback, or by age */
};

#define OVERLAY_COMMAND_MAX 200 /* of a command, what is kept to name a run by it */
struct overlay_run {
    char id[OVERLAY_ID_MAX];
    char command[OVERLAY_COMMAND_MAX]; /* "": not known */
    uint64_t wall_ns;                  /* when it ended, or began if it was killed or runs */
    enum overlay_end end;
};
void overlay_put_command(const char *const *argv, char out[OVERLAY_COMMAND_MAX]);
fallible overlay_note_run(int box, const char *command);
void overlay_note_end(int box); /* the run ended now */
void overlay_read_run(int box, const char *id, struct overlay_run *ret);
/* Notes that the run over that directory left nothing; a later one there counts more. */
void overlay_note_last(int state, const char *dir, const struct overlay_run *run);
bool overlay_read_last(int state, const char *here, struct overlay_run *ret);
void overlay_forget_last(int state, uint64_t before_wall_ns);
struct buf;
void overlay_put_run(struct buf *out, const struct overlay_run *run); /* "ID of TIME (COMMAND)" */

struct overlay_layer {
    unsigned mount;                   /* which of the sandbox's */
    char *path;                       /* the directory on the host */
    int lower;                        /* the same, open */
    int uppers[1 + SNAPS_LAYERS_MAX]; /* its own layer, then those of snapshots it stands on */
    size_t upper_count;
    uint64_t since_ns; /* the directory's own changes since are conflicts; 0: since the lowest */
    bool user;         /* mounted by an ordinary user */
    bool other;        /* lower is not the directory it lay over: only has its name */
    int notes;         /* of what was applied; -1: nothing yet */
    char *places[NATIVE_MOUNTS + 1]; /* in it, where others were mounted */
};

struct overlays {
    char id[OVERLAY_ID_MAX];
    struct overlay_run run;
    int dir; /* box/ID */
    bool running;
    bool claimed; /* it runs, or was killed and the next sweep has not been here */
    struct overlay_layer layers[OVERLAY_LAYERS_MAX];
    size_t count;
};

/* Notes that mount n, of the sandbox with the directory box, lies over path. */
fallible overlay_note(int box, unsigned n, const char *path);
/* Notes which directory that is, whatever its name will be: the first one noted counts, for the
 * layer's changes are those of it. */
fallible overlay_note_which(int box, unsigned n, int source, bool user);
/* Whether an ordinary user mounted it; sandboxes of older versions are taken for the caller's. */
bool overlay_by_user(int box, unsigned n);
/* The same by a note that was read elsewhere: the text of a link. */
fallible overlay_note_text(int box, unsigned n, const char *which);
/* Is source another one than was noted? Older versions noted none (was.len 0), which fits all. */
fallible overlay_look_which(int box, unsigned n, int source, bool *ret_other);
fallible overlay_is_other(struct str was, int source, bool *ret_other);
#define OVERLAY_OTHER "another directory has its name now"
fallible overlay_refuse_other(void); /* ERR_CONFLICT: so it is */
/* The file in which apply notes what it did to that very directory; -1 when there is none, or none
 * can be made. */
int overlay_open_notes(int box, unsigned n, bool create);
void overlay_forget_which(int box, unsigned n);
/* Nothing changed there: it is no longer the last sandbox over it, although it is still removed. */
void overlay_forget(int box, unsigned n);

/* The same for the image it runs on, so that this is not removed under it. */
fallible overlay_note_image(int box, struct str id);
bool overlay_image_in_use(int state, struct str id); /* true also when we cannot tell */

/* All that have left changes, or make them now, the last one first; in a. */
fallible overlay_list(int state, struct arena *a, struct overlay_run **ret_list, size_t *ret_count);
/* Drops what runs changed that ended before; notes of the others' last runs go too. */
fallible overlay_expire(int state, uint64_t before_wall_ns);
/* The directory that mount n lies over; false: none, or it is not noted. */
bool overlay_read_note(int box, unsigned n, char out[PATH_MAX]);

/* The last run over the directory here (an absolute path) or one above it, whatever it changed.
 * ERR_NOT_FOUND when there was none, or its changes were dropped. */
fallible overlay_last(int state, const char *here, struct overlay_run *ret);
/* id NULL: that one. ERR_NOT_FOUND says what there is instead. */
fallible overlay_open(int state, const char *id, const char *here, struct overlays *ret);
/* The same without its layers, to drop it: the directories may be gone by now. */
fallible overlay_open_box(int state, const char *id, const char *here, struct overlays *ret);
void overlays_done(struct overlays *k);
struct changes_source overlay_source(const struct overlay_layer *l); /* borrows */
void overlay_begin_notes(struct overlays *k);                        /* before an apply */
/* Drops the changes and the sandbox's directory (which is the sweep's if it was killed); ERR_BUSY
 * while it runs. `end` is what is noted of the run. */
fallible overlay_drop(int state, struct overlays *k, enum overlay_end end);
