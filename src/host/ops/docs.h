// SPDX-License-Identifier: Apache-2.0
/* docs.h — the API as a document (openapi.json) and as a page that needs nothing from elsewhere. */
#pragma once

#include "net/router.h"

struct buf;

#define DOCS_ROUTES 2
extern const struct route docs_routes[DOCS_ROUTES]; /* GET /openapi.json, GET /docs */
fallible docs_openapi(struct buf *into);            /* the document */
