// SPDX-License-Identifier: Apache-2.0
/* event.c — the envelope of an event; see event.h. */
#include "wire/event.h"

#include "wire/field.h"

enum wire_event_kind wire_event_kind(const struct json *event)
{
    if (json_get(event, STR("action")))
        return WIRE_ACTION;
    return json_get(event, STR("observation")) ? WIRE_OBSERVATION : WIRE_NO_EVENT;
}

static const struct json *of_type(const struct json *event, const char *key, enum json_type type)
{
    const struct json *v = json_get(event, str_of(key));

    return v && v->type == type ? v : NULL;
}

static struct wire_opt_int take_int(const struct json *event, const char *key)
{
    const struct json *v = json_get(event, str_of(key));
    struct wire_opt_int i = {0};

    i.is_set = v && wire_to_int(v, &i.value);
    return i;
}

static fallible take_source(const struct json *event, struct str *ret_source)
{
    static const char *const sources[] = {"agent", "user", "environment"};
    const struct json *v = json_get(event, STR("source"));

    if (!v || v->type == JSON_NULL)
        return NULL;
    for (size_t i = 0; v->type == JSON_STR && i < ARRAY_LEN(sources); i++) {
        if (str_eq(v->s, str_of(sources[i]))) {
            *ret_source = v->s;
            return NULL;
        }
    }
    if (v->type != JSON_STR)
        return err_new(ERR_INVALID, "field 'source' must be a string, not %s", json_type_word(v));
    return wire_refuse_value("source", v->s, "is not a valid EventSource");
}

fallible wire_decode_envelope(const struct json *event, struct wire_envelope *ret_envelope)
{
    struct wire_envelope e = {
        .id = take_int(event, "id"),
        .cause = take_int(event, "cause"),
        .timestamp = json_get_str(event, "timestamp", (struct str){0}),
        .tool_call_metadata = of_type(event, "tool_call_metadata", JSON_OBJECT),
        .llm_metrics = of_type(event, "llm_metrics", JSON_OBJECT),
    };

    if (e.id.value == -1)
        e.id.is_set = false;
    TRY(take_source(event, &e.source));
    *ret_envelope = e;
    return NULL;
}

void wire_put_envelope(struct jw *w, const struct wire_envelope *e, struct str message,
                       const char *key, const char *type)
{
    if (e->id.is_set)
        jw_int(w, "id", e->id.value);
    if (e->timestamp.p)
        jw_str(w, "timestamp", e->timestamp);
    if (e->source.p)
        jw_str(w, "source", e->source);
    jw_str(w, "message", message);
    if (e->cause.is_set)
        jw_int(w, "cause", e->cause.value);
    jw_cstr(w, key, type);
    if (e->tool_call_metadata)
        jw_value(w, "tool_call_metadata", e->tool_call_metadata);
    if (e->llm_metrics)
        jw_value(w, "llm_metrics", e->llm_metrics);
}
