// SPDX-License-Identifier: Apache-2.0
/* cli.c — finds the command and runs it; see cli.h. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/plain.h"
#include "base/utf8.h"
#include "cli/letters.h"

ROWS_OF(cli_commands, struct cli_command)

/* --- the table --- */

/* The linker's order is that of the object files; ours is by name. The table is small. */
const struct cli_command *cli_command_at(size_t index)
{
    for (size_t i = 0; i < ROWS_LEN(cli_commands); i++) {
        size_t before = 0;
        for (size_t j = 0; j < ROWS_LEN(cli_commands); j++)
            before += strcmp(ROWS_AT(cli_commands, j)->name, ROWS_AT(cli_commands, i)->name) < 0;
        if (before == index)
            return ROWS_AT(cli_commands, i);
    }
    return NULL;
}

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < ROWS_LEN(cli_commands); i++)
        if (strcmp(ROWS_AT(cli_commands, i)->name, name) == 0)
            return ROWS_AT(cli_commands, i);
    return NULL;
}

fallible cli_unknown_command(const char *name)
{
    const struct cli_command *best = NULL, *c;
    unsigned distance = strlen(name) < 6 ? 3 : 4;

    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        unsigned d = str_distance(str_of(name), str_of(c->name));
        if (c->group == CLI_HIDDEN || d >= distance)
            continue;
        best = c;
        distance = d;
    }
    if (best)
        return err_new(ERR_INVALID, "unknown command '%.80s'; did you mean '%s'?", name,
                       best->name);
    return err_new(ERR_INVALID, "unknown command '%.80s'; 'croft help' lists them", name);
}

/* --- saying things --- */

static int cli_put_raw(struct cli *cli, struct str data)
{
    struct err *e = fd_write_all(cli->out, data);

    if (e && err_errno(e) == EPIPE) {
        err_free(e);
        return CLI_OK;
    }
    return cli_fail(cli, e);
}

int cli_put(struct cli *cli, const struct buf *data)
{
    own_done(buf) safe;
    struct err *e = buf_check(data);

    buf_init(&safe, (size_t)4 * data->len + 1);
    if (!e && isatty(cli->out)) {
        plain_put_lines(&safe, buf_str(data));
        data = &safe;
        e = buf_check(&safe);
    }
    return e ? cli_fail(cli, e) : cli_put_raw(cli, buf_str(data));
}

static void cli_say(struct cli *cli, const struct err *e, const char *more)
{
    own_done(buf) line;
    struct jw w;

    buf_init(&line, 1u << 20);
    if (cli->json) {
        jw_init(&w, &line, JW_SPACED);
        JW_OBJECT(&w, NULL) {
            jw_cstr(&w, "error", err_text(e));
            jw_cstr(&w, "code", err_code_word(err_code(e)));
            jw_cstr(&w, "command", cli->command ? cli->command->name : NULL);
        }
        buf_add_char(&line, '\n');
        err_free(fd_write_all(cli->err, buf_str(&line))); /* nowhere left to report it */
        return;
    }
    buf_add_cstr(&line, cli->color ? "\033[31mcroft" : "croft");
    if (cli->command)
        buf_addf(&line, " %s", cli->command->name);
    buf_add_cstr(&line, cli->color ? ":\033[0m " : ": ");
    utf8_add_shown(&line, str_of(err_text(e))); /* guests and archives chose names in it */
    buf_addf(&line, "\n%s", more);
    err_free(fd_write_all(cli->err, buf_str(&line))); /* nowhere left to report it */
}

int cli_fail(struct cli *cli, struct err *e)
{
    if (!e)
        return CLI_OK;
    if (cli->misused)
        return cli_misuse(cli, e);
    cli_say(cli, e, "");
    err_free(e);
    return CLI_FAILED;
}

int cli_misuse(struct cli *cli, struct err *e)
{
    own_done(buf) more;

    buf_init(&more, 4096);
    if (cli->command)
        buf_addf(&more, "try: croft %s --help\n", cli->command->name);
    else
        buf_add_cstr(&more, "try: croft help\n");
    cli_say(cli, e, buf_cstr(&more) ?: "");
    err_free(e);
    return CLI_USAGE;
}

/* No name begins with "-". "./-x" does not, and "-- -x" says that flags have ended. */
static fallible refuse_letters(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (argv[i][0] == '-' && argv[i][1])
            return err_new(ERR_INVALID, "%.80s: no such option; --help lists them", argv[i]);
    return NULL;
}

fallible cli_flags(struct cli *cli, struct arena *a, void *options, int *argc, char **argv)
{
    struct cfg_table t = cli->command->options;
    struct cfg c;

    t.into = options;
    TRY(cfg_init(&c, a, &t, 1));
    struct err *e = cfg_load_flags(&c, argc, argv);
    if (!e)
        e = refuse_letters(*argc, argv);
    cli->misused |= e != NULL;
    return e;
}

fallible cli_wrong(struct cli *cli, const char *what)
{
    cli->misused = true;
    return err_new(ERR_INVALID, "%s", what);
}

fallible cli_no_more(int argc, char **argv)
{
    if (argc > 0)
        return err_new(ERR_INVALID, "'%.80s' is not wanted here", argv[0]);
    return NULL;
}

/* --- running --- */

static bool has_flag(const char *flag, int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], flag) == 0)
            return true;
    return false;
}

static int cli_run(struct cli *cli, const struct cli_command *c, int argc, char **argv)
{
    own_done(buf) help;
    own_done(arena) a;

    buf_init(&help, 1u << 20);
    arena_init(&a, 64u << 20);
    cli->command = c;
    if (!c->takes_settings) /* settings have no letters, and their values may look like some */
        argv = letters_spell_out(c, &a, &argc, argv);
    cli->json = has_flag("--json", argc, argv);
    if (!has_flag("--help", argc, argv) && !has_flag("-h", argc, argv))
        return c->run(cli, argc, argv);
    cli_put_help(c, &help);
    return cli_put(cli, &help);
}

int cli_main(int argc, char **argv, const char *const *envp)
{
    const char *no_color = cfg_env_get(envp, "NO_COLOR");
    struct cli cli = {.out = STDOUT_FILENO, .err = STDERR_FILENO, .envp = envp};
    const char *name = argc > 1 ? argv[1] : "help";

    cli.color = isatty(cli.err) && !(no_color && *no_color);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    const struct cli_command *c = cli_command_find(name);
    if (!c && name[0] == '-')
        return cli_misuse(&cli, err_new(ERR_INVALID, "'%.80s' should follow a command", name));
    if (!c)
        return cli_misuse(&cli, cli_unknown_command(name));
    return cli_run(&cli, c, argc > 2 ? argc - 2 : 0, argv + (argc > 2 ? 2 : argc));
}
