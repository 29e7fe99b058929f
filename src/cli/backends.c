// SPDX-License-Identifier: Apache-2.0
/* backends.c — croft backends [--json]: the ways to run a sandbox, and what each can do. */
#include "cli/cli.h"
#include "sandbox/backend.h"

struct backends_options {
    bool json;
};

static const struct cfg_row rows[] = {
    CFG_BOOL(backends_options, json, "json", false, "Print a JSON array."),
};

static void put_json(struct buf *out)
{
    const struct sbx_backend *b;
    const char *name;
    struct jw w;

    jw_init(&w, out, JW_SPACED);
    JW_ARRAY(&w, NULL) {
        for (size_t i = 0; (b = sbx_backend_at(i)); i++) {
            JW_OBJECT(&w, NULL) {
                jw_cstr(&w, "name", b->name);
                jw_cstr(&w, "summary", b->summary);
                jw_cstr(&w, "warning", b->warning);
                JW_ARRAY(&w, "capabilities") {
                    for (unsigned bit = 0; (name = sbx_cap_name(bit)); bit++)
                        if (sbx_backend_caps(b) & (1u << bit))
                            jw_cstr(&w, NULL, name);
                }
            }
        }
    }
    buf_add_char(out, '\n');
}

static void put_text(struct buf *out)
{
    const struct sbx_backend *b;
    const char *name;

    for (size_t i = 0; (b = sbx_backend_at(i)); i++) {
        buf_addf(out, "%-10s %s\n", b->name, b->summary);
        if (b->warning)
            buf_addf(out, "%-10s ! %s\n", "", b->warning);
        buf_addf(out, "%-10s", "");
        for (unsigned bit = 0; (name = sbx_cap_name(bit)); bit++)
            if (sbx_backend_caps(b) & (1u << bit))
                buf_addf(out, " %s", name);
        buf_add_char(out, '\n');
    }
}

static int backends_run(struct cli *cli, int argc, char **argv)
{
    own_done(arena) a;
    own_done(buf) out;
    struct backends_options o;

    buf_init(&out, 1u << 20);
    arena_init(&a, 1u << 20);
    struct err *e = cli_flags(cli, &a, &o, &argc, argv);
    if (!e)
        e = cli_no_more(argc, argv);
    if (e)
        return cli_misuse(cli, e);
    if (o.json)
        put_json(&out);
    else
        put_text(&out);
    return cli_put(cli, &out);
}

CLI_COMMAND(backends) = {
    .name = "backends",
    .group = CLI_HERE,
    .summary = "list the ways to run a sandbox and what each can do",
    .usage = "[--json]",
    .help = "'croft doctor' tells what a backend lacks on this machine.\n",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = backends_run,
};
