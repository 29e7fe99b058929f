// SPDX-License-Identifier: Apache-2.0
/* mcp.c — stdio servers of MCP; see mcp.h. */
#include "wire/mcp.h"

static const struct json no_args = {.type = JSON_ARRAY}, no_env = {.type = JSON_OBJECT};

/* --- words --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* One word, or the reason why it is none. s starts at its first character. */
static const char *read_word(struct str *s, struct buf *out)
{
    char quote = 0;
    size_t i = 0;

    for (; i < s->len; i++) {
        char c = s->p[i];
        if (!quote && is_blank(c))
            break;
        if (c == quote) {
            quote = 0;
        } else if (!quote && (c == '\'' || c == '"')) {
            quote = c;
        } else if (c == '\\' && quote != '\'') {
            if (++i == s->len)
                return "No escaped character";
            if (quote && s->p[i] != '"' && s->p[i] != '\\')
                buf_add_char(out, '\\');
            buf_add_char(out, s->p[i]);
        } else {
            buf_add_char(out, c);
        }
    }
    *s = str_from(*s, i);
    return quote ? "No closing quotation" : NULL;
}

fallible wire_split_words(struct arena *a, struct str text, struct json **ret_words)
{
    struct json *words = json_new(a, JSON_ARRAY);
    own_done(buf) word;

    buf_init(&word, text.len + 1);
    for (;;) {
        while (text.len && is_blank(text.p[0]))
            text = str_from(text, 1);
        if (!text.len)
            break;
        buf_reset(&word);
        const char *wrong = read_word(&text, &word);
        if (wrong)
            return err_new(ERR_UNPROCESSABLE, "%s", wrong);
        TRY(buf_check(&word));
        json_push(words, json_new_str(a, arena_copy(a, buf_str(&word))));
        TRY(arena_check(a));
    }
    TRY(arena_check(a));
    *ret_words = words;
    return NULL;
}

/* --- one server --- */

static bool is_name_char(char c, bool dash)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (dash && c == '-');
}

static fallible decode_name(const struct json *o, struct str *ret_name)
{
    TRY(json_want_str(o, "name", ret_name));
    *ret_name = str_trim(*ret_name);
    if (!ret_name->len)
        return err_new(ERR_UNPROCESSABLE, "field 'name': Server name cannot be empty");
    for (size_t i = 0; i < ret_name->len; i++)
        if (!is_name_char(ret_name->p[i], true))
            return err_new(ERR_UNPROCESSABLE, "field 'name': Server name can only contain "
                                              "letters, numbers, hyphens, and underscores");
    return NULL;
}

static fallible decode_command(const struct json *o, struct str *ret_command)
{
    TRY(json_want_str(o, "command", ret_command));
    *ret_command = str_trim(*ret_command);
    if (!ret_command->len)
        return err_new(ERR_UNPROCESSABLE, "field 'command': Command cannot be empty");
    if (str_find_char(*ret_command, ' ') >= 0)
        return err_new(ERR_UNPROCESSABLE,
                       "field 'command': Command should be a single executable without spaces "
                       "(use arguments field for parameters)");
    return NULL;
}

static fallible check_strings(const struct json *v, const char *field)
{
    for (const struct json *e = v->first; e; e = e->next)
        if (e->type != JSON_STR)
            return err_new(ERR_UNPROCESSABLE, "field '%s' must hold strings only, not %s", field,
                           json_type_word(e));
    return NULL;
}

static fallible decode_args(struct arena *a, const struct json *v, const struct json **ret_args)
{
    struct json *words = NULL;

    *ret_args = &no_args;
    if (!v || v->type == JSON_NULL)
        return NULL;
    if (v->type == JSON_STR) {
        TRY_WRAP(wire_split_words(a, v->s, &words), "field 'args': Invalid argument format");
        *ret_args = words;
        return NULL;
    }
    if (v->type != JSON_ARRAY)
        return err_new(ERR_UNPROCESSABLE, "field 'args' must be an array or a string, not %s",
                       json_type_word(v));
    *ret_args = v;
    return check_strings(v, "args");
}

static fallible add_variable(struct arena *a, struct str pair, struct json *env)
{
    struct str value = pair, key;

    if (!str_cut(&value, '=', &key)) /* not shown: it may be a secret */
        return err_new(ERR_UNPROCESSABLE,
                       "field 'env': Environment variable must be in KEY=VALUE format");
    key = str_trim(key);
    if (!key.len)
        return err_new(ERR_UNPROCESSABLE, "field 'env': Environment variable key cannot be empty");
    for (size_t i = 0; i < key.len; i++)
        if (!is_name_char(key.p[i], false) || (i == 0 && key.p[i] <= '9'))
            return err_new(ERR_UNPROCESSABLE, "field 'env': Invalid environment variable name");
    json_set(env, key, json_new_str(a, value));
    return arena_check(a);
}

#define ENV_MAX 1024 /* variables in the short form: adding one walks the others */

static fallible decode_env(struct arena *a, const struct json *v, const struct json **ret_env)
{
    *ret_env = &no_env;
    if (!v || v->type == JSON_NULL)
        return NULL;
    if (v->type == JSON_OBJECT) {
        *ret_env = v;
        return check_strings(v, "env");
    }
    if (v->type != JSON_STR)
        return err_new(ERR_UNPROCESSABLE, "field 'env' must be an object or a string, not %s",
                       json_type_word(v));
    struct json *env = json_new(a, JSON_OBJECT);
    struct str rest = v->s, pair;
    TRY(arena_check(a));
    for (bool more = true; more;) {
        if (env->count >= ENV_MAX)
            return err_new(ERR_UNPROCESSABLE, "field 'env' has more than %d variables", ENV_MAX);
        more = str_cut(&rest, ',', &pair);
        pair = str_trim(pair);
        if (pair.len)
            TRY(add_variable(a, pair, env));
    }
    *ret_env = env;
    return NULL;
}

static fallible decode_server(struct arena *a, const struct json *o, struct wire_mcp_server *s)
{
    TRY(decode_name(o, &s->name));
    TRY(decode_command(o, &s->command));
    TRY(decode_args(a, json_get(o, STR("args")), &s->args));
    return decode_env(a, json_get(o, STR("env")), &s->env);
}

/* --- all of them --- */

fallible wire_decode_mcp_servers(struct arena *a, const struct json *body,
                                 struct wire_mcp_servers *ret_servers)
{
    struct wire_mcp_servers servers = {0};

    if (!body || body->type != JSON_ARRAY)
        return err_new(ERR_INVALID, "Request must be a list of MCP tools to sync");
    servers.at = arena_zalloc(a, body->count * sizeof *servers.at);
    TRY(arena_check(a));
    for (const struct json *e = body->first; e; e = e->next, servers.count++)
        TRY_WRAP(decode_server(a, e, &servers.at[servers.count]), "server %zu", servers.count);
    *ret_servers = servers;
    return NULL;
}

void wire_put_mcp_servers(struct jw *w, const struct wire_mcp_servers *servers)
{
    JW_ARRAY(w, NULL) {
        for (size_t i = 0; i < servers->count; i++) {
            const struct wire_mcp_server *s = &servers->at[i];
            JW_OBJECT(w, NULL) {
                jw_str(w, "name", s->name);
                jw_str(w, "command", s->command);
                jw_value(w, "args", s->args ? s->args : &no_args);
                jw_value(w, "env", s->env ? s->env : &no_env);
            }
        }
    }
}

bool wire_mcp_server_equal(const struct wire_mcp_server *x, const struct wire_mcp_server *y)
{
    return str_eq(x->name, y->name) && str_eq(x->command, y->command) &&
           json_equal(x->args ? x->args : &no_args, y->args ? y->args : &no_args) &&
           json_equal(x->env ? x->env : &no_env, y->env ? y->env : &no_env);
}

void wire_put_mcp_updated(struct jw *w, struct str router_error_log)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "detail", STR("MCP server updated successfully"));
        jw_str(w, "router_error_log", router_error_log);
    }
}

/* --- the result of a call --- */

static const struct json nothing = {.type = JSON_NULL};

/* Members under the names of the client's classes, in their order; those it does not know last. */
static void put_members(struct jw *w, const struct json *o, const char *names)
{
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

void wire_put_mcp_client_result(struct jw *w, const struct json *r)
{
    const struct json *content = json_get(r, STR("content")), *meta = json_get(r, STR("_meta"));
    const struct json *structured = json_get(r, STR("structuredContent"));
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

void wire_put_mcp_client_error(struct jw *w, struct str why)
{
    JW_OBJECT(w, NULL) {
        jw_bool(w, "isError", true);
        jw_str(w, "error", why);
        JW_ARRAY(w, "content") {
        }
    }
}

void wire_put_mcp_failure(struct jw *w, struct str why)
{
    JW_OBJECT(w, NULL) {
        JW_ARRAY(w, "content")
            JW_OBJECT(w, NULL) {
                jw_cstr(w, "type", "text");
                jw_str(w, "text", why);
            }
        jw_bool(w, "isError", true);
    }
}

void wire_put_mcp_initialized(struct jw *w, const char *version)
{
    JW_OBJECT(w, NULL) {
        jw_cstr(w, "protocolVersion", version);
        JW_OBJECT(w, "capabilities") {
            JW_OBJECT(w, "tools")
                jw_bool(w, "listChanged", true);
            JW_OBJECT(w, "logging") {
            }
        }
        JW_OBJECT(w, "serverInfo") {
            jw_cstr(w, "name", "croft");
            jw_cstr(w, "version", CROFT_VERSION);
        }
    }
}
