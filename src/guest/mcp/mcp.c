// SPDX-License-Identifier: Apache-2.0
/* mcp.c — the servers as one: which run, which has a tool of a name, and the calls under way. */
#include "guest/mcp/mcp.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "guest/mcp/inner.h"
#include "net/stream.h"
#include "wire/api.h"
#include "wire/rpc.h"

#define CALL_BYTES (16u << 20)

struct mcp *mcp_new(const struct mcp_config *config)
{
    struct mcp *m = mem_new(sizeof *m);

    m->config = *config;
    list_init(&m->servers);
    return m;
}

void mcp_free(struct mcp *m)
{
    if (!m)
        return;
    LIST_EACH(s, &m->servers, struct mcp_server, link)
        mcp_server_free(s);
    loop_later_cancel(&m->changed);
    free(m);
}

static void on_changed(struct loop_later *l)
{
    struct mcp *m = container_of(l, struct mcp, changed);

    m->config.on_change(m->config.owner);
}

void mcp_changed(struct mcp *m)
{
    loop_later(net_loop(m->config.net), &m->changed, on_changed);
}

/* --- which servers there are --- */

/* The one that runs with this very configuration, or a new one. */
static fallible find_or_make(struct mcp *m, struct wire_mcp_server *config,
                             struct mcp_server **ret_server)
{
    own_done(buf) text;
    struct jw w;

    buf_init(&text, MCP_CONFIG_BYTES);
    jw_init(&w, &text, JW_WEB);
    wire_put_mcp_servers(&w, &(struct wire_mcp_servers){config, 1});
    TRY(buf_check(&text));
    LIST_EACH(s, &m->servers, struct mcp_server, link)
        if (s->status != MCP_FAILED && str_eq(s->text, buf_str(&text))) {
            *ret_server = s;
            return NULL;
        }
    return mcp_server_new(m, buf_str(&text), ret_server);
}

static fallible check_names(const struct wire_mcp_servers *servers)
{
    if (servers->count > MCP_SERVERS_MAX)
        return err_new(ERR_UNPROCESSABLE, "%zu servers: more than %d", servers->count,
                       MCP_SERVERS_MAX);
    for (size_t i = 0; i < servers->count; i++)
        for (size_t j = 0; j < i; j++)
            if (str_eq(servers->at[i].name, servers->at[j].name))
                return err_new(ERR_UNPROCESSABLE,
                               "server %zu: field 'name': '" STR_FMT "' is taken by server %zu", i,
                               STR_ARG(str_first(servers->at[i].name, 80)), j);
    return NULL;
}

fallible mcp_update(struct mcp *m, const struct wire_mcp_servers *servers)
{
    struct list fresh;
    struct err *e = check_names(servers);

    list_init(&fresh);
    for (size_t i = 0; !e && i < servers->count; i++) {
        struct mcp_server *s;
        e = find_or_make(m, &servers->at[i], &s);
        if (e)
            break;
        list_del(&s->link);
        list_add(&fresh, &s->link);
    }
    while (!list_empty(&m->servers) && !e) /* not wanted any more */
        mcp_server_free(container_of(m->servers.next, struct mcp_server, link));
    LIST_EACH(s, &fresh, struct mcp_server, link) {
        bool is_new = s->status == MCP_STARTING && !s->io;
        list_del(&s->link);
        list_add(&m->servers, &s->link);
        if (is_new && e)
            mcp_server_free(s);
        else if (is_new)
            mcp_server_start(s);
    }
    m->count = e ? m->count : (unsigned)servers->count;
    mcp_changed(m);
    return e;
}

bool mcp_is_empty(const struct mcp *m)
{
    return m->count == 0;
}

bool mcp_is_settled(const struct mcp *m)
{
    LIST_EACH(s, &m->servers, struct mcp_server, link)
        if (s->status == MCP_STARTING)
            return false;
    return true;
}

static const char *error_of(const struct mcp_server *s)
{
    return s->why ? err_text(s->why) : NULL;
}

void mcp_put_errors(const struct mcp *m, struct buf *out)
{
    LIST_EACH(s, &m->servers, struct mcp_server, link) {
        if (s->status == MCP_FAILED)
            buf_addf(out, "%s\n", error_of(s));
        else if (s->status == MCP_STARTING)
            buf_addf(out, "server '" STR_FMT "': still starting\n", STR_ARG(s->config.name));
    }
}

void mcp_put_states(const struct mcp *m, struct jw *w)
{
    static const char *const words[] = {"starting", "ready", "failed"};

    JW_ARRAY(w, NULL)
        LIST_EACH(s, &m->servers, struct mcp_server, link)
            wire_put_state(w, s->config.name, words[s->status], error_of(s));
}

/* --- tools --- */

static void put_tool(struct jw *w, const struct mcp_server *s, const struct json *tool)
{
    JW_OBJECT(w, NULL)
        for (const struct json *v = tool->first; v; v = v->next) {
            jw_key(w, v->key);
            if (s->set->count < 2 || !str_eq(v->key, STR("name"))) {
                jw_value(w, NULL, v);
                continue;
            }
            own_done(buf) name;
            buf_init(&name, 64u << 10);
            buf_addf(&name, STR_FMT "_" STR_FMT, STR_ARG(s->config.name), STR_ARG(v->s));
            jw_str(w, NULL, buf_str(&name));
        }
}

void mcp_put_tools(const struct mcp *m, struct jw *w)
{
    JW_OBJECT(w, NULL)
        JW_ARRAY(w, "tools")
            LIST_EACH(s, &m->servers, struct mcp_server, link)
                for (const struct json *t = s->tools.list ? s->tools.list->first : NULL; t;
                     t = t->next)
                    put_tool(w, s, t);
}

/* The name of a tool as its server has it; .p NULL: not a tool of this server. */
static struct str own_name(const struct mcp_server *s, struct str name)
{
    struct str prefix = s->config.name;

    if (s->set->count > 1) {
        if (!str_starts(name, prefix) || name.len <= prefix.len || name.p[prefix.len] != '_')
            return (struct str){NULL, 0};
        name = str_from(name, prefix.len + 1);
    }
    if (s->status == MCP_STARTING)
        return name; /* it will know */
    for (const struct json *t = s->tools.list ? s->tools.list->first : NULL; t; t = t->next)
        if (str_eq(json_get_str(t, "name", STR("")), name))
            return name;
    return (struct str){NULL, 0};
}

/* The name is the server's own, and so is the token of progress: those of two askers may be equal.
 */
static void put_params(struct jw *w, const struct json *params, struct str name, int64_t id)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "name", name);
        for (const struct json *v = params->first; v; v = v->next) {
            bool meta = str_eq(v->key, STR("_meta")) && json_get(v, STR("progressToken"));
            if (str_eq(v->key, STR("name")))
                continue;
            jw_key(w, v->key);
            if (!meta) {
                jw_value(w, NULL, v);
                continue;
            }
            JW_OBJECT(w, NULL) {
                jw_int(w, "progressToken", id);
                for (const struct json *x = v->first; x; x = x->next)
                    if (!str_eq(x->key, STR("progressToken"))) {
                        jw_key(w, x->key);
                        jw_value(w, NULL, x);
                    }
            }
        }
    }
}

static fallible put_call(struct mcp_call *c, const struct json *params, struct str name)
{
    struct json id = {.type = JSON_INT, .i = c->id};
    own_done(buf) text;
    struct jw w;

    buf_init(&text, CALL_BYTES);
    jw_init(&w, &text, JW_WEB);
    put_params(&w, params, name, c->id);
    TRY(buf_check(&text));
    rpc_put(&c->text, &(struct rpc){.kind = RPC_REQUEST,
                                    .id = &id,
                                    .method = STR("tools/call"),
                                    .raw = buf_str(&text)});
    return buf_check(&c->text);
}

static fallible start_on(struct mcp_server *s, struct mcp_call *c, const struct json *params,
                         struct str name)
{
    if (s->call_count >= MCP_CALLS_MAX)
        return err_new(ERR_BUSY, "server '" STR_FMT "' has %d calls under way",
                       STR_ARG(s->config.name), MCP_CALLS_MAX);
    if (s->status == MCP_FAILED)
        mcp_server_start(s);
    if (s->status == MCP_FAILED)
        return err_copy(s->why);
    c->server = s;
    c->id = ++s->next_id;
    buf_init(&c->text, CALL_BYTES);
    struct err *e = put_call(c, params, name);
    if (!e && s->status == MCP_READY)
        mcp_server_send(s, buf_str(&c->text));
    if (e || s->status == MCP_READY)
        buf_done(&c->text);
    if (e)
        return e;
    list_add(&s->calls, &c->link);
    s->call_count++;
    return NULL;
}

fallible mcp_call_start(struct mcp *m, struct mcp_call *c, const struct json *params)
{
    struct str name;

    TRY(json_want_str(params, "name", &name));
    LIST_EACH(s, &m->servers, struct mcp_server, link) {
        struct str own = own_name(s, name);
        if (own.p)
            return start_on(s, c, params, own);
    }
    return err_new(ERR_NOT_FOUND, "Unknown tool: " STR_FMT, STR_ARG(str_first(name, 200)));
}

void mcp_call_cancel(struct mcp_call *c)
{
    char params[64];

    if (!c->text.len) {
        int n = snprintf(params, sizeof params, "{\"requestId\":%lld}", (long long)c->id);
        mcp_server_note(c->server, "notifications/cancelled", str_n(params, (size_t)n));
    }
    list_del(&c->link);
    c->server->call_count--;
    buf_done(&c->text);
}
