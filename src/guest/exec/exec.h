// SPDX-License-Identifier: Apache-2.0
/* exec.h — the Action Execution Server: what a sandbox does when it is asked. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct keep;
struct loop;

#define EXEC_NO_UID ((uid_t)-1)

struct exec_config {
    struct str listen;              /* address, see net/listen.h */
    struct str working_dir;         /* absolute: where shells start, root of relative paths */
    struct str username;            /* who shells run as; empty: as this process does */
    uid_t uid;                      /* of username when it is made; owner of new files, when we are
                                     * root; EXEC_NO_UID: 1000, and whoever runs commands */
    struct str git_name, git_email; /* of commits; empty: as git finds them */
    const char *viewer_url;     /* the file that tells where the file viewer is; "": no viewer */
    const char *const *plugins; /* names, as asked for; NULL at the end */
    struct str session_key;     /* X-Session-API-Key; empty: none */
    uint64_t soft_timeout_ms;
    const char *const *envp;
    struct keep *keep; /* what pid 1 holds for us; NULL: there is none of ours */
    int ready_fd;      /* gets one byte when the server listens; -1: nobody waits; taken over */
};

/* Serves until SIGTERM or SIGINT. *ret_served tells, after a failure too, whether it came so far.
 */
fallible exec_run(struct loop *loop, const struct exec_config *config, bool *ret_served);

/* "action-server" and what follows it on the command line; gives the exit code. Also understands
 * the line foreign clients send (python -u -m openhands.runtime.action_execution_server …). */
int exec_main(int argc, char **argv, const char *const *envp);
/* Is this that foreign line? Gives the index behind the module's name, or 0. */
int exec_foreign_args(int argc, char **argv);
