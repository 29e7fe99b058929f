// SPDX-License-Identifier: Apache-2.0
/* calls.c — families 4 and 5: system calls and socket families that a sandbox has no use for.
 *
 * Each is reached with arguments the kernel refuses for another reason: any answer but "not
 * permitted" or "no such call" shows that the door is open. */
#include <fcntl.h>
#include <linux/sched.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/escape/probe/probe.h"

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#define BAD (-1L)

struct call {
    long nr, a[6];
};

static void try_call(const void *data)
{
    const struct call *c = data;

    probe_deed();
    syscall(c->nr, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]);
}

#define CALL(id, number, ...)                                                                      \
    PROBE(call_##id) = {"4-calls", #id, TRACE_CALL, try_call,                                      \
                        &(const struct call){number, {__VA_ARGS__}}};

/* clang-format off */
CALL(mount, SYS_mount, 0, 0, 0, 0, 0)
CALL(umount2, SYS_umount2, 0, BAD)
CALL(pivot_root, SYS_pivot_root, 0, 0)
CALL(fsopen, SYS_fsopen, 0, BAD)
CALL(fsconfig, SYS_fsconfig, BAD, 0, 0, 0, 0)
CALL(fsmount, SYS_fsmount, BAD, 0, 0)
CALL(fspick, SYS_fspick, BAD, 0, 0)
CALL(move_mount, SYS_move_mount, BAD, 0, BAD, 0, BAD)
CALL(open_tree, SYS_open_tree, BAD, 0, 0x7ff00000)
CALL(mount_setattr, SYS_mount_setattr, BAD, 0, BAD, 0, 0)
CALL(unshare_newns, SYS_unshare, CLONE_NEWNS)
CALL(unshare_newuser, SYS_unshare, CLONE_NEWUSER)
CALL(unshare_newpid, SYS_unshare, CLONE_NEWPID)
CALL(unshare_newnet, SYS_unshare, CLONE_NEWNET)
CALL(unshare_newipc, SYS_unshare, CLONE_NEWIPC)
CALL(unshare_newuts, SYS_unshare, CLONE_NEWUTS)
CALL(unshare_newcgroup, SYS_unshare, CLONE_NEWCGROUP)
CALL(unshare_newtime, SYS_unshare, CLONE_NEWTIME)
CALL(setns, SYS_setns, BAD, 0)
CALL(bpf, SYS_bpf, BAD, 0, 0)
CALL(perf_event_open, SYS_perf_event_open, 0, 0, BAD, BAD, 0)
CALL(userfaultfd, SYS_userfaultfd, BAD)
CALL(io_uring_setup, SYS_io_uring_setup, 0, 0)
CALL(io_uring_enter, SYS_io_uring_enter, BAD, 0, 0, 0, 0, 0)
CALL(io_uring_register, SYS_io_uring_register, BAD, BAD, 0, 0)
CALL(keyctl, SYS_keyctl, BAD, 0, 0, 0, 0)
CALL(add_key, SYS_add_key, 0, 0, 0, 0, 0)
CALL(request_key, SYS_request_key, 0, 0, 0, 0)
CALL(init_module, SYS_init_module, 0, 0, 0)
CALL(finit_module, SYS_finit_module, BAD, 0, BAD)
CALL(delete_module, SYS_delete_module, 0, 0)
CALL(kexec_load, SYS_kexec_load, 0, 0, 0, BAD)
CALL(kexec_file_load, SYS_kexec_file_load, BAD, BAD, 0, 0, BAD)
CALL(reboot, SYS_reboot, 0, 0, 0, 0)
CALL(swapon, SYS_swapon, 0, BAD)
CALL(swapoff, SYS_swapoff, 0)
CALL(quotactl, SYS_quotactl, BAD, 0, 0, 0)
CALL(acct, SYS_acct, 1)
CALL(open_by_handle_at, SYS_open_by_handle_at, BAD, 0, 0)
CALL(name_to_handle_at, SYS_name_to_handle_at, BAD, 0, 0, 0, 0)
CALL(lookup_dcookie, 212, 0, 0, 0)
CALL(settimeofday, SYS_settimeofday, 1, 0)
CALL(clock_settime, SYS_clock_settime, 0, 0)
CALL(clock_adjtime, SYS_clock_adjtime, 0, 0)
CALL(adjtimex, SYS_adjtimex, 0)
CALL(iopl, SYS_iopl, 4)
CALL(ioperm, SYS_ioperm, BAD, BAD, 1)
CALL(syslog, SYS_syslog, 10, 0, 0)
CALL(process_madvise, SYS_process_madvise, BAD, 0, 0, 0, BAD)
CALL(kcmp, SYS_kcmp, 1, 1, BAD, 0, 0)
CALL(move_pages, SYS_move_pages, 1, 1, 0, 0, 0, BAD)
CALL(migrate_pages, SYS_migrate_pages, 1, BAD, 0, 0)
CALL(fanotify_init, SYS_fanotify_init, BAD, 0)
CALL(fanotify_mark, SYS_fanotify_mark, BAD, 0, 0, BAD, 0)
CALL(personality_odd, SYS_personality, 0x0400000)
CALL(modify_ldt, SYS_modify_ldt, BAD, 0, 0)
CALL(nfsservctl, 180, 0, 0, 0)
CALL(sethostname, SYS_sethostname, 0, BAD)
CALL(setdomainname, SYS_setdomainname, 0, BAD)
/* clang-format on */

struct sock {
    int domain, type, protocol;
};

static void try_socket(const void *data)
{
    const struct sock *s = data;

    probe_deed();
    socket(s->domain, s->type, s->protocol);
}

#define SOCKET(id, ...)                                                                            \
    PROBE(socket_##id) = {"5-sockets", #id, TRACE_DONE, try_socket,                                \
                          &(const struct sock){__VA_ARGS__}};

/* clang-format off */
SOCKET(packet_raw, AF_PACKET, SOCK_RAW, 0x0300)
SOCKET(packet_dgram, AF_PACKET, SOCK_DGRAM, 0x0300)
SOCKET(inet_raw, AF_INET, SOCK_RAW, 255)
SOCKET(inet_raw_icmp, AF_INET, SOCK_RAW, 1)
SOCKET(inet6_raw, AF_INET6, SOCK_RAW, 255)
SOCKET(netlink_audit, AF_NETLINK, SOCK_RAW, 9)
SOCKET(netlink_netfilter, AF_NETLINK, SOCK_RAW, 12)
SOCKET(netlink_xfrm, AF_NETLINK, SOCK_RAW, 6)
SOCKET(netlink_uevent, AF_NETLINK, SOCK_RAW, 15)
SOCKET(netlink_sock_diag, AF_NETLINK, SOCK_RAW, 4)
SOCKET(netlink_generic, AF_NETLINK, SOCK_RAW, 16)
SOCKET(netlink_crypto, AF_NETLINK, SOCK_RAW, 21)
SOCKET(vsock, AF_VSOCK, SOCK_STREAM, 0)
SOCKET(alg, AF_ALG, SOCK_SEQPACKET, 0)
SOCKET(xdp, 44, SOCK_RAW, 0)
SOCKET(key, AF_KEY, SOCK_RAW, 2)
SOCKET(can, AF_CAN, SOCK_RAW, 1)
SOCKET(bluetooth, AF_BLUETOOTH, SOCK_RAW, 1)
SOCKET(rds, AF_RDS, SOCK_SEQPACKET, 0)
SOCKET(tipc, AF_TIPC, SOCK_SEQPACKET, 0)
SOCKET(sctp, AF_INET, SOCK_STREAM, 132)
SOCKET(mptcp, AF_INET, SOCK_STREAM, 262)
SOCKET(smc, 43, SOCK_STREAM, 0)
SOCKET(qipcrtr, 42, SOCK_DGRAM, 0)
SOCKET(kcm, 41, SOCK_DGRAM, 0)
SOCKET(appletalk, AF_APPLETALK, SOCK_DGRAM, 0)
SOCKET(x25, AF_X25, SOCK_SEQPACKET, 0)
SOCKET(ax25, AF_AX25, SOCK_DGRAM, 0)
SOCKET(rxrpc, AF_RXRPC, SOCK_DGRAM, 2)
SOCKET(nfc, AF_NFC, SOCK_SEQPACKET, 0)
/* clang-format on */

/* Most families have no pairs: the kernel makes two sockets, and only then says so. */
static void try_socketpair(const void *data)
{
    const struct sock *s = data;
    int fds[2];

    probe_deed();
    socketpair(s->domain, s->type, s->protocol, fds);
}

#define PAIR(id, ...)                                                                              \
    PROBE(pair_##id) = {"5-sockets", "pair_" #id, TRACE_MADE, try_socketpair,                      \
                        &(const struct sock){__VA_ARGS__}};

/* clang-format off */
PAIR(tipc, AF_TIPC, SOCK_SEQPACKET, 0)
PAIR(vsock, AF_VSOCK, SOCK_STREAM, 0)
PAIR(alg, AF_ALG, SOCK_SEQPACKET, 0)
PAIR(xdp, 44, SOCK_RAW, 0)
PAIR(smc, 43, SOCK_STREAM, 0)
PAIR(bluetooth, AF_BLUETOOTH, SOCK_RAW, 1)
PAIR(netlink_generic, AF_NETLINK, SOCK_RAW, 16)
PAIR(netlink_sock_diag, AF_NETLINK, SOCK_RAW, 4)
PAIR(netlink_netfilter, AF_NETLINK, SOCK_RAW, 12)
PAIR(sctp, AF_INET, SOCK_STREAM, 132)
PAIR(mptcp, AF_INET, SOCK_STREAM, 262)
/* clang-format on */
