// SPDX-License-Identifier: Apache-2.0
/* upload.h — a form to disk as it arrives: files into a directory, fields in memory.
 *
 * All or nothing: files have temporary names until the form is whole, and upload_free removes those
 * that did not get that far. A file that exists is replaced.
 *
 * Writing is plain write(2) on the loop, into the page cache. A slow disk delays one piece of
 * STREAM_READ_SIZE at a time. Nothing is synced. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct rng;
struct upload;

struct upload_config {   /* zero: the default */
    int dir;             /* where files go; borrowed, outlives the upload */
    mode_t mode;         /* of new files: 0644, less the umask */
    uint64_t file_bytes; /* no limit: of each file */
    size_t field_bytes;  /* 1 MB: of all fields together */
    struct rng *rng;     /* the system's: for temporary names */
};

struct upload_file {
    struct str field, name, content_type; /* name: one path component */
    uint64_t size_bytes;
    const struct upload_file *next; /* in the order sent */
};
struct upload_field {
    struct str name, value;
    const struct upload_field *next;
};

/* Refuses as multipart_new does. */
fallible upload_new(struct str content_type, const struct upload_config *config,
                    struct upload **ret_upload);
void upload_free(struct upload *u);
OWNABLE(upload)
/* ERR_TOO_LARGE names the limit; a full disk is ERR_IO with the system's words. */
fallible upload_feed(struct upload *u, struct str data);
fallible upload_end(struct upload *u); /* the body is whole: names the files */

/* Complete after upload_end; alive until upload_free. A file input left empty by a browser (no
 * filename, no bytes) is no file. */
const struct upload_file *upload_files(const struct upload *u);
const struct upload_field *upload_fields(const struct upload *u);
struct str upload_field(const struct upload *u, struct str name); /* the first; .p NULL: absent */
