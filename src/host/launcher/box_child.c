// SPDX-License-Identifier: Apache-2.0
/* box_child.c — what the future pid 1 does to itself, from clone to exec.
 *
 * The first half needs nothing from outside and runs while the launcher builds mounts. Order
 * matters: Landlock after the last mount, the filter after Landlock, capabilities last. */
#include <errno.h>
#include <inttypes.h>
#include <grp.h>
#include <linux/close_range.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "host/launcher/box_inner.h"
#include "host/kernel/sys.h"
#include "host/launcher/mounts.h"

#define HIGH_FD   64 /* above every number a sandbox is given */
#define TTY_GROUP 5
#define TERMINALS "max=64" /* the machine has some 3,000 for all sandboxes */

/* --- the first half: alone --- */

static void reset_signals(void)
{
    static const char by_default[32]; /* as the kernel has it: handler, flags, restorer, mask */
    sigset_t none;

    for (int s = 1; s <= 64;
         s++) /* not by libc, which keeps two for itself; KILL and STOP refuse */
        syscall(SYS_rt_sigaction, s, by_default, NULL, 8);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static fallible write_file(const char *path, const char *text)
{
    own_fd fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return err_sys("write '%s'", path);
    return NULL;
}

static fallible bring_up_loopback(void)
{
    own_fd s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    if (s < 0 || ioctl(s, SIOCSIFFLAGS, &r) < 0)
        return err_sys("bring up the loopback interface");
    return NULL;
}

/* The host owns the network namespace, so low ports are for every user inside. Written by our own
 * proc: in the machine's the kernel keeps a name like this for every network namespace, and looks
 * through all of them. */
static fallible open_low_ports(void)
{
    return write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
}

/* Files that a sandbox must not see, readable or not. */
static const char *const masked_files[] = {
    "/proc/kcore",       "/proc/keys",          "/proc/timer_list",   "/proc/locks",
    "/proc/sched_debug", "/proc/latency_stats", "/proc/sysrq-trigger"};
static const char *const masked_dirs[] = {"/proc/acpi", "/proc/asound", "/proc/scsi",
                                          "/proc/bus",  "/proc/irq",    "/proc/fs"};

/* The first one there gets the mask, the others are that one again. */
static fallible mask_all(const char *const *paths, size_t count, int mask)
{
    const char *first = NULL;

    for (size_t i = 0; i < count; i++) {
        const char *at = paths[i];
        int r = first ? mount(first, at, NULL, MS_BIND, NULL) : sys_move_mount(mask, AT_FDCWD, at);
        if (r < 0 && errno != ENOENT)
            return err_sys("mask '%s'", at);
        if (r == 0)
            first = at;
    }
    return NULL;
}

static fallible own_net(void)
{
    if (unshare(CLONE_NEWNET) < 0)
        return sys_not_of_disk(err_sys("make a network namespace"));
    return bring_up_loopback();
}

static fallible make_proc(const struct mounts_memory *memory)
{
    /* Over the old one: it is moved into the new root with its masks. */
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_sys("mount proc");
    TRY(open_low_ports());
    TRY(mask_all(masked_files, ARRAY_LEN(masked_files), memory->null));
    TRY(mask_all(masked_dirs, ARRAY_LEN(masked_dirs), memory->none));
    if (mount("/proc/sys", "/proc/sys", NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, "/proc/sys", NULL,
              MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_sys("make '/proc/sys' read-only");
    return NULL;
}

/* The place where the root file system is mounted in the end. */
static void mount_point(const struct box_host *h, char out[BOX_STATE + 8])
{
    snprintf(out, BOX_STATE + 8, "%s/" BOX_PLACE, h->bare < 0 ? h->state : "");
}

static fallible make_memory(const struct box_host *h, unsigned slot, struct mounts_memory *memory)
{
    struct ids_range ids = box_ids(h, slot);
    char at[BOX_STATE + 8];

    mount_point(h, at);
    TRY(ids_enter(&ids));
    TRY(mounts_memory(at, h->user, memory));
    return ids_leave();
}

static fallible first_half(const struct box_host *h, const struct box_spare *e,
                           struct mounts_memory *memory)
{
    char group[BOX_NAME];

    reset_signals();
    umask(022);
    if (setsid() < 0)
        return err_sys("start a session");
    box_group_name(e->slot, group);
    if (!e->again)
        TRY(cg_make(&h->cg, group));
    TRY(cg_join_v1(&h->cg, group));
    TRY(own_net());
    if (unshare(CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | (h->bare >= 0 ? CLONE_NEWNS : 0)) <
        0)
        return sys_not_of_disk(err_sys("make namespaces"));
    if (h->bare < 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys("keep mounts to ourselves");
    TRY(make_memory(h, e->slot, memory));
    struct err *err = make_proc(memory);
    own_close_p(&memory->none);
    own_close_p(&memory->null);
    return err;
}

/* --- the second half: by order --- */

struct inside {
    const struct box_host *h;
    struct box_order order;
    int fds[FD_PASS_MAX];
    size_t fd_count, at; /* at: the next one not used yet */
    char *block;
    const char **argv, **env;
    int sock, oom, memory_now;
    struct mounts_memory memory;
};

static fallible child_receive(struct inside *in)
{
    size_t n = 0;

    TRY(fd_recv(in->sock, &in->order, sizeof in->order, &n, in->fds, FD_PASS_MAX, &in->fd_count));
    if (n == 0)
        return err_new(ERR_CLOSED, "nobody wants this sandbox");
    if (n != sizeof in->order || in->fd_count < ORDER_FIXED + in->order.root_count ||
        in->order.root_count < 1 || in->order.root_count > BOX_ROOTS)
        return err_new(ERR_INTERNAL, "a torn order");
    in->at = ORDER_FIXED;
    return NULL;
}

/* Root becomes the working directory. */
static fallible enter_root(struct inside *in)
{
    char at[BOX_STATE + 8];

    mount_point(in->h, at);
    if (sys_move_mount(in->fds[in->at++], AT_FDCWD, at) < 0)
        return sys_not_of_disk(err_sys("mount the root file system"));
    if (chdir(at) < 0)
        return err_sys("enter the root file system");
    return NULL;
}

static fallible attach_new(const char *type, const char *const *options, unsigned attr, int root,
                           const char *path)
{
    own_fd mount = -1;

    TRY(mounts_new(type, options, attr, &mount));
    return mounts_attach(mount, root, path, false);
}

/* tty: the group of terminals, 0: none. */
static fallible attach_pts(uint32_t tty, int root)
{
    const unsigned attr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
    char gid[32];
    const char *options[] = {"newinstance", "ptmxmode=0666",  "mode=620",
                             TERMINALS,     tty ? gid : NULL, NULL};

    snprintf(gid, sizeof gid, "gid=%" PRIu32, tty);
    struct err *e = attach_new("devpts", options, attr, root, "dev/pts");
    if (!e || tty <= INT32_MAX || err_errno(e) != EINVAL)
        return e;
    /* Linux 6.1 wants a signed number of 32 bits, spelled as an unsigned one of 64. */
    err_free(e);
    snprintf(gid, sizeof gid, "gid=%" PRIu64, (uint64_t)(int64_t)(int32_t)tty);
    return attach_new("devpts", options, attr, root, "dev/pts");
}

static fallible attach_system(struct inside *in, int root, const struct ids_range *ids)
{
    own_fd proc = sys_open_tree(AT_FDCWD, "/proc", 0);

    /* the tty group, as the host counts it */
    uint32_t tty = ids->sub_count ? ids->sub_gid + TTY_GROUP - ids->count : ids->gid + TTY_GROUP;
    if (ids->count == 1 && !ids->sub_count)
        tty = 0; /* there is none */
    TRY(in->h->user ? mounts_user_dev(in->memory.dev, root)
                    : mounts_attach(in->memory.dev, root, "dev", false));
    TRY(attach_pts(tty, root));
    TRY(mounts_attach(in->memory.shm, root, "dev/shm", false));
    if (proc < 0)
        return err_sys("open '/proc'");
    return mounts_attach(proc, root, "proc", false);
}

static fallible attach_mounts(struct inside *in, int root)
{
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        const struct native_mount *m = &in->order.req.mounts[i];
        struct stat st;
        if (!m->mode)
            continue;
        if (in->at >= in->fd_count)
            return err_new(ERR_INTERNAL, "a mount is missing");
        int mount = in->fds[in->at++];
        if (fstat(mount, &st) < 0)
            return err_sys("look at the source of '%s'", m->target);
        TRY(mounts_attach(mount, root, m->target + 1, !S_ISDIR(st.st_mode)));
    }
    return NULL;
}

static fallible leave_root(void)
{
    if (sys_pivot_root(".", ".") < 0)
        return err_sys("change the root");
    return umount2(".", MNT_DETACH) < 0 ? err_sys("let go of the old root") : NULL;
}

/* See box_bare.c. */
static fallible cover_root(int root)
{
    if (sys_move_mount(root, AT_FDCWD, "/") < 0)
        return err_sys("mount the root over the empty one");
    return chroot(".") < 0 ? err_sys("change the root") : NULL;
}

static fallible build_root(struct inside *in)
{
    struct ids_range ids = box_ids(in->h, in->order.slot);

    TRY(enter_root(in));
    own_fd root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return err_sys("open the root file system");
    TRY(ids_enter(&ids)); /* directories that are missing are made as the sandbox's root */
    for (unsigned i = 1; i < in->order.root_count; i++)
        TRY(mounts_attach(in->fds[in->at++], root, in->order.where[i], false));
    TRY(attach_system(in, root, &ids));
    TRY(attach_mounts(in, root));
    TRY(ids_leave());
    TRY(in->h->bare >= 0 ? cover_root(root) : leave_root());
    if (chdir("/") < 0)
        return err_sys("enter '/'");
    if (sethostname(in->order.req.hostname, strlen(in->order.req.hostname)) < 0)
        return err_sys("set the host name");
    return NULL;
}

static fallible become_root_inside(struct inside *in)
{
    if (setns(in->fds[ORDER_USERNS], CLONE_NEWUSER) < 0)
        return err_sys("enter the user namespace");
    if ((!in->h->user || in->h->sub.count) && setgroups(0, NULL) < 0)
        return err_sys("leave all groups");
    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return err_sys("become root inside");
    return NULL;
}

static fallible set_group_limits(const struct inside *in)
{
    char group[BOX_NAME];

    box_group_name(in->order.slot, group);
    struct native_limits was = cg_part(&in->h->cg, &in->order.was, false);
    struct native_limits now = cg_part(&in->h->cg, &in->order.req.limits, false);
    return cg_limit(&in->h->cg, group, &was, &now);
}

static fallible set_limits(const struct native_request *r)
{
    struct rlimit core = {0, 0}, files = {r->limits.nofile, r->limits.nofile};

    if (setrlimit(RLIMIT_CORE, &core) < 0) /* a core pattern may name a program of the host's */
        return err_sys("forbid core files");
    if (r->limits.nofile && setrlimit(RLIMIT_NOFILE, &files) < 0)
        return err_sys("limit open files to %u", r->limits.nofile);
    return NULL;
}

/* --- descriptors --- */

/* A terminal of the sandbox's own: its master goes to the caller, its slave is stdin to stderr. It
 * belongs to no session yet: the command's takes it, for only there are jobs and keys that signal.
 */
static fallible make_tty(struct inside *in, int *ret_slave)
{
    own_fd master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct box_report r = {.kind = REPORT_TTY};
    int unlocked = 0;

    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
        return err_sys("make a terminal");
    struct winsize size = {.ws_row = in->order.tty_rows, .ws_col = in->order.tty_cols};
    if (size.ws_row && ioctl(master, TIOCSWINSZ, &size) < 0)
        return err_sys("give the terminal its size");
    own_fd slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        return err_sys("open the terminal");
    TRY(fd_send(in->sock, str_n(&r, sizeof r), &master, 1));
    *ret_slave = take_fd(&slave);
    return NULL;
}

static fallible child_place(int fd, int number)
{
    if (fd >= 0 && dup2(fd, number) < 0)
        return err_sys("place descriptor %d", number);
    return NULL;
}

static fallible child_lift(int *fd)
{
    if (*fd >= HIGH_FD)
        return NULL;
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return err_sys("move a descriptor");
    own_close(*fd);
    *fd = high;
    return NULL;
}

/* The counter of kills and what is used, while we may still open them: inside they are only read.
 */
static fallible open_oom(struct inside *in)
{
    char group[BOX_NAME];

    in->oom = in->memory_now = -1;
    if (!in->order.oom_at)
        return NULL;
    box_group_name(in->order.slot, group);
    TRY(cg_open_oom(&in->h->cg, group, &in->oom));
    return cg_open_memory(&in->h->cg, group, &in->memory_now);
}

static fallible place_fds(struct inside *in)
{
    int last = -1, slave = -1;

    TRY(child_lift(&in->sock));
    for (size_t i = 0; i < in->fd_count; i++)
        TRY(child_lift(&in->fds[i]));
    if (in->oom >= 0)
        TRY(child_lift(&in->oom));
    if (in->memory_now >= 0)
        TRY(child_lift(&in->memory_now));
    if (in->order.flags & BOX_TTY)
        TRY(make_tty(in, &slave));
    own_fd null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return err_sys("open '/dev/null'");
    for (unsigned i = 0; i < in->order.fd_count || i < 3; i++) {
        bool given = i < in->order.fd_count && in->order.fd_given >> i & 1;
        if (given && in->at >= in->fd_count)
            return err_new(ERR_INTERNAL, "a descriptor is missing");
        int fd = given ? in->fds[in->at++] : i < 3 ? null : -1;
        TRY(child_place(i < 3 && slave >= 0 ? slave : fd, (int)i));
        last = (int)i;
    }
    TRY(child_place(in->oom, (int)in->order.oom_at));
    TRY(child_place(in->memory_now, (int)in->order.oom_at + 1));
    if (in->memory_now >= 0 && (int)in->order.oom_at + 1 > last)
        last = (int)in->order.oom_at + 1;
    if (slave > 2)
        own_close(slave);
    if (sys_close_range((unsigned)last + 1, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
        return err_sys("close descriptors");
    return NULL;
}

/* --- arguments --- */

static char *child_split(char *at, const char *end, const char **into, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        if (!nul)
            return NULL;
        into[i] = at;
        at = nul + 1;
    }
    return at;
}

/* Maps the words of the server. They are read only here, behind every wall. A sandbox that waits
 * for its claim has none. */
static fallible map_block(struct inside *in, size_t *ret_size)
{
    struct stat st;

    *ret_size = 0;
    in->block = in->order.prefix; /* of which none is read */
    if (in->order.req.flags & NATIVE_WARM)
        return NULL;
    if (fstat(in->fds[ORDER_BLOCK], &st) < 0)
        return err_sys("look at the arguments");
    if (st.st_size < 1 || st.st_size > NATIVE_BLOCK_MAX)
        return err_new(ERR_INVALID, "arguments and environment of %lld bytes",
                       (long long)st.st_size);
    *ret_size = (size_t)st.st_size;
    in->block = mmap(NULL, *ret_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, in->fds[ORDER_BLOCK], 0);
    return in->block == MAP_FAILED ? err_sys("map the arguments") : NULL;
}

static fallible read_block(struct inside *in)
{
    const struct native_request *r = &in->order.req;
    size_t size;

    TRY(map_block(in, &size));
    uint32_t argc = in->order.prefix_count + r->argc;
    if (in->order.prefix_count > BOX_PREFIX)
        return err_new(ERR_INTERNAL, "a torn order");
    in->argv = mem_try((argc + 1) * sizeof *in->argv); /* an abort would look like an exec */
    in->env = mem_try((r->envc + 1) * sizeof *in->env);
    if (!in->argv || !in->env)
        return err_new(ERR_LIMIT, "no memory for %u arguments: start it again later", argc);
    char *prefix = in->order.prefix, *at = in->block;
    const char *end = in->block + size;
    if (!child_split(prefix, prefix + BOX_PREFIX, in->argv, in->order.prefix_count) ||
        !(at = child_split(at, end, in->argv + in->order.prefix_count, r->argc)) ||
        !child_split(at, end, in->env, r->envc))
        return err_new(ERR_INVALID, "fewer arguments than announced");
    in->argv[argc] = in->env[r->envc] = NULL;
    return NULL;
}

static fallible child_confine(struct inside *in)
{
    bool nested = in->order.req.flags & NATIVE_NESTED;

    if (in->h->landlock && !nested)
        TRY(confine_landlock(in->h->landlock, in->fds[ORDER_EXE]));
    if (in->order.req.flags & NATIVE_NO_NEW_PRIVS)
        TRY(confine_no_new_privs());
    TRY(confine_seccomp(nested ? &in->h->nested : &in->h->filter));
    return confine_caps(CONFINE_CAPS);
}

/* After the change of ids, which clears the signal. A parent that died before that has hung up. */
static fallible live_with_parent(const struct inside *in)
{
    struct pollfd parent = {.fd = in->sock, .events = POLLRDHUP};

    if (!(in->order.flags & BOX_DIE_WITH_PARENT))
        return NULL;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return err_sys("die with our parent");
    if (poll(&parent, 1, 0) != 0)
        return err_new(ERR_CLOSED, "nobody wants this sandbox");
    return NULL;
}

static fallible second_half(struct inside *in)
{
    TRY(child_receive(in));
    TRY(set_group_limits(in));
    TRY(open_oom(in));
    TRY(build_root(in));
    TRY(set_limits(&in->order.req));
    TRY(become_root_inside(in));
    TRY(live_with_parent(in));
    TRY(place_fds(in));
    TRY(child_confine(in));
    TRY(read_block(in));
    sys_execveat(in->fds[ORDER_EXE], in->argv, in->env);
    return err_sys("run croft-guest");
}

_Noreturn void box_child(const struct box_host *h, struct box_spare *spare, int sock)
{
    struct inside in = {.h = h, .sock = sock};
    if (sock < 0)
        _exit(125);     /* every descriptor here is the launcher's */
    close(spare->sock); /* or we would never hear that it has died */
    struct err *e = first_half(h, spare, &in.memory);

    if (!e)
        e = second_half(&in);
    struct box_report r = {
        .kind = REPORT_ERROR, .code = err_code(e), .errnum = (uint32_t)err_errno(e)};
    snprintf(r.text, sizeof r.text, "%s", err_text(e));
    err_free(fd_send(in.sock, str_n(&r, sizeof r), NULL,
                     0)); /* the launcher is gone: then it is not told */
    _exit(125);
}
