// SPDX-License-Identifier: Apache-2.0
/* observation.c — observations to and from JSON; see observation.h. The fields are in
 * observation_rows.c. */
#include "wire/observation.h"

#include "wire/observation_rows.h"

#define MESSAGE_MAX (256u << 20)

const char *wire_observation_name(enum wire_observation_type type)
{
    return wire_observation_row(type)->name;
}

bool wire_observation_is_sandbox(enum wire_observation_type type)
{
    return wire_observation_row(type)->is_sandbox;
}

bool wire_observation_find(struct str name, enum wire_observation_type *ret_type)
{
    for (unsigned i = 0; i < WIRE_OBS_COUNT; i++) {
        if (!str_eq(name, str_of(wire_observation_name(i))))
            continue;
        *ret_type = i;
        return true;
    }
    return false;
}

void wire_add_observation_doc(struct buf *out, enum wire_observation_type type)
{
    wire_add_fields_doc(out, &wire_observation_row(type)->fields);
}

static void *struct_of(struct wire_observation *o)
{
    return wire_observation_row(o->type)->is_sandbox ? &o->run : NULL;
}

void wire_observation_init(struct wire_observation *o, enum wire_observation_type type)
{
    *o = (struct wire_observation){.type = type, .content = STR("")};
    if (struct_of(o))
        wire_set_defaults(&wire_observation_row(type)->fields, struct_of(o));
}

/* --- decoding --- */

static fallible take_old_int(const struct json *extras, const char *key, int64_t *ret_value)
{
    const struct json *v = json_get(extras, str_of(key));

    if (!v || v->type == JSON_NULL || wire_to_int(v, ret_value))
        return NULL;
    return err_new(ERR_INVALID, "field 'extras.%s' must be an integer, not %s", key,
                   json_type_word(v));
}

/* Before there was metadata the two numbers stood in extras. */
fallible wire_adapt_run(const struct json *extras, struct wire_observation *o)
{
    TRY(take_old_int(extras, "exit_code", &o->run.metadata.exit_code));
    return take_old_int(extras, "command_id", &o->run.metadata.pid);
}

static bool is_workspace(const struct json *extras)
{
    return str_eq(json_get_str(extras, "recall_type", STR("")), STR("workspace_context"));
}

fallible wire_check_recall(const struct json *extras, struct wire_observation *o)
{
    struct str type = json_get_str(o->extras, "recall_type", STR(""));

    (void)extras;
    if (is_workspace(o->extras) || str_eq(type, STR("knowledge")))
        return NULL;
    return wire_refuse_value("extras.recall_type", type, "is not a valid RecallType");
}

static fallible find_type(const struct json *event, enum wire_observation_type *ret_type)
{
    const struct json *v = json_get(event, STR("observation"));
    own_done(buf) names;

    buf_init(&names, 4096);
    if (!v)
        return err_new(ERR_INVALID, "field 'observation' is missing");
    if (v->type == JSON_STR && wire_observation_find(v->s, ret_type))
        return NULL;
    if (v->type != JSON_STR)
        return err_new(ERR_INVALID, "field 'observation' must be a string, not %s",
                       json_type_word(v));
    buf_add_cstr(&names, "is not defined. Available observations: ");
    for (unsigned i = 0; i < WIRE_OBS_COUNT; i++)
        buf_addf(&names, "%s%s", i ? ", " : "", wire_observation_name(i));
    return wire_refuse_value("observation", v->s, buf_cstr(&names) ? names.p : "is not defined.");
}

static fallible take_content(const struct json *event, struct str *ret_content)
{
    const struct json *v = json_get(event, STR("content"));

    *ret_content = STR("");
    if (v && v->type != JSON_STR && v->type != JSON_NULL)
        return err_new(ERR_INVALID, "field 'content' must be a string, not %s", json_type_word(v));
    if (v && v->type == JSON_STR && v->s.len)
        *ret_content = v->s;
    return NULL;
}

fallible wire_decode_observation(struct arena *a, const struct json *event,
                                 struct wire_observation *ret_observation)
{
    struct wire_observation o = {0};

    if (!event || event->type != JSON_OBJECT)
        return err_new(ERR_INVALID, "observation must be a dictionary");
    TRY(find_type(event, &o.type));
    const struct wire_observation_row *row = wire_observation_row(o.type);
    const struct json *extras = json_get(event, STR("extras"));
    if (extras && extras->type != JSON_OBJECT && extras->type != JSON_NULL)
        return err_new(ERR_INVALID, "field 'extras' must be an object, not %s",
                       json_type_word(extras));
    TRY(wire_decode_envelope(event, &o.envelope));
    TRY(take_content(event, &o.content));
    struct wire_members from = {.object = extras};
    TRY(wire_check_missing(row->name, row->class_name, &row->fields, &from));
    struct wire_values values = {.fields = &row->fields, .base = struct_of(&o)};
    TRY(wire_decode_fields(a, "extras.", &from, &values));
    if (!values.base)
        o.extras = values.tree;
    if (row->adapt)
        TRY(row->adapt(extras, &o));
    *ret_observation = o;
    return NULL;
}

/* --- encoding --- */

void wire_add_run_message(struct buf *out, const struct wire_observation *o)
{
    buf_add(out, STR("Command `"));
    buf_add(out, o->run.command);
    buf_addf(out, "` executed with exit code %lld.", (long long)o->run.metadata.exit_code);
}

void wire_add_recalled_message(struct buf *out, const struct wire_observation *o)
{
    buf_add(out, is_workspace(o->extras) ? STR("Added workspace context")
                                         : STR("Added microagent knowledge"));
}

static struct wire_values values_of(const struct wire_observation *o)
{
    void *base = struct_of((struct wire_observation *)o); /* only read from here on */

    return (struct wire_values){
        .fields = &wire_observation_row(o->type)->fields,
        .base = base,
        .tree = base ? NULL : o->extras,
        .content = o->content,
    };
}

void wire_add_observation_message(struct buf *out, const struct wire_observation *o)
{
    const struct wire_observation_row *row = wire_observation_row(o->type);
    struct wire_values values = values_of(o);

    if (row->add_message)
        row->add_message(out, o);
    else
        wire_add_message(out, row->message, &values);
}

void wire_put_observation(struct jw *w, const char *key, const struct wire_observation *o)
{
    own_done(buf) message;
    struct wire_values values = values_of(o);

    buf_init(&message, MESSAGE_MAX);
    wire_add_observation_message(&message, o);
    JW_OBJECT(w, key) {
        wire_put_envelope(w, &o->envelope, buf_str(&message), "observation",
                          wire_observation_name(o->type));
        jw_str(w, "content", o->content);
        wire_put_fields(w, "extras", &values);
        if (wire_observation_row(o->type)->has_success)
            jw_bool(w, "success", o->type != WIRE_OBS_RUN || o->run.metadata.exit_code == 0);
    }
    w->out->no_memory |= message.no_memory;
    w->out->over_limit |= message.over_limit;
}
