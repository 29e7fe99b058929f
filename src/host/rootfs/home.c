// SPDX-License-Identifier: Apache-2.0
/* home.c — what useradd would have given the homes, but for one line.
 *
 * Debian's .bashrc runs dircolors at every start of a shell, which takes as long as all else a
 * shell does until its prompt (1.3 of 2.9 ms). Here dircolors runs once for all sandboxes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "host/rootfs/inner.h"

#define RC        ".bashrc"
#define RC_MAX    (1u << 20)
#define TABLE_MAX (32u << 10)
#define ASK_MS    2000
#define ASKS      "eval \"$(dircolors -b)\""
#define TERM_NAME "xterm-256color" /* of our shells; another terminal has another table */

static _Noreturn void be_dircolors(int host, int out)
{
    static const char *const argv[] = {"dircolors", "-b", NULL}, *const env[] = {"TERM=" TERM_NAME,
                                                                                 NULL};

    dup2(out, STDOUT_FILENO);
    fcntl(host, F_SETFD, 0); /* a script is found by it */
    syscall(SYS_execveat, host, "usr/bin/dircolors", argv, env, 0);
    _exit(127);
}

static fallible read_to_end(int fd, struct buf *into)
{
    for (ssize_t n = 1; n > 0;) {
        char *p = buf_reserve(into, 4096);
        if (!p)
            return err_new(ERR_TOO_LARGE, "more than a table");
        TRY(fd_wait(fd, POLLIN, ASK_MS));
        n = read(fd, p, 4096);
        if (n < 0)
            return err_sys("read");
        buf_commit(into, (size_t)n);
    }
    return NULL;
}

static fallible ask_dircolors(int host, struct buf *table)
{
    int ends[2], status = -1;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("pipe");
    own_fd in = ends[0], out = ends[1];
    pid_t pid = fork();
    if (pid < 0)
        return err_sys("fork");
    if (pid == 0)
        be_dircolors(host, out);
    own_close(take_fd(&out));
    struct err *e = read_to_end(in, table);
    if (e)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    if (!e && status != 0)
        e = err_new(ERR_NOT_FOUND, "no dircolors");
    return e;
}

/* An assignment, and no more than that. */
static bool is_table(struct str t)
{
    struct str head = STR("LS_COLORS='"), tail = STR("';\nexport LS_COLORS\n");

    return t.len >= head.len + tail.len && str_starts(t, head) && str_ends(t, tail) &&
           str_find_char(str_n(t.p + head.len, t.len - head.len - tail.len), '\'') < 0;
}

/* A file that asks for no table, or a machine that has none, stays as it is. */
static fallible put_table(int host, int home)
{
    own_done(buf) text, table, better;
    own_fd fd = openat(home, RC, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    buf_init(&text, RC_MAX);
    buf_init(&table, TABLE_MAX);
    buf_init(&better, 2 * RC_MAX);
    if (fd < 0)
        return NULL;
    TRY(fd_read_all(fd, &text));
    ptrdiff_t at = str_find(buf_str(&text), STR(ASKS));
    if (at < 0)
        return NULL;
    struct err *e = ask_dircolors(host, &table);
    bool good = !e && is_table(buf_str(&table));
    err_free(e); /* then every shell asks for itself */
    if (!good)
        return NULL;
    buf_add(&better, str_first(buf_str(&text), (size_t)at));
    buf_addf(&better, "case $TERM in " TERM_NAME ")\n" STR_FMT ";;*)" ASKS ";;esac",
             STR_ARG(buf_str(&table)));
    buf_add(&better, str_from(buf_str(&text), (size_t)at + sizeof ASKS - 1));
    TRY(buf_check(&better));
    if (unlinkat(home, RC, 0) < 0)
        return err_sys("replace '" RC "'");
    return take_write(home, RC, buf_str(&better), 0644);
}

fallible home_fill(int host, int layer, const char *home, uid_t uid, gid_t gid)
{
    static const char *const names[] = {RC, ".profile", ".bash_logout"};
    own_fd skel = openat(layer, "etc/skel", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    own_fd to = openat(layer, home, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (skel < 0)
        return errno == ENOENT ? NULL : err_sys("open '/etc/skel'");
    if (to < 0)
        return err_sys("open '/%s'", home);
    struct take_limits left = {RC_MAX, RC_MAX, 16};
    struct take t = {skel, to, NULL, &left};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        TRY(take_path(&t, names[i]));
    TRY(put_table(host, to));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (fchownat(to, names[i], uid, gid, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
            return err_sys("set the owner of '%s'", names[i]);
    return NULL;
}
