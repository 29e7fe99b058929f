// SPDX-License-Identifier: Apache-2.0
/* action_server.c — croft action-server: the guest's server, stand-alone. */
#include "cli/cli.h"
#include "guest/exec/exec.h"

static int action_server_run(struct cli *cli, int argc, char **argv)
{
    return exec_main(argc, argv, cli->envp);
}

CLI_COMMAND(action_server) = {
    .name = "action-server",
    .group = CLI_PROGRAMS,
    .summary = "run agents' actions for HTTP clients, without a sandbox",
    .usage = "PORT|ADDRESS [OPTION ...]",
    .help = "Serves /execute_action and its relatives as croft-guest does inside a sandbox.\n"
            "Here nothing is isolated: commands run as you, in the working directory. Root can\n"
            "name another user with --username: it is made if missing and gets that directory.\n"
            "Without SESSION_API_KEY in the environment it listens on loopback only.\n"
            "\n" EXEC_OPTIONS,
    .run = action_server_run,
};
