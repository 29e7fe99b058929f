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
