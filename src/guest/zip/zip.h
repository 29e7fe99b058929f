// SPDX-License-Identifier: Apache-2.0
/* zip.h — archives of any size in constant memory: written as they are pulled, read safely.
 *
 * Both sides work in steps so that a loop can go on between them. Neither follows a path out of the
 * directory it was given, except that a writer told to follow links reads the files behind them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* --- writing --- */

/* Files are stored, as zipfile does by default: a transfer over loopback or a fast network gains
 * nothing by packing. */
#define ZIP_PATH_MAX 4096u /* of an entry; a longer one is left out of an exact archive */

struct zip_out_config { /* zero: files only; a link to one is that file, others are left out */
    /* All of a tree, its top too ("./"): directories, links as links, and empty entries for what
     * has no content, such as a fifo. */
    bool exact;
    bool no_top; /* ... but for that */
    /* Those get no entry but are told of; NULL: see above. */
    void (*left_out)(void *arg, struct str path);
    void *arg;
    /* With a boundary, a link is followed only beneath this directory; the tree's path from there.
     * Absolute links then lead nowhere. */
    bool bounded;
    int boundary; /* borrowed */
    struct str boundary_path;
    const char *temp_dir; /* where the index of a very long archive waits; NULL: /tmp */
};

struct zip_out;
/* The tree beneath dir, with names relative to it; dir is taken over, also on failure. A file that
 * vanishes meanwhile is left out; one that grows is cut at the size it had. */
fallible zip_out_tree(int dir, const struct zip_out_config *config, struct zip_out **ret_out);
/* One regular file under the name given. */
fallible zip_out_file(int fd, struct str name, const struct zip_out_config *config,
                      struct zip_out **ret_out);
void zip_out_free(struct zip_out *z);
OWNABLE(zip_out)
/* The next bytes of the archive, at most size of them; 0 at its end. An error is final. */
fallible zip_out_next(struct zip_out *z, void *p, size_t size, size_t *ret_len);

/* --- reading --- */

struct zip_limits {   /* zero: the default */
    uint64_t entries; /* 500,000; each costs 32 bytes of memory */
    uint64_t bytes;   /* of all files unpacked: what the file system has free */
    uint32_t ratio;   /* 250: of all files unpacked to the archive, once they pass 64 MB */
};

struct zip_in_config {
    int dir;     /* files go here and nowhere else; borrowed; -1: zip_in_set_dir comes in time */
    int staging; /* an empty directory of the caller's, on the same disk; borrowed */
    uid_t uid;   /* of new files and directories; -1: as they come */
    gid_t gid;
    bool skip_unsafe; /* leave out absolute names and "..", as shutil does; otherwise refuse */
    /* As an exact writer wrote it: links are links, names are bytes, times and all permissions are
     * kept, those of directories too; what has no content is left out. */
    bool exact;
    bool no_top;                                  /* ... but not those of dir itself */
    void (*left_out)(void *arg, struct str path); /* is told of that; may be NULL */
    void *arg;
    struct zip_limits limits;
};

struct zip_in;
/* Reads the whole index of a seekable archive (borrowed) and refuses, with nothing written: what is
 * no archive or a broken one (ERR_CORRUPT), unsafe names, duplicates, files that are directories
 * elsewhere, entries that overlap, encryption and unknown methods (ERR_UNSUPPORTED), and what
 * passes a limit (ERR_TOO_LARGE). */
fallible zip_in_new(int fd, const struct zip_in_config *config, struct zip_in **ret_in);
void zip_in_free(struct zip_in *z); /* removes from staging what did not get a name */
OWNABLE(zip_in)
/* About a megabyte of work; *ret_done once all files have their names. Files are unpacked and
 * checked in staging first, so a damaged archive leaves nothing; then they are moved, each
 * replacing what has its name. Unless it is exact, links are written as files that hold their text,
 * as zipfile does; permissions are kept, without the special bits. */
fallible zip_in_step(struct zip_in *z, bool *ret_done);
bool zip_in_placing(const struct zip_in *z);    /* all is unpacked, some may have their names */
void zip_in_set_dir(struct zip_in *z, int dir); /* at the latest when it is placing */
