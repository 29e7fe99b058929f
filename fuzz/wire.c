// SPDX-License-Identifier: Apache-2.0
/* fuzz/wire.c — any JSON as an event or a body: what is accepted is written as JSON that is
 * accepted again and then stays the same. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/action.h"
#include "wire/api.h"
#include "wire/mcp.h"
#include "wire/observation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "fuzz/wire: %s\n", #cond);                                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#define OUT_MAX (64u << 20)

static bool pass(struct arena *a, const struct json *event, unsigned flags, struct buf *out)
{
    struct wire_action action;
    struct wire_observation o;
    struct jw w;
    bool is_action = wire_event_kind(event) == WIRE_ACTION;
    own(err) e =
        is_action ? wire_decode_action(a, event, &action) : wire_decode_observation(a, event, &o);

    if (e)
        return false;
    jw_init(&w, out, flags);
    if (is_action)
        wire_put_action(&w, NULL, &action);
    else
        wire_put_observation(&w, NULL, &o);
    MUST(!buf_failed(out));
    return true;
}

static struct json *parse(struct arena *a, const struct buf *text)
{
    struct json *v = NULL;
    own(err) e = json_parse(a, buf_str(text), NULL, &v);

    MUST(!e);
    return v;
}

/* A null risk is left out the first time; from the second on nothing may change. */
static void check_event(struct arena *a, const struct json *event)
{
    own_done(buf) once;
    own_done(buf) twice;
    own_done(buf) thrice;

    buf_init(&once, OUT_MAX);
    buf_init(&twice, OUT_MAX);
    buf_init(&thrice, OUT_MAX);
    if (!pass(a, event, JW_PYTHON, &once))
        return;
    MUST(pass(a, parse(a, &once), JW_WEB, &twice));
    MUST(pass(a, parse(a, &twice), JW_WEB, &thrice));
    MUST(str_eq(buf_str(&twice), buf_str(&thrice)));
}

static void check_servers(struct arena *a, const struct json *body)
{
    struct wire_mcp_servers s, again;
    struct jw w;
    own_done(buf) out;

    buf_init(&out, OUT_MAX);
    own(err) e = wire_decode_mcp_servers(a, body, &s);
    if (e)
        return;
    jw_init(&w, &out, JW_WEB);
    wire_put_mcp_servers(&w, &s);
    own(err) refused = wire_decode_mcp_servers(a, parse(a, &out), &again);
    MUST(!refused && s.count == again.count);
    for (size_t i = 0; i < s.count; i++)
        MUST(wire_mcp_server_equal(&s.at[i], &again.at[i]));
}

static void check_bodies(struct arena *a, const struct json *body)
{
    struct wire_server_info info;
    struct wire_problem problem;
    const struct json *event;
    struct jw w;
    own_done(buf) out;

    buf_init(&out, OUT_MAX);
    jw_init(&w, &out, JW_WEB);
    err_free(wire_decode_server_info(a, body, &info)); /* either answer is fine */
    if (wire_find_action(body, &event, &problem))
        return check_event(a, event);
    wire_put_problems(&w, &problem, 1);
    MUST(!buf_failed(&out));
    parse(a, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    own_done(arena) a;
    struct json *v = NULL;

    arena_init(&a, 256u << 20);
    own(err) e = json_parse(&a, str_n(data, size), NULL, &v);
    if (e)
        return 0;
    check_event(&a, v);
    check_servers(&a, v);
    check_bodies(&a, v);
    return 0;
}
