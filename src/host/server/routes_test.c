// SPDX-License-Identifier: Apache-2.0
/* routes_test.c — /openapi.json and what the server answers, held against each other. */
#include <string.h>

#include "base/json.h"
#include "host/ops/docs.h"
#include "host/part/part.h"
#include "net/router.h"
#include "test/test.h"

ROWS_OF(host_parts, struct host_part)

#define OF_TESTS "/test/" /* parts that tests link */

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
    for (size_t p = 0; p < ROWS_LEN(host_parts); p++)
        for (size_t i = 0; i < ROWS_AT(host_parts, p)->route_count; i++) {
            const struct route *r = &ROWS_AT(host_parts, p)->routes[i];
            if (same_path(str_of(r->pattern), path) && str_eq_nocase(str_of(r->method), method))
                return true;
        }
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

static void check_documented(const struct json *paths, const struct host_part *p)
{
    for (size_t i = 0; i < p->route_count; i++)
        if (!str_starts(str_of(p->routes[i].pattern), STR(OF_TESTS)) &&
            !is_documented(paths, &p->routes[i]))
            FAIL("%s %s is not in the document", p->routes[i].method, p->routes[i].pattern);
}

TEST(the_document_of_the_api_has_every_route_and_no_other)
{
    own_done(buf) text;
    own_done(arena) a;
    struct json *doc;

    buf_init(&text, 1u << 20);
    arena_init(&a, 16 << 20);
    CHECK_OK(docs_openapi(&text));
    CHECK_OK(json_parse(&a, buf_str(&text), NULL, &doc));
    const struct json *paths = json_get(doc, STR("paths"));
    for (size_t p = 0; p < ROWS_LEN(host_parts); p++)
        check_documented(paths, ROWS_AT(host_parts, p));
    for (const struct json *path = paths->first; path; path = path->next)
        for (const struct json *op = path->first; op; op = op->next)
            if (!str_starts(path->key, STR("/sandbox/")) && !is_routed(op->key, path->key))
                FAIL(STR_FMT " " STR_FMT " is nobody's", STR_ARG(op->key), STR_ARG(path->key));
}
