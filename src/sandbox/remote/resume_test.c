// SPDX-License-Identifier: Apache-2.0
/* resume_test.c — a remote sandbox that is paused under its user, and what is refused at once. */
#include <stdio.h>
#include <string.h>

#include "net/listen.h"
#include "sandbox/client/client.h"
#include "sandbox/remote/inner.h"
#include "test/remote_kit.h"
#include "test/test.h"

/* --- resumed on 503 --- */

struct resumer {
    struct world *w;
    struct action_client *client;
    unsigned resumes, answers;
    enum action_failure failure;
    char error[600];
};

static void on_resumed(void *arg, struct sbx *s, const struct err *e)
{
    struct resumer *r = arg;

    (void)s;
    if (!e)
        r->w->commands = 0;
    action_client_resumed(r->client, e ? err_copy(e) : NULL);
}

static void resume(void *arg, struct action_client *c)
{
    struct resumer *r = arg;

    r->resumes++;
    sbx_found_paused(r->w->s);
    struct err *e = sbx_resume(r->w->s, on_resumed, r);
    if (e)
        action_client_resumed(c, e);
}

static void on_result(void *arg, const struct action_result *result)
{
    struct resumer *r = arg;

    r->answers++;
    r->failure = result->failure;
    snprintf(r->error, sizeof r->error, "%s", result->error ? err_text(result->error) : "");
}

static void command(struct resumer *r)
{
    unsigned before = r->answers;

    CHECK_OK(action_run(r->client, STR("echo hi"), on_result, r));
    web_turns(&r->w->web, 30);
    for (unsigned i = 0; i < 1000 && r->answers == before; i++) {
        web_pass(&r->w->web, 10);
        web_turns(&r->w->web, 12);
    }
    CHECK_INT(r->answers, before + 1);
}

TEST(remote_is_resumed_when_its_sandbox_answers_503)
{
    struct world w = {0};
    struct resumer r = {.w = &w};
    const struct answer script[] = {{"POST /start", 200, "running"},
                                    {"POST /resume", 200, "running"},
                                    {"POST /resume", 500, "no room"},
                                    STOPPED_AND_GONE,
                                    END};

    world_open(&w, script);
    world_must(&w, sbx_start);
    struct action_client_config config = {
        .dialer = &w.web.dialer, .url = str_of(w.url), .resume = resume, .resume_arg = &r};
    CHECK_OK(action_client_new(&config, &r.client));
    w.commands = 503;
    command(&r);
    CHECK_INT(r.failure, ACTION_NO_FAILURE);
    CHECK_INT(r.resumes, 1);
    CHECK_INT(w.s->state.now, SBX_RUNNING);
    w.commands = 503;
    command(&r);
    CHECK_INT(r.failure, ACTION_DISCONNECTED);
    CHECK_HAS(r.error, "Runtime is paused and could not be resumed");
    CHECK_HAS(r.error, "no room");
    CHECK_INT(w.s->state.now, SBX_PAUSED);
    action_client_free(r.client);
    world_must(&w, sbx_stop);
    world_must(&w, sbx_remove);
    world_close(&w);
}

/* --- refused before anything is sent --- */

TEST(remote_needs_an_address_and_a_key_to_begin_with)
{
    static const struct {
        const char *url, *key, *part;
    } rows[] = {
        {"", "k", "remote_runtime_api_url"},
        {"elsewhere", "k", "remote_runtime_api_url"},
        {"ftp://elsewhere", "k", "remote_runtime_api_url"},
        {"http://elsewhere/?a", "k", "'?'"},
        {"http://elsewhere:3000", "", "API key is required"},
        {"http://elsewhere:3000", "", "SANDBOX_API_KEY"},
    };
    struct remote_settings settings = {0};
    struct web web;
    struct sbx_driver *d;

    web_open(&web, NULL, 0, NULL, NULL);
    struct sbx_host host = {.loop = web.loop, .dialer = &web.dialer, .settings = &settings};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        settings.url = str_of(rows[i].url);
        settings.key = str_of(rows[i].key);
        CHECK_ERR(sbx_driver_open(sbx_backend_find(STR("remote")), &host, &d), ERR_INVALID,
                  rows[i].part);
    }
    settings.url = STR("http://127.0.0.1:3000"); /* where a server may do without */
    CHECK_OK(sbx_driver_open(sbx_backend_find(STR("remote")), &host, &d));
    sbx_driver_close(d);
    settings = (struct remote_settings){.url = STR("https://elsewhere"), .key = STR("k")};
    CHECK_OK(sbx_driver_open(sbx_backend_find(STR("remote")), &host, &d));
    sbx_driver_close(d);
    web_close(&web);
}
