// SPDX-License-Identifier: Apache-2.0
/* backing.h — which backend a server's sandboxes are of: a part, "backend". */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct host;
struct layout;
struct sbx_driver;
struct settings;

struct sbx_driver *backend_of(const struct host *h);
struct str backing_name(const struct settings *s);
bool backing_is_native(const struct settings *s);
/* Of backend remote: the other server, and a key of it (.p NULL: none), by the settings. */
struct str backing_remote_url(const struct settings *s);
struct str backing_remote_key(const struct settings *s);
/* Writes down that the state directory is of this backend. ERR_CONFLICT: it is of another. */
fallible backing_claim(const struct layout *l, struct str backend);
