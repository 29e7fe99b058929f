// SPDX-License-Identifier: Apache-2.0
/* images.h — the store of images, below state/images: layers/DIGEST are unpacked layers, shared by
 * all images that have them; ID.json says what an image is made of.
 *
 * A layer or an image has its name only when it is whole. Archives are read by workers. */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "host/rootfs/rootfs.h"

#define IMAGE_ID_LEN 64 /* SHA-256 in hex */

struct image {
    struct str id, name; /* name is "" when another image has taken it */
    struct str *aliases; /* more names: of an archive that was imported again under another */
    size_t alias_count;
    struct str *layers; /* digests, lowest first */
    size_t layer_count;
    uint64_t bytes; /* of its layers, as their tars were */
    uint64_t made_wall_ns;
    const struct json *config; /* Env, Cmd, Entrypoint, WorkingDir, User: those it has */
    bool no_bash;              /* it surely has none: an action server can run no commands in it */
};

struct image_import {
    const char *name;     /* NULL: as the archive says */
    uint64_t limit_bytes; /* of all it unpacks to; 0: LAYER_BYTES_DEFAULT */
    /* After each layer, to show progress; may be NULL. */
    void (*progress)(void *arg, size_t done, size_t count, bool shared);
    void *arg;
    uint64_t left_out; /* written: devices and fifos */
};

/* fd is the archive: a file, or a pipe, which is written to disk first. The result is in a. */
fallible images_import(int state, int fd, struct image_import *how, struct arena *a,
                       struct image *ret);
/* In the order of their names, then ids. */
fallible images_list(int state, struct arena *a, struct image **ret_list, size_t *ret_count);
/* By name ("x" is also "x:latest") or by id; if there is none such, by the first digits of an id.
 */
fallible images_find(int state, const char *which, struct arena *a, struct image *ret);
/* The same for a program, which may ask whether a name is free: it takes 6 digits or more. */
fallible images_find_sure(int state, const char *which, struct arena *a, struct image *ret);
/* By its whole id: one record is read. */
fallible images_get(int state, struct str id, struct arena *a, struct image *ret);
/* The file that says what it is, for a server that may not see the store: an object with "id",
 * "name", "bytes", "made_wall_ns", "layers", "config" and, if it is true, "no_bash". */
fallible images_open_record(int state, const struct image *image, int *ret_fd);
/* Layers no other image has go too. in_use is asked for every image; NULL: nothing is. */
fallible images_remove(int state, const struct image *image,
                       bool (*in_use)(void *arg, struct str id), void *arg);
/* Drops the image that images_find would find. If which is one of several names, only that name
 * goes; *ret then has the lost name and no others. */
fallible images_drop(int state, const char *which, bool (*in_use)(void *arg, struct str id),
                     void *arg, struct arena *a, struct image *ret);
/* One overlay: its layers. Adds it to *ret. */
fallible images_open(int state, const struct image *image, struct rootfs *ret);
