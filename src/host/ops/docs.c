// SPDX-License-Identifier: Apache-2.0
/* docs.c — see docs.h. */
#include "host/ops/docs.h"

#include "base/embed.h"
#include "host/part/part.h"
#include "net/server.h"

EMBED(openapi, "src/host/ops/openapi.json");
EMBED(docs_page, "src/host/ops/docs.html");

#define TEXT_MAX (1u << 20)

static fallible reply_embedded(struct http_req *req, struct str packed, struct str type)
{
    own_done(buf) text;

    buf_init(&text, TEXT_MAX);
    TRY(inflate_all(packed, &text));
    http_reply_header(req, STR("cache-control"), STR("no-cache"));
    http_reply(req, 200, type, buf_str(&text));
    return NULL;
}

fallible docs_openapi(struct buf *into)
{
    return inflate_all(EMBEDDED(openapi), into);
}

static fallible get_openapi(struct http_req *req)
{
    return reply_embedded(req, EMBEDDED(openapi), STR("application/json"));
}

static fallible get_docs(struct http_req *req)
{
    http_reply_header(req, STR("content-security-policy"),
                      STR("default-src 'none'; script-src 'unsafe-inline'; style-src "
                          "'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'"));
    return reply_embedded(req, EMBEDDED(docs_page), STR("text/html; charset=utf-8"));
}

const struct route docs_routes[DOCS_ROUTES] = {
    {"GET", "/openapi.json", get_openapi, ROUTE_OPEN, 0},
    {"GET", "/docs", get_docs, ROUTE_OPEN, 0},
};

HOST_PART(docs) = {.name = "docs", .routes = docs_routes, .route_count = DOCS_ROUTES};
