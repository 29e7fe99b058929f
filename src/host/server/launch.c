// SPDX-License-Identifier: Apache-2.0
/* launch.c — see launch.h. */
#include "host/server/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "host/build/build.h"
#include "host/config/settings.h"
#include "host/launcher/box.h"
#include "host/launcher/launcher.h"
#include "host/launcher/layers.h"
#include "host/launcher/slice.h"
#include "host/server/grants.h"
#include "host/server/roots.h"

#define ENDING_MOST 256 /* sandboxes that end, beside server.most_sandboxes */
#define SPARES      16
#define ANSWER_MS   60000 /* enough for a launcher that takes over thousands of sandboxes */

struct launch_settings {
    uint64_t memory, disk, pids, open_files; /* of a sandbox of resource_factor 1; 0: none */
    double cpus;
    uint64_t most; /* sandboxes at once */
};

static const struct cfg_row rows[] = {
    CFG_SIZE(launch_settings, memory, "limits.memory", "3G",
             "Memory of a sandbox; resource_factor multiplies it. 0 is no limit.", .flag = "",
             .at_start = true),
    CFG_DOUBLE(launch_settings, cpus, "limits.cpus", 2,
               "Processors of a sandbox; resource_factor multiplies it. 0 is no limit.", .flag = "",
               .at_start = true, .max = 4096),
    CFG_UINT(launch_settings, pids, "limits.pids", 4096,
             "Processes and threads of a sandbox. 0 is no limit.", .flag = "", .at_start = true,
             .max = 4194304),
    CFG_SIZE(launch_settings, disk, "limits.disk", "0",
             "What a sandbox may write to its disk; 'croft doctor' says by what means, and without "
             "project quotas a start takes some 10 ms longer. 0 is no limit.",
             .flag = "", .at_start = true),
    CFG_UINT(launch_settings, open_files, "limits.open_files", 0,
             "Files a process of a sandbox may have open. 0 is as the host has it.", .flag = "",
             .at_start = true, .max = 1048576),
    CFG_UINT(launch_settings, most, "server.most_sandboxes", 8000,
             "Sandboxes at once, warm ones included.", .flag = "", .min = 1, .max = 100000),
};
CFG_TABLE(launch) = {rows, ARRAY_LEN(rows), .size = sizeof(struct launch_settings)};

static const struct launch_settings *own_settings(const struct settings *s)
{
    return settings_of(s, CFG_TABLE_OF(launch));
}

unsigned launch_most(const struct settings *s)
{
    return (unsigned)own_settings(s)->most;
}

/* Looks at what the machine can do. A limit that it cannot enforce is logged and left out. */
static void launch_look(struct launch *l, const struct layout *where, const struct settings *s)
{
    const struct launch_settings *r = own_settings(s);
    struct box_host h;

    box_host_look(&h, where->state);
    l->caps = layers_caps(&h);
    layers_lacks(&h, l->lacks);
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
    if (!(l->caps & SBX_CAN_USER))
        log_warn("sandboxes have no user but root here, who is this user: --username of a start is "
                 "not heeded, run_as_user refused; 'croft doctor' says how to get users");
}

/* --- what sandboxes may mount --- */

static bool is_within(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && (!path[n] || path[n] == '/');
}

static fallible open_mount(const struct layout *where, const struct grant *m,
                           struct launcher_root *ret)
{
    char real[PATH_MAX], state[PATH_MAX];
    static const struct {
        unsigned may, modes;
    } bits[] = {{GRANT_RO, 1u << NATIVE_RO},
                {GRANT_RW, 1u << NATIVE_RW},
                {GRANT_OVERLAY, 1u << NATIVE_OVERLAY},
                {GRANT_APPLY, LAUNCHER_APPLY}};

    if (!realpath(m->path.p, real) || !realpath(where->state, state))
        return err_sys("mount." STR_FMT ".path '%s'", STR_ARG(m->name), m->path.p);
    if (is_within(real, state) || is_within(state, real))
        return err_new(ERR_INVALID,
                       "mount." STR_FMT ".path '%s': the server's own state is there; no sandbox "
                       "may see it",
                       STR_ARG(m->name), m->path.p);
    if (ret->path)
        own_close(ret->dir); /* named twice: both grant */
    ret->dir = open(m->path.p, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ret->dir < 0)
        return err_sys("mount." STR_FMT ".path '%s'", STR_ARG(m->name), m->path.p);
    ret->path = m->path.p;
    for (size_t i = 0; i < ARRAY_LEN(bits); i++)
        if (m->may & bits[i].may)
            ret->modes |= bits[i].modes;
    return NULL;
}
_Static_assert(GRANTS_MOST < LAUNCHER_ROOTS, "every mount has a place in the policy");

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
        .most = launch_most(s) + ENDING_MOST,
        .spares = SPARES,
        .persist = true,
        .sockets = where->sockets,
        .server = where->separate ? where->user.uid : geteuid()};
}

/* Messages before the answer are dropped: deaths of sandboxes, and answers to the server before us.
 * Adoption asks for both again. When the launcher refuses this server, its reply has no op. */
static fallible launch_ask(int sock, uint32_t op, uint32_t index, struct native_reply *reply)
{
    struct native_request req = {
        .magic = NATIVE_MAGIC, .version = NATIVE_VERSION, .op = op, .image = index, .tag = 1};
    size_t n = 0, count = 0;
    int fds[FD_PASS_MAX]; /* of answers to another server */

    TRY(fd_send(sock, str_n(&req, sizeof req), NULL, 0));
    do {
        TRY_WRAP(fd_wait(sock, POLLIN, ANSWER_MS), "the launcher");
        TRY(fd_recv(sock, reply, sizeof *reply, &n, fds, FD_PASS_MAX, &count));
        while (count)
            own_close(fds[--count]);
        if (n == 0)
            return err_new(ERR_CLOSED, "the launcher ended");
        if (n != sizeof *reply || reply->magic != NATIVE_MAGIC || reply->version != NATIVE_VERSION)
            return err_new(
                ERR_UNSUPPORTED,
                "the launcher is of another croft: stop its sandboxes with that one first");
    } while (reply->op && reply->op != op);
    reply->text[sizeof reply->text - 1] = '\0';
    if (!reply->code)
        return NULL;
    return err_recode(err_new(ERR_INTERNAL, "%s", reply->text), (enum err_code)(reply->code - 1));
}

/* One question: is the launcher there, and of this croft? */
static fallible launch_greet(int sock)
{
    struct native_reply reply;

    return launch_ask(sock, NATIVE_LIST, 0, &reply);
}

/* The launcher knows directories by numbers. One that lives has the numbers of its own start. */
static fallible learn_roots(struct launch *l)
{
    struct native_reply reply = {.count = 1};

    for (uint32_t i = 0; i < reply.count && i < LAUNCHER_ROOTS; i++) {
        TRY_WRAP(launch_ask(l->sock, NATIVE_ROOT, i, &reply), "its directories");
        snprintf(l->roots[i], sizeof l->roots[i], "%s", reply.text);
        l->root_modes[i] = reply.flags;
        l->root_count = i + 1;
    }
    return NULL;
}

static void tell_what_is_old(const struct launch *l, const struct launcher_policy *want)
{
    for (size_t i = 1; i < want->root_count; i++) {
        bool same = !want->roots[i].path;
        for (size_t at = 0; at < l->root_count; at++)
            same = same || (strcmp(l->roots[at], want->roots[i].path) == 0 &&
                            l->root_modes[at] == want->roots[i].modes);
        if (!same)
            log_warn("the launcher that lives does not know this directory of [mount]: stop all "
                     "sandboxes and start the server again",
                     KV("path", want->roots[i].path));
    }
}

/* The launcher outlives the server and keeps what it inherits. Without this it would keep the
 * server's standard output open. */
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

static fallible launch_join(struct launch *l, const struct layout *where)
{
    own_fd sock = -1;

    TRY(launcher_connect(where->sockets, &sock));
    TRY(launch_greet(sock));
    l->sock = take_fd(&sock);
    return NULL;
}

static fallible join_or_fork(struct launch *l, const struct layout *where,
                             const struct launcher_policy *policy)
{
    struct err *e = launch_join(l, where);

    if (!e) {
        log_info("joined the launcher that was there");
        return learn_roots(l);
    }
    if (err_code(e) != ERR_NOT_FOUND && err_code(e) != ERR_CLOSED && err_errno(e) != ECONNRESET &&
        err_errno(e) != EPIPE)
        return e;
    err_free(e); /* there is none, or it was about to end */
    TRY(fork_new(l, policy));
    return err_wrap(learn_roots(l), "start the launcher");
}

static fallible launch_find(struct launch *l, const struct layout *where, const struct settings *s)
{
    struct launcher_policy policy = policy_of(where, s);
    unsigned numbers[GRANTS_MOST];
    struct err *e = NULL;
    size_t count;
    const struct grant *grants = grants_of(s, &count);

    *l = (struct launch){.sock = -1};
    launch_look(l, where, s);
    if (count)
        e = roots_number(where->state, grants, count, numbers);
    for (size_t i = 0; !e && i < count; i++) {
        struct launcher_root *root = &policy.roots[numbers[i]];
        e = open_mount(where, &grants[i], root);
        if (policy.root_count <= numbers[i])
            policy.root_count = numbers[i] + 1;
    }
    if (!e)
        e = join_or_fork(l, where, &policy);
    if (!e)
        tell_what_is_old(l, &policy);
    for (size_t i = 1; i < policy.root_count; i++)
        if (policy.roots[i].path)
            own_close(policy.roots[i].dir);
    return e;
}

fallible launch_open(struct launch *l, const struct layout *where, const struct settings *s)
{
    TRY(launch_find(l, where, s));
    slice_short(true); /* before the server has threads */
    return NULL;
}
