// SPDX-License-Identifier: Apache-2.0
/* given.c — see given.h. */
#include "host/run/given.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

/* Refuses descriptors that reach beyond their bytes: a directory reaches the machine's files, and a
 * socket that can be connected anew its network. */
static fallible check_one(int fd, const char *name)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL), domain = 0, type = 0;
    socklen_t n = sizeof domain, m = sizeof type;

    if (fd < 0)
        return NULL; /* none is given, it gets /dev/null */
    if (flags < 0 || fstat(fd, &st) < 0)
        return err_sys("standard %s", name);
    if (S_ISDIR(st.st_mode) || flags & O_PATH)
        return err_new(ERR_INVALID,
                       "standard %s is a directory: a sandbox must not have it; take </dev/null",
                       name);
    if (S_ISSOCK(st.st_mode) && (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 ||
                                 getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) < 0 ||
                                 domain != AF_UNIX || type == SOCK_DGRAM))
        return err_new(ERR_INVALID,
                       "standard %s is a socket of the network: a sandbox must not have it; put a "
                       "pipe between, as in 'cat | croft run ... | cat'",
                       name);
    return NULL;
}

fallible given_check(const int fds[GIVEN_FDS])
{
    static const char *const names[GIVEN_FDS] = {"input", "output", "error"};

    for (size_t i = 0; i < GIVEN_FDS; i++)
        TRY(check_one(fds[i], names[i]));
    return NULL;
}

void given_note(struct given *g, const int fds[GIVEN_FDS])
{
    *g = (struct given){0};
    for (size_t i = 0; i < GIVEN_FDS; i++) {
        g->fds[i] = fds[i];
        g->flags[i] = fcntl(fds[i], F_GETFL);
        g->is_terminal[i] = g->flags[i] >= 0 && tcgetattr(fds[i], &g->modes[i]) == 0;
    }
}

static bool is_ours(int terminal)
{
    pid_t group = tcgetpgrp(terminal);

    return group < 0 || group == getpgrp(); /* < 0: in none that can be seen from here */
}

/* Field by field: what lies between them is not the kernel's. */
static bool is_same(const struct termios *a, const struct termios *b)
{
    return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
           a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof a->c_cc) == 0;
}

/* --- what reads our output --- */

/* Opened to read keys: by /dev/tty, or for reading alone. A descriptor that a shell opened for a
 * whole line ("exec 3>&1") is neither. */
static bool is_for_keys(pid_t pid, int fd)
{
    char path[64], text[256];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
    ssize_t n = readlink(path, text, sizeof text);
    struct str to = str_n(text, n > 0 ? (size_t)n : 0);
    if (str_eq(to, STR("/dev/tty")))
        return true;
    if (!str_starts(to, STR("/dev/pts/")) && !str_starts(to, STR("/dev/tty")))
        return false;
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)pid, fd);
    own_fd info = open(path, O_RDONLY | O_CLOEXEC);
    n = info >= 0 ? read(info, text, sizeof text - 1) : -1;
    text[n > 0 ? n : 0] = '\0';
    const char *flags = strstr(text, "flags:");
    return flags && (strtoul(flags + strlen("flags:"), NULL, 8) & O_ACCMODE) == O_RDONLY;
}

/* more(1) reads them from its standard error. */
static bool reads_keys(pid_t pid)
{
    char path[64], comm[16] = "";

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    own_fd name = open(path, O_RDONLY | O_CLOEXEC);
    if (name >= 0 && read(name, comm, sizeof comm - 1) > 0 && strcmp(comm, "more\n") == 0)
        return true;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    if (!d)
        return errno != ENOENT && errno != ESRCH; /* another user's: it may */
    bool any = false;
    for (struct dirent *e; !any && (e = readdir(d));)
        any = e->d_name[0] != '.' && is_for_keys(pid, atoi(e->d_name));
    closedir(d);
    return any;
}

/* Is a pager in our line of commands, "croft run ... | less"? The terminal's modes are its own
 * then. */
static bool has_pager(void)
{
    DIR *d = opendir("/proc");
    bool any = !d; /* we cannot tell */

    for (struct dirent *e; d && !any && (e = readdir(d));) {
        pid_t pid = (pid_t)atoi(e->d_name);
        any = pid > 0 && pid != getpid() && getpgid(pid) == getpgrp() && reads_keys(pid);
    }
    if (d)
        closedir(d);
    return any;
}

void given_restore(const struct given *g)
{
    struct stat out;
    struct termios now;
    bool piped = fstat(g->fds[1], &out) == 0 && S_ISFIFO(out.st_mode);

    for (size_t i = 0; i < GIVEN_FDS; i++) {
        if (g->flags[i] >= 0 && fcntl(g->fds[i], F_GETFL) != g->flags[i])
            fcntl(g->fds[i], F_SETFL, g->flags[i]);
        if (!g->is_terminal[i] || tcgetattr(g->fds[i], &now) < 0 || is_same(&now, &g->modes[i]) ||
            !is_ours(g->fds[i]))
            continue;
        /* Modes without lines may have been a pager's that has ended since. */
        if (!piped || (g->modes[i].c_lflag & ICANON && !has_pager()))
            tcsetattr(g->fds[i], TCSANOW, &g->modes[i]);
    }
}
