// SPDX-License-Identifier: Apache-2.0
/* things.c — see things.h. */
#include "cli/things.h"

#include <stdbool.h>
#include <string.h>

static bool is_word(int argc, char **argv, const char *word)
{
    return argc && strcmp(argv[0], word) == 0;
}

fallible cli_things_check(const struct cli_things *t, int argc, char **argv)
{
    if ((is_word(argc, argv, "ls") && argc == 1) || (is_word(argc, argv, "rm") && argc > 1) ||
        (is_word(argc, argv, t->make) && argc == 2))
        return NULL;
    return err_new(ERR_INVALID, "wanted: %s %s, ls, or rm %s", t->make, t->of, t->thing);
}

fallible cli_things_do(const struct cli_things *t, void *job, int argc, char **argv)
{
    if (is_word(argc, argv, "ls"))
        return t->list(job);
    for (int i = 1; i < argc; i++)
        TRY((is_word(argc, argv, "rm") ? t->remove : t->create)(job, argv[i]));
    return NULL;
}
