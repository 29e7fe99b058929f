// SPDX-License-Identifier: Apache-2.0
/* look.c — what only the other server can see of a sandbox, if it is a croft: what it uses. Asked
 * for once: who looks is told that it cannot be had now. */
#include "sandbox/remote/inner.h"
#include "wire/remote.h"

static void on_measured(struct remote *r, const struct json *body, struct err *e)
{
    struct wire_remote_usage u;

    if (!e)
        e = wire_decode_remote_usage(body, &u);
    if (e) {
        remote_end_if_gone(r, e);
        return;
    }
    r->base.usage = (struct sbx_usage){.memory_bytes = u.memory_bytes,
                                       .cpu_ns = u.cpu_ns,
                                       .pids = u.pids,
                                       .oom_kills = u.oom_kills};
    sbx_finish(&r->base, NULL);
}

fallible remote_measure(struct sbx *s)
{
    struct remote *r = container_of(s, struct remote, base);

    TRY(sbx_need(s->driver, REMOTE_CROFT_CAPS, "count what a sandbox uses"));
    return remote_call_croft(r, "GET", "/stats", on_measured);
}
