// SPDX-License-Identifier: Apache-2.0
/* rpc.c — see rpc.h. */
#include "wire/rpc.h"

static fallible rpc_wrong(const char *member)
{
    return err_new(ERR_INVALID, "member '%s' does not fit", member);
}

/* A member that must be an object where it is given; null is as good as nothing. */
static fallible take_object(const struct json *o, const char *key, const struct json **ret)
{
    const struct json *v = json_get(o, str_of(key));

    if (v && v->type == JSON_NULL)
        v = NULL;
    if (v && v->type != JSON_OBJECT)
        return rpc_wrong(key);
    *ret = v;
    return NULL;
}

fallible rpc_parse(struct arena *a, struct str text, struct rpc *ret_message)
{
    struct rpc m = {.kind = RPC_NOTE};
    struct json *o;

    TRY(json_parse(a, text, NULL, &o));
    if (!str_eq(json_get_str(o, "jsonrpc", STR("")), STR("2.0")))
        return rpc_wrong("jsonrpc");
    m.id = json_get(o, STR("id"));
    if (m.id && m.id->type == JSON_NULL)
        m.id = NULL;
    if (m.id && m.id->type != JSON_STR && m.id->type != JSON_INT)
        return rpc_wrong("id");
    TRY(json_take_str(o, "method", &m.method));
    TRY(take_object(o, "params", &m.params));
    TRY(take_object(o, "result", &m.result));
    TRY(take_object(o, "error", &m.error));
    if (!!m.method.p + !!m.result + !!m.error != 1)
        return err_new(ERR_INVALID, "one of 'method', 'result' and 'error' is wanted");
    if (m.result && !m.id)
        return rpc_wrong("id");
    if (m.method.p)
        m.kind = m.id ? RPC_REQUEST : RPC_NOTE;
    else
        m.kind = m.result ? RPC_RESULT : RPC_ERROR;
    *ret_message = m;
    return NULL;
}

bool rpc_same_id(const struct json *a, const struct json *b)
{
    return a && b && a->type == b->type &&
           (a->type == JSON_STR ? str_eq(a->s, b->s) : a->type == JSON_INT && a->i == b->i);
}

void rpc_put(struct buf *out, const struct rpc *m)
{
    static const char *const keys[] = {"params", "params", "result", "error"};
    const struct json *values[] = {m->params, m->params, m->result, m->error};
    struct jw w;

    jw_init(&w, out, JW_WEB);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "jsonrpc", "2.0");
        if (m->id)
            jw_value(&w, "id", m->id);
        if (m->method.p)
            jw_str(&w, "method", m->method);
        if (m->raw.p)
            jw_raw(&w, keys[m->kind], m->raw);
        else if (values[m->kind])
            jw_value(&w, keys[m->kind], values[m->kind]);
    }
}
