// SPDX-License-Identifier: Apache-2.0
/* etc.c — a synthetic /etc: some files of the host's, the rest made up.
 *
 * The list names the host's files that a sandbox may have, and of these only files that every user
 * may read are taken. ARCHITECTURE.md repeats the list for readers. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/rng.h"
#include "host/rootfs/inner.h"
#include "host/tree/inner.h"

/* Files, links or whole directories; a star stands for any ending. */
static const char *const wanted[] = {
    "X11",
    "adduser.conf",
    "alternatives",
    "apt",
    "bash.bashrc",
    "bash_completion*",
    "bindresvport.blacklist",
    "ca-certificates*",
    "debconf.conf",
    "debian_version",
    "deluser.conf",
    "dpkg",
    "ethertypes",
    "fonts",
    "gai.conf",
    "groff",
    "host.conf",
    "inputrc",
    "issue*",
    "java*",
    "ld-musl-*",
    "ld.so.*",
    "locale*",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic*",
    "manpath.config",
    "maven",
    "mime.types",
    "mailcap*",
    "mke2fs.conf",
    "netconfig",
    "networks",
    "nsswitch.conf",
    "os-release",
    "pam.conf",
    "pam.d",
    "perl",
    "pki",
    "profile*",
    "protocols",
    "python*",
    "redhat-release",
    "rmt",
    "rpc",
    "security",
    "selinux",
    "services",
    "sgml",
    "shells",
    "skel",
    "ssl",
    "terminfo",
    "timezone",
    "ucf.conf",
    "vim",
    "wgetrc",
    "xattr.conf",
    "xdg",
    "xml",
};

/* Single files of directories that are not taken whole. */
static const char *const wanted_files[] = {
    "default/locale",
    "default/useradd",
    "default/keyboard",
    "default/nss",
};

/* Credentials have no business here even where everybody on the host may read them. */
static const char *const without[] = {
    "apt/auth.conf", "apt/auth.conf.d", "ssl/private", "pki/tls/private", "security/opasswd", NULL,
};

static bool on_the_list(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        if (fnmatch(wanted[i], name, 0) == 0)
            return true;
    }
    return false;
}

static fallible take_listed(const struct take *t)
{
    own_done(buf) names = {0};
    size_t count;

    TRY(tree_read_names(t->from, 4u << 20, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        if (on_the_list(name))
            TRY(take_path(t, name));
    }
    for (size_t i = 0; i < ARRAY_LEN(wanted_files); i++)
        TRY(take_path(t, wanted_files[i]));
    return NULL;
}

static fallible make_up(int etc)
{
    char id[RNG_HEX_LEN + 2];

    rng_hex(rng_system(), id);
    id[RNG_HEX_LEN] = '\n';
    TRY(take_write(etc, "machine-id", str_n(id, RNG_HEX_LEN + 1), 0444));
    TRY(take_write(etc, "hostname", STR("croft\n"), 0644));
    TRY(take_write(etc, "hosts",
                   STR("127.0.0.1\tlocalhost\n127.0.1.1\tcroft\n"
                       "::1\tlocalhost ip6-localhost ip6-loopback\n"),
                   0644));
    /* No resolver listens there: a lookup fails at once instead of waiting for a network. */
    TRY(take_write(etc, "resolv.conf", STR("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"),
                   0644));
    TRY(take_write(etc, "fstab", STR(""), 0644));
    if (symlinkat("../proc/self/mounts", etc, "mtab") < 0)
        return err_sys("make the link 'mtab'");
    return NULL;
}

fallible etc_build(int host, int etc)
{
    struct take_limits left = {16u << 20, 256u << 20, 50000};
    own_fd from = openat(host, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (from < 0)
        return err_sys("open the host's /etc");
    struct take t = {from, etc, without, &left};
    TRY(take_listed(&t));
    TRY(make_up(etc));
    return accounts_write(from, etc);
}
