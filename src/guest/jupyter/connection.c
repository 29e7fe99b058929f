// SPDX-License-Identifier: Apache-2.0
/* connection.c — see connection.h. */
#include "guest/jupyter/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/rng.h"
#include "guest/stale/stale.h"
#include "guest/proc/proc.h"

void connection_path(const struct connection *c, int socket, char out[CONN_PATH_MAX])
{
    snprintf(out, CONN_PATH_MAX, "%.90s/k-%d", c->dir, socket);
}

static void put_file(const struct connection *c, struct buf *out)
{
    struct jw w;
    char base[CONN_PATH_MAX + 2];

    snprintf(base, sizeof base, "%s/k", c->dir);
    jw_init(&w, out, JW_ASCII);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "transport", "ipc"); /* sockets are "<ip>-<port>" */
        jw_cstr(&w, "ip", base);
        jw_int(&w, "shell_port", CONN_SHELL);
        jw_int(&w, "iopub_port", CONN_IOPUB);
        jw_int(&w, "stdin_port", CONN_STDIN);
        jw_int(&w, "control_port", CONN_CONTROL);
        jw_int(&w, "hb_port", CONN_HB);
        jw_cstr(&w, "key", c->key);
        jw_cstr(&w, "signature_scheme", "hmac-sha256");
        jw_cstr(&w, "kernel_name", "");
    }
}

static fallible write_file(struct connection *c, const struct proc_user *user)
{
    own_done(buf) text;
    int fd = c->hold_fd = open(c->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    buf_init(&text, 4096);
    if (fd < 0)
        return err_sys("create '%s'", c->file);
    stale_hold(fd);
    put_file(c, &text);
    TRY(buf_check(&text));
    TRY(fd_write_all(fd, buf_str(&text)));
    if (user && (fchown(fd, user->uid, user->gid) < 0 || chown(c->dir, user->uid, user->gid) < 0))
        return err_sys("give '%s' to '%s'", c->dir, user->name);
    return NULL;
}

fallible connection_init(struct connection *c, const char *run_dir, struct rng *rng,
                         const struct proc_user *user)
{
    char name[RNG_HEX_LEN + 1];

    *c = (struct connection){.hold_fd = -1};
    rng_hex(rng, c->key);
    rng_hex(rng, name);
    name[12] = '\0'; /* the path of a unix socket is short */
    int n = snprintf(c->dir, sizeof c->dir, "%s/" STALE_KERNEL "%s", run_dir, name);
    if (n < 0 || n > 84) {
        c->dir[0] = '\0';
        return err_new(ERR_INVALID, "'%s' is too long a place for sockets", run_dir);
    }
    if (mkdir(c->dir, 0700) < 0) { /* the name cannot be guessed; an existing one is refused */
        struct err *e = err_sys("create '%s'", c->dir);
        c->dir[0] = '\0';
        return e;
    }
    snprintf(c->file, sizeof c->file, "%.90s/connection.json", c->dir);
    struct err *e = write_file(c, user);
    if (e)
        connection_done(c);
    return e;
}

void connection_done(struct connection *c)
{
    char path[CONN_PATH_MAX];

    if (!c->dir[0])
        return;
    own_close(take_fd(&c->hold_fd));
    for (int i = CONN_SHELL; i <= CONN_HB; i++) {
        connection_path(c, i, path);
        unlink(path);
    }
    unlink(c->file);
    rmdir(c->dir); /* stays if another process put files in */
    c->dir[0] = '\0';
}
