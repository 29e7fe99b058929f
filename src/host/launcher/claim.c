// SPDX-License-Identifier: Apache-2.0
/* claim.c — what the policy lets a server have, and the claim of a warm sandbox. A claim asks
 * for no more than a start may: the same rules, once. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/own.h"
#include "host/launcher/inner.h"
#include "host/launcher/start.h"
#include "wire/bind.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* --- policy --- */

static fallible claim_bound(const char *what, uint64_t ceiling, uint64_t asked)
{
    if (ceiling && asked > ceiling)
        return err_new(ERR_FORBIDDEN, "%s: %llu is over the ceiling of %llu", what,
                       (unsigned long long)asked, (unsigned long long)ceiling);
    return NULL;
}

#define BOUND(field)                                                                               \
    do {                                                                                           \
        if (!r->limits.field)                                                                      \
            r->limits.field = p->otherwise.field ? p->otherwise.field : p->ceiling.field;          \
        TRY(claim_bound(#field, p->ceiling.field, r->limits.field));                               \
    } while (0)

static fallible apply_limits(const struct launcher_policy *p, struct native_request *r)
{
    BOUND(memory_bytes);
    BOUND(disk_bytes);
    BOUND(pids);
    BOUND(cpu_milli);
    BOUND(nofile);
    return NULL;
}

fallible launcher_apply_policy(const struct launcher *l, struct native_request *r)
{
    const struct launcher_policy *p = l->policy;

    if (r->image == NATIVE_IMAGE_STORED ? !p->stored_images : r->image >= p->image_count)
        return err_new(ERR_FORBIDDEN, "image %u is not on the list", r->image);
    if ((r->flags & NATIVE_NESTED) && !p->nested)
        return err_new(ERR_FORBIDDEN, "sandboxes may not make namespaces here");
    if (r->network != NATIVE_NET_NONE)
        return err_new(ERR_FORBIDDEN, "the host's network is not allowed");
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        const struct native_mount *m = &r->mounts[i];
        if (m->mode && m->root == NATIVE_ROOT_IMAGE) {
            if (!p->stored_images || m->mode != NATIVE_OVERLAY || r->op != NATIVE_START)
                return err_new(ERR_FORBIDDEN, "mount '%s': no image is to be had in this way",
                               m->target);
            continue;
        }
        if (m->mode && (m->root >= p->root_count || !(p->roots[m->root].modes >> m->mode & 1)))
            return err_new(ERR_FORBIDDEN, "mount '%s': root %u is not to be had in this way",
                           m->target, m->root);
    }
    return apply_limits(p, r);
}

/* A memfd that can no longer change: the child maps it, and a file of the server's could block or
 * shrink under it. Output goes to a pipe and nothing else: no socket of the host's enters. */
fallible launcher_check_block(const struct launcher_fds *in, size_t block, bool log)
{
    struct stat st;

    if (in->count != block + log)
        return err_new(ERR_INVALID, "%zu descriptors instead of %zu", in->count, block + log);
    if (block && fcntl(in->fds[0], F_GET_SEALS) != SEALS)
        return err_new(ERR_INVALID, "arguments: wanted a sealed memfd");
    if (log && (fstat(in->fds[block], &st) < 0 || !S_ISFIFO(st.st_mode)))
        return err_new(ERR_INVALID, "output: may go to a pipe only");
    return NULL;
}

fallible launcher_open_sources(const struct launcher *l, const struct native_request *r,
                               int sources[NATIVE_MOUNTS])
{
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        const struct native_mount *at = &r->mounts[i];
        if (at->mode && at->root != NATIVE_ROOT_IMAGE)
            TRY_WRAP(fd_open_beneath(l->policy->roots[at->root].dir, str_of(at->path), O_PATH, 0,
                                     &sources[i]),
                     "mount '%s'", at->target);
    }
    return NULL;
}

/* --- claims --- */

/* The place of its files was decided at its start. */
static fallible may_use_disk(const struct launcher_box *b, const struct native_request *r)
{
    if (r->limits.disk_bytes != b->waits->limits.disk_bytes)
        return err_new(ERR_UNSUPPORTED, "a warm sandbox keeps the disk limit it was started with");
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        if (r->mounts[i].mode == NATIVE_OVERLAY && b->disk > NATIVE_DISK_PROJECT)
            return err_new(ERR_UNSUPPORTED,
                           "mount '%s': a warm sandbox with a disk of its own takes no overlay",
                           r->mounts[i].target);
    return NULL;
}

static fallible may_claim(const struct launcher *l, const struct launcher_box *b,
                          struct native_request *r, const struct launcher_fds *in)
{
    if (b->state != NATIVE_WAITING)
        return err_new(ERR_CONFLICT, "sandbox '%s' does not wait for a claim", b->box.id);
    if (r->image_name[0] && strcmp(r->image_name, b->waits->image_name) != 0)
        return err_new(ERR_GONE, "sandbox '%s' stands on image %.12s, and %.12s was asked for",
                       b->box.id, b->waits->image_name, r->image_name);
    r->image = b->waits->image;
    memcpy(r->image_name, b->waits->image_name, sizeof r->image_name);
    TRY(launcher_apply_policy(l, r));
    TRY(may_use_disk(b, r));
    return launcher_check_block(in, 1, r->flags & NATIVE_FD_LOG);
}

/* Pid 1 has gone, and we have not heard of it yet? */
static bool is_gone(const struct launcher_box *b)
{
    struct pollfd p = {.fd = b->control};

    return poll(&p, 1, 0) != 0;
}

static fallible claim_box(struct launcher *l, struct launcher_box *b, const struct box_spec *spec)
{
    TRY(box_claim(&l->host, &b->box, spec, b->waits));
    return is_gone(b) ? err_new(ERR_CLOSED, "tell pid 1: it has ended") : NULL;
}

static void end_half_bound(struct launcher *l, struct launcher_box *b)
{
    b->box.single_use = true; /* its groups may not have the limits that were noted */
    struct err *lives = box_kill(&l->host, &b->box); /* no other process may use it */
    if (lives)
        log_warn("sandbox not killed", KV("id", b->box.id), KV_ERR(lives));
    err_free(lives);
}

/* The connection is closed with what came: its end wakes pid 1 once more. A pid 1 that has no room
 * for a byte is killed, and its end is told as any other. */
static void claim_give(struct launcher *l, struct launcher_box *b, struct launcher_fds *in)
{
    static const char byte = BIND_BYTE;
    own(err) e = fd_send(b->control, str_n(&byte, 1), in->fds, in->count);

    in->fds[in->count++] = take_fd(&b->control);
    if (!e)
        return;
    log_warn("a claim did not reach its sandbox", KV("id", b->box.id), KV_ERR(e));
    end_half_bound(l, b);
}

/* The server is answered before pid 1 is told: the sandbox has more to do than the launcher, and
 * might do that first on the same processor. */
fallible launcher_claim(struct launcher *l, struct launcher_box *b, const struct native_request *r,
                        struct launcher_fds *in, struct native_reply *reply, bool *ret_later)
{
    struct native_request req = *r;
    struct box_spec spec = {.req = &req,
                            .disk = b->disk == NATIVE_DISK_PROJECT ? b->disk : NATIVE_DISK_NONE};
    struct launcher_fds none = {.count = 0};
    struct err *e = may_claim(l, b, &req, in);

    memset(spec.sources, -1, sizeof spec.sources);
    if (!e)
        e = launcher_open_sources(l, &req, spec.sources);
    reply->state = b->state;
    if (!e && (e = claim_box(l, b, &spec))) {
        reply->state = NATIVE_EXITED;
        end_half_bound(l, b);
        b->tells_end = false; /* by this answer */
    } else if (!e) {
        b->state = reply->state = NATIVE_RUNNING;
        free(b->waits);
        b->waits = NULL;
        launcher_answer(l, reply, NULL, &none);
        *ret_later = true;
        claim_give(l, b, in);
    }
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        own_close_p(&spec.sources[i]);
    return e;
}
