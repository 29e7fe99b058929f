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
#include "base/rng.h"
#include "sandbox/native/msg.h"

#define ETC       IDENTITY_DIR "/etc"
#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

bool identity_fits(const int *lowers, size_t count)
{
    struct stat st;

    for (size_t i = 0; i < count; i++)
        if (fstatat(lowers[i], "etc", &st, AT_SYMLINK_NOFOLLOW) == 0)
            return S_ISDIR(st.st_mode);
    return true;
}

static fallible put(int etc, const char *name, struct str text)
{
    own_fd fd = openat(etc, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

    if (fd < 0)
        return err_sys("make '/etc/%s'", name);
    return err_wrap(fd_write_all(fd, text), "/etc/%s", name);
}

/* Of its life before; one that death tore is made anew. */
static fallible put_machine_id(int etc, struct rng *rng)
{
    char line[RNG_HEX_LEN + 2];
    struct stat st;

    if (fstatat(etc, "machine-id", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size == RNG_HEX_LEN + 1)
        return NULL;
    rng_hex(rng, line);
    line[RNG_HEX_LEN] = '\n';
    return put(etc, "machine-id", str_n(line, RNG_HEX_LEN + 1));
}

static fallible put_names(int etc, const char *hostname)
{
    char text[2 * NATIVE_ID_MAX + 128];
    int n = snprintf(text, sizeof text, "%s\n", hostname);
    TRY(put(etc, "hostname", str_n(text, (size_t)n)));
    n = snprintf(text, sizeof text,
                 "127.0.0.1\tlocalhost\n127.0.1.1\t%s\n"
                 "::1\tlocalhost ip6-localhost ip6-loopback\n",
                 hostname);
    return put(etc, "hosts", str_n(text, (size_t)n));
}

fallible identity_make(int box, const char *hostname, struct rng *rng, int *ret_layer)
{
    mode_t before = umask(022); /* ours may be stricter; these are for everybody inside */
    bool made = (mkdirat(box, IDENTITY_DIR, 0755) == 0 || errno == EEXIST) &&
                (mkdirat(box, ETC, 0755) == 0 || errno == EEXIST);
    own_fd etc = made ? openat(box, ETC, DIR_FLAGS) : -1;
    struct err *e = etc < 0 ? err_sys("make its names") : put_machine_id(etc, rng);

    if (!e)
        e = put_names(etc, hostname);
    umask(before);
    TRY(e);
    own_fd layer = openat(box, IDENTITY_DIR, DIR_FLAGS);
    if (layer < 0)
        return err_sys("open its names");
    *ret_layer = take_fd(&layer);
    return NULL;
}

fallible identity_rename(int box, const char *hostname)
{
    own_fd etc = openat(box, ETC, DIR_FLAGS);

    if (etc < 0)
        return errno == ENOENT ? NULL : err_sys("open its names");
    return put_names(etc, hostname);
}

void identity_empty(int box)
{
    static const char *const names[] = {ETC "/machine-id", ETC "/hostname", ETC "/hosts"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unlinkat(box, names[i], 0);
    unlinkat(box, ETC, AT_REMOVEDIR);
}
