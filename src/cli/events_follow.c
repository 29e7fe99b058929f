// SPDX-License-Identifier: Apache-2.0
/* events_follow.c — see events_follow.h. A line for each event; it ends with the server, or with a
 * key that was revoked. */
#include "cli/events_follow.h"

#include "base/plain.h"
#include "cli/ask.h"
#include "net/sse.h"

struct following {
    struct ask k;
    const struct events_follow *how;
    struct sse_parser events;
    struct buf out, last; /* last: the id to go on from; empty: as we were told */
    struct err *ended;    /* why, as the server says; or what it said was too much */
    int code;
};

static void put_json(struct following *f, const struct sse_event *e)
{
    struct jw w;

    jw_init(&w, &f->out, JW_SPACED);
    JW_OBJECT(&w, NULL) {
        jw_str(&w, "id", e->id);
        jw_str(&w, "kind", e->event);
        jw_raw(&w, "data", e->data);
    }
    buf_add_char(&f->out, '\n');
}

/* Number, time and kind, then what there is of it. */
static void put_line(struct following *f, const struct sse_event *e)
{
    static const char *const fields[] = {"actor",   "action",     "object", "decision", "rule",
                                         "sandbox", "session_id", "status", "message"};
    own_done(arena) a;
    struct json *all = NULL;

    arena_init(&a, 1u << 20);
    err_free(json_parse(&a, e->data, NULL, &all)); /* what is no event of ours is not shown */
    const struct json *event = all ? json_get(all, STR("event")) : NULL;
    if (!event)
        return;
    plain_put_name(&f->out, e->id);
    buf_add_cstr(&f->out, "  ");
    plain_put_name(&f->out, json_get_str(all, "ts", STR("-")));
    buf_add_cstr(&f->out, "  ");
    plain_put_cell(&f->out, e->event, 8);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        struct str text = json_get_str(event, fields[i], STR(""));
        if (!text.len)
            continue;
        buf_add_char(&f->out, ' ');
        plain_put_name(&f->out, text);
    }
    buf_add_char(&f->out, '\n');
}

static void on_event(void *arg, const struct sse_event *e)
{
    struct following *f = arg;

    if (str_eq(e->event, STR("end")))
        f->ended = f->ended ? f->ended : err_new(ERR_CLOSED, STR_FMT, STR_ARG(e->data));
    else if (f->how->json)
        put_json(f, e);
    else
        put_line(f, e);
    if (e->id.len) {
        buf_reset(&f->last);
        buf_add(&f->last, e->id);
    }
}

static bool write_events(void *arg, struct str piece)
{
    struct following *f = arg;
    struct err *e = sse_parser_feed(&f->events, piece);

    f->code = cli_put(f->k.cli, &f->out);
    buf_reset(&f->out);
    if (!f->ended)
        f->ended = take(&e);
    err_free(e);
    return !f->ended && f->code == CLI_OK;
}

static fallible check_number(struct str since)
{
    uint64_t n;

    if (!since.p || str_eq(since, STR("now")) || str_to_u64(since, &n))
        return NULL;
    return err_new(ERR_INVALID, "--since '" STR_FMT "': wanted the number of an event, or 'now'",
                   STR_ARG(str_first(since, 80)));
}

static fallible check_kind(struct str kind)
{
    if (!kind.p || str_eq(kind, STR("status")) || str_eq(kind, STR("audit")))
        return NULL;
    return err_new(ERR_INVALID, "--kind '" STR_FMT "': wanted 'status' or 'audit'",
                   STR_ARG(str_first(kind, 80)));
}

fallible events_follow_check(const struct events_follow *how)
{
    TRY(check_number(how->since));
    return check_kind(how->kind);
}

static fallible follow_once(struct following *f)
{
    const struct events_follow *how = f->how;
    own_done(buf) refused;
    int status;

    buf_init(&refused, 1u << 20);
    struct str after = f->last.len ? buf_str(&f->last) : how->since.p ? how->since : STR("now");
    struct ask_stream s = {
        .method = "GET",
        .refused = &refused,
        .path = arena_printf(&f->k.arena, "/croft/v1/events?after=" STR_FMT "%s" STR_FMT,
                             STR_ARG(after), how->kind.p ? "&kind=" : "", STR_ARG(how->kind)),
        .accept = STR("text/event-stream"),
        .each = write_events,
        .arg = f,
    };
    sse_parser_init(&f->events, 1u << 20, on_event, f);
    struct err *e = ask_stream(&f->k, &s, &status);
    sse_parser_done(&f->events);
    TRY(e);
    TRY(ask_refused(&f->k, status, buf_str(&refused)));
    return take(&f->ended);
}

static fallible events_follow_server(struct following *f, struct cli *cli)
{
    struct attempts tries = {0};

    TRY(ask_open(&f->k, cli));
    struct err *e = follow_once(f);
    while (e && ask_once_more(&f->k, &tries, &e))
        e = follow_once(f);
    return e;
}

int events_follow(struct cli *cli, const struct events_follow *how)
{
    struct following f = {.how = how, .code = CLI_OK};

    buf_init(&f.out, 4u << 20);
    buf_init(&f.last, 256);
    struct err *e = events_follow_server(&f, cli);
    int code = e ? cli_fail(cli, e) : f.code;
    buf_done(&f.out);
    buf_done(&f.last);
    err_free(f.ended);
    ask_close(&f.k);
    return code;
}
