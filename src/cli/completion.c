// SPDX-License-Identifier: Apache-2.0
/* completion.c — croft completion bash|zsh|fish, from the same rows as --help: a new command or
 * flag is completed without being written down twice. */
#include <string.h>

#include "base/cfg_row.h"
#include "cli/cli.h"
#include "cli/names.h"
#include "host/config/settings.h"

static void put_flags_of(struct buf *out, const struct cfg_table *t, const char *before,
                         const char *after)
{
    char flag[CFG_NAME_MAX];

    for (size_t i = 0; i < t->count; i++)
        if (cfg_row_flag(&t->rows[i], flag))
            buf_addf(out, "%s%s%s", before, flag, after);
}

static void put_flags(struct buf *out, const struct cli_command *c, const char *before,
                      const char *after)
{
    own_done(arena) a;

    arena_init(&a, 1u << 20);
    put_flags_of(out, &c->options, before, after);
    if (c->takes_settings) {
        struct cfg_table settings = settings_rows(&a);
        put_flags_of(out, &settings, before, after);
    }
    buf_addf(out, "%shelp%s", before, after);
}

/* The command's words in its usage: "take [SANDBOX] | ls | rm SNAPSHOT ..." */
static void put_words(struct buf *out, const struct cli_command *c)
{
    bool first = true; /* of an alternative */

    for (const char *at = c->usage; at && *at;) {
        size_t n = strcspn(at, " ");
        size_t letters = strspn(at, "abcdefghijklmnopqrstuvwxyz-|");
        if (first && letters == n && *at != '-' && *at != '|')
            for (const char *end = at + n; at < end; at++)
                buf_add_char(out, *at == '|' ? ' ' : *at);
        else
            at += n;
        first = n == 1 && at[-1] == '|';
        if (!first)
            buf_add_char(out, ' ');
        at += strspn(at, " ");
    }
}

static void put_names(struct buf *out)
{
    const struct cli_command *c;

    for (size_t i = 0; (c = cli_command_at(i)); i++)
        if (c->group != CLI_HIDDEN)
            buf_addf(out, "%s ", c->name);
}

static void put_bash(struct buf *out)
{
    const struct cli_command *c;

    buf_add_cstr(out, "# eval \"$(croft completion bash)\"\n"
                      "_croft() {\n"
                      "  local word=${COMP_WORDS[COMP_CWORD]} words files=\n"
                      "  COMPREPLY=()\n"
                      "  if [ \"$COMP_CWORD\" -eq 1 ]; then words='");
    put_names(out);
    buf_add_cstr(out, "'\n  else case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        if (c->group == CLI_HIDDEN)
            continue;
        buf_addf(out, "    %s) words='", c->name);
        put_words(out, c);
        put_flags(out, c, "--", " ");
        buf_add_cstr(out, "'");
        if (names_are_wanted(c)) /* of safe characters: -W expands */
            buf_add_cstr(out,
                         "\" $(croft names -- \"${COMP_WORDS[@]:1:COMP_CWORD-1}\" 2>/dev/null)\"");
        buf_add_cstr(out, places_are_wanted(c) ? "; files=1 ;;\n" : " ;;\n");
    }
    buf_add_cstr(out, "  esac; fi\n"
                      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                      "  case ${COMPREPLY[0]} in *:) compopt -o nospace 2>/dev/null ;; esac\n"
                      "  [ -z \"$files\" ] && [ ${#COMPREPLY[@]} -gt 0 ] ||\n"
                      "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$word\")\n"
                      "}\ncomplete -o filenames -F _croft croft\n");
}

/* Text between single quotes, for zsh and fish alike. */
static void put_quoted(struct buf *out, const char *s)
{
    for (; *s; s++)
        if (*s == '\'')
            buf_add_cstr(out, "'\\''");
        else
            buf_add_char(out, *s);
}

static void put_zsh(struct buf *out)
{
    const struct cli_command *c;

    buf_add_cstr(out, "#compdef croft\n# eval \"$(croft completion zsh)\"\n_croft() {\n"
                      "  if (( CURRENT == 2 )); then\n    local -a all=(\n");
    for (size_t i = 0; (c = cli_command_at(i)); i++)
        if (c->group != CLI_HIDDEN) {
            buf_addf(out, "      '%s:", c->name);
            put_quoted(out, c->summary);
            buf_add_cstr(out, "'\n");
        }
    buf_add_cstr(out, "    )\n    _describe command all\n    return\n  fi\n"
                      "  case $words[2] in\n");
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        if (c->group == CLI_HIDDEN)
            continue;
        buf_addf(out, "    %s) compadd -- ", c->name);
        put_words(out, c);
        put_flags(out, c, "--", " ");
        if (names_are_wanted(c))
            buf_addf(
                out,
                "\n      compadd%s -- $(croft names -- \"${(@)words[2,CURRENT-1]}\" 2>/dev/null)",
                places_are_wanted(c) ? " -S ''" : "");
        buf_add_cstr(out, " ;;\n");
    }
    buf_add_cstr(out, "  esac\n  _files\n}\n"
                      "if [ \"$funcstack[1]\" = _croft ]; then _croft \"$@\"; else compdef _croft "
                      "croft; fi\n");
}

static void put_fish(struct buf *out)
{
    const struct cli_command *c;

    buf_add_cstr(out, "# croft completion fish | source\n");
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        if (c->group == CLI_HIDDEN)
            continue;
        buf_addf(out, "complete -c croft -f -n __fish_use_subcommand -a %s -d '", c->name);
        put_quoted(out, c->summary);
        buf_add_cstr(out, "'\n");
        own_done(buf) before;
        buf_init(&before, 4096);
        buf_addf(&before, "complete -c croft -n '__fish_seen_subcommand_from %s' -l ", c->name);
        put_flags(out, c, buf_cstr(&before), "\n");
        if (names_are_wanted(c))
            buf_addf(out,
                     "complete -c croft -n '__fish_seen_subcommand_from %s' -a '(croft names -- "
                     "(commandline -opc)[2..-1] 2>/dev/null)'\n",
                     c->name);
    }
}

static int completion_run(struct cli *cli, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*put)(struct buf *out);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    if (argc != 1)
        return cli_misuse(cli, err_new(ERR_INVALID, "which shell? bash, zsh or fish"));
    for (size_t i = 0; i < ARRAY_LEN(shells); i++)
        if (strcmp(argv[0], shells[i].name) == 0) {
            shells[i].put(&out);
            return cli_put(cli, &out);
        }
    return cli_misuse(
        cli, err_new(ERR_INVALID, "no completion for '%.40s'; bash, zsh or fish", argv[0]));
}

CLI_COMMAND(completion) = {
    .name = "completion",
    .group = CLI_PROGRAMS,
    .summary = "write what a shell needs to complete croft's commands",
    .usage = "bash|zsh|fish",
    .help = "For this shell, and for every one that starts:\n"
            "  eval \"$(croft completion bash)\"\n"
            "  croft completion bash >~/.local/share/bash-completion/completions/croft\n",
    .run = completion_run,
};
