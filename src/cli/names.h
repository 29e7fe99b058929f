// SPDX-License-Identifier: Apache-2.0
/* names.h — what there is of the things that a command's usage names, for a shell to complete. */
#pragma once

#include "cli/cli.h"

bool names_are_wanted(const struct cli_command *c);  /* such as SANDBOX */
bool places_are_wanted(const struct cli_command *c); /* "SANDBOX:" */
