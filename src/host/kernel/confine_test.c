// SPDX-License-Identifier: Apache-2.0
/* confine_test.c — what the filter of system calls answers, by running it as the kernel would.
 * That the kernel does so too is what test/escape is for. */
#include "host/kernel/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "test/test.h"

static uint32_t run(const struct confine_filter *f, const struct seccomp_data *d, unsigned *steps)
{
    uint32_t a = 0;

    for (unsigned at = 0; at < f->len; at++) {
        const struct sock_filter *c = &f->code[at];
        bool yes = false;
        ++*steps;
        switch (c->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            memcpy(&a, (const char *)d + c->k, sizeof a);
            continue;
        case BPF_RET | BPF_K:
            return c->k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = a == c->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            yes = a >= c->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            yes = a & c->k;
            break;
        default:
            FAIL("an instruction nobody wrote: %u", c->code);
        }
        at += yes ? c->jt : c->jf;
    }
    FAIL("it runs past its end");
}

static uint32_t ask_three(const struct confine_filter *f, int call, uint64_t first, uint64_t second,
                          uint64_t third)
{
    struct seccomp_data d = {.nr = call, .arch = AUDIT_ARCH_X86_64, .args = {first, second, third}};
    unsigned steps = 0;

    return run(f, &d, &steps);
}

static uint32_t ask(const struct confine_filter *f, int call, uint64_t first, uint64_t second)
{
    return ask_three(f, call, first, second, 0);
}

#define REFUSED           (SECCOMP_RET_ERRNO | EPERM)
#define SYS_REMOVEXATTRAT 466 /* the newest that was looked at */

static const int never[] = {SYS_pivot_root,
                            SYS_move_mount,
                            SYS_fsopen,
                            SYS_fsconfig,
                            SYS_fsmount,
                            SYS_fspick,
                            SYS_open_tree,
                            SYS_mount_setattr,
                            SYS_swapon,
                            SYS_swapoff,
                            SYS_quotactl,
                            SYS_quotactl_fd,
                            SYS_setns,
                            SYS_name_to_handle_at,
                            SYS_init_module,
                            SYS_finit_module,
                            SYS_delete_module,
                            SYS_kexec_load,
                            SYS_kexec_file_load,
                            SYS_reboot,
                            SYS_bpf,
                            SYS_perf_event_open,
                            SYS_userfaultfd,
                            SYS_syslog,
                            SYS_acct,
                            SYS_vhangup,
                            SYS_lookup_dcookie,
                            SYS_nfsservctl,
                            SYS__sysctl,
                            SYS_uselib,
                            SYS_ustat,
                            SYS_sysfs,
                            SYS_create_module,
                            SYS_get_kernel_syms,
                            SYS_query_module,
                            SYS_iopl,
                            SYS_ioperm,
                            SYS_modify_ldt,
                            SYS_io_uring_setup,
                            SYS_io_uring_enter,
                            SYS_io_uring_register,
                            SYS_add_key,
                            SYS_request_key,
                            SYS_keyctl,
                            SYS_fanotify_init,
                            SYS_fanotify_mark,
                            SYS_kcmp,
                            SYS_process_madvise,
                            SYS_migrate_pages,
                            SYS_move_pages,
                            SYS_settimeofday,
                            SYS_clock_settime,
                            SYS_clock_adjtime,
                            SYS_adjtimex,
                            SYS_open_by_handle_at};
static const int unless_nested[] = {SYS_mount, SYS_umount2, SYS_unshare};

static bool is_in(const int *list, size_t count, int call)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == call)
            return true;
    return false;
}

static void check_every_call(bool nested)
{
    struct confine_filter f;

    confine_build(&f, nested);
    for (int call = 0; call < 1024; call++) {
        bool refused = is_in(never, ARRAY_LEN(never), call) ||
                       (!nested && is_in(unless_nested, ARRAY_LEN(unless_nested), call));
        bool absent = call == SYS_clone3 || call == SYS_io_setup || call > SYS_REMOVEXATTRAT;
        if (call == SYS_socket || call == SYS_socketpair)
            continue;
        if (ask(&f, call, 0, 0) != (absent    ? SECCOMP_RET_ERRNO | ENOSYS
                                    : refused ? REFUSED
                                              : SECCOMP_RET_ALLOW))
            FAIL("call %d is answered with %#x", call, ask(&f, call, 0, 0));
    }
}

TEST(filter_refuses_every_call_of_its_list_and_no_other)
{
    check_every_call(false);
    check_every_call(true);
}

TEST(filter_looks_at_arguments_where_a_call_is_good_and_bad)
{
    struct confine_filter f;

    confine_build(&f, false);
    CHECK_INT(ask(&f, SYS_clone, CLONE_NEWUSER, 0), REFUSED);
    CHECK_INT(ask(&f, SYS_clone, CLONE_VM, 0), SECCOMP_RET_ALLOW);
    CHECK_INT(ask(&f, SYS_ioctl, 0, TIOCSTI), REFUSED);
    CHECK_INT(ask(&f, SYS_ioctl, 0, TIOCGWINSZ), SECCOMP_RET_ALLOW);
    CHECK_INT(ask(&f, SYS_ioctl, 0, TIOCSETD), REFUSED);
    CHECK_INT(ask(&f, SYS_ioctl, 0, TIOCGETD), SECCOMP_RET_ALLOW);
    CHECK_INT(ask(&f, SYS_personality, 0x400, 0), REFUSED);
    CHECK_INT(ask(&f, 0x40000000 | SYS_getpid, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
    struct seccomp_data other = {.nr = SYS_getpid, .arch = AUDIT_ARCH_I386};
    unsigned steps = 0;
    CHECK_INT(run(&f, &other, &steps), SECCOMP_RET_ERRNO | ENOSYS);
}

TEST(filter_allows_the_same_families_to_a_pair_of_sockets_as_to_one)
{
    static const int calls[] = {SYS_socket, SYS_socketpair};
    struct confine_filter f;

    confine_build(&f, false);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        for (unsigned family = 0; family < 64; family++) {
            bool known = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
                         family == AF_NETLINK;
            CHECK_INT(ask(&f, calls[i], family, SOCK_DGRAM),
                      known ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EAFNOSUPPORT);
        }
        CHECK_INT(ask_three(&f, calls[i], AF_NETLINK, SOCK_RAW, 16),
                  SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
        CHECK_INT(ask_three(&f, calls[i], AF_INET, SOCK_STREAM, IPPROTO_MPTCP),
                  SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
        CHECK_INT(ask_three(&f, calls[i], AF_INET, SOCK_STREAM, IPPROTO_TCP), SECCOMP_RET_ALLOW);
    }
}

/* The kernel runs it for every call when it is installed, at every start of a sandbox. */
TEST(filter_answers_any_call_in_few_steps)
{
    struct confine_filter f;

    confine_build(&f, false);
    for (int call = 0; call < 512; call++) {
        struct seccomp_data d = {.nr = call, .arch = AUDIT_ARCH_X86_64};
        unsigned steps = 0;
        run(&f, &d, &steps);
        CHECK(steps <= 24);
    }
}
