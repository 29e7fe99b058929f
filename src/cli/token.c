// SPDX-License-Identifier: Apache-2.0
/* token.c — croft token create, ls and rm: the keys of a server.
 *
 * A running server is asked. Otherwise its database is changed directly, under the lock of the
 * state, which keeps a server from starting. Both give the same JSON. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/plain.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/state.h"
#include "cli/things.h"
#include "host/keys/keys.h"
#include "host/launcher/drop.h"
#include "host/server/layout.h"
#include "host/store/store.h"
#include "loop/loop.h"
#include "net/listen.h"

struct token_options {
    bool json, force;
    struct str of;
    struct json *scope;
    uint64_t most_runtimes, starts_per_minute;
};

static const struct cfg_row rows[] = {
    CFG_LIST(token_options, scope, "scope", NULL,
             "What it may do: admin (keys and pools, and all else), runtime (make and end "
             "runtimes), read (look at them; such a key is made --of another, for a key sees the "
             "runtimes of its tenant), mount (directories of [mount.NAME] in its sandboxes). "
             "Not said, it is runtime,read, and read alone of a key made --of another."),
    CFG_STR(token_options, of, "of", NULL,
            "One more key of the tenant of this one: it sees the same runtimes, snapshots, builds "
            "and events, has the same quotas, and no scope that one lacks. Each is revoked alone."),
    CFG_UINT(token_options, most_runtimes, "most-runtimes", 0,
             "Runtimes it may have at a time. 0 is the server's tenant.most_runtimes.",
             .max = UINT32_MAX),
    CFG_UINT(token_options, starts_per_minute, "starts-per-minute", 0,
             "Runtimes it may start in a minute. 0 is the server's tenant.starts_per_minute.",
             .max = 60000),
    CFG_BOOL(token_options, force, "force", false,
             "Revoke the last key with the scope admin too: then keys cannot be made or revoked "
             "until the server is stopped."),
    CFG_BOOL(token_options, json, "json", false, "Print JSON."),
};

struct job {
    struct cli *cli;
    struct token_options o;
    struct arena *a;
    struct buf out;
    struct ask ask;
    bool running; /* a server answers; otherwise its database is ours: */
    struct layout layout;
    struct loop *loop;
    struct store *store;
    struct keys *keys;
    bool told;
    struct err *err;
};

/* --- without a server --- */

static void on_told(void *arg, struct err *e)
{
    struct job *j = arg;

    j->told = true;
    j->err = e;
}

static fallible wait_told(struct job *j)
{
    while (!j->told)
        TRY(loop_turn(j->loop, -1));
    j->told = false;
    return take(&j->err);
}

static fallible open_rows(struct job *j)
{
    struct str state;

    TRY(cli_state_path(j->cli, j->a, &state));
    TRY(layout_open(&j->layout, state.p));
    if (j->layout.separate) /* the file belongs to the server's user, and only that one opens it */
        TRY(launcher_drop_privileges(&j->layout.user));
    TRY(loop_new(&clock_system, &j->loop));
    TRY(store_open(j->loop, j->layout.rows, &j->store));
    j->keys = keys_new(j->store);
    keys_load(j->keys, on_told, j);
    return wait_told(j);
}

static void put_key(void *arg, const struct key *key)
{
    keys_put_one(arg, NULL, key, NULL);
}

static fallible act_here(struct job *j, struct str body, const char *name, struct buf *out)
{
    char secret[KEY_SECRET_SIZE] = "";
    struct json *tree;
    struct key want;
    struct jw w;

    jw_init(&w, out, JW_WEB);
    if (!body.p && !name) {
        JW_OBJECT(&w, NULL) {
            JW_ARRAY(&w, "tokens") {
                keys_list(j->keys, put_key, &w);
            }
        }
        return NULL;
    }
    if (body.p) {
        TRY(json_parse(j->a, body, NULL, &tree));
        TRY(keys_parse_want(tree, &want));
        TRY(keys_create(j->keys, &want, secret, on_told, j));
        name = want.name;
    } else {
        if (!j->o.force)
            TRY(keys_check_last(j->keys, str_of(name)));
        TRY(keys_revoke(j->keys, str_of(name), on_told, j));
    }
    TRY(wait_told(j));
    keys_put_one(&w, NULL, keys_find_name(j->keys, str_of(name)), secret[0] ? secret : NULL);
    return NULL;
}

static fallible ask_here(struct job *j, struct str body, const char *name, struct json **ret_json)
{
    own_done(buf) out;

    buf_init(&out, 16u << 20);
    TRY(act_here(j, body, name, &out));
    struct str text = arena_copy(j->a, buf_str(&out)); /* the tree points into it */
    TRY(arena_check(j->a));
    return json_parse(j->a, text, NULL, ret_json);
}

static void close_rows(struct job *j)
{
    store_close(j->store);
    keys_free(j->keys);
    if (j->loop)
        loop_free(j->loop);
    layout_close(&j->layout);
}

/* --- what is asked --- */

/* body makes one, name ends one, neither lists all. */
static fallible token_ask(struct job *j, struct str body, const char *name, struct json **ret_json)
{
    struct ask_answer answer;
    struct str path = STR("/croft/v1/tokens");

    if (!j->running)
        return ask_here(j, body, name, ret_json);
    if (name) {
        for (const char *p = name; *p; p++) /* no key has a name with a slash */
            if (*p <= ' ' || strchr("/?#%", *p))
                return err_new(ERR_NOT_FOUND, "there is no key '%s'", name);
        path = arena_printf(j->a, "/croft/v1/tokens/%s%s", name, j->o.force ? "?force=true" : "");
    }
    const char *method = body.p ? "POST" : name ? "DELETE" : "GET";
    TRY(ask_json(&j->ask, method, path, body, &answer));
    if (!answer.body)
        return err_new(ERR_UPSTREAM, "the server's answer is not JSON");
    *ret_json = answer.body;
    return NULL;
}

static void put_json(struct job *j, const struct json *value)
{
    json_write(&j->out, value, JW_SPACED);
    buf_add_char(&j->out, '\n');
}

static fallible token_create(void *arg, const char *name)
{
    struct job *j = arg;
    own_done(buf) body;
    struct jw w;
    struct json *made;

    buf_init(&body, 64u << 10);
    jw_init(&w, &body, JW_WEB);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "name", name);
        if (j->o.of.len)
            jw_str(&w, "of", j->o.of);
        if (j->o.scope)
            jw_value(&w, "scopes", j->o.scope);
        jw_uint(&w, "most_runtimes", j->o.most_runtimes);
        jw_uint(&w, "starts_per_minute", j->o.starts_per_minute);
    }
    TRY(buf_check(&body));
    TRY(token_ask(j, buf_str(&body), NULL, &made));
    if (j->o.json) {
        put_json(j, made);
        return NULL;
    }
    fd_print(j->cli->err, "croft token: key '%s' is made; its secret is shown this once\n", name);
    buf_addf(&j->out, STR_FMT "\n", STR_ARG(json_get_str(made, "secret", STR(""))));
    return NULL;
}

static void put_limit(struct job *j, const struct json *key, const char *name)
{
    int64_t n = json_get_int(key, name, 0);

    if (n)
        buf_addf(&j->out, "%lld\t", (long long)n);
    else
        buf_add_cstr(&j->out, "-\t");
}

static fallible token_list(void *arg)
{
    struct job *j = arg;
    struct json *all;

    TRY(token_ask(j, (struct str){0}, NULL, &all));
    const struct json *keys = json_get(all, STR("tokens"));
    if (j->o.json) {
        put_json(j, keys);
        return NULL;
    }
    buf_add_cstr(&j->out, "NAME\tSCOPES\tRUNTIMES\tSTARTS/MIN\tCREATED\tREVOKED\tOF\n");
    for (const struct json *key = keys ? keys->first : NULL; key; key = key->next) {
        const struct json *scopes = json_get(key, STR("scopes"));
        plain_put_name(&j->out, json_get_str(key, "name", STR("")));
        buf_add_char(&j->out, '\t');
        for (const struct json *s = scopes ? scopes->first : NULL; s; s = s->next)
            buf_addf(&j->out, STR_FMT "%s", STR_ARG(s->s), s->next ? "," : "\t");
        put_limit(j, key, "most_runtimes");
        put_limit(j, key, "starts_per_minute");
        buf_addf(&j->out, STR_FMT "\t" STR_FMT "\t",
                 STR_ARG(str_first(json_get_str(key, "created_at", STR("-")), 19)),
                 STR_ARG(str_first(json_get_str(key, "revoked_at", STR("-")), 19)));
        plain_put_name(&j->out, json_get_str(key, "of", STR("-")));
        buf_add_char(&j->out, '\n');
    }
    return NULL;
}

static fallible token_end(void *arg, const char *name)
{
    struct job *j = arg;
    struct json *gone;

    TRY(token_ask(j, (struct str){0}, name, &gone));
    if (j->o.json)
        put_json(j, gone);
    else
        buf_addf(&j->out, "%s\n", name);
    return NULL;
}

/* A server that was named must answer; one of this state may not run. */
static bool is_there(const struct job *j)
{
    const char *named = cfg_env_get(j->cli->envp, "CROFT_HOST");
    struct sockaddr_storage at;
    socklen_t len;

    if (named && *named)
        return true;
    struct err *e = addr_unix(j->ask.unix_path, &at, &len);
    own_fd fd = e ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    err_free(e); /* then no server listens there */
    return fd >= 0 && connect(fd, (const struct sockaddr *)&at, len) == 0;
}

static const struct cli_things things = {.make = "create",
                                         .of = "NAME",
                                         .thing = "NAME",
                                         .list = token_list,
                                         .create = token_create,
                                         .remove = token_end};

static fallible token_act(struct job *j, int argc, char **argv)
{
    TRY(ask_open(&j->ask, j->cli));
    j->running = is_there(j);
    if (!j->running)
        TRY(open_rows(j));
    return cli_things_do(&things, j, argc, argv);
}

static int token_run(struct cli *cli, int argc, char **argv)
{
    own_done(arena) a = {0};
    struct job j = {.cli = cli, .a = &a, .layout = {.lock = -1, .builds_dir = -1}};

    arena_init(&a, 256u << 20);
    struct err *e = cli_flags(cli, &a, &j.o, &argc, argv);
    if (!e)
        e = cli_things_check(&things, argc, argv);
    if (e)
        return cli_misuse(cli, e);
    buf_init(&j.out, 64u << 20);
    e = token_act(&j, argc, argv);
    close_rows(&j);
    ask_close(&j.ask);
    int code = cli_put(cli, &j.out); /* a key that was made is shown, also before a failure */
    buf_done(&j.out);
    return e ? cli_fail(cli, e) : code;
}

CLI_COMMAND(token) = {
    .name = "token",
    .group = CLI_SERVER,
    .summary = "make, list and revoke the keys of a server",
    .usage = "create NAME | ls | rm KEY ...",
    .help = "A running server is asked (CROFT_HOST, CROFT_API_KEY; else the socket in the state\n"
            "directory); if none runs, its database is changed directly. The first key must have\n"
            "the scope admin: from then on every request needs a key. What was started without\n"
            "one is key 'default's: name the first so to have it. A name is used once, also\n"
            "after it was revoked, because runtimes belong to it; a server keeps 10,000, with\n"
            "these. A key that only reads:\n"
            "\n"
            "  croft token create watch --of build --scope read",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = token_run,
};
