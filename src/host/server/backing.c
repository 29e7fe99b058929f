// SPDX-License-Identifier: Apache-2.0
/* backing.c — see backing.h. */
#include "host/server/backing.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/config/settings.h"
#include "host/server/layout.h"
#include "sandbox/backend.h"

bool backing_is_native(const struct settings *s)
{
    return str_eq(s->backend, STR("native"));
}

fallible backing_check(const struct settings *s)
{
    if (backing_is_native(s))
        return NULL;
    if (s->mount_count)
        return err_new(ERR_INVALID, "[mount." STR_FMT "] needs backend 'native'",
                       STR_ARG(s->mounts[0].name));
    if (s->pool_count)
        return err_new(ERR_INVALID, "[pool." STR_FMT "] needs backend 'native'%s",
                       STR_ARG(s->pools[0].name),
                       str_eq(s->backend, STR("remote")) ? "; the other server has pools" : "");
    return NULL;
}

/* Rows of one backend mean nothing to another: to it, all their sandboxes would be gone. States
 * from before there was a choice are native. */
fallible backing_claim(const struct layout *l, struct str backend)
{
    own_done(buf) was;
    char path[sizeof l->own + 10];

    buf_init(&was, 64);
    snprintf(path, sizeof path, "%s/backend", l->own);
    struct err *e = fd_read_file(path, &was);
    bool missing = e && err_code(e) == ERR_NOT_FOUND;
    if (e && !missing)
        return e;
    err_free(e);
    if (missing)
        buf_add(&was, access(l->rows, F_OK) == 0 ? STR("native") : backend);
    struct str name = str_trim(buf_str(&was));
    if (!str_eq(name, backend))
        return err_new(ERR_CONFLICT,
                       "the sandboxes of state directory '%s' are of backend '" STR_FMT
                       "': say --backend " STR_FMT ", or name another directory with --state",
                       l->state, STR_ARG(name), STR_ARG(name));
    own_fd dir = open(l->own, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys("open '%s'", l->own);
    return missing ? fd_replace_file(dir, "backend", backend, 0600) : NULL;
}

fallible backing_lend(struct backing *b, struct str backend, struct str guest,
                      struct sbx_host *host)
{
    if (!str_eq(backend, STR("local")))
        return NULL;
    own_fd fd = memfd_create("croft-guest", MFD_CLOEXEC);
    if (fd < 0)
        return err_sys("make a file for croft-guest");
    TRY(fd_write_all(fd, guest));
    host->guest_fd = b->guest = take_fd(&fd);
    return NULL;
}

void backing_close(struct backing *b)
{
    own_close_p(&b->guest);
}
