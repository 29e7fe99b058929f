// SPDX-License-Identifier: Apache-2.0
/* sys.h — kernel calls this libc has no name for, one line each, errno as always.
 *
 * Functions of their own, so that tests can make each of them fail. */
#pragma once

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/err.h"

int sys_open_plain(const char *path); /* O_PATH; symlinks are refused, also on the way */
int sys_open_tree(int dir, const char *path, unsigned flags);  /* O_CLOEXEC is added */
int sys_move_mount(int from, int to_dir, const char *to_path); /* "": to_dir itself */
int sys_mount_setattr(int fd, struct mount_attr *attr);
int sys_fsopen(const char *type);
int sys_fsconfig(int fs, unsigned cmd, const char *key, const void *value, int aux);
int sys_fsmount(int fs, unsigned attr);
int sys_pivot_root(const char *root, const char *old);
pid_t sys_clone3(struct clone_args *args);
int sys_pidfd_kill(int pidfd, int signo);
int sys_close_range(unsigned first, unsigned last, unsigned flags);
int sys_execveat(int fd, const char *const *argv, const char *const *env);
/* Corrects "no space", which the kernel also says when namespaces or mounts are used up: no disk is
 * full. Takes e over and gives it back. */
fallible sys_not_of_disk(struct err *e);
