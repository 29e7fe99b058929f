// SPDX-License-Identifier: Apache-2.0
/* pty.c — see pty.h. */
#include "test/pty.h"

#include <fcntl.h>
#include <pty.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/program.h"
#include "test/test.h"

#define SEEN_MAX (4u << 20)
#define ARGS_MAX 64

void pty_start(struct pty *p, const char *const *argv, unsigned rows, unsigned columns)
{
    const char *all[ARGS_MAX] = {"setsid", "--ctty"};
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    size_t n = 2;
    int slave;

    for (; *argv && n < ARGS_MAX - 1; argv++)
        all[n++] = *argv;
    CHECK(!*argv);
    buf_init(&p->seen, SEEN_MAX);
    CHECK_INT(openpty(&p->master, &slave, NULL, NULL, &size), 0);
    CHECK_INT(fcntl(p->master, F_SETFD, FD_CLOEXEC), 0);
    p->pid = program_start(
        &(struct program){.argv = all, .fds = (int[]){slave, slave, slave}, .fd_count = 3});
    close(slave);
}

void pty_type(struct pty *p, const char *text)
{
    CHECK_OK(fd_write_all(p->master, str_of(text)));
}

void pty_resize(struct pty *p, unsigned rows, unsigned columns)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};

    CHECK_INT(ioctl(p->master, TIOCSWINSZ, &size), 0);
}

static bool read_more(struct pty *p)
{
    char chunk[4096];
    ssize_t n = read(p->master, chunk, sizeof chunk);

    if (n <= 0) /* EIO when its last process has gone */
        return false;
    buf_add_mem(&p->seen, chunk, (size_t)n);
    CHECK_OK(buf_check(&p->seen));
    return true;
}

void pty_await(struct pty *p, const char *text)
{
    ptrdiff_t at;

    while ((at = str_find(buf_str(&p->seen), str_of(text))) < 0)
        if (!read_more(p))
            FAIL("it ended before '%s' came: %.*s", text, (int)p->seen.len, p->seen.p);
    buf_consume(&p->seen, (size_t)at + strlen(text));
}

int pty_end(struct pty *p)
{
    while (read_more(p))
        ;
    close(p->master);
    return program_wait(p->pid);
}
