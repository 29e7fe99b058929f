// SPDX-License-Identifier: Apache-2.0
/* body.c — a key as it is asked for and told, in JSON; no routes and no rows, so that it can be
 * fuzzed alone. */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "host/keys/keys.h"
#include "wire/known.h"

static const struct {
    const char *word;
    unsigned scope;
} scopes[] = {
    {"admin", KEY_ADMIN}, {"runtime", KEY_RUNTIME}, {"read", KEY_READ}, {"mount", KEY_MOUNT}};

static fallible add_scope(const struct json *word, unsigned *into)
{
    if (word->type != JSON_STR)
        return err_new(ERR_UNPROCESSABLE, "scopes: wanted strings, got %s", json_type_word(word));
    for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
        if (str_eq(word->s, str_of(scopes[i].word))) {
            *into |= scopes[i].scope;
            return NULL;
        }
    return err_new(ERR_UNPROCESSABLE,
                   "scopes: '" STR_FMT "' is none of admin, runtime, read, mount",
                   STR_ARG(str_first(word->s, 40)));
}

fallible keys_parse_want(const struct json *body, struct key *ret_want)
{
    struct key want = {.scopes = 0};
    struct str name, of = {0};
    int64_t most = 0, starts = 0;
    const struct json *list = json_get(body, STR("scopes"));
    static const char *const known[] = {
        "name", "of", "scopes", "most_runtimes", "starts_per_minute", NULL};

    TRY(wire_check_known(body, "", known));
    TRY(json_want_str(body, "name", &name));
    if (name.len >= sizeof want.name || memchr(name.p, 0, name.len))
        return err_new(ERR_UNPROCESSABLE, "name: wanted at most %zu characters",
                       sizeof want.name - 1);
    memcpy(want.name, name.p, name.len);
    TRY(json_take_str(body, "of", &of));
    if (of.p && (!of.len || of.len >= sizeof want.of || memchr(of.p, 0, of.len)))
        return err_new(ERR_UNPROCESSABLE, "of: wanted the name of a key");
    if (of.p)
        memcpy(want.of, of.p, of.len);
    TRY(json_take_int(body, "most_runtimes", 0, UINT32_MAX, &most));
    TRY(json_take_int(body, "starts_per_minute", 0, 60000, &starts));
    if (list && list->type != JSON_ARRAY && list->type != JSON_NULL)
        return err_new(ERR_UNPROCESSABLE, "scopes: wanted an array, got %s", json_type_word(list));
    if (!list || list->type == JSON_NULL)
        want.scopes = of.p ? KEY_READ : KEY_RUNTIME | KEY_READ;
    else
        for (const struct json *word = list->first; word; word = word->next)
            TRY(add_scope(word, &want.scopes));
    if (of.p && (most || starts))
        return err_new(ERR_UNPROCESSABLE, "%s: quotas are those of key '%s', for all its keys",
                       most ? "most_runtimes" : "starts_per_minute", want.of);
    want.most_runtimes = (uint32_t)most;
    want.starts_per_minute = (uint32_t)starts;
    *ret_want = want;
    return NULL;
}

static void put_time(struct jw *w, const char *name, uint64_t ms)
{
    char text[CLOCK_ISO_MAX];

    if (ms)
        jw_str(w, name, str_n(text, clock_format_iso(ms * NS_PER_MS, true, text)));
    else
        jw_null(w, name);
}

void keys_put_one(struct jw *w, const char *name, const struct key *key, const char *secret)
{
    JW_OBJECT(w, name) {
        jw_cstr(w, "name", key->name);
        if (key->of[0])
            jw_cstr(w, "of", key->of);
        JW_ARRAY(w, "scopes") {
            for (size_t i = 0; i < ARRAY_LEN(scopes); i++)
                if (key->scopes & scopes[i].scope)
                    jw_cstr(w, NULL, scopes[i].word);
        }
        jw_uint(w, "most_runtimes", key->most_runtimes);
        jw_uint(w, "starts_per_minute", key->starts_per_minute);
        put_time(w, "created_at", key->made_ms);
        put_time(w, "revoked_at", key->revoked_ms);
        if (secret)
            jw_cstr(w, "secret", secret);
    }
}
