// SPDX-License-Identifier: Apache-2.0
/* croft.c — the host program: everything is a sub-command, see src/cli/. */
#include "cli/cli.h"

int main(int argc, char **argv, char **envp)
{
    return cli_main(argc, argv, (const char *const *)envp);
}
