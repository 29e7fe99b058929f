// SPDX-License-Identifier: Apache-2.0
/* gitconf.c — --git-user-name and --git-user-email: into ~/.gitconfig of the user of commands.
 *
 * Added at its end, where it counts, and not twice; the file is git's own format, so git need not
 * be there yet. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cfg.h"
#include "base/fd.h"
#include "guest/exec/start.h"

#define FILE_BYTES (1u << 20)

static fallible put_value(struct buf *out, const char *name, struct str value)
{
    if (!value.len)
        return NULL;
    buf_addf(out, "\t%s = \"", name);
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.p[i] < ' ')
            return err_new(ERR_INVALID, "the %s holds a control character", name);
        if (value.p[i] == '"' || value.p[i] == '\\')
            buf_add_char(out, '\\');
        buf_add_char(out, value.p[i]);
    }
    buf_add_cstr(out, "\"\n");
    return NULL;
}

static fallible gitconf_append(int home, struct str text, const struct start *s)
{
    own_done(buf) old;
    own_fd fd =
        openat(home, ".gitconfig", O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);

    buf_init(&old, FILE_BYTES);
    if (fd < 0)
        return err_sys("open '.gitconfig'");
    TRY(fd_read_all(fd, &old));
    if (str_find(buf_str(&old), text) >= 0)
        return NULL;
    if (s->other && fchown(fd, s->user.uid, s->user.gid) < 0)
        return err_sys("chown '.gitconfig'");
    if (old.len && old.p[old.len - 1] != '\n')
        TRY(fd_write_all(fd, STR("\n")));
    return fd_write_all(fd, text);
}

fallible start_git(struct start *s, const struct exec_config *c)
{
    own_done(buf) text;
    const char *path = cfg_env_get(s->env, "HOME");

    buf_init(&text, 4096);
    if (!c->git_name.len && !c->git_email.len)
        return NULL;
    buf_add_cstr(&text, "[user]\n");
    TRY(put_value(&text, "name", c->git_name));
    TRY(put_value(&text, "email", c->git_email));
    TRY(buf_check(&text));
    own_fd home = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (home < 0)
        return err_sys("open the home directory '%.200s'", path ? path : "");
    return gitconf_append(home, buf_str(&text), s);
}
