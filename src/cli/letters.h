// SPDX-License-Identifier: Apache-2.0
/* letters.h — flags of one letter, as usual: "-aq" is "--all --quiet", "-n3" is "--count=3". */
#pragma once

#include "base/arena.h"
#include "cli/cli.h"

/* Makes another argv in a, NULL at its end, with long flags instead of letters. Unknown flags stay,
 * for cli_flags() to refuse. "--" is put before the words of a command that is run. */
char **letters_spell_out(const struct cli_command *c, struct arena *a, int *argc, char **argv);
