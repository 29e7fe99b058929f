// SPDX-License-Identifier: Apache-2.0
/* pool.c — croft pool: what a server keeps warm, and how often that was of use. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "cli/ask.h"

#define POOL_MOST 5000 /* of the API */

struct pool_options {
    bool json;
    struct str target, ceiling;
};

static const struct cfg_row rows[] = {
    CFG_STR(pool_options, target, "target", NULL, "Sandboxes to keep ready, 0 to 5000."),
    CFG_STR(pool_options, ceiling, "ceiling", NULL,
            "Most sandboxes, including those being made; 0 to 5000."),
    CFG_BOOL(pool_options, json, "json", false, "Print JSON."),
};

static void put_pool(struct buf *out, const struct json *p)
{
    const struct json *misses = json_get(p, STR("misses"));

    plain_put_cell(out, json_get_str(p, "name", STR("-")), 12);
    buf_add_cstr(out, "  ");
    plain_put_cell(out, json_get_str(p, "image", STR("-")), 12);
    buf_addf(out, "  %6" PRId64 "  %6" PRId64 "  %8" PRId64 "  %8" PRId64 "  ",
             json_get_int(p, "ready", 0), json_get_int(p, "target", 0),
             json_get_int(p, "starting", 0), json_get_int(p, "hits", 0));
    for (const struct json *m = misses ? misses->first : NULL; m; m = m->next)
        if (m->type == JSON_INT && m->i)
            buf_addf(out, STR_FMT " %" PRId64 " ", STR_ARG(m->key), m->i);
    buf_add_char(out, '\n');
}

static void put_head(struct buf *out)
{
    buf_addf(out, "%-12s  %-12s  %6s  %6s  %8s  %8s  %s\n", "POOL", "IMAGE", "READY", "TARGET",
             "STARTING", "HITS", "MISSES");
}

static fallible check_count(struct cli *cli, const char *flag, struct str text, uint64_t *ret)
{
    if (!text.p || (str_to_u64(text, ret) && *ret <= POOL_MOST))
        return NULL;
    cli->misused = true;
    return err_new(ERR_INVALID, "--%s '" STR_FMT "': wanted 0 to %d", flag,
                   STR_ARG(str_first(text, 80)), POOL_MOST);
}

static fallible pool_set_size_of(struct ask *k, const struct pool_options *o, const char *name,
                                 struct ask_answer *ret)
{
    own_done(buf) body;
    struct jw w;

    buf_init(&body, 4096);
    uint64_t target = 0, ceiling = 0;
    if (!o->target.p && !o->ceiling.p)
        return cli_wrong(k->cli, "what to set? --target N, --ceiling N, or both");
    TRY(check_count(k->cli, "target", o->target, &target));
    TRY(check_count(k->cli, "ceiling", o->ceiling, &ceiling));
    jw_init(&w, &body, JW_WEB);
    JW_OBJECT(&w, NULL) {
        if (o->target.p)
            jw_uint(&w, "target", target);
        if (o->ceiling.p)
            jw_uint(&w, "ceiling", ceiling);
    }
    return ask_json(k, "PATCH", arena_printf(&k->arena, "/croft/v1/pool/%s", name), buf_str(&body),
                    ret);
}

static fallible pool_answer(struct ask *k, struct pool_options *o, int argc, char **argv,
                            struct buf *out)
{
    struct ask_answer r;
    const struct json *list;

    TRY(cli_flags(k->cli, &k->arena, o, &argc, argv));
    if (argc == 2 && strcmp(argv[0], "set") == 0)
        TRY(pool_set_size_of(k, o, argv[1], &r));
    else if (argc == 0 || (argc == 1 && strcmp(argv[0], "ls") == 0))
        TRY(ask_json(k, "GET", STR("/croft/v1/pool"), (struct str){0}, &r));
    else
        return cli_wrong(k->cli, "wanted 'ls', or 'set NAME --target N'");
    if (o->json) {
        buf_addf(out, STR_FMT "\n", STR_ARG(r.text));
        return NULL;
    }
    put_head(out);
    list = json_get(r.body, STR("pools"));
    if (!list && r.body)
        put_pool(out, r.body);
    for (const struct json *p = list ? list->first : NULL; p; p = p->next)
        put_pool(out, p);
    return NULL;
}

static int pool_run(struct cli *cli, int argc, char **argv)
{
    struct pool_options o = {0};
    struct ask k = {0};
    own_done(buf) out;

    buf_init(&out, 4u << 20);
    struct err *e = ask_open(&k, cli);
    if (!e)
        e = pool_answer(&k, &o, argc, argv, &out);
    int code = e ? cli_fail(cli, e) : cli_put(cli, &out);
    ask_close(&k);
    return code;
}

CLI_COMMAND(pool) = {
    .name = "pool",
    .group = CLI_SERVER,
    .summary = "show or change what a server keeps warm",
    .usage = "[ls | set POOL]",
    .help =
        "A start that finds a warm sandbox of its image is a hit; misses are counted by reason.\n"
        "\n"
        "  croft pool set default --target 20\n"
        "\n"
        "takes effect at once, and ends when the server reads its settings again. A ceiling below\n"
        "the target moves up to it.\n",
    .options = {.rows = rows, .count = ARRAY_LEN(rows)},
    .run = pool_run,
};
