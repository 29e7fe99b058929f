// SPDX-License-Identifier: Apache-2.0
/* scratch.c — see scratch.h. */
#include "host/bench/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/kernel/sys.h"
#include "host/tree/tree.h"

#define PARENT_MAX   40
#define HANDED_MAX   8
#define JANITOR_WORD 3
#define POLITE_MS    600000 /* for a server that was asked to end, and has sandboxes to end */
#define TRIES        50     /* of what another process' death may hold up */
#define PAUSE_MS     100    /* between them */

static void pause_a_moment(void)
{
    struct pollfd none = {.fd = -1};

    poll(&none, 1, PAUSE_MS);
}

/* --- the janitor --- */

static void end_handed(int pidfd)
{
    sys_pidfd_kill(pidfd, SIGTERM);
    struct err *e = fd_wait(pidfd, POLLIN, POLITE_MS);
    if (!e)
        return;
    err_free(e);
    sys_pidfd_kill(pidfd, SIGKILL);
    err_free(fd_wait(pidfd, POLLIN, POLITE_MS)); /* a process in the kernel's hands is not ours */
}

static _Noreturn void be_janitor(const struct scratch *s, int word)
{
    int handed[HANDED_MAX], fds[1];
    size_t count = 0, n = 0, got = 0;
    char byte;

    for (;;) { /* until no process holds the other end */
        struct err *e = fd_recv(word, &byte, 1, &n, fds, 1, &got);
        bool over = e || n == 0;
        err_free(e);
        if (over)
            break;
        if (got && count < HANDED_MAX)
            handed[count++] = fds[0];
    }
    while (count > 0)
        end_handed(handed[--count]);
    for (unsigned i = 0; i < TRIES; i++) {
        struct err *e = tree_remove(AT_FDCWD, s->dir);
        if (!e)
            _exit(0);
        err_free(e);
        pause_a_moment();
    }
    _exit(1);
}

/* It holds nothing of the bench's: another's end of a pipe in its hands would be one too many. */
static void leave_everybody(int word)
{
    static const int deaf[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP};

    setsid();
    dup3(word, JANITOR_WORD, O_CLOEXEC); /* the same number, if it has it: then it stays */
    sys_close_range(JANITOR_WORD + 1, ~0u, 0);
    for (size_t i = 0; i < ARRAY_LEN(deaf); i++)
        signal(deaf[i], SIG_IGN);
}

/* --- the bench's side --- */

fallible scratch_open(struct scratch *s, const char *parent)
{
    int pair[2];

    *s = (struct scratch){.word = -1, .janitor = -1};
    if (parent[0] != '/' || strlen(parent) > PARENT_MAX || strpbrk(parent, ",:"))
        return err_new(ERR_INVALID,
                       "directory for temporary files '%.100s': wanted an absolute path of at "
                       "most %d letters without commas and colons",
                       parent, PARENT_MAX);
    snprintf(s->dir, sizeof s->dir, "%s/croft-bench-XXXXXX", parent);
    if (!mkdtemp(s->dir) || chmod(s->dir, 0755) < 0)
        return err_sys("make directory '%s'", s->dir);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
        (s->janitor = fork()) < 0) {
        struct err *e = err_sys("start a janitor");
        rmdir(s->dir);
        return e;
    }
    if (s->janitor == 0) {
        leave_everybody(pair[1]);
        be_janitor(s, JANITOR_WORD);
    }
    close(pair[1]);
    s->word = pair[0];
    return NULL;
}

fallible scratch_hand(const struct scratch *s, int pidfd)
{
    return fd_send(s->word, STR("p"), &pidfd, 1);
}

fallible scratch_close(struct scratch *s)
{
    int status = 0;

    if (s->janitor <= 0)
        return NULL;
    close(s->word);
    waitpid(s->janitor, &status, 0);
    s->janitor = -1;
    if (status)
        return err_new(ERR_INTERNAL, "directory '%s' could not be removed", s->dir);
    return NULL;
}
