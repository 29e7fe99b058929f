// SPDX-License-Identifier: Apache-2.0
/* mounted_test.c — the layers as a sandbox sees them: through an overlay. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "host/rootfs/rootfs.h"
#include "host/tree/inner.h"
#include "test/test.h"

/* Older kernels take layers by path, from where they are mounted: test/native has that. */
static void need_layers_by_descriptor(int dir)
{
    own_fd fs = (int)syscall(SYS_fsopen, "overlay", 1);

    if (fs < 0 || syscall(SYS_fsconfig, fs, 5, "lowerdir+", NULL, dir) < 0)
        SKIP("needs Linux 6.13");
}

static void mount_overlay(const struct rootfs_mount *m, int dir, const char *root)
{
    int fs = (int)syscall(SYS_fsopen, "overlay", 1);
    own_fd upper = -1, work = -1;
    char where[600];

    CHECK(fs >= 0);
    CHECK_OK(fd_make_dirs(dir, str_of(m->upper), 0755, &upper));
    CHECK_OK(fd_make_dirs(dir, str_of(m->work), 0755, &work));
    for (size_t i = 0; i < m->lower_count; i++)
        CHECK(syscall(SYS_fsconfig, fs, 5, "lowerdir+", NULL, m->lowers[i]) == 0);
    CHECK(syscall(SYS_fsconfig, fs, 5, "upperdir", NULL, upper) == 0);
    CHECK(syscall(SYS_fsconfig, fs, 5, "workdir", NULL, work) == 0);
    if (m->redirects)
        CHECK(syscall(SYS_fsconfig, fs, 1, "redirect_dir", "follow", 0) == 0);
    if (syscall(SYS_fsconfig, fs, 6, NULL, NULL, 0) < 0) {
        FAIL("overlay '%s': %m", m->where);
    }
    int mount_fd = (int)syscall(SYS_fsmount, fs, 1, 0);
    CHECK(mount_fd >= 0);
    snprintf(where, sizeof where, "%s/%s", root, m->where);
    CHECK(syscall(SYS_move_mount, mount_fd, "", AT_FDCWD, where, 4) == 0);
    close(mount_fd);
    close(fs);
}

static int run_inside(const char *root, const char *command)
{
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (!pid) {
        if (chroot(root) < 0 || chdir("/") < 0)
            _exit(99);
        execl("/bin/sh", "sh", "-c", command, NULL);
        _exit(98);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_names(const char *root, const char *dir, const char *want)
{
    own_done(buf) names = {.limit_bytes = 65536}, got = {.limit_bytes = 65536};
    char path[600];
    size_t count = 0;

    snprintf(path, sizeof path, "%s/%s", root, dir);
    own_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_OK(tree_read_names(fd, 65536, &names, &count));
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        buf_addf(&got, " %s ", name);
        char wanted[64];
        snprintf(wanted, sizeof wanted, " %s ", name);
        if (!strstr(want, wanted))
            FAIL("%s/%s is there", dir, name);
    }
    CHECK_INT(got.len, strlen(want));
}

static void check_joined(const char *root)
{
    check_names(root, "usr", " bin  lib  share  etc  var  list  link ");
    check_names(root, "usr/bin", " tool ");
    check_names(root, "usr/etc", " x ");
    check_names(root, "usr/share", "");
    check_names(root, "srv", "");
    check_names(root, "",
                " bin  boot  dev  etc  home  lib  media  mnt  opt  proc  root  run  srv  sys  tmp "
                " usr  var  workspace ");
    check_names(root, "var/spool", "");
}

static const struct {
    const char *path;
    mode_t mode; /* of a directory or a file */
} host_has[] = {{"etc", S_IFDIR | 0755},          {"usr", S_IFDIR | 0755},
                {"usr/bin", S_IFDIR | 0755},      {"usr/bin/tool", S_IFREG | 0755},
                {"usr/bin/priv", S_IFREG | 0750}, {"usr/lib", S_IFDIR | 0755},
                {"usr/share", S_IFDIR | 0755},    {"usr/share/priv", S_IFDIR | 0750},
                {"usr/etc", S_IFDIR | 0755},      {"usr/etc/x", S_IFREG | 0644},
                {"usr/var", S_IFDIR | 0755},      {"usr/var/spool", S_IFDIR | 0755},
                {"usr/closed", S_IFDIR | 0700},   {"usr/closed/key", S_IFREG | 0644},
                {"usr/list", S_IFREG | 0644},     {"usr/hidden", S_IFREG | 0600}};

static void put(int host, const char *path, mode_t mode)
{
    if (S_ISDIR(mode))
        CHECK(mkdirat(host, path, mode & 0777) == 0);
    else
        CHECK(mknodat(host, path, mode, 0) == 0);
}

/* Names of /usr that the root has too must not be merged, whenever they come. */
TEST(rootfs_joined_has_all_of_usr_in_its_place_and_nothing_of_it_at_the_top)
{
    struct rootfs r;
    char root[300];
    own_fd own = -1, host = -1, state = -1;

    if (geteuid() != 0)
        SKIP("needs root");
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    umask(022);
    own_fd dir = test_dir_fd();
    CHECK_OK(fd_make_dirs(dir, STR("host"), 0755, &host));
    CHECK_OK(fd_make_dirs(dir, STR("state"), 0700, &state));
    CHECK_OK(fd_make_dirs(dir, STR("own"), 0700, &own));
    need_layers_by_descriptor(own);
    for (size_t i = 0; i < ARRAY_LEN(host_has); i++)
        put(host, host_has[i].path, host_has[i].mode);
    CHECK(symlinkat("bin", host, "usr/link") == 0);
    CHECK(symlinkat("usr/bin", host, "bin") == 0 && symlinkat("usr/lib", host, "lib") == 0);
    CHECK_OK(rootfs_host_open_at(state, host, &r));
    snprintf(root, sizeof root, "%s/root", test_dir());
    CHECK(mkdir(root, 0755) == 0);
    mount_overlay(&r.mounts[0], own, root);
    put(host, "usr/srv", S_IFDIR | 0755); /* later than the layers */
    put(host, "usr/srv/late", S_IFREG | 0644);
    check_joined(root);
    CHECK(umount2(root, MNT_DETACH) == 0);
    rootfs_done(&r);
}

TEST_LIMIT(rootfs_host_of_this_machine_runs_its_programs_and_package_tools, 120)
{
    struct rootfs r;
    char root[300];
    own_fd dir = -1, state = -1, own = -1;

    if (geteuid() != 0)
        SKIP("needs root");
    umask(022);
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    dir = test_dir_fd();
    CHECK_OK(fd_make_dirs(dir, STR("state"), 0700, &state));
    CHECK_OK(fd_make_dirs(dir, STR("own"), 0700, &own));
    need_layers_by_descriptor(own);
    CHECK_OK(rootfs_host_open(state, &r));
    snprintf(root, sizeof root, "%s/root", test_dir());
    CHECK(mkdir(root, 0755) == 0);
    for (size_t i = 0; i < r.mount_count; i++)
        mount_overlay(&r.mounts[i], own, root);
    CHECK_INT(run_inside(root, "test \"$(id -un 1000)\" = openhands"), 0);
    CHECK_INT(run_inside(root, "ls -d /usr/bin/env /etc/ssl/certs /tmp /workspace >/dev/null"), 0);
    CHECK_INT(run_inside(root, "find /opt /run /srv -mindepth 1 | grep -q ."), 1);
    if (access("/usr/bin/dpkg", X_OK) == 0) {
        CHECK_INT(run_inside(root, "dpkg -l dpkg | grep -q ^ii"), 0);
        CHECK_INT(run_inside(root, "apt-cache policy dpkg >/dev/null && apt-get check >/dev/null "
                                   "2>&1"),
                  0);
    }
    CHECK_INT(run_inside(root, "touch /usr/bin/new /etc/new && rm /usr/bin/env"), 0);
    CHECK(access("/usr/bin/new", F_OK) < 0 && access("/usr/bin/env", F_OK) == 0);
    for (size_t i = r.mount_count; i--;) {
        char where[600];
        snprintf(where, sizeof where, "%s/%s", root, r.mounts[i].where);
        CHECK(umount2(where, MNT_DETACH) == 0);
    }
    rootfs_done(&r);
}
