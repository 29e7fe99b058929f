// SPDX-License-Identifier: Apache-2.0
/* sys.c — see sys.h. */
#include "host/kernel/sys.h"

#include <linux/openat2.h>

int sys_open_plain(const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};

    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

int sys_open_tree(int dir, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dir, path, flags | OPEN_TREE_CLOEXEC);
}

int sys_move_mount(int from, int to_dir, const char *to_path)
{
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*to_path ? 0 : MOVE_MOUNT_T_EMPTY_PATH);

    return (int)syscall(SYS_move_mount, from, "", to_dir, to_path, flags);
}

int sys_mount_setattr(int fd, struct mount_attr *attr)
{
    return (int)syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, attr, sizeof *attr);
}

int sys_fsopen(const char *type)
{
    return (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
}

int sys_fsconfig(int fs, unsigned cmd, const char *key, const void *value, int aux)
{
    return (int)syscall(SYS_fsconfig, fs, cmd, key, value, aux);
}

int sys_fsmount(int fs, unsigned attr)
{
    return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attr);
}

int sys_pivot_root(const char *root, const char *old)
{
    return (int)syscall(SYS_pivot_root, root, old);
}

pid_t sys_clone3(struct clone_args *args)
{
    return (pid_t)syscall(SYS_clone3, args, sizeof *args);
}

int sys_pidfd_kill(int pidfd, int signo)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0);
}

int sys_close_range(unsigned first, unsigned last, unsigned flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

int sys_execveat(int fd, const char *const *argv, const char *const *env)
{
    return (int)syscall(SYS_execveat, fd, "", argv, env, AT_EMPTY_PATH);
}

fallible sys_not_of_disk(struct err *e)
{
    if (err_code(e) != ERR_NO_SPACE)
        return e;
    return err_wrap(err_recode(e, ERR_LIMIT),
                    "a limit of the kernel (sysctl user.max_*_namespaces, fs.mount-max)");
}
