// SPDX-License-Identifier: Apache-2.0
/* identity.c — see identity.h. */
#include "host/launcher/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "sandbox/native/msg.h"

#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static const char *const files[] = {"machine-id", "hostname", "hosts"};

bool identity_fits(const int *lowers, size_t count)
{
    struct stat st;

    for (size_t i = 0; i < count; i++)
        if (fstatat(lowers[i], "etc", &st, AT_SYMLINK_NOFOLLOW) == 0)
            return S_ISDIR(st.st_mode);
    return true;
}

static fallible identity_put(int etc, const char *name, struct str text)
{
    own_fd fd = openat(etc, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

    if (fd < 0)
        return err_sys("make '/etc/%s'", name);
    return err_wrap(fd_write_all(fd, text), "/etc/%s", name);
}

static fallible put_names(int etc, const char *hostname)
{
    char text[2 * NATIVE_ID_MAX + 128];
    int n = snprintf(text, sizeof text, "%s\n", hostname);
    TRY(identity_put(etc, files[1], str_n(text, (size_t)n)));
    n = snprintf(text, sizeof text,
                 "127.0.0.1\tlocalhost\n127.0.1.1\t%s\n"
                 "::1\tlocalhost ip6-localhost ip6-loopback\n",
                 hostname);
    return identity_put(etc, files[2], str_n(text, (size_t)n));
}

static fallible make_dir(int parent, const char *name, int *ret_dir)
{
    own_fd dir = -1;

    if (mkdirat(parent, name, 0755) == 0 || errno == EEXIST)
        dir = openat(parent, name, DIR_FLAGS);
    if (dir < 0)
        return err_sys("make its names");
    *ret_dir = take_fd(&dir);
    return NULL;
}

static fallible put_all(int layer, const char *hostname, const char *machine_id)
{
    char line[64];
    own_fd etc = -1;

    TRY(make_dir(layer, "etc", &etc));
    int n = snprintf(line, sizeof line, "%s\n", machine_id);
    TRY(identity_put(etc, files[0], str_n(line, (size_t)n)));
    return put_names(etc, hostname);
}

fallible identity_make(int parent, const char *name, const char *hostname, const char *machine_id,
                       int *ret_layer)
{
    mode_t before =
        umask(022); /* the launcher's may be stricter; these are for every user inside */
    own_fd layer = -1;
    struct err *e = make_dir(parent, name, &layer);

    if (!e)
        e = put_all(layer, hostname, machine_id);
    umask(before);
    if (!e)
        *ret_layer = take_fd(&layer);
    return e;
}

static int open_etc(int parent, const char *name)
{
    own_fd layer = openat(parent, name, DIR_FLAGS);

    return layer < 0 ? -1 : openat(layer, "etc", DIR_FLAGS);
}

fallible identity_rename(int parent, const char *name, const char *hostname)
{
    own_fd etc = open_etc(parent, name);

    if (etc < 0)
        return errno == ENOENT ? NULL : err_sys("open its names");
    return put_names(etc, hostname);
}

void identity_drop(int parent, const char *name)
{
    own_fd layer = openat(parent, name, DIR_FLAGS);
    own_fd etc = layer < 0 ? -1 : openat(layer, "etc", DIR_FLAGS);

    for (size_t i = 0; etc >= 0 && i < ARRAY_LEN(files); i++)
        unlinkat(etc, files[i], 0);
    if (layer >= 0)
        unlinkat(layer, "etc", AT_REMOVEDIR);
    unlinkat(parent, name, AT_REMOVEDIR);
}
