// SPDX-License-Identifier: Apache-2.0
/* nested.c — who may make a mount namespace of his own tries to take off what was put over /proc
 * when the sandbox was made. Outside the same is put there first, by ourselves. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "test/escape/probe/probe.h"

/* The first mount below /proc, read-only if asked for. */
static bool find_cover(bool read_only, char path[256])
{
    FILE *f = fopen("/proc/self/mountinfo", "r");
    char line[4096], options[256];
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, "%*d %*d %*s %*s %255s %255s", path, options) == 2 &&
                strncmp(path, "/proc/", 6) == 0 && (!read_only || strncmp(options, "ro", 2) == 0);
    if (f)
        fclose(f);
    return found;
}

static bool be_apart(void)
{
    bool apart = unshare(CLONE_NEWNS | (probe_is_control() ? 0 : CLONE_NEWUSER)) == 0 &&
                 mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;

    if (probe_is_control())
        apart = apart && mount("none", "/proc/fs", "tmpfs", MS_RDONLY, NULL) == 0;
    return apart || !probe_is_control();
}

static void try_cover(const void *data)
{
    const char *what = data;
    char path[256], dir[] = "/tmp/probe-XXXXXX";

    if (!be_apart())
        return;
    if (!find_cover(*what == 'r', path)) {
        probe_say("nothing is put over /proc");
        return;
    }
    if (*what == 'u') {
        probe_deed();
        umount2(path, MNT_DETACH);
    } else if (*what == 'r') {
        probe_deed();
        mount(NULL, path, NULL, MS_REMOUNT | MS_BIND, NULL);
    } else if (mkdtemp(dir)) {
        probe_deed();
        if (mount("/proc", dir, NULL, MS_BIND, NULL) == 0) /* without what is mounted on it */
            umount2(dir, MNT_DETACH);
        int why = errno;
        rmdir(dir);
        errno = why;
    }
}
PROBE(uncover_proc) = {"3-proc-sys", "uncover_proc", TRACE_DONE, try_cover, "umount"};
PROBE(remount_cover) = {"3-proc-sys", "make_the_cover_of_proc_writable", TRACE_DONE, try_cover,
                        "remount"};
PROBE(bind_below_cover) = {"3-proc-sys", "bind_proc_without_its_covers", TRACE_DONE, try_cover,
                           "bind"};

/* The same trick on the whole: what the sandbox's root was put over. */
static void try_uncover_root(const void *data)
{
    (void)data;
    if (!be_apart())
        return;
    if (probe_is_control() &&
        (mount("none", "/mnt", "tmpfs", 0, NULL) < 0 || chroot("/mnt") < 0 || chdir("/") < 0))
        return;
    probe_deed();
    umount2("/", MNT_DETACH);
}
PROBE(uncover_root) = {"1-paths", "uncover_root", TRACE_DONE, try_uncover_root, NULL};
