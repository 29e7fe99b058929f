// SPDX-License-Identifier: Apache-2.0
/* action.c — actions to and from JSON; see action.h. The fields are in action_rows.c. */
#include "wire/action.h"

#include <math.h>

#include "base/cfg.h"
#include "wire/action_rows.h"

#define MESSAGE_MAX (256u << 20)

const char *wire_action_name(enum wire_action_type type)
{
    return wire_action_row(type)->name;
}

bool wire_action_is_runnable(enum wire_action_type type)
{
    return wire_action_row(type)->is_runnable;
}

bool wire_action_find(struct str name, enum wire_action_type *ret_type)
{
    for (unsigned i = 0; i < WIRE_ACT_COUNT; i++) {
        if (!str_eq(name, str_of(wire_action_name(i))))
            continue;
        *ret_type = i;
        return true;
    }
    return false;
}

void wire_add_action_doc(struct buf *out, enum wire_action_type type)
{
    wire_add_fields_doc(out, &wire_action_row(type)->fields);
}

static void *struct_of(struct wire_action *action)
{
    return wire_action_row(action->type)->is_runnable ? &action->run : NULL;
}

void wire_action_init(struct wire_action *action, enum wire_action_type type)
{
    *action = (struct wire_action){.type = type};
    if (struct_of(action))
        wire_set_defaults(&wire_action_row(type)->fields, struct_of(action));
}

/* --- decoding --- */

/* An editor call written as Python code, as old streams have it. Its arguments count. Unreadable
 * code is dropped, like the rest of that field. */
static fallible read_editor_call(struct arena *a, const struct json *code,
                                 const struct json **ret_args)
{
    struct str before = STR("print(file_editor(**"), after = STR("))");
    struct json *v = NULL;

    if (code->type != JSON_STR || code->s.len < before.len + after.len ||
        !str_starts(code->s, before) || !str_ends(code->s, after))
        return NULL;
    struct str literal = str_n(code->s.p + before.len, code->s.len - before.len - after.len);
    err_free(cfg_parse_literal(a, literal, &v)); /* no literal: nothing to take from it */
    TRY(arena_check(a));
    if (v && v->type == JSON_OBJECT)
        *ret_args = v;
    return NULL;
}

static fallible find_members(struct arena *a, const struct json *args,
                             struct wire_members *ret_from)
{
    const struct json *code = json_get(args, STR("translated_ipython_code"));

    *ret_from = (struct wire_members){.object = args};
    if (!code)
        return NULL;
    TRY(read_editor_call(a, code, &ret_from->over));
    const struct json *command = json_get(ret_from->over, STR("command"));
    if (!command)
        command = json_get(args, STR("command"));
    if (command && command->type == JSON_STR && str_eq(command->s, STR("view")))
        ret_from->without = "command";
    return NULL;
}

static fallible find_type(const struct json *event, enum wire_action_type *ret_type)
{
    const struct json *v = json_get(event, STR("action"));
    own_done(buf) names;

    buf_init(&names, 4096);
    if (!v)
        return err_new(ERR_INVALID, "field 'action' is missing");
    if (v->type == JSON_STR && wire_action_find(v->s, ret_type))
        return NULL;
    if (v->type != JSON_STR)
        return err_new(ERR_INVALID, "field 'action' must be a string, not %s", json_type_word(v));
    buf_add_cstr(&names, "is not defined. Available actions: ");
    for (unsigned i = 0; i < WIRE_ACT_COUNT; i++)
        buf_addf(&names, "%s%s", i ? ", " : "", wire_action_name(i));
    return wire_refuse_value("action", v->s, buf_cstr(&names) ? names.p : "is not defined.");
}

static fallible take_timeout(const struct json *event, struct wire_action *action)
{
    const struct json *v = json_get(event, STR("timeout"));

    if (!v || v->type == JSON_NULL)
        return NULL;
    if (v->type != JSON_INT && (v->type != JSON_DOUBLE || !isfinite(v->d)))
        return err_new(ERR_INVALID, "field 'timeout' must be a number, not %s",
                       v->type == JSON_DOUBLE ? "an infinite one" : json_type_word(v));
    action->has_timeout = true;
    action->timeout_s = v->type == JSON_INT ? (double)v->i : v->d;
    return NULL;
}

/* args.timestamp is where some streams keep the one of the envelope. */
static void take_old_timestamp(const struct json *args, struct wire_envelope *e)
{
    struct str s = json_get_str(args, "timestamp", STR(""));

    if (!e->timestamp.p && s.len)
        e->timestamp = s;
}

fallible wire_decode_action(struct arena *a, const struct json *event,
                            struct wire_action *ret_action)
{
    struct wire_action action = {0};
    struct wire_members from;

    if (!event || event->type != JSON_OBJECT)
        return err_new(ERR_INVALID, "action must be a dictionary");
    TRY(find_type(event, &action.type));
    const struct wire_action_row *row = wire_action_row(action.type);
    const struct json *args = json_get(event, STR("args"));
    if (args && args->type != JSON_OBJECT && args->type != JSON_NULL)
        return err_new(ERR_INVALID, "field 'args' must be an object, not %s", json_type_word(args));
    TRY(wire_decode_envelope(event, &action.envelope));
    take_old_timestamp(args, &action.envelope);
    TRY(take_timeout(event, &action));
    TRY(find_members(a, args, &from));
    TRY(wire_check_missing(row->name, row->class_name, &row->fields, &from));
    struct wire_values values = {.fields = &row->fields, .base = struct_of(&action)};
    TRY(wire_decode_fields(a, "args.", &from, &values));
    if (!values.base)
        action.args = values.tree;
    if (row->check)
        TRY(row->check(action.args));
    *ret_action = action;
    return NULL;
}

/* --- encoding --- */

static struct wire_values values_of(const struct wire_action *action)
{
    void *base = struct_of((struct wire_action *)action); /* only read from here on */

    return (struct wire_values){
        .fields = &wire_action_row(action->type)->fields,
        .base = base,
        .tree = base ? NULL : action->args,
    };
}

void wire_add_action_message(struct buf *out, const struct wire_action *action)
{
    const struct wire_action_row *row = wire_action_row(action->type);
    struct wire_values values = values_of(action);

    if (row->add_message)
        row->add_message(out, action->args);
    else
        wire_add_message(out, row->message, &values);
}

void wire_put_action(struct jw *w, const char *key, const struct wire_action *action)
{
    own_done(buf) message;
    struct wire_values values = values_of(action);

    buf_init(&message, MESSAGE_MAX);
    wire_add_action_message(&message, action);
    JW_OBJECT(w, key) {
        wire_put_envelope(w, &action->envelope, buf_str(&message), "action",
                          wire_action_name(action->type));
        wire_put_fields(w, "args", &values);
        if (action->has_timeout)
            jw_double(w, "timeout", action->timeout_s);
    }
    w->out->no_memory |= message.no_memory;
    w->out->over_limit |= message.over_limit;
}
