// SPDX-License-Identifier: Apache-2.0
/* croft.c — the host program: everything is a sub-command, see src/cli/. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "guest/exec/exec.h"

/* Under another name, or where a command should be: not behind `croft run --`. */
static int foreign_args(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    bool by_our_name = strcmp(slash ? slash + 1 : argv[0], "croft") == 0;

    return argc > 1 && by_our_name && cli_command_find(argv[1]) ? 0 : exec_foreign_args(argc, argv);
}

/* Where one is closed the next descriptor we open would be taken for it, and go into a sandbox. */
static bool fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return false;
    return true;
}

int main(int argc, char **argv, char **envp)
{
    if (!fill_standard())
        return CLI_FAILED;
    int foreign = argc > 0 ? foreign_args(argc, argv) : 0;

    if (foreign)
        return exec_main(argc - foreign, argv + foreign, (const char *const *)envp);
    return cli_main(argc, argv, (const char *const *)envp);
}
