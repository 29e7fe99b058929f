// SPDX-License-Identifier: Apache-2.0
/* man.c — croft man writes doc/croft.1 from the rows of commands and settings; hidden, for the
 * build. No date in it: the page changes when the rows do and not otherwise. */
#include "cli/cli.h"
#include "host/config/settings.h"

/* Hyphens that are meant to be typed, and lines that troff would take for requests. */
static void put_text(struct buf *out, const char *s)
{
    for (bool start = true; *s; start = *s++ == '\n') {
        if (start && (*s == '.' || *s == '\''))
            buf_add_cstr(out, "\\&");
        if (*s == '-')
            buf_add_cstr(out, "\\-");
        else if (*s == '\\')
            buf_add_cstr(out, "\\e");
        else
            buf_add_char(out, *s);
    }
}

static void put_command(struct buf *out, const struct cli_command *c)
{
    buf_addf(out, ".SS \"croft %s\"\n.B croft %s\n", c->name, c->name);
    if (c->usage) {
        put_text(out, c->usage);
        buf_add_char(out, '\n');
    }
    buf_add_cstr(out, ".PP\n");
    put_text(out, c->summary);
    buf_add_cstr(out, ".\n");
    if (c->help) {
        buf_add_cstr(out, ".PP\n");
        put_text(out, c->help);
        if (!str_ends(str_of(c->help), STR("\n")))
            buf_add_char(out, '\n'); /* what follows begins a line */
    }
    cfg_put_man(&c->options, out);
}

/* Names that are accepted and not used, so that a file of OpenHands' can be read as it is. */
static void put_foreign(struct buf *out)
{
    buf_add_cstr(out, ".PP\nOf OpenHands' own settings these are accepted, in files and variables, "
                      "and not used:\n");
    for (size_t i = 0; i < settings_foreign_count; i++) {
        const struct cfg_foreign *f = &settings_foreign[i];
        if (!f->keys)
            buf_addf(out, "[%s]%s\n", f->section, i + 1 < settings_foreign_count ? "," : ".");
        for (const char *const *k = f->keys; k && *k; k++)
            buf_addf(out, "%s.%s,\n", f->section, *k);
    }
}

static void put_settings(struct buf *out)
{
    own_done(arena) a;
    size_t count;

    arena_init(&a, 1u << 20);
    const struct cfg_table settings = settings_rows(&a);
    const struct cfg_family *const *families = settings_families(&a, &count);
    cfg_put_man(&settings, out);
    for (size_t i = 0; i < count; i++)
        cfg_put_family_man(families[i], out);
    put_foreign(out);
}

static void put_page(struct buf *out)
{
    const struct cli_command *c;

    buf_add_cstr(out, ".\\\" Made by 'croft man' from the tables in the source; do not edit.\n"
                      ".TH CROFT 1 \"\" \"croft " CROFT_VERSION "\" \"User Commands\"\n"
                      ".SH NAME\ncroft \\- sandboxes for agents, in one program\n"
                      ".SH SYNOPSIS\n.B croft\n.I COMMAND\n[\\fIOPTION\\fR ...]\n.SH COMMANDS\n");
    for (size_t i = 0; (c = cli_command_at(i)); i++)
        if (c->group != CLI_HIDDEN)
            put_command(out, c);
    buf_add_cstr(out,
                 ".SH SETTINGS\nEach line gives the key in a file, the flag if there is one, "
                 "and the variable.\nA dot separates section and name: \\fBserver.listen\\fR is "
                 "\\fBlisten\\fR in the section \\fB[server]\\fR.\n");
    put_settings(out);
    buf_add_cstr(
        out,
        ".SH FILES\n.TP\n.I /etc/croft/croft.toml\nSettings of the machine.\n"
        ".TP\n.I $XDG_CONFIG_HOME/croft/croft.toml\nSettings of the user; ~/.config without XDG.\n"
        ".SH ENVIRONMENT\n"
        ".TP\n.B CROFT_HOST\nThe server that is asked: http://HOST:PORT, https://HOST:PORT or "
        "unix:/PATH; without it the\nsocket in the state directory.\n"
        ".TP\n.B CROFT_API_KEY\nThe key that is shown to it; for 'croft serve' the first key.\n"
        ".TP\n.B CROFT_CA_FILE\nCertificates to trust for https, in PEM; without it the "
        "system's. Of 'croft serve --backend remote' too.\n"
        ".TP\n.B CROFT_SERVER_STATE_DIR\nThe state directory, also of commands without a server "
        "and of those that ask its socket;\nevery other setting has a variable too, named above.\n"
        ".TP\n.B NO_COLOR\nNo color on a terminal.\n"
        ".TP\n.B XDG_CONFIG_HOME, XDG_STATE_HOME\nWhere settings and the state directory are.\n"
        ".SH EXIT STATUS\n0 when done, 1 when it failed, 2 when used wrongly.\n");
}

static int man_run(struct cli *cli, int argc, char **argv)
{
    own_done(buf) out;

    buf_init(&out, 4u << 20);
    struct err *e = cli_no_more(argc, argv);
    if (e)
        return cli_misuse(cli, e);
    put_page(&out);
    return cli_put(cli, &out);
}

CLI_COMMAND(man) = {
    .name = "man",
    .group = CLI_HIDDEN,
    .summary = "print the manual page",
    .run = man_run,
};
