// SPDX-License-Identifier: Apache-2.0
/* shell_files.c — the private directory: command text in, report out.
 *
 * Other users may pass through the directory but not list it. So a shell of another user inside the
 * session (su) can report too, and the names cannot be guessed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/rng.h"
#include "guest/stale/stale.h"
#include "guest/shell/shell_inner.h"

#define COMMAND_KEEP 65536

static fallible make_report_fifo(struct shell_files *f)
{
    if (mkfifo(f->report, 0600) < 0 || chmod(f->report, 0666) < 0)
        return err_sys("make '%s'", f->report);
    int fd = open(f->report, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_sys("open '%s'", f->report);
    f->report_fd = fd;
    return NULL;
}

static fallible write_hook(struct shell_files *f, const char *path)
{
    own_done(buf) text;
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

    buf_init(&text, 1 << 14);
    if (fd < 0 || fchmod(fd, 0644) < 0)
        return err_sys("open '%s'", path);
    shell_script_hook(&text, f);
    TRY(buf_check(&text));
    return fd_write_all(fd, buf_str(&text));
}

/* Last, and whole at once: a bash that finds it uses the others. */
static fallible make_hook(struct shell_files *f)
{
    char temp[sizeof f->hook + 1];

    snprintf(temp, sizeof temp, "%s~", f->hook);
    struct err *e = write_hook(f, temp);
    if (!e && rename(temp, f->hook) < 0)
        e = err_sys("make '%s'", f->hook);
    if (e)
        unlink(temp);
    return e;
}

static fallible make_files(struct shell_files *f)
{
    TRY(make_report_fifo(f));
    int fd = open(f->command, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_sys("open '%s'", f->command);
    own_close(f->command_fd);
    f->command_fd = fd;
    stale_hold(fd);
    if (fchmod(fd, 0644) < 0) /* whatever the umask is */
        return err_sys("chmod '%s'", f->command);
    return make_hook(f);
}

void shell_files_name(struct shell_files *f, const char *dir, const char *token)
{
    const struct {
        char *to, letter;
    } names[] = {{f->report, 'r'}, {f->command, 'c'}, {f->env, 'e'},
                 {f->jobs, 'j'},   {f->cwd, 'w'},     {f->hook, 'h'}};

    snprintf(f->dir, sizeof f->dir, "%s", dir);
    snprintf(f->token, sizeof f->token, "%.16s", token);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        snprintf(names[i].to, sizeof f->report, "%s/%c%s", f->dir, names[i].letter, f->token);
}

fallible shell_files_pick(struct shell_files *f, const char *base, struct rng *rng)
{
    char name[RNG_HEX_LEN + 1], token[RNG_HEX_LEN + 1], dir[256];

    rng_hex(rng, name);
    rng_hex(rng, token);
    f->report_fd = f->command_fd = -1;
    if (!base)
        base = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
    if (strlen(base) > 128 || strpbrk(base, "'\"$`\\\n"))
        return err_new(ERR_INVALID, "shell state directory '%s' is not usable", base);
    snprintf(dir, sizeof dir, "%s/" STALE_SHELL "%.12s", base, name);
    shell_files_name(f, dir, token);
    return NULL;
}

fallible shell_files_make(struct shell_files *f, uid_t uid)
{
    if (mkdir(f->dir, 0711) < 0 || chmod(f->dir, 0711) < 0)
        return err_sys("make '%s'", f->dir);
    struct err *e = NULL;
    if (uid != geteuid() && chown(f->dir, uid, (gid_t)-1) < 0)
        e = err_sys("chown '%s'", f->dir);
    if (!e)
        e = make_files(f);
    if (e)
        shell_files_close(f);
    return e;
}

bool shell_files_whole(struct shell_files *f, bool command)
{
    struct stat st;

    if (f->report_inode == 0)
        f->report_inode = fstat(f->report_fd, &st) == 0 ? st.st_ino : 0;
    if (stat(f->report, &st) < 0 || st.st_ino != f->report_inode)
        return false;
    return !command || (fstat(f->command_fd, &st) == 0 && st.st_nlink > 0);
}

fallible shell_files_mend(struct shell_files *f)
{
    own_close(take_fd(&f->report_fd));
    f->report_inode = 0;
    unlink(f->report);
    unlink(f->command);
    if (mkdir(f->dir, 0711) < 0 && errno != EEXIST)
        return err_sys("make '%s' again", f->dir);
    return make_files(f);
}

fallible shell_files_command(struct shell_files *f, struct str text)
{
    size_t done = 0;

    while (done < text.len) {
        ssize_t n = pwrite(f->command_fd, text.p + done, text.len - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_sys("write command text");
        done += (size_t)n;
    }
    /* it ends in NUL; what a longer one left behind that need not be kept long */
    if (f->command_len > COMMAND_KEEP && ftruncate(f->command_fd, (off_t)text.len) < 0)
        return err_sys("write command text");
    f->command_len = text.len;
    return NULL;
}

void shell_files_close(struct shell_files *f)
{
    if (f->dir[0]) {
        unlink(f->report);
        unlink(f->command);
        unlink(f->env);
        unlink(f->cwd);
        unlink(f->jobs);
        unlink(f->hook);
        if (rmdir(f->dir) == 0 || errno != ENOTEMPTY)
            f->dir[0] =
                '\0'; /* else a bash that was killed just now wrote: again when it is reaped */
    }
    own_close(f->report_fd);
    own_close(f->command_fd);
    f->report_fd = f->command_fd = -1;
}
