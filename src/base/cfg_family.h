// SPDX-License-Identifier: Apache-2.0
/* cfg_family.h — tables that come by name, [pool.web] and [pool.big]: each gets rows and a struct
 * of its own, which then are settings like all others. In files only. */
#pragma once

#include "base/cfg.h"

struct cfg_named;
struct cfg_family {
    const char *section;        /* "pool" */
    const struct cfg_row *rows; /* their keys are the last part: "image" */
    size_t count;
    size_t size;                                                       /* of the struct */
    unsigned most;                                                     /* names there may be */
    fallible (*check)(const struct cfg *c, const struct cfg_named *n); /* as of a table */
};

struct cfg_named { /* one of them, in the order they were met */
    const struct cfg_family *family;
    struct str name;
    void *into;
    struct cfg_named *next;
};

/* A family's rows as troff: their keys are "pool.NAME.image". */
void cfg_put_family_man(const struct cfg_family *f, struct buf *out);
