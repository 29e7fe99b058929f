// SPDX-License-Identifier: Apache-2.0
/* watch.c — see watch.h. */
#include "host/watch/watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "host/config/settings.h"
#include "host/ops/journal.h"
#include "host/ops/metrics.h"
#include "host/keys/keys.h"
#include "host/part/part.h"
#include "host/proxy/proxy.h"
#include "host/server/layout.h"
#include "net/server.h"

static void on_commit(void *arg, uint64_t records, uint64_t sync_ns)
{
    struct watch *w = arg;

    metrics_add(w->metrics, METRIC_EVENTS, (double)records, NULL);
    metrics_observe_ns(w->metrics, METRIC_EVENT_FSYNC, sync_ns, NULL);
}

/* --- requests --- */

static bool changes_something(struct str method)
{
    return !str_eq(method, STR("GET")) && !str_eq(method, STR("HEAD")) &&
           !str_eq(method, STR("OPTIONS"));
}

/* No key, no right to what was named, or no quota left. */
static bool was_denied(int status)
{
    return status == 401 || status == 403 || status == 404 || status == 429;
}

/* Only the key says which client asked. A record without a key is for administrators. */
static void watch_audit(const struct watch *w, const struct http_req *req, int status)
{
    char action[32], text[16];
    const struct key *key = status == 401 ? NULL : keys_shown(w->keys, req);

    snprintf(action, sizeof action, STR_FMT, STR_ARG(str_first(req->head.method, 16)));
    snprintf(text, sizeof text, "%d", status);
    journal_add(w->journal, &(struct journal_note){
                                .kind = JOURNAL_AUDIT,
                                .tenant = key ? str_of(key_tenant(key)) : STR(""),
                                .actor = key ? str_of(key->name) : STR(""),
                                .paced = !key || !keys_any(w->keys),
                                .action = str_of(action),
                                .object = str_first(req->path, 512),
                                .decision = was_denied(status) ? STR("denied") : STR("allowed"),
                                .rule = str_of(text),
                                .request = http_req_id(req)});
}

/* Requests that succeed are logged for debugging only. */
static void watch_say(const char *api, const struct http_req *req, int status, uint64_t ns)
{
    enum log_level level = status >= 400 ? LOG_INFO : LOG_DEBUG;
    const struct log_kv fields[] = {KV("face", api),
                                    KV("method", req->head.method),
                                    KV("path", str_first(req->path, 512)),
                                    KV("status", status),
                                    KV("us", ns / 1000),
                                    KV("request_id", http_req_id(req)),
                                    {0}};

    if (log_enabled(level))
        log_event(level, "request", fields);
}

static void watch_count(const struct watch *w, const char *api, const struct http_req *req,
                        int status, uint64_t ns)
{
    static const char *const methods[] = {"GET", "POST", "DELETE", "PATCH",
                                          "PUT", "HEAD", "OPTIONS"};
    const char *method = "other";
    char code[16];

    watch_say(api, req, status, ns);
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (str_eq(req->head.method, str_of(methods[i])))
            method = methods[i];
    snprintf(code, sizeof code, "%d", status);
    if (strcmp(http_reason(status), "Unknown") == 0) /* sandboxes may make them up */
        snprintf(code, sizeof code, "other");
    metrics_add(w->metrics, METRIC_HTTP_REQUESTS, 1, METRIC_LABELS(api, method, code));
    metrics_observe_ns(w->metrics, METRIC_HTTP_SECONDS, ns, METRIC_LABELS(api, method));
}

static void watch_sandbox_answer(void *ctx, const struct http_req *req, int status, uint64_t ns)
{
    const struct watch *w = ctx;

    watch_count(w, "sandbox", req, status, ns);
}

static void watch_action(void *ctx, const char *action, const char *result, uint64_t ns)
{
    const struct watch *w = ctx;

    metrics_add(w->metrics, METRIC_ACTIONS, 1, METRIC_LABELS(action, result));
    metrics_observe_ns(w->metrics, METRIC_ACTION_SECONDS, ns, METRIC_LABELS(action));
}

static void watch_answer(void *watch, const struct http_req *req, int status, uint64_t ns)
{
    const struct watch *w = watch;
    const char *api = req->passed_on                             ? "sandbox"
                      : str_starts(req->path, STR("/croft/v1/")) ? "croft"
                                                                 : "runtime";
    watch_count(w, api, req, status, ns);
    if (status == 401 || status == 403 || status == 429)
        metrics_add(w->metrics, METRIC_DENIALS, 1,
                    METRIC_LABELS(status == 401   ? "key"
                                  : status == 403 ? "scope"
                                                  : "limit"));
    bool refused = status == 401 || status == 403;
    if (strcmp(api, "sandbox") != 0 && (refused || changes_something(req->head.method)))
        watch_audit(w, req, status);
}

/* --- the part --- */

struct watch_settings {
    uint64_t keep; /* bytes of the journal; 0: everything */
};

static const struct cfg_row rows[] = {
    CFG_SIZE(watch_settings, keep, "journal.keep", "256M",
             "Size of the journal; the newest events are kept. A start and stop takes a few "
             "kilobytes. 0 is everything.",
             .flag = "", .max = INT64_MAX),
};
CFG_TABLE(watch) = {rows, ARRAY_LEN(rows), .size = sizeof(struct watch_settings)};

struct watch *watch_of(const struct host *h)
{
    return host_part(h, "watch");
}

static void watch_close(void *state)
{
    struct watch *w = state;

    proxy_watch(w->proxy, &(struct proxy_watch){0}); /* sandboxes' clients are still answered */
    journal_free(w->journal);
    metrics_free(take(&w->metrics));
    free(w);
}

/* A journal that cannot be opened is an error: it is the audit. */
static fallible watch_try_open(struct watch *w, const struct host *h)
{
    const struct watch_settings *s = settings_of(h->settings, CFG_TABLE_OF(watch));
    own_fd dir = open(h->layout->own, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct journal_config journal = {
        .loop = h->loop, .keep_bytes = s->keep, .on_commit = on_commit, .arg = w};

    if (dir < 0)
        return err_sys("open '%s'", h->layout->own);
    journal.dir = dir;
    w->metrics = metrics_new();
    TRY(journal_open(&journal, &w->journal));
    metrics_set(w->metrics, METRIC_BUILD_INFO, 1,
                METRIC_LABELS(CROFT_VERSION, metrics_commit, "glibc"));
    proxy_watch(w->proxy, &(struct proxy_watch){watch_sandbox_answer, watch_action, w});
    return NULL;
}

static fallible watch_open(struct host *h, void **ret_state)
{
    struct watch *w = mem_new(sizeof *w);

    *w = (struct watch){.keys = keys_of(h), .proxy = proxy_of(h)};
    struct err *e = watch_try_open(w, h);
    if (e)
        watch_close(w);
    else
        *ret_state = w;
    return e;
}

static void watch_reload(void *state, const struct host *h)
{
    const struct watch_settings *s = settings_of(h->settings, CFG_TABLE_OF(watch));
    const struct watch *w = state;

    journal_keep(w->journal, s->keep);
}

HOST_PART(watch) = {
    .name = "watch",
    .needs = PART_NEEDS("keys", "proxy"),
    .open = watch_open,
    .reload = watch_reload,
    .close = watch_close,
    .on_answer = watch_answer,
};
