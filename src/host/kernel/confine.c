// SPDX-License-Identifier: Apache-2.0
/* confine.c — see confine.h. The filter is a deny-list written by hand: the kernel's cache of
 * always-allowed calls makes everything not on it free. It fills that cache when the filter is
 * installed, by running it for every call there is: so it is a tree, not a list. */
#include "host/kernel/confine.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/own.h"
#include "host/kernel/sys.h"

/* --- seccomp --- */

/* Allowed in a sandbox that builds images, for the containers it makes in itself. Of namespaces
 * only the necessary ones: a network of its own would let its root configure all of the kernel's
 * packet filters and schedulers. */
static const int nesting[] = {SYS_mount, SYS_umount2, SYS_unshare};
#define BUILD_NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS)

static const int denied[] = {
    /* mounts and roots */
    SYS_pivot_root, SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick,
    SYS_open_tree, SYS_mount_setattr, SYS_swapon, SYS_swapoff, SYS_quotactl, SYS_quotactl_fd,
    SYS_open_by_handle_at, SYS_name_to_handle_at,
    /* namespaces; clone is looked at below */
    SYS_setns,
    /* the kernel itself */
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_kexec_file_load,
    SYS_reboot, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_syslog, SYS_acct, SYS_vhangup,
    SYS_lookup_dcookie, SYS_nfsservctl, SYS__sysctl, SYS_uselib, SYS_ustat, SYS_sysfs,
    SYS_create_module, SYS_get_kernel_syms, SYS_query_module, SYS_iopl, SYS_ioperm, SYS_modify_ldt,
    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_add_key, SYS_request_key,
    SYS_keyctl, SYS_fanotify_init, SYS_fanotify_mark, SYS_kcmp, SYS_process_madvise,
    SYS_migrate_pages, SYS_move_pages,
    /* the clock */
    SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex};

static const unsigned personalities[] = {0, 0x8, 0x20000, 0x20008, 0x40000, 0xffffffff};
/* The first two type into another session's terminal. TIOCSETD makes the kernel load a line
 * discipline; its argument lies in memory, out of reach, and a terminal begins as N_TTY. */
static const unsigned ioctls[] = {TIOCSTI, TIOCLINUX, TIOCSETD};

#define NEW_NAMESPACES                                                                             \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)
#define UNKNOWN 467u /* calls newer than those we looked at; x32's have higher numbers still */

static void confine_add(struct confine_filter *f, uint16_t code, uint32_t k, uint8_t yes,
                        uint8_t no)
{
    assert(f->len < CONFINE_BPF_MAX);
    f->code[f->len++] = (struct sock_filter)BPF_JUMP(code, k, yes, no);
}

static void confine_load(struct confine_filter *f, size_t offset)
{
    confine_add(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void confine_answer(struct confine_filter *f, uint32_t action)
{
    confine_add(f, BPF_RET | BPF_K, action, 0, 0);
}

#define JEQ        (BPF_JMP | BPF_JEQ | BPF_K)
#define REFUSE     (SECCOMP_RET_ERRNO | EPERM)
#define ARG_LOW(n) (offsetof(struct seccomp_data, args) + 8 * (n)) /* little-endian */

/* if nr == call: look at the low half of an argument; in the list means `hit`, else `miss`. */
static void add_choice(struct confine_filter *f, int call, unsigned arg, const unsigned *list,
                       unsigned count, uint32_t hit, uint32_t miss)
{
    confine_add(f, JEQ, (uint32_t)call, 0, (uint8_t)(count + 3));
    confine_load(f, ARG_LOW(arg));
    for (unsigned i = 0; i < count; i++)
        confine_add(f, JEQ, list[i], (uint8_t)(count - i), 0);
    confine_answer(f, miss);
    confine_answer(f, hit);
}

/* Unix; IPv4 and IPv6 with the protocols that programs inside need; of netlink the routes alone.
 * socketpair() makes sockets of any family as well: its first three arguments are socket()'s. */
static void add_socket(struct confine_filter *f)
{
    confine_add(f, JEQ, SYS_socketpair, 1, 0);
    confine_add(f, JEQ, SYS_socket, 0, 14);
    confine_load(f, ARG_LOW(0));
    confine_add(f, JEQ, AF_UNIX, 11, 0);
    confine_add(f, JEQ, AF_INET, 6, 0);
    confine_add(f, JEQ, AF_INET6, 5, 0);
    confine_add(f, JEQ, AF_NETLINK, 1, 0);
    confine_answer(f, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    confine_load(f, ARG_LOW(2));
    confine_add(f, JEQ, 0 /* NETLINK_ROUTE */, 5, 0);
    confine_answer(f, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
    confine_load(f, ARG_LOW(2));
    confine_add(f, JEQ, IPPROTO_SCTP, 1, 0);
    confine_add(f, JEQ, IPPROTO_MPTCP, 0, 1);
    confine_answer(f, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
    confine_answer(f, SECCOMP_RET_ALLOW);
}

static void refuse_flags(struct confine_filter *f, int call, unsigned flags)
{
    confine_add(f, JEQ, (uint32_t)call, 0, 4);
    confine_load(f, ARG_LOW(0));
    confine_add(f, BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1);
    confine_answer(f, REFUSE);
    confine_answer(f, SECCOMP_RET_ALLOW);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

#define LEAF 4

/* calls: in order. */
static void add_refusals(struct confine_filter *f, const int *calls, unsigned count)
{
    if (count > LEAF) {
        unsigned half = count / 2, at = f->len;
        confine_add(f, BPF_JMP | BPF_JGE | BPF_K, (uint32_t)calls[half], 0, 0);
        add_refusals(f, calls, half);
        assert(f->len - at - 1u <= UINT8_MAX);
        f->code[at].jt = (uint8_t)(f->len - at - 1u);
        add_refusals(f, calls + half, count - half);
        return;
    }
    for (unsigned i = 0; i < count; i++)
        confine_add(f, JEQ, (uint32_t)calls[i], (uint8_t)(count - i), 0);
    confine_answer(f, SECCOMP_RET_ALLOW);
    confine_answer(f, REFUSE);
}

void confine_build(struct confine_filter *f, bool nested)
{
    const unsigned others = NEW_NAMESPACES & ~(nested ? BUILD_NAMESPACES : 0u);
    const unsigned more = nested ? 0 : ARRAY_LEN(nesting), all = ARRAY_LEN(denied) + more;
    int calls[ARRAY_LEN(denied) + ARRAY_LEN(nesting)];

    f->len = 0;
    confine_load(f, offsetof(struct seccomp_data, arch));
    confine_add(f, JEQ, AUDIT_ARCH_X86_64, 1, 0);
    confine_answer(f, SECCOMP_RET_ERRNO | ENOSYS); /* i386 calls have other numbers: none of them */
    confine_load(f, offsetof(struct seccomp_data, nr));
    confine_add(f, BPF_JMP | BPF_JGE | BPF_K, UNKNOWN, 2, 0);
    confine_add(f, JEQ, SYS_io_setup, 1, 0); /* the machine has one set of events for all */
    confine_add(f, JEQ, SYS_clone3, 0,
                1); /* flags lie in memory, out of reach: libc falls back to clone */
    confine_answer(f, SECCOMP_RET_ERRNO | ENOSYS);
    refuse_flags(f, SYS_clone, others);
    if (nested)
        refuse_flags(f, SYS_unshare, others | CLONE_NEWTIME);
    add_socket(f);
    add_choice(f, SYS_personality, 0, personalities, ARRAY_LEN(personalities), SECCOMP_RET_ALLOW,
               REFUSE);
    add_choice(f, SYS_ioctl, 1, ioctls, ARRAY_LEN(ioctls), REFUSE, SECCOMP_RET_ALLOW);
    memcpy(calls, denied, sizeof denied);
    memcpy(calls + ARRAY_LEN(denied), nesting, more * sizeof *nesting);
    qsort(calls, all, sizeof *calls, by_number);
    add_refusals(f, calls, all);
}

fallible confine_seccomp(const struct confine_filter *f)
{
    struct sock_fprog program = {f->len, (struct sock_filter *)f->code};

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return err_sys("install the system call filter");
    return NULL;
}

/* --- Landlock --- */

#define LL_FS_V1     ((1ull << 13) - 1)
#define LL_REFER     (1ull << 13) /* since 2 */
#define LL_TRUNCATE  (1ull << 14) /* since 3 */
#define LL_IOCTL_DEV (1ull << 15) /* since 5 */
#define LL_SCOPES    3ull         /* since 6: abstract sockets, signals */

struct ruleset { /* as of version 6; older kernels take a shorter one */
    uint64_t fs, net, scoped;
};

int confine_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi < 0 ? 0 : (int)abi;
}

static fallible allow_beneath(int rules, int fd, uint64_t access)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};

    if (syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
        return err_sys("add a Landlock rule");
    return NULL;
}

/* All that this version can forbid. */
static fallible new_rules(int abi, uint64_t *ret_fs, int *ret_rules)
{
    struct ruleset set = {.fs = LL_FS_V1};
    size_t size = abi >= 6 ? sizeof set : sizeof set.fs;

    set.fs |=
        (abi >= 2 ? LL_REFER : 0) | (abi >= 3 ? LL_TRUNCATE : 0) | (abi >= 5 ? LL_IOCTL_DEV : 0);
    set.scoped = abi >= 6 ? LL_SCOPES : 0;
    *ret_fs = set.fs;
    *ret_rules = (int)syscall(SYS_landlock_create_ruleset, &set, size, 0);
    return *ret_rules < 0 ? err_sys("make a Landlock rule set") : NULL;
}

fallible confine_landlock_beneath(int abi, const int *works, size_t work_count, const int *looks,
                                  size_t look_count)
{
    const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    own_fd rules = -1;
    uint64_t all;

    TRY(new_rules(abi, &all, &rules));
    for (size_t i = 0; i < work_count; i++)
        if (works[i] >= 0)
            TRY(allow_beneath(rules, works[i], all));
    for (size_t i = 0; i < look_count; i++)
        if (looks[i] >= 0)
            TRY(allow_beneath(rules, looks[i], reading));
    if (syscall(SYS_landlock_restrict_self, rules, 0) < 0)
        return err_sys("enter Landlock");
    return NULL;
}

fallible confine_landlock(int abi, int exe)
{
    own_fd rules = -1;
    uint64_t all;

    TRY(new_rules(abi, &all, &rules));
    own_fd root = open("/", O_PATH | O_CLOEXEC);
    if (root < 0)
        return err_sys("open '/'");
    TRY(allow_beneath(rules, root, all));
    TRY(allow_beneath(rules, exe, LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE));
    if (syscall(SYS_landlock_restrict_self, rules, 0) < 0)
        return err_sys("enter Landlock");
    return NULL;
}

/* --- capabilities --- */

#define CAP_HIGHEST 63

struct caps {
    struct __user_cap_header_struct head;
    struct __user_cap_data_struct data[2];
};

fallible confine_bounding_set(uint64_t keep)
{
    for (unsigned cap = 0; cap <= CAP_HIGHEST; cap++) {
        if (keep >> cap & 1)
            continue;
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            if (errno == EINVAL && cap > 37)
                break; /* past the newest this kernel knows */
            return err_sys("drop capability %u", cap);
        }
    }
    return NULL;
}

fallible confine_set_caps(uint64_t keep)
{
    struct caps c = {
        {_LINUX_CAPABILITY_VERSION_3, 0},
        {{(uint32_t)keep, (uint32_t)keep, 0}, {(uint32_t)(keep >> 32), (uint32_t)(keep >> 32), 0}}};

    if (syscall(SYS_capset, &c.head, c.data) < 0)
        return err_sys("set the capabilities");
    return NULL;
}

fallible confine_caps(uint64_t keep)
{
    TRY(confine_bounding_set(keep));
    return confine_set_caps(keep);
}

fallible confine_raise_caps(void)
{
    struct caps c = {{_LINUX_CAPABILITY_VERSION_3, 0}, {{0}}};

    if (syscall(SYS_capget, &c.head, c.data) < 0)
        return err_sys("read the capabilities");
    for (unsigned i = 0; i < 2; i++)
        c.data[i].effective = c.data[i].permitted;
    if (syscall(SYS_capset, &c.head, c.data) < 0)
        return err_sys("raise the capabilities");
    return NULL;
}

fallible confine_no_new_privs(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys("set no_new_privs");
    return NULL;
}
