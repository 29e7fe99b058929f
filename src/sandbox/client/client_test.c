// SPDX-License-Identifier: Apache-2.0
/* The action client against a server that misbehaves as real ones do; time stands still. */
#include "sandbox/client/client.h"

#include <stdio.h>

#include "net/listen.h"
#include "test/test.h"
#include "test/web.h"

struct act_world {
    struct web web;
    struct action_client *client;
    unsigned asked, alive_after, cut, limited;
    int status; /* of every answer; 0: 200 with an observation */
    bool silent, keyed;
    const char *after; /* Retry-After of every answer; NULL: none */
    struct http_req *held;
    char last[400];

    unsigned answers;
    enum action_failure failure;
    int http_status;
    char error[600], content[100];
    int64_t cause;
    bool hidden;
};

static fallible serve_alive(struct http_req *req)
{
    struct act_world *w = req->owner;

    if (w->alive_after > 0) {
        w->alive_after--;
        return err_new(ERR_BUSY, "not yet");
    }
    http_reply_json(req, 200, STR("{\"status\":\"ok\"}"));
    return NULL;
}

static void on_held_gone(struct http_req *req)
{
    struct act_world *w = req->owner;

    w->held = NULL;
    http_reply_abort(req);
}

static fallible serve_action(struct http_req *req)
{
    struct act_world *w = req->owner;

    w->asked++;
    snprintf(w->last, sizeof w->last, "%.*s", STR_ARG(req->body));
    w->keyed = str_eq(http_req_header(req, STR("X-Session-API-Key")), STR("sesame"));
    if (w->silent) {
        w->held = req;
        req->on_gone = on_held_gone;
    } else if (w->cut > 0) {
        w->cut--;
        http_reply_abort(req);
    } else if (w->limited > 0) {
        w->limited--;
        if (w->after)
            http_reply_header(req, STR("Retry-After"), str_of(w->after));
        return err_new(ERR_LIMIT, "slow down");
    } else if (w->status) {
        http_reply_json(req, w->status, STR("{\"detail\":\"the reason\"}"));
    } else {
        http_reply_json(req, 200,
                        STR("{\"observation\":\"run\",\"content\":\"hi\",\"extras\":{"
                            "\"command\":\"echo hi\",\"metadata\":{\"exit_code\":0}}}"));
    }
    return NULL;
}

static const struct route routes[] = {
    {"GET", "/alive", serve_alive, 0, 0},
    {"POST", "/execute_action", serve_action, 0, 0},
};

static void world_listen(struct act_world *w)
{
    char address[256];
    int fd;

    snprintf(address, sizeof address, "unix:%s/sock", test_dir());
    CHECK_OK(listen_open(str_of(address), &fd));
    CHECK_OK(http_server_listen(w->web.server, fd));
}

static void world_open_with(struct act_world *w, void (*resume)(void *arg, struct action_client *c),
                            void *arg)
{
    char path[256];
    struct http_server_config server = {.ctx = w};

    web_open(&w->web, WEB_ROUTES(routes), NULL, &server);
    snprintf(path, sizeof path, "%s/sock", test_dir());
    struct action_client_config config = {.dialer = &w->web.dialer,
                                          .url = STR("http://sandbox"),
                                          .unix_path = str_of(path),
                                          .session_key = STR("sesame"),
                                          .resume = resume,
                                          .resume_arg = arg};
    CHECK_OK(action_client_new(&config, &w->client));
}

static void world_open(struct act_world *w)
{
    world_open_with(w, NULL, NULL);
}

static void world_close(struct act_world *w)
{
    action_client_free(w->client);
    web_close(&w->web);
}

static void on_result(void *arg, const struct action_result *r)
{
    struct act_world *w = arg;

    w->answers++;
    w->failure = r->failure;
    w->http_status = r->http_status;
    snprintf(w->error, sizeof w->error, "%s", r->error ? err_text(r->error) : "");
    if (!r->observation)
        return;
    snprintf(w->content, sizeof w->content, "%.*s", STR_ARG(r->observation->content));
    w->cause = r->observation->envelope.cause.is_set ? r->observation->envelope.cause.value : -1;
    w->hidden = r->observation->type == WIRE_OBS_RUN && r->observation->run.hidden;
}

static void ask_hi(struct act_world *w)
{
    CHECK_OK(action_run(w->client, STR("echo hi"), on_result, w));
    web_turns(&w->web, 20);
}

TEST(an_action_is_sent_with_its_key_and_a_timeout_and_answered_once)
{
    struct act_world w = {0};

    world_open(&w);
    world_listen(&w);
    ask_hi(&w);
    CHECK_INT(w.answers, 1);
    CHECK_INT(w.failure, ACTION_NO_FAILURE);
    CHECK_STR(w.content, "hi");
    CHECK(w.keyed);
    CHECK_HAS(w.last, "\"command\":\"echo hi\"");
    CHECK_HAS(w.last, "\"timeout\":120");
    world_close(&w);
}

TEST(an_observation_names_its_action_and_stays_hidden_when_that_was)
{
    struct act_world w = {0};
    struct wire_action a;

    world_open(&w);
    world_listen(&w);
    wire_action_init(&a, WIRE_ACT_RUN);
    a.run.command = STR("x");
    a.run.hidden = true;
    a.envelope.id = (struct wire_opt_int){true, 42};
    CHECK_OK(action_send(w.client, &a, on_result, &w));
    web_turns(&w.web, 20);
    CHECK_INT(w.cause, 42);
    CHECK(w.hidden);
    world_close(&w);
}

TEST(actions_of_one_client_run_one_after_the_other)
{
    struct act_world w = {.silent = true};

    world_open(&w);
    world_listen(&w);
    ask_hi(&w);
    ask_hi(&w);
    CHECK_INT(w.asked, 1);
    w.silent = false;
    struct http_req *first = w.held;
    w.held = NULL;
    first->on_gone = NULL;
    http_reply_json(first, 200, STR("{\"observation\":\"null\",\"content\":\"\",\"extras\":{}}"));
    web_turns(&w.web, 20);
    CHECK_INT(w.asked, 2);
    CHECK_INT(w.answers, 2);
    world_close(&w);
}

TEST(a_cut_answer_is_asked_for_again_five_times_in_all)
{
    struct act_world w = {.cut = 4};

    world_open(&w);
    world_listen(&w);
    ask_hi(&w);
    CHECK_INT(w.answers, 0);
    for (unsigned i = 0; i < 4; i++)
        web_pass(&w.web, 8000);
    web_turns(&w.web, 20);
    CHECK_INT(w.asked, 5);
    CHECK_INT(w.failure, ACTION_NO_FAILURE);
    CHECK_STR(w.content, "hi");
    w.cut = 100;
    ask_hi(&w);
    for (unsigned i = 0; i < 6; i++)
        web_pass(&w.web, 8000);
    CHECK_INT(w.asked, 10);
    CHECK_INT(w.failure, ACTION_DISCONNECTED);
    world_close(&w);
}

TEST(a_server_that_is_not_there_is_tried_three_times)
{
    struct act_world w = {0};

    world_open(&w);
    ask_hi(&w);
    web_pass(&w.web, 4000);
    CHECK_INT(w.answers, 0);
    web_pass(&w.web, 4000);
    web_turns(&w.web, 20);
    CHECK_INT(w.answers, 1);
    CHECK_INT(w.failure, ACTION_DISCONNECTED);
    world_close(&w);
}

TEST(a_server_that_wants_less_is_given_time)
{
    struct act_world w = {.limited = 2};

    world_open(&w);
    world_listen(&w);
    ask_hi(&w);
    web_pass(&w.web, 4000);
    web_pass(&w.web, 4000);
    CHECK_INT(w.failure, ACTION_NO_FAILURE);
    CHECK_INT(w.asked, 3);
    world_close(&w);
}

TEST(a_server_that_says_when_is_asked_then)
{
    struct act_world w = {.limited = 1, .after = "9"};

    world_open(&w);
    world_listen(&w);
    ask_hi(&w);
    web_pass(&w.web, 8900);
    CHECK_INT(w.asked, 1);
    web_pass(&w.web, 200);
    CHECK_INT(w.asked, 2);
    CHECK_INT(w.failure, ACTION_NO_FAILURE);
    w.limited = 1;
    w.after = "3600"; /* too long: the caller is told at once */
    ask_hi(&w);
    CHECK_INT(w.answers, 2);
    CHECK_INT(w.http_status, 429);
    world_close(&w);
}

static void note_resume(void *arg, struct action_client *c)
{
    (void)c;
    ++*(unsigned *)arg;
}

TEST(a_paused_server_is_resumed_once_for_an_action)
{
    struct act_world w = {.status = 503};
    unsigned resumes = 0;

    world_open_with(&w, note_resume, &resumes);
    world_listen(&w);
    action_client_resumed(w.client, NULL); /* nobody asked for it */
    ask_hi(&w);
    CHECK_INT(resumes, 1);
    CHECK_INT(w.answers, 0);
    web_pass(&w.web, 60000);
    CHECK_INT(w.asked, 1); /* it waits for that, however long it takes */
    action_client_resumed(w.client, NULL);
    web_turns(&w.web, 20);
    CHECK_INT(w.asked, 2);
    CHECK_INT(resumes, 1);
    CHECK_INT(w.failure, ACTION_DISCONNECTED);
    CHECK_HAS(w.error, "Runtime is temporarily unavailable");
    ask_hi(&w);
    CHECK_INT(resumes, 2);
    action_client_resumed(w.client, err_new(ERR_NOT_FOUND, "no such runtime"));
    CHECK_HAS(w.error, "Runtime is paused and could not be resumed: no such runtime");
    ask_hi(&w); /* freed amid */
    CHECK_INT(resumes, 3);
    world_close(&w);
}

TEST(statuses_become_the_failures_clients_know)
{
    static const struct {
        int status;
        enum action_failure failure;
        const char *text;
    } rows[] = {
        {404, ACTION_DISCONNECTED, "Runtime is not responding."},
        {502, ACTION_DISCONNECTED, "Runtime is temporarily unavailable."},
        {503, ACTION_DISCONNECTED, "Runtime is temporarily unavailable."},
        {504, ACTION_DISCONNECTED, "Runtime is temporarily unavailable."},
        {400, ACTION_BAD, "\nDetails: the reason"},
        {500, ACTION_BAD, "\nDetails: the reason"},
    };
    struct act_world w = {0};

    world_open(&w);
    world_listen(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        w.status = rows[i].status;
        ask_hi(&w);
        CHECK_INT(w.answers, i + 1);
        CHECK_INT(w.failure, rows[i].failure);
        CHECK_INT(w.http_status, rows[i].status);
        CHECK_HAS(w.error, rows[i].text);
    }
    world_close(&w);
}

TEST(an_answer_that_does_not_come_is_a_timeout_five_seconds_after_the_actions_own)
{
    struct act_world w = {.silent = true};
    struct wire_action a;

    world_open(&w);
    world_listen(&w);
    wire_action_init(&a, WIRE_ACT_RUN);
    a.run.command = STR("sleep 1000");
    a.has_timeout = true;
    a.timeout_s = 2.5;
    CHECK_OK(action_send(w.client, &a, on_result, &w));
    web_turns(&w.web, 20);
    web_pass(&w.web, 7400);
    CHECK_INT(w.answers, 0);
    web_pass(&w.web, 200);
    CHECK_INT(w.failure, ACTION_TIMEOUT);
    CHECK_STR(w.error, "Runtime failed to return execute_action before the requested timeout of "
                       "2.5s");
    world_close(&w);
}

TEST(what_cannot_be_sent_is_refused_at_once)
{
    struct act_world w = {0};
    struct wire_action a;

    world_open(&w);
    wire_action_init(&a, WIRE_ACT_RUN);
    a.run.blocking = true;
    CHECK_ERR(action_send(w.client, &a, on_result, &w), ERR_INVALID,
              "Blocking command with no timeout set");
    a.has_timeout = true;
    a.timeout_s = -1;
    CHECK_ERR(action_send(w.client, &a, on_result, &w), ERR_INVALID, "timeout");
    a.type = WIRE_ACT_FINISH;
    CHECK_ERR(action_send(w.client, &a, on_result, &w), ERR_INVALID, "finish");
    world_close(&w);
}

TEST(connect_waits_until_the_server_is_alive)
{
    struct act_world w = {.alive_after = 3};

    world_open(&w);
    CHECK_OK(action_connect(w.client, 60000, on_result, &w));
    web_turns(&w.web, 20);
    CHECK_INT(w.answers, 0);
    world_listen(&w);
    for (unsigned i = 0; i < 5; i++)
        web_pass(&w.web, 2000);
    CHECK_INT(w.answers, 1);
    CHECK_INT(w.failure, ACTION_NO_FAILURE);
    CHECK_INT(w.alive_after, 0);
    world_close(&w);
}

TEST(connect_gives_up_when_its_time_is_over)
{
    struct act_world w = {.alive_after = 1000000};

    world_open(&w);
    world_listen(&w);
    CHECK_OK(action_connect(w.client, 3000, on_result, &w));
    for (unsigned i = 0; i < 80; i++)
        web_pass(&w.web, 100);
    CHECK_INT(w.answers, 1);
    CHECK_INT(w.failure, ACTION_NOT_READY);
    CHECK_HAS(w.error, "503");
    world_close(&w);
}

static void free_inside(void *arg, const struct action_result *r)
{
    struct act_world *w = arg;

    on_result(arg, r);
    action_client_free(w->client);
    w->client = NULL;
}

TEST(a_client_may_be_freed_by_the_answer_while_others_wait)
{
    struct act_world w = {0};

    world_open(&w);
    world_listen(&w);
    CHECK_OK(action_read(w.client, STR("/a"), free_inside, &w));
    CHECK_OK(action_write(w.client, STR("/a"), STR("b"), on_result, &w));
    web_turns(&w.web, 20);
    CHECK_INT(w.answers, 1);
    CHECK_INT(w.asked, 1);
    world_close(&w);
}
