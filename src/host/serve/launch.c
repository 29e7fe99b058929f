// SPDX-License-Identifier: Apache-2.0
/* launch.c — see launch.h. */
#include "host/serve/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "host/build/build.h"
#include "host/config/settings.h"
#include "host/launcher/box.h"
#include "host/launcher/launcher.h"
#include "host/launcher/layers.h"

#define ENDING_MOST 256 /* that are not gone yet: the server's own bound is the one people meet */
#define EMBRYOS     16
#define ANSWER_MS   60000 /* a launcher that takes over thousands of sandboxes, on a slow day */
#define SLICE_NS    100000

/* What the machine gives; a limit that nobody would enforce is said, not pretended. */
static void look(struct launch *l, const struct layout *where, const struct settings *s)
{
    const struct settings_limits *r = &s->limits;
    struct box_host h;

    box_host_look(&h, where->state);
    l->caps = layers_caps(&h);
    box_host_close(&h);
    bool memory = l->caps & SBX_LIMITS_MEMORY, pids = l->caps & SBX_LIMITS_PIDS,
         cpu = l->caps & SBX_LIMITS_CPU, disk = l->caps & SBX_LIMITS_DISK;
    l->limits = (struct sbx_limits){
        .memory_bytes = memory ? r->memory : 0,
        .disk_bytes = disk ? r->disk : 0,
        .pids = pids ? (uint32_t)r->pids : 0,
        .cpu_permille = cpu ? (uint32_t)(r->cpus * 1000) : 0,
        .open_files = (uint32_t)r->open_files,
    };
    if ((r->memory && !memory) || (r->pids && !pids) || (r->cpus > 0 && !cpu) || (r->disk && !disk))
        log_warn("limits of sandboxes cannot be enforced here: 'croft doctor' says why",
                 KV("memory", memory), KV("pids", pids), KV("cpu", cpu), KV("disk", disk));
}

static struct launcher_policy policy_of(const struct layout *where, const struct settings *s)
{
    static const char *const images[] = {NULL}; /* the machine's own system */

    return (struct launcher_policy){
        .state = where->state,
        .images = images,
        .image_count = ARRAY_LEN(images),
        .roots = {{.path = where->builds, .dir = where->builds_dir, .modes = 1u << NATIVE_RO}},
        .root_count = 1,
        .nested = builds_possible(),
        .stored_images = true,
        .import_images = true,
        .most = (unsigned)s->most_sandboxes + ENDING_MOST,
        .embryos = EMBRYOS,
        .keep = true,
        .sockets = where->sockets,
        .server = where->separate ? where->user.uid : geteuid()};
}

/* One question, so that we know it is there, and ours. */
static fallible greet(int sock)
{
    struct native_request req = {
        .magic = NATIVE_MAGIC, .version = NATIVE_VERSION, .op = NATIVE_LIST};
    struct native_reply reply;
    size_t n = 0, count;

    TRY(fd_send(sock, str_n(&req, sizeof req), NULL, 0));
    TRY_WRAP(fd_wait(sock, POLLIN, ANSWER_MS), "the launcher");
    TRY(fd_recv(sock, &reply, sizeof reply, &n, NULL, 0, &count));
    if (n == 0)
        return err_new(ERR_CLOSED, "the launcher ended");
    if (n != sizeof reply || reply.magic != NATIVE_MAGIC || reply.version != NATIVE_VERSION)
        return err_new(ERR_UNSUPPORTED,
                       "the launcher is of another croft: stop its sandboxes with that one first");
    reply.text[sizeof reply.text - 1] = '\0';
    if (!reply.code)
        return NULL;
    return err_recode(err_new(ERR_INTERNAL, "%s", reply.text), (enum err_code)(reply.code - 1));
}

/* It outlives us and holds what it inherits: our standard output must not be among that. */
static fallible fork_new(struct launch *l, const struct launcher_policy *policy)
{
    own_fd out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        close(STDOUT_FILENO);
    struct err *e = launcher_fork(policy, &l->sock, &l->pid);
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    return e;
}

/* Who answers asks for short slices and so gets them early (Linux 6.12; older ones do not mind):
 * what the sandbox that was claimed has to do does not delay the news of it. No more time in all is
 * had by this. What a launcher starts has slices like everybody. */
static void answer_early(pid_t pid, uint64_t flags)
{
    struct sched_attr a = {.size = sizeof a, .sched_flags = flags, .sched_runtime = SLICE_NS};

    if (syscall(SYS_sched_setattr, pid, &a, 0) < 0)
        log_debug("no short slices", KV("errno", errno));
}

static fallible join(struct launch *l, const struct layout *where)
{
    own_fd sock = -1;

    TRY(launcher_connect(where->sockets, &sock));
    TRY(greet(sock));
    l->sock = take_fd(&sock);
    return NULL;
}

static fallible find(struct launch *l, const struct layout *where, const struct settings *s)
{
    struct launcher_policy policy = policy_of(where, s);

    *l = (struct launch){.sock = -1};
    look(l, where, s);
    struct err *e = join(l, where);
    if (!e) {
        log_info("joined the launcher that was there");
        return NULL;
    }
    if (err_code(e) != ERR_NOT_FOUND && err_code(e) != ERR_CLOSED && err_errno(e) != ECONNRESET &&
        err_errno(e) != EPIPE)
        return e;
    err_free(e); /* there is none, or it was about to end */
    TRY(fork_new(l, &policy));
    answer_early(l->pid, SCHED_FLAG_RESET_ON_FORK);
    return err_wrap(greet(l->sock), "start the launcher");
}

fallible launch_open(struct launch *l, const struct layout *where, const struct settings *s)
{
    TRY(find(l, where, s));
    answer_early(0, 0); /* and our threads, which come later */
    return NULL;
}
