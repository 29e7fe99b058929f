// SPDX-License-Identifier: Apache-2.0
#include "host/ops/docs.h"

#include "base/json.h"
#include "test/test.h"
#include "test/web.h"

static struct web_answer get(struct web *w, const char *request)
{
    web_open(w, docs_routes, DOCS_ROUTES, NULL, NULL);
    return web_ask(w, str_of(request));
}

static bool is_ref_to_nothing(const struct json *v, const struct json *schemas)
{
    struct str ref = json_get_str(v, "$ref", STR(""));
    struct str part = STR("#/components/schemas/");

    if (ref.len)
        return !str_starts(ref, part) || !json_get(schemas, str_from(ref, part.len));
    if (v->type == JSON_OBJECT || v->type == JSON_ARRAY)
        for (const struct json *at = v->first; at; at = at->next)
            if (is_ref_to_nothing(at, schemas))
                return true;
    return false;
}

TEST(the_document_of_the_api_is_whole)
{
    struct web w;
    struct arena a;
    struct json *doc;

    arena_init(&a, 16 << 20);
    struct web_answer r = get(&w, "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK_INT(r.status, 200);
    CHECK_OK(json_parse(&a, r.body, NULL, &doc));
    CHECK_STR(json_get_str(doc, "openapi", STR("")), "3.0.3");
    const struct json *schemas = json_get(json_get(doc, STR("components")), STR("schemas"));
    CHECK(schemas && schemas->count > 5);
    CHECK(!is_ref_to_nothing(doc, schemas));
    const struct json *paths = json_get(doc, STR("paths"));
    for (const struct json *path = paths->first; path; path = path->next)
        for (const struct json *op = path->first; op; op = op->next)
            if (!json_get(op, STR("summary")) || !json_get(op, STR("responses")))
                FAIL("'" STR_FMT "' is not described", STR_ARG(path->key));
    arena_done(&a);
    web_close(&w);
}

TEST(the_page_of_the_api_asks_nothing_of_anybody_else)
{
    struct web w;
    struct web_answer r = get(&w, "GET /docs HTTP/1.1\r\nHost: a\r\n\r\n");

    CHECK_INT(r.status, 200);
    CHECK_HAS(r.head, "default-src 'none'");
    CHECK_HAS(r.body, "fetch(\"openapi.json\")");
    CHECK_INT(str_find(r.body, STR("src=")), -1);
    CHECK_INT(str_find(r.body, STR("://")), -1);
    web_close(&w);
}
