// SPDX-License-Identifier: Apache-2.0
/* filter.c — an allow-list: files by descriptor, memory, time. No sockets, no processes, no
 * programs, no namespaces, no signals to others. */
#include "host/worker/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"

enum { SYS_handle = SYS_name_to_handle_at }; /* tells which file it is, opens nothing */

static const unsigned short allowed[] = {
    SYS_read,       SYS_write,           SYS_readv,           SYS_writev,         SYS_pread64,
    SYS_pwrite64,   SYS_close,           SYS_openat,          SYS_lseek,          SYS_fstat,
    SYS_newfstatat, SYS_statx,           SYS_getdents64,      SYS_readlinkat,     SYS_faccessat,
    SYS_mkdirat,    SYS_unlinkat,        SYS_symlinkat,       SYS_linkat,         SYS_mknodat,
    SYS_renameat,   SYS_renameat2,       SYS_fchown,          SYS_fchownat,       SYS_fchmod,
    SYS_fchmodat,   SYS_utimensat,       SYS_fsetxattr,       SYS_fgetxattr,      SYS_ftruncate,
    SYS_fallocate,  SYS_copy_file_range, SYS_fsync,           SYS_fdatasync,      SYS_fcntl,
    SYS_mmap,       SYS_munmap,          SYS_mremap,          SYS_mprotect,       SYS_madvise,
    SYS_brk,        SYS_futex,           SYS_getrandom,       SYS_clock_gettime,  SYS_uname,
    SYS_exit,       SYS_exit_group,      SYS_rt_sigreturn,    SYS_rt_sigprocmask, SYS_rt_sigaction,
    SYS_getpid,     SYS_gettid,          SYS_restart_syscall, SYS_sched_yield,    SYS_geteuid,
    SYS_flistxattr, SYS_fremovexattr,    SYS_sigaltstack,     SYS_flock,          SYS_faccessat2,
    SYS_openat2,    SYS_umask,           SYS_syncfs,          SYS_handle,
};

#define LOAD(field)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

fallible filter_install(void)
{
    struct sock_filter code[ARRAY_LEN(allowed) + 16];
    unsigned short n = 0;

    code[n++] = (struct sock_filter)LOAD(arch);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    code[n++] = (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS);
    code[n++] = (struct sock_filter)LOAD(nr);
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        unsigned char past = (unsigned char)(ARRAY_LEN(allowed) - i + 3); /* to the last line */
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], past, 0);
    }
    /* Of ioctl, only the call that shares blocks between files. */
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 2);
    code[n++] = (struct sock_filter)LOAD(args[1]);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FICLONE, 1, 0);
    code[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM);
    code[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, code};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return err_sys("install the filter of system calls");
    return NULL;
}
