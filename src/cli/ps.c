// SPDX-License-Identifier: Apache-2.0
/* ps.c — croft ps: the sandboxes of a server. */
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/plain.h"
#include "cli/age.h"
#include "cli/ask.h"

struct ps_options {
    bool all, quiet, json;
};

static const struct cfg_row rows[] = {
    CFG_BOOL(ps_options, all, "all", false, "Stopped ones too.", .letter = 'a'),
    CFG_BOOL(ps_options, quiet, "quiet", false, "Only their ids.", .letter = 'q'),
    CFG_BOOL(ps_options, json, "json", false, "Print JSON."),
};

static void put_age(struct buf *out, struct str created)
{
    uint64_t ns = UINT64_MAX;

    err_free(clock_parse_iso(created, &ns)); /* no time is no age */
    cli_put_age(out, ns);
}

#define NO_KEYS STR("default") /* of a server without keys, or its first key */

/* Then SESSION alone may not tell which is meant, and KEY/SESSION does. */
static bool are_of_keys(const struct json *s)
{
    for (; s; s = s->next)
        if (!str_eq(json_get_str(s, "key", NO_KEYS), NO_KEYS))
            return true;
    return false;
}

#define URL_MIN 3

static size_t url_width(const struct json *s)
{
    size_t width = URL_MIN;

    for (; s; s = s->next) {
        size_t n = json_get_str(s, "url", STR("-")).len;
        width = n > width ? n : width;
    }
    return width;
}

static void put_row(struct buf *out, const struct json *s, bool keys, size_t url)
{
    plain_put_cell(out, json_get_str(s, "runtime_id", STR("-")), 18);
    bool halted = json_get_bool(s, "halted", false); /* 'croft stop' kept its files */
    plain_put_cell(out, halted ? STR("halted") : json_get_str(s, "status", STR("-")), 10);
    plain_put_cell(out, json_get_str(s, "launch_type", STR("-")), 7);
    put_age(out, json_get_str(s, "created_at", STR("")));
    plain_put_cell(out, json_get_str(s, "image", STR("-")), 10);
    buf_add_cstr(out, "  ");
    plain_put_cell(out, json_get_str(s, "url", STR("-")), url);
    buf_add_cstr(out, "  ");
    if (keys) {
        plain_put_cell(out, json_get_str(s, "key", NO_KEYS), 10);
        buf_add_cstr(out, "  ");
    }
    plain_put_cell(out, json_get_str(s, "session_id", STR("")), 0);
    buf_add_char(out, '\n');
}

static void put_list(struct buf *out, const struct ps_options *o, const struct json *list)
{
    const struct json *s = list ? list->first : NULL;
    bool keys = are_of_keys(s);
    size_t url = url_width(s);

    if (!s && !o->quiet)
        buf_add_cstr(out, "no sandboxes; 'croft run' starts one here, POST /start one there\n");
    else if (!o->quiet)
        buf_addf(out, "%-16s  %-8s  %-5s  %-6s  %-10s  %-*s  %s%s\n", "ID", "STATUS", "START",
                 "AGE", "IMAGE", (int)url, "URL", keys ? "KEY         " : "", "SESSION");
    for (; s; s = s->next)
        if (o->quiet)
            buf_addf(out, STR_FMT "\n", STR_ARG(json_get_str(s, "runtime_id", STR(""))));
        else
            put_row(out, s, keys, url);
}

/* Once: all are of one backend. */
static void ps_warn(struct cli *cli, const struct json *list)
{
    const struct json *s = list ? list->first : NULL;
    struct str warning = s ? json_get_str(s, "warning", STR("")) : STR("");
    own_done(buf) out;

    buf_init(&out, 4096);
    if (!warning.len)
        return;
    buf_add_cstr(&out, "croft ps: backend ");
    plain_put_cell(&out, json_get_str(s, "backend", STR("")), 0);
    buf_add_cstr(&out, ": ");
    plain_put_cell(&out, warning, 0);
    fd_print(cli->err, STR_FMT "\n", STR_ARG(buf_str(&out)));
}

static int ps_run(struct cli *cli, int argc, char **argv)
{
    struct ps_options o = {0};
    struct ask k = {0};
    struct ask_answer r;
    own_done(buf) out;

    buf_init(&out, 64u << 20);
    struct err *e = ask_open(&k, cli);
    if (!e)
        e = cli_flags(cli, &k.arena, &o, &argc, argv);
    if (!e && argc)
        e = cli_wrong(cli, "no name is wanted; 'croft inspect' shows one sandbox");
    if (!e)
        e = ask_json(&k, "GET",
                     o.all ? STR("/croft/v1/sandboxes?status=all") : STR("/croft/v1/sandboxes"),
                     (struct str){0}, &r);
    if (!e && o.json)
        buf_addf(&out, STR_FMT "\n", STR_ARG(r.text));
    else if (!e) {
        put_list(&out, &o, json_get(r.body, STR("sandboxes")));
        ps_warn(cli, json_get(r.body, STR("sandboxes")));
    }
    int code = e ? cli_fail(cli, e) : cli_put(cli, &out);
    ask_close(&k);
    return code;
}

CLI_COMMAND(ps) = {
    .name = "ps",
    .group = CLI_SANDBOXES,
    .summary = "list a server's sandboxes",
    .options = {.rows = rows, .count = ARRAY_LEN(rows)},
    .help = "The server is CROFT_HOST (http://HOST:PORT or unix:/PATH), else the one of this\n"
            "machine's state directory; its key is CROFT_API_KEY.\n"
            "\n"
            "KEY, where a sandbox is a named key's, is whose it is: other commands take\n"
            "KEY/SESSION where several keys have a SESSION of that name.\n",
    .run = ps_run,
};
