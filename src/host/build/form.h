// SPDX-License-Identifier: Apache-2.0
/* form.h — the form of POST /build as it arrives: the context, base64 text, to a file; names in
 * memory. Everything has a bound. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "host/build/inner.h"

struct form;
/* content_type as sent. Fills the build: context.tar.gz in its directory, tags. */
fallible form_new(struct str content_type, struct build *b, struct form **ret_form);
void form_free(struct form *f);
OWNABLE(form)
fallible form_feed(struct form *f, struct str piece);
fallible form_end(struct form *f); /* ERR_UNPROCESSABLE names the field that is missing or wrong */

/* Base64 in pieces, white space between allowed; ERR_INVALID. For the form, and its fuzz target. */
struct form_b64 {
    char held[4];
    unsigned count;
    bool ended; /* padding was there */
};
fallible form_b64_add(struct form_b64 *d, struct str text, struct buf *out);
fallible form_b64_end(const struct form_b64 *d);
