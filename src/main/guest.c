// SPDX-License-Identifier: Apache-2.0
/* guest.c — croft-guest: what runs inside a sandbox. */
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/exec/exec.h"
#include "guest/init/init.h"

static const char usage[] = "usage: croft-guest [action-server] PORT|ADDRESS [OPTION ...]\n"
                            "       croft-guest init [OPTION ...] -- SERVER-ARGS\n"
                            "       croft-guest --version | --help\n"
                            "'croft-guest action-server --help' lists the options, so does init.\n";

int main(int argc, char **argv, char **envp)
{
    const char *const *env = (const char *const *)envp;

    if (argc >= 2 && strcmp(argv[1], "init") == 0)
        return init_main(argc - 2, argv + 2, envp);
    int foreign = exec_foreign_args(argc, argv);

    if (foreign)
        return exec_main(argc - foreign, argv + foreign, env);
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fd_print(STDOUT_FILENO, "%s", usage);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        fd_print(STDOUT_FILENO, "croft-guest " CROFT_VERSION "\n");
        return 0;
    }
    if (argc < 2) {
        fd_print(STDERR_FILENO, "%s", usage);
        return 2;
    }
    int skip = strcmp(argv[1], "action-server") == 0 ? 2 : 1;
    return exec_main(argc - skip, argv + skip, env);
}
