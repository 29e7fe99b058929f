// SPDX-License-Identifier: Apache-2.0
/* init.h — pid 1 of a sandbox: reaps, forwards signals, keeps what must outlive the server, and
 * starts that again when it dies.
 *
 * It holds the inbound socket, the terminals of the shells, and the forker that forks everything
 * else; it answers CONNECT on a socket of its own. It also works as an ordinary process. */
#pragma once

/* "init" and what follows it on the command line; gives the exit code. */
int init_main(int argc, char **argv, char **envp);
