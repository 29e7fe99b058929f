// SPDX-License-Identifier: Apache-2.0
/* describe.c — a runtime as clients see it. */
#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"

#define LAST_WORDS 4096

/* "ready" only when its server answers; clients wait 2 s for each other word. */
static const char *const pod_words[] = {
    [RUNTIME_STARTING] = "pending",  [RUNTIME_RUNNING] = "ready", [RUNTIME_PAUSED] = "not found",
    [RUNTIME_STOPPED] = "not found", [RUNTIME_ERROR] = "failed",
};

/* Behind something that speaks TLS for us, its names do too. */
static const char *describe_scheme(const struct manager_config *c)
{
    return str_starts(c->base_url, STR("https://")) ? "https" : "http";
}

/* The url has the id as a path: clients find VS Code and the workers below it. From a bare address
 * they would make "vscode-127.0.0.1". The listener answers without the id too. */
struct str runtime_url(const struct runtime *r, struct arena *a)
{
    const struct manager_config *c = &r->manager->config;

    if (c->domain.len)
        return arena_printf(a, "%s://%s%s" STR_FMT, describe_scheme(c), r->id,
                            c->domain.p[0] == '-' ? "" : ".", STR_ARG(c->domain));
    if (c->by_path)
        return arena_printf(a, STR_FMT "/%s", STR_ARG(c->base_url), r->id);
    return arena_printf(a, "http://127.0.0.1:%u/%s", r->port, r->id);
}

static struct str describe_service(const struct runtime *r, struct arena *a, const char *name)
{
    const struct manager_config *c = &r->manager->config;

    if (c->domain.len)
        return arena_printf(a, "%s://%s-%s%s" STR_FMT, describe_scheme(c), name, r->id,
                            c->domain.p[0] == '-' ? "" : ".", STR_ARG(c->domain));
    return arena_printf(a, STR_FMT "/%s", STR_ARG(runtime_url(r, a)), name);
}

/* The newest of what it said, while its files are there. */
struct str runtime_last_words(const struct runtime *r, struct arena *a)
{
    own_done(buf) out;

    buf_init(&out, LAST_WORDS);
    if (r->status.now != RUNTIME_ERROR || !r->sbx)
        return (struct str){0};
    err_free(sbx_logs(r->sbx, &out)); /* what there is will do */
    return out.len ? arena_copy(a, buf_str(&out)) : (struct str){0};
}

fallible runtime_describe(const struct runtime *r, struct arena *a, struct wire_runtime *ret)
{
    probe_look((struct runtime *)r);
    *ret = (struct wire_runtime){
        .runtime_id = str_of(r->id),
        .session_id = str_of(r->session_id),
        .url = runtime_url(r, a),
        .session_api_key = str_of(r->keys.session),
        .status = str_of(sm_name(&r->status)),
        .pod_status = runtime_is_silent(r) ? STR("running") : str_of(pod_words[r->status.now]),
        .status_detail = str_of(r->detail),
        .restart_count = r->restarts.count,
    };
    char when[CLOCK_ISO_MAX];
    ret->changed_at =
        arena_copy(a, str_n(when, clock_format_iso(r->changed_ms * NS_PER_MS, true, when)));
    ret->work_hosts[0].url = describe_service(r, a, "work-1");
    ret->work_hosts[0].port = RUNTIME_WORKER;
    ret->work_hosts[1].url = describe_service(r, a, "work-2");
    ret->work_hosts[1].port = RUNTIME_WORKER + 1;
    ret->vscode_url = describe_service(r, a, "vscode");
    if (r->restarts.count)
        ret->restart_reason = r->restarts.server_died ? STR("its server died and was started again")
                                                      : STR("it had ended and was resumed");
    return arena_check(a);
}
