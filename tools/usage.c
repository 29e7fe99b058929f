// SPDX-License-Identifier: Apache-2.0
/* usage.c — prints the help of croft-guest, which carries it packed; see guest/usage. */
#include <stdio.h>

#include "guest/exec/exec.h"

int main(void)
{
    fputs("usage: croft-guest [action-server] PORT|ADDRESS [OPTION ...]\n" EXEC_OPTIONS "\n"
          "usage: croft-guest init [OPTION ...] -- SERVER-ARGS\n"
          "       croft-guest init --exec [--cwd DIR] [--user USER[:GROUP]] -- COMMAND\n"
          "       croft-guest init --await --control-fd N [OPTION ...]\n"
          "Pid 1 of a sandbox, or of a few processes elsewhere. N is an open descriptor:\n"
          "  --listen-fd N       the server's listening socket; SERVER-ARGS have no address\n"
          "  --ready-fd N        gets one byte when the server listens\n"
          "  --end-fd N          gets the exit code, a byte, when pid 1 alone is left\n"
          "  --connect-fd N      a listening socket for CONNECT 127.0.0.1:PORT\n"
          "  --control-fd N      a connection of the host: byte 'p' is answered 'P'\n"
          "  --await             what to run comes with a claim, by that connection\n"
          "  --work-cgroup-fd N  a cgroup of shells and commands, or cgroup.procs; several\n"
          "  --oom-fd N          its memory.events or memory.oom_control; several\n"
          "  --memory-fd N       its memory.current or memory.usage_in_bytes\n"
          "\n"
          "usage: croft-guest --version | --help\n",
          stdout);
    return fclose(stdout) ? 1 : 0;
}
