// SPDX-License-Identifier: Apache-2.0
/* pytext.h — texts as Python prints them: what clients compare is repr() and str(OSError).
 *
 * Nothing here fails: a buffer that is full remembers it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

struct str py_strip(struct str s);  /* str.strip() */
struct str py_rstrip(struct str s); /* str.rstrip() */

void py_add_repr(struct buf *b, struct str s);
void py_add_repr_json(struct buf *b, const struct json *v); /* NULL is None */
/* "[Errno 2] No such file or directory: '/x'", in the words of glibc whatever libc we have. */
void py_add_oserror(struct buf *b, const struct err *e, struct str path);
