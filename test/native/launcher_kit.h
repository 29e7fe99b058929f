// SPDX-License-Identifier: Apache-2.0
/* launcher_kit.h — a launcher with a small policy, and a server that may be anything but honest. */
#pragma once

#include "host/launcher/launcher.h"

struct rig {
    struct launcher_policy policy;
    char state[4200], shared[300], mine[300];
    int sock;
    pid_t pid;
    unsigned fds;
    int ready, control; /* of the last start */
};

/* Root 0 is <dir>/shared, read-only or as a copy; root 1 is <dir>/mine, all ways; image 0 is `/`.
 */
void rig_open(struct rig *r, unsigned spares);
/* The same in two steps, for those who change the policy. Orphans become the test's children. */
void rig_prepare(struct rig *r, unsigned spares);
void rig_fork(struct rig *r);
/* SIGKILL, and the server's end closed. */
void rig_kill(struct rig *r);
/* Reaps the sandboxes of launchers that were killed; all must be dead. */
void rig_reap(void);
void rig_close(struct rig *r); /* the launcher must end well and leave nothing */

/* One request to a sandbox's socket, by path as the proxy does; what it answers begins with 200. */
void rig_check_answers(const struct rig *r, const char *id);
/* The same of a request of the caller's; the answer, which holds part, is short and goes to text.
 */
void rig_check_answer(const struct rig *r, const char *id, const char *request, const char *part,
                      char *text, size_t size);
/* Asks for one sandbox and wants it done; the answer, without its descriptors. */
struct native_reply rig_tell(struct rig *r, enum native_op op, const char *id);
struct native_request rig_request(enum native_op op, const char *id);
/* Sends and waits for the answer; received descriptors in fds, -1 where none. */
void rig_ask(struct rig *r, const struct native_request *req, const int *send, size_t count,
             struct native_reply *ret_reply, int ret_fds[2]);
/* An action server in a sandbox of this name; waits until it listens. */
void rig_start(struct rig *r, const char *id);
int rig_block(const char *const *argv, const char *const *env); /* sealed */
/* fd: -1: none. The launcher's n-th call from here on fails, with fault_share(); false: it hung up.
 */
bool rig_ask_with_fault(struct rig *r, unsigned n, const struct native_request *req, int fd,
                        struct native_reply *ret_reply);
/* Killed by an allocation that failed, or hung up because it could not answer: the next one puts it
 * right. */
void rig_renew(struct rig *r);
/* Asks and checks: done, or refused with this code and a text that holds part. */
void rig_ok(struct rig *r, const struct native_request *req);
void rig_refused(struct rig *r, const struct native_request *req, const int *send, size_t count,
                 enum err_code code, const char *part);
/* Until a process waits in this system call, having done what it had to. */
void rig_wait_call(pid_t pid, long call);
