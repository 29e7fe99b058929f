// SPDX-License-Identifier: Apache-2.0
/* help.c — croft help [COMMAND], and the text behind every --help. */
#include <string.h>

#include "cli/cli.h"
#include "host/config/settings.h"

static void put_list(struct buf *out)
{
    const struct cli_command *c;
    int width = 0;

    for (size_t i = 0; (c = cli_command_at(i)); i++)
        if (!c->hidden && (int)strlen(c->name) > width)
            width = (int)strlen(c->name);
    buf_add_cstr(out, "croft " CROFT_VERSION " - sandboxes for agents, in one program\n\n"
                      "usage: croft COMMAND [OPTION ...]\n\n");
    for (size_t i = 0; (c = cli_command_at(i)); i++)
        if (!c->hidden)
            buf_addf(out, "  %-*s  %s\n", width, c->name, c->summary);
    buf_add_cstr(out, "\n'croft help COMMAND' says more; 'croft config' shows every setting.\n");
}

static bool ends_line(const char *text)
{
    size_t n = strlen(text);

    return n && text[n - 1] == '\n';
}

void cli_put_help(const struct cli_command *c, struct buf *out)
{
    buf_addf(out, "croft %s - %s\n\nusage: croft %s%s%s\n", c->name, c->summary, c->name,
             c->usage ? " " : "", c->usage ? c->usage : "");
    if (c->help)
        buf_addf(out, "\n%s%s", c->help, ends_line(c->help) ? "" : "\n");
    if (c->options.count) {
        buf_add_cstr(out, "\noptions:\n");
        cfg_put_help(&c->options, out);
    }
    if (c->takes_settings) {
        struct cfg_table t = settings_table(NULL);
        buf_add_cstr(out, "\nsettings ('croft config' lists those without a flag):\n");
        cfg_put_help(&t, out);
    }
}

static int help_run(struct cli *cli, int argc, char **argv)
{
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    if (argc == 0) {
        put_list(&out);
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
    .summary = "list the commands, or explain one",
    .usage = "[COMMAND]",
    .run = help_run,
};
