// SPDX-License-Identifier: Apache-2.0
/* act.c — call_tool_mcp as an action: a tool's result as Python's client prints it. */
#include <stdio.h>

#include "guest/exec/act.h"
#include "guest/exec/parts/mcp/part.h"
#include "wire/mcp.h"
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
    wire_put_mcp_client_error(&w, why);
    act_observe(t, &out);
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
    wire_put_mcp_client_result(&w, answer->result);
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
    own(err) e = mcp_call_start(mcp_part_servers(act->exec), &t->call, params);
    if (e)
        observe_error(t, str_of(err_text(e)));
    else if (a->has_timeout && a->timeout_s > 0)
        loop_timer_start(act->exec->loop, &t->deadline, (uint64_t)(a->timeout_s * 1000),
                         on_deadline);
    return NULL;
}

ACT_HANDLER(call_tool_mcp) = {.type = WIRE_ACT_CALL_TOOL_MCP, .start = call_tool_start};
