// SPDX-License-Identifier: Apache-2.0
/* guest.c — croft-guest: what runs inside a sandbox. */
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/exec/exec.h"
#include "guest/init/init.h"
#include "guest/usage/usage.h"

int main(int argc, char **argv, char **envp)
{
    const char *const *env = (const char *const *)envp;

    if (argc >= 2 && strcmp(argv[1], "init") == 0)
        return init_main(argc - 2, argv + 2, envp);
    int foreign = exec_foreign_args(argc, argv);

    if (foreign)
        return exec_main(argc - foreign, argv + foreign, env);
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage_print(STDOUT_FILENO);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        fd_print(STDOUT_FILENO, "croft-guest " CROFT_VERSION "\n");
        return 0;
    }
    if (argc < 2) {
        usage_print(STDERR_FILENO);
        return 2;
    }
    int skip = strcmp(argv[1], "action-server") == 0 ? 2 : 1;
    return exec_main(argc - skip, argv + skip, env);
}
