// SPDX-License-Identifier: Apache-2.0
/* multipart.h — multipart/form-data (RFC 7578) as it arrives: constant memory, any split gives the
 * same parts and bytes. Names are UTF-8 without control characters. upload.h puts files on disk. */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct multipart_part {      /* slices valid inside on_part only */
    struct str name;         /* of the field */
    struct str filename;     /* .p NULL: not a file. Never a path: the part after the last / or \ */
    struct str content_type; /* "text/plain" when not given */
};

struct multipart_events {
    fallible (*on_part)(void *ctx, const struct multipart_part *part);
    fallible (*on_data)(void *ctx, struct str piece);
    fallible (*on_part_end)(void *ctx);
};

struct multipart;
#define MULTIPART_MAX_PARTS 1000
#define MULTIPART_MAX_HEAD  (16u << 10)

/* content_type as sent; refuses (ERR_INVALID, 400) when it is not multipart/form-data with a
 * boundary of 1 to 70 characters. */
fallible multipart_new(struct str content_type, const struct multipart_events *events, void *ctx,
                       struct multipart **ret_parser);
void multipart_free(struct multipart *m);
OWNABLE(multipart)
/* An error, its own or one of a callback's, is final. */
fallible multipart_feed(struct multipart *m, struct str data);
fallible multipart_end(struct multipart *m); /* refuses a body that stopped early */
