// SPDX-License-Identifier: Apache-2.0
#include "wire/remote.h"

#include "test/test.h"

static struct err *decode(const char *text, struct wire_remote *r)
{
    own_done(arena) a;
    struct json *body;

    arena_init(&a, 1 << 16);
    CHECK_OK(json_parse(&a, str_of(text), NULL, &body));
    struct err *e = wire_decode_remote(body, r);
    if (!e)
        CHECK_STR(r->url, "http://x"); /* as long as the body lives */
    return e;
}

#define OBJECT(status, pod)                                                                        \
    "{\"runtime_id\":\"r\",\"url\":\"http://x\",\"session_api_key\":null,\"status\":\"" status     \
    "\"" pod "}"

TEST(a_client_reads_what_to_do_next_off_both_kinds_of_status)
{
    static const struct {
        const char *text;
        enum wire_remote_state want;
    } rows[] = {
        {OBJECT("running", ",\"pod_status\":\"Ready\""), WIRE_REMOTE_READY},
        {OBJECT("running", ",\"pod_status\":\"running\""), WIRE_REMOTE_WAIT},
        {OBJECT("starting", ",\"pod_status\":\"not found\""), WIRE_REMOTE_WAIT},
        {OBJECT("starting", ",\"pod_status\":\"CrashLoopBackOff\""), WIRE_REMOTE_FAILED},
        {OBJECT("running", ""), WIRE_REMOTE_READY},
        {OBJECT("starting", ""), WIRE_REMOTE_WAIT},
        {OBJECT("paused", ",\"pod_status\":\"not found\""), WIRE_REMOTE_PAUSED},
        {OBJECT("stopped", ",\"pod_status\":\"not found\""), WIRE_REMOTE_STOPPED},
        {OBJECT("error", ",\"pod_status\":\"failed\""), WIRE_REMOTE_FAILED},
    };
    struct wire_remote r;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_OK(decode(rows[i].text, &r));
        if (r.state != rows[i].want)
            FAIL("%s: state %d, want %d", rows[i].text, r.state, rows[i].want);
        CHECK_INT(r.session_api_key.len, 0);
    }
}

TEST(an_answer_that_is_no_runtime_object_is_the_servers_fault)
{
    struct wire_remote r;

    CHECK_ERR(decode("[]", &r), ERR_UPSTREAM, "runtime object");
    CHECK_ERR(decode("{\"url\":\"http://x\"}", &r), ERR_UPSTREAM, "runtime_id");
    CHECK_ERR(decode("{\"runtime_id\":7,\"url\":\"http://x\"}", &r), ERR_UPSTREAM, "runtime_id");
}

TEST(a_start_is_sent_as_clients_send_it)
{
    own_done(buf) out;
    struct jw w;

    buf_init(&out, 4096);
    jw_init(&w, &out, JW_WEB);
    wire_put_remote_start(&w, &(struct wire_remote_start){
                                  .image = STR("host"),
                                  .session_id = STR("s"),
                                  .command = (const char *const[]){"a", "b c", NULL},
                                  .env = (const char *const[]){"A=1=2", "B", NULL},
                              });
    CHECK_STR(buf_str(&out),
              "{\"image\":\"host\",\"command\":[\"a\",\"b c\"],\"environment\":{\"A\":\"1=2\","
              "\"B\":\"\"},\"session_id\":\"s\",\"resource_factor\":1}");
}
