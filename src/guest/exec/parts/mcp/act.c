// SPDX-License-Identifier: Apache-2.0
/* act.c — call_tool_mcp as an action: a tool's result as Python's client prints it. */
#include <stdio.h>

#include "guest/exec/act.h"
#include "guest/exec/parts/mcp/face.h"
#include "wire/rpc.h"

#define CONTENT_BYTES (64u << 20)

struct tool_act {
    struct act *act;
    struct mcp_call call;
    struct json *params; /* name and arguments: of the call, and of what is said of it */
    struct loop_timer deadline;
};

static void act_observe(struct tool_act *t, struct buf *content)
{
    struct wire_observation o = {
        .type = WIRE_OBS_MCP, .content = buf_str(content), .extras = t->params};

    loop_timer_stop(&t->deadline);
    act_done(t->act, &o);
}

static void observe_error(struct tool_act *t, struct str why)
{
    own_done(buf) out;
    struct jw w;

    buf_init(&out, CONTENT_BYTES);
    jw_init(&w, &out, JW_PYTHON);
    JW_OBJECT(&w, NULL) {
        jw_bool(&w, "isError", true);
        jw_str(&w, "error", why);
        JW_ARRAY(&w, "content") {
        }
    }
    act_observe(t, &out);
}

/* Members under the names of the client's classes, in their order; those it does not know last. */
static void put_members(struct jw *w, const struct json *o, const char *names)
{
    static const struct json nothing = {.type = JSON_NULL};

    for (struct str rest = str_of(names), name; rest.len;) {
        str_cut(&rest, ' ', &name);
        const struct json *v = json_get(o, name);
        jw_key(w, str_from(name, name.p[0] == '_'));
        jw_value(w, NULL, v ? v : &nothing);
    }
    for (const struct json *v = o->first; v; v = v->next) {
        if (str_fits(v->key, names, str_eq))
            continue;
        jw_key(w, v->key);
        jw_value(w, NULL, v);
    }
}

static void put_block(struct jw *w, const struct json *block)
{
    struct str type = json_get_str(block, "type", STR(""));
    const char *names = "type";

    if (str_eq(type, STR("text")))
        names = "type text annotations _meta";
    else if (str_fits(type, "image audio", str_eq))
        names = "type data mimeType annotations _meta";
    JW_OBJECT(w, NULL)
        put_members(w, block, names);
}

static void put_result(struct jw *w, const struct json *r)
{
    const struct json *content = json_get(r, STR("content")), *meta = json_get(r, STR("_meta"));
    const struct json *structured = json_get(r, STR("structuredContent"));
    static const struct json nothing = {.type = JSON_NULL};

    JW_OBJECT(w, NULL) {
        jw_value(w, "meta", meta ? meta : &nothing);
        JW_ARRAY(w, "content")
            for (const struct json *b = content && content->type == JSON_ARRAY ? content->first
                                                                               : NULL;
                 b; b = b->next)
                put_block(w, b);
        jw_value(w, "structuredContent", structured ? structured : &nothing);
        jw_bool(w, "isError", json_get_bool(r, "isError", false));
    }
}

static void on_done(struct mcp_call *c, const struct rpc *answer, const struct err *why)
{
    struct tool_act *t = container_of(c, struct tool_act, call);
    own_done(buf) out;
    struct jw w;

    buf_init(&out, CONTENT_BYTES);
    if (!answer || answer->kind == RPC_ERROR) {
        observe_error(t, answer ? json_get_str(answer->error, "message", STR(""))
                                : str_of(err_text(why)));
        return;
    }
    jw_init(&w, &out, JW_PYTHON);
    put_result(&w, answer->result);
    act_observe(t, &out);
}

static void on_deadline(struct loop_timer *timer)
{
    struct tool_act *t = container_of(timer, struct tool_act, deadline);
    const struct wire_action *a = &t->act->action;
    char seconds[JSON_DOUBLE_MAX];
    own_done(buf) why;

    mcp_call_cancel(&t->call);
    buf_init(&why, 64u << 10);
    buf_addf(&why, "Tool \"" STR_FMT "\" timed out after %.*s seconds",
             STR_ARG(json_get_str(a->args, "name", STR(""))),
             (int)json_format_double(a->timeout_s, seconds), seconds);
    observe_error(t, buf_str(&why));
}

/* A copy of the node: a value has one place in one tree. */
static void copy_member(struct arena *a, struct json *to, const struct json *from, struct str key)
{
    struct json *copy = arena_new(a, struct json);

    if (copy)
        *copy = *json_get(from, key);
    json_set(to, key, copy);
}

static void call_tool_stop(struct act *act)
{
    struct tool_act *t = act->user;

    loop_timer_stop(&t->deadline);
    mcp_call_cancel(&t->call);
}

static fallible call_tool_start(struct act *act)
{
    const struct wire_action *a = &act->action;
    struct tool_act *t = arena_new(&act->arena, struct tool_act);
    struct json *params = json_new(&act->arena, JSON_OBJECT);

    copy_member(&act->arena, params, a->args, STR("name"));
    copy_member(&act->arena, params, a->args, STR("arguments"));
    TRY(arena_check(&act->arena));
    *t = (struct tool_act){.act = act, .call = {.done = on_done}, .params = params};
    act->user = t;
    act->stop = call_tool_stop;
    own(err) e = mcp_call_start(act->exec->mcp->servers, &t->call, params);
    if (e)
        observe_error(t, str_of(err_text(e)));
    else if (a->has_timeout && a->timeout_s > 0)
        loop_timer_start(act->exec->loop, &t->deadline, (uint64_t)(a->timeout_s * 1000),
                         on_deadline);
    return NULL;
}

ACT_HANDLER(call_tool_mcp) = {.type = WIRE_ACT_CALL_TOOL_MCP, .start = call_tool_start};
