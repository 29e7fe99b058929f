// SPDX-License-Identifier: Apache-2.0
/* letters.h — flags of one letter, as everybody types them: "-aq" is "--all --quiet", "-n3" is
 * "--count=3". */
#pragma once

#include "base/arena.h"
#include "cli/cli.h"

/* Another argv in a, NULL at its end, with long flags instead. What is no flag of the command's
 * stays, for cli_flags() to refuse; before the words of a command that is run, "--" is put. */
char **letters_spell_out(const struct cli_command *c, struct arena *a, int *argc, char **argv);
