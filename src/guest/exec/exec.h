// SPDX-License-Identifier: Apache-2.0
/* exec.h — the Action Execution Server: what a sandbox does when it is asked. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

struct held;
struct loop;

#define EXEC_NO_UID ((uid_t)-1)

struct exec_config {
    struct str listen;              /* address, see net/listen.h */
    struct str working_dir;         /* absolute: where shells start, root of relative paths */
    struct str username;            /* user of shells; empty: that of this process */
    uid_t uid;                      /* of username when it is made; owner of new files, when we are
                                     * root; EXEC_NO_UID: 1000, and the user of commands */
    struct str user;                /* USER[:GROUP]: instead of both, a user that need not have a
                                     * line in passwd; empty: none */
    struct str git_name, git_email; /* of commits; empty: as git finds them */
    const char *viewer_url;     /* the file that tells where the file viewer is; "": no viewer */
    const char *const *plugins; /* names, as asked for; NULL at the end */
    struct str session_key;     /* X-Session-API-Key; empty: none */
    uint64_t soft_timeout_ms;
    const char *const *envp;
    struct held *held; /* what pid 1 holds for us; NULL: there is none of ours */
    int ready_fd;      /* gets one byte when the server listens; -1: none; taken over */
};

struct exec;
fallible exec_new(struct loop *loop, struct exec **ret_exec);
/* Serves until SIGTERM or SIGINT, once, or ends the process with HELD_IDLE when it is idle and pid
 * 1 has its socket. *ret_served tells, after a failure too, whether it came so far. */
fallible exec_run(struct exec *e, const struct exec_config *config, bool *ret_served);
void exec_free(struct exec *e);
OWNABLE(exec)

/* For --help, of the guest and of the host's command. */
#define EXEC_OPTIONS                                                                               \
    "  PORT                TCP port; on loopback, or everywhere with SESSION_API_KEY\n"            \
    "  ADDRESS             127.0.0.1:60000, unix:/path, or fd:3 for an open socket\n"              \
    "  --working-dir DIR   absolute; where shells start; made if missing\n"                        \
    "                      [the current directory]\n"                                              \
    "  --username NAME     user of the commands; root makes a missing user and gives\n"            \
    "                      it the working directory; others can name only themselves\n"            \
    "                      [the user of this process]\n"                                           \
    "  --user-id N         number of a user that is made; owner of new files [1000]\n"             \
    "  --user USER[:GROUP] user of the commands, by name or number; none is made\n"                \
    "  --git-user-name NAME, --git-user-email ADDRESS\n"                                           \
    "                      of commits, written into ~/.gitconfig\n"                                \
    "  --plugins NAME ...  jupyter, agent_skills, vscode\n"                                        \
    "                      [the first two, started when first used]\n"                             \
    "  --no-enable-browser, --enable-browser, --browsergym-eval-env ID\n"                          \
    "                      accepted, not used yet\n"                                               \
    "  --ready-fd N        an open descriptor: gets one byte when the server listens\n"            \
    "  --viewer-url FILE   gets the address of the file viewer; '' for no viewer\n"                \
    "                      [/tmp/oh-server-url]\n"                                                 \
    "\nenvironment:\n"                                                                             \
    "  SESSION_API_KEY, NO_CHANGE_TIMEOUT_SECONDS [10], LOG_LEVEL [INFO],\n"                       \
    "  SU_TO_USER [true], SANDBOX_GROUP_ID [root], RUNTIME_MEMORY_MONITOR [false],\n"              \
    "  INIT_PLUGIN_TIMEOUT [120], CROFT_KERNEL (a kernel by name), VSCODE_PORT,\n"                 \
    "  CROFT_VSCODE, ENABLE_AUTO_LINT [false]: edits say what they broke\n"                        \
    "\nexit:\n"                                                                                    \
    "  0 stopped by a signal, 1 failed, 2 bad argument, 3 could not start\n"

/* "action-server" and what follows it on the command line; gives the exit code. Also understands
 * the line foreign clients send (python -u -m openhands.runtime.action_execution_server …). */
int exec_main(int argc, char **argv, const char *const *envp);
/* May the server of this command line be made by the first connection? Not if it has to start
 * plugins, or if something in the line is wrong or may turn out to be. */
bool exec_may_wait(const char *const *argv, const char *const *envp);
/* Is this that foreign line? Gives the index behind the module's name, or 0. */
int exec_foreign_args(int argc, char **argv);
