// SPDX-License-Identifier: Apache-2.0
/* routes_test.c — /openapi.json and what the server answers, held against each other. */
#include <string.h>

#include "base/json.h"
#include "host/build/build.h"
#include "host/keys/keys.h"
#include "host/ops/docs.h"
#include "host/runtime/api.h"
#include "host/v1/v1.h"
#include "test/test.h"
#include "test/web.h"

static const struct {
    const struct route *routes;
    const size_t *count;
} tables[] = {{runtime_routes, &runtime_route_count},
              {v1_routes, &v1_route_count},
              {keys_routes, &keys_route_count},
              {build_routes, &build_route_count},
              {docs_routes, &(const size_t){DOCS_ROUTES}}};

/* Parameters may be called otherwise. */
static bool same_path(struct str a, struct str b)
{
    while (a.len && b.len) {
        struct str x, y;
        bool more = str_cut(&a, '/', &x);
        if (more != str_cut(&b, '/', &y))
            return false;
        bool both = x.len && y.len && x.p[0] == '{' && y.p[0] == '{';
        if (!both && !str_eq(x, y))
            return false;
    }
    return !a.len && !b.len;
}

static bool is_routed(struct str method, struct str path)
{
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (size_t i = 0; i < *tables[t].count; i++)
            if (same_path(str_of(tables[t].routes[i].pattern), path) &&
                str_eq_nocase(str_of(tables[t].routes[i].method), method))
                return true;
    return false;
}

static bool is_documented(const struct json *paths, const struct route *r)
{
    for (const struct json *path = paths->first; path; path = path->next)
        for (const struct json *op = path->first; op; op = op->next)
            if (same_path(path->key, str_of(r->pattern)) &&
                str_eq_nocase(op->key, str_of(r->method)))
                return true;
    return false;
}

TEST(the_document_of_the_api_has_every_route_and_no_other)
{
    struct web w;
    struct arena a;
    struct json *doc;

    arena_init(&a, 16 << 20);
    web_open(&w, docs_routes, DOCS_ROUTES, NULL, NULL);
    struct web_answer r = web_ask(&w, STR("GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"));
    CHECK_OK(json_parse(&a, r.body, NULL, &doc));
    const struct json *paths = json_get(doc, STR("paths"));
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (size_t i = 0; i < *tables[t].count; i++)
            if (!is_documented(paths, &tables[t].routes[i]))
                FAIL("%s %s is not in the document", tables[t].routes[i].method,
                     tables[t].routes[i].pattern);
    for (const struct json *path = paths->first; path; path = path->next)
        for (const struct json *op = path->first; op; op = op->next)
            if (!str_starts(path->key, STR("/sandbox/")) && !is_routed(op->key, path->key))
                FAIL(STR_FMT " " STR_FMT " is nobody's", STR_ARG(op->key), STR_ARG(path->key));
    arena_done(&a);
    web_close(&w);
}
