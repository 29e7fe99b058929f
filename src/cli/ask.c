// SPDX-License-Identifier: Apache-2.0
/* ask.c — see ask.h. A command waits for its answer: the loop turns inside the call. */
#include "cli/ask.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cfg.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/plain.h"
#include "cli/state.h"
#include "loop/loop.h"
#include "net/stream.h"
#include "out/client.h"

#define ARENA_MAX  (256u << 20)
#define ANSWER_MAX (64u << 20)
#define WAIT_MS    (30 * 1000)      /* for what a server knows */
#define IDLE_MS    (10 * 60 * 1000) /* an event stream may be silent for long; beats come */
#define LATE_MS    2000             /* until a person is told to wait */

static bool has_host(struct str url)
{
    struct str rest = str_from(url, (size_t)str_find(url, STR("://")) + 3);

    return rest.len && rest.p[0] != '/' && rest.p[0] != ':';
}

/* "localhost:3000", as a browser takes it too. */
static bool is_bare(struct str at)
{
    uint64_t port;
    struct str host;
    bool two = str_cut(&at, ':', &host);

    return two && host.len && str_find_char(host, '/') < 0 && str_to_u64(at, &port) &&
           port <= UINT16_MAX;
}

static fallible find_server(struct ask *k)
{
    const char *host = cfg_env_get(k->cli->envp, "CROFT_HOST");
    const char *key = cfg_env_get(k->cli->envp, "CROFT_API_KEY");
    struct str state;

    k->key = str_of(key ? key : "");
    k->url = STR("http://localhost");
    if (host && *host) {
        struct str at = str_of(host);
        if (is_bare(at))
            at = arena_printf(&k->arena, "http://%s", host);
        bool https = str_starts(at, STR("https://"));
        bool url = (https || str_starts(at, STR("http://"))) && has_host(at);
        if (str_starts(at, STR("unix:/")))
            k->unix_path = str_from(at, 5);
        else if (url)
            k->url = str_ends(at, STR("/")) ? str_first(at, at.len - 1) : at;
        else
            return err_new(ERR_INVALID,
                           "CROFT_HOST '%.200s': wanted http://HOST:PORT, https://HOST:PORT or "
                           "unix:/PATH",
                           host);
        TRY(arena_check(&k->arena));
        return https ? dialer_load_tls(&k->dialer) : NULL;
    }
    TRY(cli_state_path(k->cli, &k->arena, &state));
    k->unix_path = arena_printf(&k->arena, STR_FMT "/" ASK_SOCKET, STR_ARG(state));
    return arena_check(&k->arena);
}

fallible ask_open(struct ask *k, struct cli *cli)
{
    *k = (struct ask){.cli = cli, .wait_ms = WAIT_MS, .late_ms = LATE_MS};
    k->tells = isatty(cli->err) && !cli->json;
    arena_init(&k->arena, ARENA_MAX);
    k->dialer.ca_file = cfg_env_get(cli->envp, "CROFT_CA_FILE");
    TRY(find_server(k));
    TRY(loop_new(&clock_system, &k->loop));
    TRY(net_new(k->loop, &k->net));
    k->dialer.net = k->net;
    return http_client_new(&k->dialer, NULL, &k->client);
}

void ask_close(struct ask *k)
{
    http_client_free(k->client);
    net_free(k->net);
    dialer_done(&k->dialer);
    loop_free(k->loop);
    arena_done(&k->arena);
}

/* --- one call --- */

struct pending {
    const struct ask_stream *stream;
    struct ask *k;
    struct loop_timer late;
    struct http_call *call; /* NULL: over */
    int status;
    bool done, enough;
    struct err *error;
};

static void on_head(struct http_call *call, const struct http_head *head)
{
    ((struct pending *)http_call_owner(call))->status = head->status;
}

static void on_body(struct http_call *call, struct str piece)
{
    struct pending *p = http_call_owner(call);

    if (p->status >= 300 && p->stream->refused)
        p->enough |= !ask_keep(p->stream->refused, piece);
    else if (!p->enough && !p->stream->each(p->stream->arg, piece))
        p->enough = true;
}

static void on_done(struct http_call *call, struct err *e)
{
    struct pending *p = http_call_owner(call);

    p->error = e;
    p->done = true;
    p->call = NULL;
}

static struct str ask_where(const struct ask *k)
{
    return str_first(k->unix_path.p ? k->unix_path : k->url, 200);
}

static void on_late(struct loop_timer *t)
{
    struct pending *p = container_of(t, struct pending, late);
    own_done(buf) line;

    buf_init(&line, 8192);
    if (p->status || !p->k->tells)
        return;
    buf_addf(&line, "croft %s: waiting for an answer of ",
             p->k->cli->command ? p->k->cli->command->name : "");
    plain_put_name(&line, ask_where(p->k));
    buf_add_char(&line, '\n');
    err_free(fd_write_all(p->k->cli->err, buf_str(&line))); /* nowhere left to report it */
}

static fallible no_server(struct ask *k, const struct ask_stream *s, struct err *e)
{
    struct str at = ask_where(k);

    if (s->inside)
        return e;
    if (err_code(e) == ERR_TIMEOUT)
        return err_wrap(e,
                        "no answer from '" STR_FMT "', which may be no croft server, or not well",
                        STR_ARG(at));
    k->nobody = true;
    int why = err_errno(e);
    if (why == ENOENT || why == ECONNREFUSED) { /* that is all there is to it */
        struct err *short_one = err_recode(err_sysno(why, "connect"), err_code(e));
        err_free(e);
        e = short_one;
    }
    return err_wrap(e,
                    "no croft server answers at '" STR_FMT "'; start one with 'croft serve', or "
                    "set CROFT_HOST to where it is",
                    STR_ARG(at));
}

static struct str url_of(struct ask *k, const struct ask_inside *in, struct str path)
{
    return arena_printf(&k->arena, STR_FMT STR_FMT STR_FMT, STR_ARG(k->url),
                        STR_ARG(in ? in->path : STR("")), STR_ARG(path));
}

fallible ask_stream(struct ask *k, const struct ask_stream *s, int *ret_status)
{
    static const struct http_call_events events = {on_head, on_body, NULL, on_done};
    struct pending p = {.stream = s, .k = k};
    const struct http_header headers[] = {
        {s->inside ? STR("X-Session-API-Key") : STR("X-API-Key"),
         s->inside ? s->inside->key : k->key},
        {STR("Content-Type"), s->type.p ? s->type : STR("application/json")},
        {STR("Accept"), s->accept.p ? s->accept : STR("*/*")},
    };
    struct str url = url_of(k, s->inside, s->path);
    const struct http_call_spec spec = {
        .method = str_of(s->method),
        .url = url,
        .unix_path = k->unix_path,
        .headers = headers,
        .header_count = ARRAY_LEN(headers),
        .body = s->body,
        .idle_ms = s->wait_ms ? s->wait_ms : IDLE_MS,
        .max_body_bytes = UINT64_MAX,
    };

    k->cut = k->nobody = false;
    TRY(arena_check(&k->arena));
    TRY(http_call_start(k->client, &spec, &events, &p, &p.call));
    struct err *e = NULL;
    loop_timer_start(k->loop, &p.late, k->late_ms, on_late);
    while (!e && !p.done && !p.enough)
        e = loop_turn(k->loop, -1);
    loop_timer_stop(&p.late);
    if (p.call)
        http_call_cancel(p.call);
    if (e)
        return e;
    k->cut = p.error && p.status;
    if (p.error)
        return p.status ? p.error : no_server(k, s, p.error);
    *ret_status = p.status;
    return NULL;
}

static void on_again(struct attempts *a)
{
    (void)a; /* it ended a turn */
}

bool ask_once_more(struct ask *k, struct attempts *tries, struct err **e)
{
    static const struct retry policy = {.within_ms = 60000, .first_ms = 500, .most_ms = 500};

    if (k->cut) {
        attempts_begin(tries, k->loop);
        if (!k->cli->json)
            fd_print(k->cli->err, "croft %s: the connection was lost (%s); trying again\n",
                     k->cli->command ? k->cli->command->name : "", err_text(*e));
    } else if (!tries->begun_ns || !(k->nobody || err_code(*e) == ERR_BUSY)) {
        return false;
    }
    if (!attempts_again(tries, k->loop, &policy, 0, on_again))
        return false;
    err_free(take(e));
    while (!*e && tries->timer.loop)
        *e = loop_turn(k->loop, -1);
    attempts_stop(tries);
    return !*e;
}

bool ask_keep(void *arg, struct str piece)
{
    struct buf *b = arg;

    buf_add(b, piece);
    return !buf_failed(b);
}

static enum err_code code_of(int status)
{
    switch (status) {
    case 401:
        return ERR_UNAUTHORIZED;
    case 403:
        return ERR_FORBIDDEN;
    case 404:
        return ERR_NOT_FOUND;
    case 409:
        return ERR_CONFLICT;
    case 429:
        return ERR_LIMIT;
    case 501:
        return ERR_UNSUPPORTED;
    case 503:
        return ERR_BUSY;
    default:
        return status < 500 ? ERR_INVALID : ERR_UPSTREAM;
    }
}

/* Something else listens there, or stands before it, or it is no server of this version. */
static fallible ask_stranger(const struct ask *k, int status)
{
    return err_new(ERR_UPSTREAM,
                   "%s'" STR_FMT "' answered %d, which is not what a croft server says: is "
                   "something else there, or a proxy in front?",
                   cfg_env_get(k->cli->envp, "CROFT_HOST") ? "CROFT_HOST " : "",
                   STR_ARG(ask_where(k)), status);
}

/* body NULL: it was no JSON. */
static fallible cli_ask_refused(const struct ask *k, int status, const struct json *body)
{
    const struct json *detail = json_get(body, STR("detail"));
    struct str why = json_get_str(body, "detail", json_get_str(body, "error", (struct str){0}));

    if (!why.p && detail && detail->type == JSON_OBJECT)
        why = json_get_str(detail, "message", json_get_str(detail, "error", (struct str){0}));
    if (why.len)
        return err_new(code_of(status), STR_FMT, STR_ARG(why));
    return ask_stranger(k, status);
}

fallible ask_refused(struct ask *k, int status, struct str text)
{
    struct json *body = NULL;

    if (status < 300)
        return NULL;
    text = arena_copy(&k->arena, text);
    err_free(json_parse(&k->arena, text, NULL, &body)); /* then it is nothing of ours */
    return cli_ask_refused(k, status, body);
}

static fallible ask_for(struct ask *k, const char *method, struct str path, struct str body,
                        uint32_t wait_ms, struct ask_answer *ret_answer)
{
    own_done(buf) text;
    struct ask_answer r = {0};

    buf_init(&text, ANSWER_MAX);
    TRY(ask_stream(k,
                   &(struct ask_stream){.method = method,
                                        .path = path,
                                        .body = body,
                                        .each = ask_keep,
                                        .arg = &text,
                                        .wait_ms = wait_ms},
                   &r.status));
    TRY(buf_check(&text));
    r.text = arena_copy(&k->arena, buf_str(&text));
    TRY(arena_check(&k->arena));
    if (r.text.len)
        err_free(json_parse(&k->arena, r.text, NULL, &r.body)); /* told below */
    if (r.status == 401 && k->key.len)
        return err_new(ERR_UNAUTHORIZED, "the server does not know the key in CROFT_API_KEY, or it "
                                         "was revoked ('croft token ls')");
    if (r.status == 401)
        return err_new(ERR_UNAUTHORIZED, "the server wants a key: set CROFT_API_KEY ('croft token "
                                         "create' makes one)");
    if (r.status >= 300)
        return cli_ask_refused(k, r.status, r.body);
    if (r.text.len && !r.body)
        return ask_stranger(k, r.status);
    *ret_answer = r;
    return NULL;
}

fallible ask_json(struct ask *k, const char *method, struct str path, struct str body,
                  struct ask_answer *ret_answer)
{
    return ask_for(k, method, path, body, k->wait_ms, ret_answer);
}

fallible ask_work(struct ask *k, const char *method, struct str path, struct str body,
                  struct ask_answer *ret_answer)
{
    return ask_for(k, method, path, body, 0, ret_answer);
}

/* --- which sandbox --- */

struct str ask_path(struct ask *k, const struct json *sandbox, const char *rest)
{
    struct str id = json_get_str(sandbox, "runtime_id", STR(""));

    return arena_printf(&k->arena, "/croft/v1/sandboxes/" STR_FMT "%s", STR_ARG(id), rest);
}

fallible ask_inside(struct ask *k, const struct json *sandbox, struct ask_inside *ret_inside)
{
    struct str id = json_get_str(sandbox, "runtime_id", STR(""));

    if (str_eq(json_get_str(sandbox, "face", STR("")), STR("command")))
        return err_new(
            ERR_CONFLICT,
            "sandbox '" STR_FMT "' runs a command of its own and no croft server, which "
            "exec, shell and cp need; 'croft logs' shows what the command prints. To have "
            "both, start one without 'command' and run it by 'croft exec'",
            STR_ARG(id));
    *ret_inside = (struct ask_inside){
        .path = arena_printf(&k->arena, "/sandbox/" STR_FMT, STR_ARG(id)),
        .key = json_get_str(sandbox, "session_api_key", STR("")),
    };
    return arena_check(&k->arena);
}

fallible ask_inside_start(struct ask *k, const struct ask_inside *in, struct str path,
                          struct str type, const struct http_call_spec *spec,
                          const struct http_call_events *events, void *owner,
                          struct http_call **ret_call)
{
    const struct http_header headers[] = {
        {STR("X-Session-API-Key"), in->key},
        {STR("Content-Type"), type.p ? type : STR("application/json")}};
    struct http_call_spec s = *spec;

    s.url = url_of(k, in, path);
    s.unix_path = k->unix_path;
    s.headers = headers;
    s.header_count = ARRAY_LEN(headers);
    TRY(arena_check(&k->arena));
    return http_call_start(k->client, &s, events, owner, ret_call);
}

struct exact { /* live ones that bear the very name */
    struct ask *k;
    struct str want, list;
    unsigned count;
};

static bool is_named(const struct exact *e, const struct json *s, struct str session)
{
    struct str key = json_get_str(s, "key", STR(""));

    if (str_find_char(session, '/') >= 0)
        return false; /* it would take the place of another key's KEY/NAME: by its id only */
    if (str_eq(session, e->want))
        return true;
    return e->want.len == key.len + 1 + session.len && str_starts(e->want, key) &&
           e->want.p[key.len] == '/' && str_ends(e->want, session);
}

static void note_same(struct exact *e, const struct json *s, struct str id)
{
    struct str key = json_get_str(s, "key", STR(""));

    e->list = arena_printf(&e->k->arena, STR_FMT "%s" STR_FMT " (key '" STR_FMT "')",
                           STR_ARG(e->list), e->count++ ? ", " : "", STR_ARG(id), STR_ARG(key));
}

fallible ask_sandbox(struct ask *k, const char *name, struct json **ret_sandbox)
{
    struct ask_answer all;
    struct json *found = NULL, *exact = NULL;
    struct exact same = {.k = k, .want = str_of(name)};
    struct str want = same.want, near = {0};
    unsigned begin = 0, distance = want.len < 6 ? 3 : 4;

    TRY(ask_json(k, "GET", STR("/croft/v1/sandboxes?status=all"), (struct str){0}, &all));
    struct json *list = json_get(all.body, STR("sandboxes"));
    for (struct json *s = list ? list->first : NULL; s; s = s->next) {
        struct str id = json_get_str(s, "runtime_id", STR(""));
        struct str session = json_get_str(s, "session_id", STR(""));
        bool stopped = str_eq(json_get_str(s, "status", STR("")), STR("stopped"));
        if (str_eq(id, want)) {
            *ret_sandbox = s;
            return NULL;
        }
        if (is_named(&same, s, session))
            exact = !exact || !stopped ? s : exact; /* a session may have had several */
        if (exact == s && !stopped)
            note_same(&same, s, id);
        if (stopped)
            continue;
        bool by_id = str_find_char(session, '/') >= 0;
        struct str shown = session.len && !by_id ? session : id;
        unsigned d = str_distance(want, shown);
        if (d < distance) {
            near = shown;
            distance = d;
        }
        if (want.len && (str_starts(id, want) || (!by_id && str_starts(session, want)))) {
            found = s;
            begin++;
        }
    }
    if (same.count > 1)
        return err_new(ERR_CONFLICT,
                       "%u sandboxes of several keys are called '%.80s': " STR_FMT
                       "; say which by id or as KEY/NAME",
                       same.count, name, STR_ARG(same.list));
    if (exact || begin == 1) {
        *ret_sandbox = exact ? exact : found;
        return NULL;
    }
    if (begin > 1)
        return err_new(ERR_CONFLICT, "'%.80s' is the beginning of %u sandboxes' names; say more",
                       name, begin);
    if (near.len)
        return err_new(ERR_NOT_FOUND, "no sandbox '%.80s'; did you mean '" STR_FMT "'? (croft ps)",
                       name, STR_ARG(near));
    return err_new(ERR_NOT_FOUND, "no sandbox '%.80s' ('croft ps --all' lists them)", name);
}
