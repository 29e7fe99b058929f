// SPDX-License-Identifier: Apache-2.0
/* resolve.c — see resolve.h. getaddrinfo cannot be interrupted, so a cancelled request lives on,
 * without an owner, until its thread is done. */
#include "out/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "loop/loop.h"

struct resolve {
    struct loop_work work;
    void (*done)(void *owner, struct err *e, const struct resolve_addrs *addrs);
    void *owner;
    bool cancelled;
    int error, errnum; /* of getaddrinfo */
    struct resolve_addrs addrs;
    char port[8];
    char host[256];
};

static void run_resolve(struct loop_work *w)
{
    struct resolve *r = container_of(w, struct resolve, work);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;

    r->error = getaddrinfo(r->host, r->port, &hints, &found);
    r->errnum = errno;
    if (r->error)
        return;
    for (struct addrinfo *a = found; a && r->addrs.count < RESOLVE_MAX; a = a->ai_next) {
        if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
            continue;
        memcpy(&r->addrs.at[r->addrs.count].addr, a->ai_addr, a->ai_addrlen);
        r->addrs.at[r->addrs.count++].len = a->ai_addrlen;
    }
    freeaddrinfo(found);
}

static void on_resolved(struct loop_work *w)
{
    struct resolve *r = container_of(w, struct resolve, work);

    if (r->cancelled) {
        free(r);
        return;
    }
    struct err *e = NULL;
    if (r->error == EAI_SYSTEM)
        e = err_sysno(r->errnum, "resolve '%s'", r->host);
    else if (r->error)
        e = err_new(ERR_UPSTREAM, "resolve '%s': %s", r->host, gai_strerror(r->error));
    else if (r->addrs.count == 0)
        e = err_new(ERR_UPSTREAM, "resolve '%s': no address", r->host);
    r->done(r->owner, e, e ? NULL : &r->addrs);
    free(r);
}

fallible resolve_start(struct loop *loop, struct str host, uint16_t port,
                       void (*done)(void *owner, struct err *e, const struct resolve_addrs *addrs),
                       void *owner, struct resolve **ret_resolve)
{
    own_free struct resolve *r = mem_try(sizeof *r);

    if (!r)
        return err_no_memory();
    if (host.len >= sizeof r->host || memchr(host.p, '\0', host.len))
        return err_new(ERR_INVALID, "bad host name");
    memcpy(r->host, host.p, host.len);
    snprintf(r->port, sizeof r->port, "%u", port);
    r->done = done;
    r->owner = owner;
    TRY_WRAP(loop_work(loop, &r->work, run_resolve, on_resolved), "resolve '%s'", r->host);
    *ret_resolve = take(&r);
    return NULL;
}

void resolve_cancel(struct resolve *r)
{
    if (r)
        r->cancelled = true; /* freed when the thread is done with it */
}
