// SPDX-License-Identifier: Apache-2.0
/* help.c — croft help [COMMAND], and the text behind every --help. */
#include <string.h>

#include "base/wrap.h"
#include "cli/cli.h"
#include "host/config/settings.h"

static const char *const titles[] = {
    [CLI_HERE] = "here, without a server",
    [CLI_SANDBOXES] = "a server's sandboxes",
    [CLI_SERVER] = "the server",
    [CLI_PROGRAMS] = "the programs",
};

static int names_width(void)
{
    const struct cli_command *c;
    size_t width = 0;

    for (size_t i = 0; (c = cli_command_at(i)); i++)
        if (c->group != CLI_HIDDEN && strlen(c->name) > width)
            width = strlen(c->name);
    return (int)width;
}

void cli_put_list(struct buf *out)
{
    const struct cli_command *c;
    int width = names_width();

    buf_add_cstr(out, "croft " CROFT_VERSION " - sandboxes for agents, in one program\n\n"
                      "usage: croft COMMAND [OPTION ...]\n");
    for (size_t group = CLI_HERE; group < ARRAY_LEN(titles); group++) {
        buf_addf(out, "\n%s:\n", titles[group]);
        for (size_t i = 0; (c = cli_command_at(i)); i++)
            if (c->group == group)
                buf_addf(out, "  %-*s  %s\n", width, c->name, c->summary);
    }
    buf_add_cstr(out, "\n'croft help COMMAND' says more; 'croft config' shows every setting.\n");
}

void cli_put_help(const struct cli_command *c, struct buf *out)
{
    buf_addf(out, "croft %s - %s\n\nusage: croft %s%s%s\n", c->name, c->summary, c->name,
             c->usage ? " " : "", c->usage ? c->usage : "");
    if (c->help) {
        buf_add_char(out, '\n');
        wrap_put_text(out, str_of(c->help));
    }
    if (c->options.count) {
        buf_add_cstr(out, "\noptions:\n");
        cfg_put_help(&c->options, out);
    }
    if (c->takes_settings) {
        own_done(arena) a;
        arena_init(&a, 1u << 20);
        struct cfg_table t = settings_rows(&a);
        buf_add_cstr(out, "\nsettings ('croft config' lists those without a flag):\n");
        cfg_put_help(&t, out);
    }
}

static int help_run(struct cli *cli, int argc, char **argv)
{
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    if (argc == 0) {
        cli_put_list(&out);
        return cli_put(cli, &out);
    }
    const struct cli_command *c = cli_command_find(argv[0]);
    if (!c)
        return cli_misuse(cli, cli_unknown_command(argv[0]));
    cli_put_help(c, &out);
    return cli_put(cli, &out);
}

CLI_COMMAND(help) = {
    .name = "help",
    .group = CLI_PROGRAMS,
    .summary = "list the commands, or explain one",
    .usage = "[COMMAND]",
    .run = help_run,
};
