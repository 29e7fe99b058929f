// SPDX-License-Identifier: Apache-2.0
/* image.h — images of the store, those included that came after the fork. */
#pragma once

#include <time.h>

#include "host/rootfs/rootfs.h"
#include "host/snaps/snaps.h"
#include "sandbox/native/msg.h"

struct launcher;
struct launcher_fds;

struct image_names { /* what names meant when they were last looked for, */
    struct image_name {
        char name[NATIVE_IMAGE_MAX], id[72];
    } at[16];
    unsigned next;
    struct timespec changed; /* as long as the store is of this time */
};

fallible launcher_image_find(struct launcher *l, const struct native_request *r,
                             struct launcher_fds *out);
fallible launcher_image_import(struct launcher *l, const struct native_request *r,
                               struct launcher_fds *in, bool *ret_later);
/* Puts the id in the place of the name; a sandbox that lived before has the image it had. */
fallible launcher_image_resolve(struct launcher *l, struct native_request *r, bool again);
/* The layers of the stored image a request names by id. */
fallible launcher_image_open(const struct launcher *l, const struct native_request *r,
                             struct rootfs *ret);
/* Those of its mounts that are images: the lowest layer is the source, the others stand on it. */
fallible launcher_image_mounts(const struct launcher *l, const struct native_request *r,
                               bool before, int sources[NATIVE_MOUNTS],
                               struct snaps_stack below[NATIVE_MOUNTS]);
/* In box/ID, so that it is not removed while the sandbox, or what it left, is there. */
fallible launcher_image_note(const struct launcher *l, const struct native_request *r);
