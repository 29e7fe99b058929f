// SPDX-License-Identifier: Apache-2.0
/* kit.h — for tests of src/wire: documents in, bytes out, in one arena per test process. */
#pragma once

#include "base/json.h"
#include "test/test.h"
#include "wire/action.h"
#include "wire/observation.h"

static struct arena kit_arena = {.limit_bytes = 1u << 30};

static inline struct json *kit_tree(struct str text)
{
    struct json *v = NULL;

    CHECK_OK(json_parse(&kit_arena, text, NULL, &v));
    return v;
}

/* {'a':'b'}: documents in C are easier to read with single quotes. */
static inline struct str kit_double(const char *text)
{
    struct str s = arena_copy(&kit_arena, str_of(text));

    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] == '\'')
            ((char *)s.p)[i] = '"';
    return s;
}

static inline struct json *kit_quoted(const char *text)
{
    return kit_tree(kit_double(text));
}

static inline struct str kit_keep(struct buf *b)
{
    CHECK_OK(buf_check(b));
    struct str s = arena_copy(&kit_arena, buf_str(b));
    buf_done(b);
    return s;
}

static inline struct str kit_put_action(const struct wire_action *action, unsigned flags)
{
    struct buf b;
    struct jw w;

    buf_init(&b, 256 << 20);
    jw_init(&w, &b, flags);
    wire_put_action(&w, NULL, action);
    return kit_keep(&b);
}

static inline struct str kit_put_observation(const struct wire_observation *o, unsigned flags)
{
    struct buf b;
    struct jw w;

    buf_init(&b, 256 << 20);
    jw_init(&w, &b, flags);
    wire_put_observation(&w, NULL, o);
    return kit_keep(&b);
}

/* Decodes and encodes an event of either kind. */
static inline fallible kit_pass(const struct json *event, unsigned flags, struct str *ret_text)
{
    struct wire_action action;
    struct wire_observation o;

    switch (wire_event_kind(event)) {
    case WIRE_ACTION:
        TRY(wire_decode_action(&kit_arena, event, &action));
        *ret_text = kit_put_action(&action, flags);
        return NULL;
    case WIRE_OBSERVATION:
        TRY(wire_decode_observation(&kit_arena, event, &o));
        *ret_text = kit_put_observation(&o, flags);
        return NULL;
    case WIRE_NO_EVENT:
        break;
    }
    return err_new(ERR_INVALID, "no event");
}

/* What comes out of a document written with single quotes. */
static inline struct str kit_out(const char *text)
{
    struct str out = {0};

    CHECK_OK(kit_pass(kit_quoted(text), JW_WEB, &out));
    return out;
}

static inline void kit_refused(const char *text, const char *part)
{
    struct str out;

    CHECK_ERR(kit_pass(kit_quoted(text), JW_WEB, &out), ERR_INVALID, part);
}
