// SPDX-License-Identifier: Apache-2.0
/* backing.h — which backend a server's sandboxes are of: a part, "backend". */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct host;
struct layout;
struct sbx_backend;
struct sbx_driver;
struct settings;

struct sbx_driver *backend_of(const struct host *h);
const struct sbx_backend *backing_row(const struct settings *s);
/* ERR_INVALID: a flag was given that is for another backend. */
fallible backing_check(const struct settings *s);
/* Writes down that the state directory is of this backend. ERR_CONFLICT: it is of another. */
fallible backing_claim(const struct layout *l, struct str backend);
