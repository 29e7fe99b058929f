// SPDX-License-Identifier: Apache-2.0
/* version.c — croft version [--json] */
#include "cli/cli.h"

struct version_options {
    bool json;
};

static const struct cfg_row rows[] = {
    CFG_BOOL(version_options, json, "json", false, "Print a JSON object."),
};

static int version_run(struct cli *cli, int argc, char **argv)
{
    own_done(arena) a;
    own_done(buf) out;
    struct version_options o;
    struct jw w;

    buf_init(&out, 4096);
    arena_init(&a, 1u << 20);
    struct err *e = cli_flags(cli, &a, &o, &argc, argv);
    if (!e)
        e = cli_no_more(argc, argv);
    if (e)
        return cli_misuse(cli, e);
    if (!o.json) {
        buf_add_cstr(&out, "croft " CROFT_VERSION "\n");
        return cli_put(cli, &out);
    }
    jw_init(&w, &out, JW_SPACED);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "name", "croft");
        jw_cstr(&w, "version", CROFT_VERSION);
    }
    buf_add_char(&out, '\n');
    return cli_put(cli, &out);
}

CLI_COMMAND(version) = {
    .name = "version",
    .group = CLI_PROGRAMS,
    .summary = "print the version",
    .usage = "[--json]",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = version_run,
};
