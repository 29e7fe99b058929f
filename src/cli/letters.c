// SPDX-License-Identifier: Apache-2.0
/* letters.c — see letters.h. */
#include "cli/letters.h"

#include <string.h>

#include "base/cfg_row.h"

struct spelling {
    const struct cli_command *command;
    struct arena *a;
    char **to;
    int count;
};

static bool takes_value(const struct cfg_row *row)
{
    return row && row->type != CFG_TYPE_BOOL;
}

static const struct cfg_row *find_letter(const struct cli_command *c, char letter)
{
    for (size_t i = 0; i < c->options.count; i++)
        if (c->options.rows[i].letter == letter)
            return &c->options.rows[i];
    return NULL;
}

/* "--count 3" has its value in the next word, "--count=3" has not. */
static bool is_long_with_value(const struct cli_command *c, const char *arg)
{
    char flag[CFG_NAME_MAX];

    for (size_t i = 0; i < c->options.count; i++)
        if (cfg_row_flag(&c->options.rows[i], flag) && strcmp(arg + 2, flag) == 0)
            return takes_value(&c->options.rows[i]);
    return false;
}

/* False: some of them are not letters of flags, and nothing was put. */
static bool put_letters(struct spelling *s, const char *letters, bool *ret_wants_value)
{
    int was = s->count;
    char flag[CFG_NAME_MAX];

    for (const char *at = letters; *at; at++) {
        const struct cfg_row *row = find_letter(s->command, *at);
        if (!row || !cfg_row_flag(row, flag)) {
            s->count = was;
            return false;
        }
        bool value = takes_value(row), here = value && at[1];
        const char *rest = at + 1 + (at[1] == '=');
        s->to[s->count++] =
            (char *)arena_printf(s->a, "--%s%s%s", flag, here ? "=" : "", here ? rest : "").p;
        *ret_wants_value = value && !here;
        if (here)
            break;
    }
    return true;
}

static void letters_spell(struct spelling *s, int argc, char **argv)
{
    unsigned words = 0;
    int at = 0;

    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        bool value = false, flag = argv[at][0] == '-' && argv[at][1];
        if (!flag && s->command->own_words && words++ == s->command->own_words) {
            s->to[s->count++] = (char *)"--";
            break;
        }
        if (flag && argv[at][1] == '-')
            value = is_long_with_value(s->command, argv[at]);
        if (!flag || argv[at][1] == '-' || !put_letters(s, argv[at] + 1, &value))
            s->to[s->count++] = argv[at];
        if (value && at + 1 < argc)
            s->to[s->count++] = argv[++at];
    }
    while (at < argc)
        s->to[s->count++] = argv[at++];
    s->to[s->count] = NULL;
}

char **letters_spell_out(const struct cli_command *c, struct arena *a, int *argc, char **argv)
{
    struct spelling s = {.command = c, .a = a};
    size_t most = (size_t)*argc + 2;

    for (int at = 0; at < *argc && strcmp(argv[at], "--") != 0; at++)
        most += argv[at][0] == '-' ? strlen(argv[at]) : 0;
    s.to = arena_alloc(a, most * sizeof *s.to);
    if (!s.to)
        return argv;
    letters_spell(&s, *argc, argv);
    if (a->failed)
        return argv;
    *argc = s.count;
    return s.to;
}
