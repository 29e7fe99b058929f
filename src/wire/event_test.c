// SPDX-License-Identifier: Apache-2.0
/* event_test.c — every event as the original reads and writes it; hostile documents.
 *
 * test/wire/events.txt was recorded from the original serialiser by record_events.py beside it. */
#include <stdio.h>

#include "test/wire/kit.h"

static struct str recorded(void)
{
    static struct buf text;
    FILE *f = fopen(test_source("test/wire/events.txt"), "re");

    CHECK(f != NULL);
    buf_init(&text, 64 << 20);
    for (size_t n = 1; n > 0;) {
        char *to = buf_reserve(&text, 1 << 16);
        CHECK(to != NULL);
        n = fread(to, 1, 1 << 16, f);
        buf_commit(&text, n);
    }
    fclose(f);
    return buf_str(&text);
}

/* A null risk is left out when written, so it comes back as the default; upstream as well. */
static bool has_null_risk(const struct json *event)
{
    const struct json *v = json_get(json_get(event, STR("args")), STR("security_risk"));

    return v && v->type == JSON_NULL;
}

TEST(wire_reads_and_writes_every_event_as_the_original)
{
    struct str rest = recorded(), in, want;
    unsigned passed = 0, refused = 0;

    while (str_cut(&rest, '\n', &in) && str_cut(&rest, '\n', &want)) {
        struct str out = {0};
        struct json *event = kit_tree(in);
        own(err) e = kit_pass(event, JW_WEB, &out);
        if (str_eq(want, STR("refused"))) {
            if (!e)
                FAIL("should refuse %.*s", STR_ARG(in));
            refused++;
            continue;
        }
        if (e)
            FAIL("%s: %.*s", err_text(e), STR_ARG(in));
        if (!str_eq(out, want))
            printf("from %.*s\n", STR_ARG(in));
        CHECK_STR(out, want);
        passed++;
    }
    CHECK(passed > 500);
    CHECK(refused > 30);
    arena_done(&kit_arena);
}

TEST(wire_reads_what_it_wrote_as_the_same_event)
{
    struct str rest = recorded(), in, want;

    while (str_cut(&rest, '\n', &in) && str_cut(&rest, '\n', &want)) {
        struct str web, python, again;
        if (str_eq(want, STR("refused")) || has_null_risk(kit_tree(in)))
            continue;
        CHECK_OK(kit_pass(kit_tree(want), JW_WEB, &web));
        CHECK_STR(web, want);
        CHECK_OK(kit_pass(kit_tree(want), JW_PYTHON, &python));
        CHECK(json_equal(kit_tree(python), kit_tree(want)));
        CHECK_OK(kit_pass(kit_tree(python), JW_WEB, &again));
        CHECK_STR(again, want);
    }
    arena_done(&kit_arena);
}

TEST(wire_envelope_leaves_out_what_is_absent_and_keeps_its_order)
{
    CHECK_STR(kit_out("{'action':'null','llm_metrics':{'x':[1]},'tool_call_metadata':{'y':2},"
                      "'cause':3,'message':'m','source':'user','timestamp':'t','id':0}"),
              "{\"id\":0,\"timestamp\":\"t\",\"source\":\"user\",\"message\":\"No action\","
              "\"cause\":3,\"action\":\"null\",\"tool_call_metadata\":{\"y\":2},"
              "\"llm_metrics\":{\"x\":[1]},\"args\":{}}");
    CHECK_STR(kit_out("{'action':'null','id':-1,'cause':null,'source':null,'timestamp':null,"
                      "'tool_call_metadata':null,'llm_metrics':null,'timeout':null,'args':null}"),
              "{\"message\":\"No action\",\"action\":\"null\",\"args\":{}}");
    CHECK_STR(kit_out("{'action':'null','id':'7','cause':[],'timestamp':9,"
                      "'tool_call_metadata':'x','llm_metrics':1,'unknown':{}}"),
              "{\"message\":\"No action\",\"action\":\"null\",\"args\":{}}");
    kit_refused("{'action':'null','source':'robot'}", "'robot' is not a valid EventSource");
    kit_refused("{'action':'null','source':1}", "field 'source' must be a string, not");
    kit_refused("{'observation':'null','source':''}", "field 'source'");
    arena_done(&kit_arena);
}

TEST(wire_tells_actions_from_observations_by_their_key)
{
    CHECK_INT(wire_event_kind(kit_quoted("{'action':'run','observation':'run'}")), WIRE_ACTION);
    CHECK_INT(wire_event_kind(kit_quoted("{'action':null}")), WIRE_ACTION);
    CHECK_INT(wire_event_kind(kit_quoted("{'observation':'run'}")), WIRE_OBSERVATION);
    CHECK_INT(wire_event_kind(kit_quoted("{'content':'run'}")), WIRE_NO_EVENT);
    CHECK_INT(wire_event_kind(kit_quoted("['action']")), WIRE_NO_EVENT);
    CHECK_INT(wire_event_kind(NULL), WIRE_NO_EVENT);
    arena_done(&kit_arena);
}

/* --- hostile documents --- */

static const char *const wrong_values[] = {"null",
                                           "true",
                                           "0",
                                           "-1",
                                           "1.5",
                                           "9223372036854775807",
                                           "99999999999999999999",
                                           "1e308",
                                           "''",
                                           "'x'",
                                           "[]",
                                           "[[[1]]]",
                                           "{}",
                                           "{'command':{'command':1}}",
                                           "[null]",
                                           "['\\u0000','\\ud800']"};

static void survive(const char *text)
{
    struct json *event = kit_quoted(text);
    struct str once = {0}, twice = {0};
    own(err) e = kit_pass(event, JW_WEB, &once);

    if (e) {
        CHECK(err_text(e)[0] != '\0');
        return;
    }
    CHECK_OK(kit_pass(kit_tree(once), JW_WEB, &twice));
    if (!has_null_risk(event))
        CHECK_STR(twice, once);
}

/* Each wrong value in every place marked %s. */
static unsigned try_shape(const char *shape)
{
    for (size_t i = 0; i < ARRAY_LEN(wrong_values); i++) {
        own_done(buf) text;
        struct str rest = str_of(shape), piece;
        buf_init(&text, 1 << 16);
        while (str_cut(&rest, '%', &piece)) {
            buf_add(&text, piece);
            buf_add_cstr(&text, wrong_values[i]);
            rest = str_from(rest, 1);
        }
        buf_add(&text, piece);
        survive(buf_cstr(&text));
    }
    return ARRAY_LEN(wrong_values);
}

TEST(wire_survives_hostile_documents)
{
    static const char *const shapes[] = {
        "%s",
        "{'action':%s}",
        "{'observation':%s}",
        "{'action':'run','args':%s}",
        "{'action':'run','args':{'command':%s,'thought':%s}}",
        "{'action':'run','args':{'command':'c','blocking':%s},'timeout':%s}",
        "{'action':'run','args':{'command':'c'},'source':%s,'id':%s,'cause':%s}",
        "{'action':'run','args':{'command':'c','translated_ipython_code':%s}}",
        "{'action':'call_tool_mcp','args':{'name':'n','arguments':%s,'security_risk':%s}}",
        "{'action':'message','args':{'content':'c','images_urls':%s,'file_urls':%s}}",
        "{'action':'reject','args':{'outputs':{'reason':%s}}}",
        "{'action':'recall','args':{'recall_type':%s,'query':%s}}",
        "{'action':'task_tracking','args':{'task_list':%s}}",
        "{'observation':'run','content':%s,'extras':{'command':'c','metadata':%s}}",
        "{'observation':'run','extras':{'command':'c','exit_code':%s,'command_id':%s}}",
        "{'observation':'browse','extras':{'url':'u','trigger_by_action':'t','dom_object':%s}}",
        "{'observation':'delegate','content':%s,'extras':{'outputs':%s}}"};
    unsigned count = 0;

    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        count += try_shape(shapes[i]);
    try_shape("{'action':'condensation','args':{'forgotten_events_start_id':0,"
              "'forgotten_events_end_id':%s,'forgotten_event_ids':null}}");
    try_shape("{'observation':'recall','extras':{'recall_type':'knowledge',"
              "'microagent_knowledge':%s,'runtime_hosts':%s}}");
    CHECK(count >= 100);
    arena_done(&kit_arena);
}

static struct str deep(const char *before, const char *open, const char *middle, const char *close,
                       const char *after, unsigned depth)
{
    struct buf b;

    buf_init(&b, 16 << 20);
    buf_add_cstr(&b, before);
    for (unsigned i = 0; i < depth; i++)
        buf_add_cstr(&b, open);
    buf_add_cstr(&b, middle);
    for (unsigned i = 0; i < depth; i++)
        buf_add_cstr(&b, close);
    buf_add_cstr(&b, after);
    return kit_keep(&b);
}

TEST(wire_carries_deep_and_long_arguments)
{
    struct str out = {0};
    struct str text =
        deep("{\"action\":\"call_tool_mcp\",\"args\":{\"name\":\"n\",\"arguments\":{\"x\":", "[",
             "", "]", "}}}", 500);

    CHECK_OK(kit_pass(kit_tree(text), JW_WEB, &out));
    CHECK(json_equal(json_get(json_get(kit_tree(out), STR("args")), STR("arguments")),
                     json_get(json_get(kit_tree(text), STR("args")), STR("arguments"))));
    text = deep("{\"action\":\"run\",\"args\":{\"command\":\"", "0123456789\\n\\u0001", "", "",
                "\"}}", 200000);
    CHECK_OK(kit_pass(kit_tree(text), JW_WEB, &out));
    text =
        deep("{\"action\":\"run\",\"args\":{", "\"a\":1,", "\"command\":\"c\"", "", "}}", 100000);
    CHECK_OK(kit_pass(kit_tree(text), JW_WEB, &out));
    text = deep("{\"action\":\"edit\",\"args\":{\"path\":\"p\",\"translated_ipython_code\":"
                "\"print(file_editor(**{'x':",
                "[", "1", "]", "}))\"}}", 5000);
    CHECK_OK(kit_pass(kit_tree(text), JW_WEB, &out));
    arena_done(&kit_arena);
}

/* --- memory --- */

static fallible pass_within(struct arena *a, struct str text, struct buf *out)
{
    struct json *event;
    struct wire_action action;
    struct jw w;

    TRY(json_parse(a, text, NULL, &event));
    TRY(wire_decode_action(a, event, &action));
    jw_init(&w, out, JW_WEB);
    wire_put_action(&w, NULL, &action);
    return buf_check(out);
}

TEST(wire_gives_an_error_whichever_allocation_fails)
{
    static const char text[] =
        "{\"action\":\"call_tool_mcp\",\"args\":{\"name\":\"n\",\"arguments\":{\"k\":[\"it's\"]},"
        "\"translated_ipython_code\":\"print(file_editor(**{'thought': 'x'}))\"}}";
    bool done = false;

    for (unsigned n = 1; !done && n < 200; n++) {
        own_done(arena) a;
        own_done(buf) out;
        arena_init(&a, 1 << 20);
        buf_init(&out, 1 << 20);
        fault_at(n);
        own(err) e = pass_within(&a, str_of(text), &out);
        done = !fault_fired();
        fault_at(0);
        if (!e) /* the literal's own memory may fail: it is then dropped */
            CHECK_HAS(buf_str(&out), "call_tool_mcp");
    }
    CHECK(done);
}

TEST(wire_gives_an_error_when_the_arena_is_full)
{
    static const char text[] = "{\"action\":\"message\",\"args\":{\"content\":\"c\"}}";
    unsigned refused = 0;

    for (size_t limit = 8; limit < 6000; limit += 8) {
        own_done(arena) a;
        own_done(buf) out;
        arena_init(&a, limit);
        buf_init(&out, 1 << 20);
        own(err) e = pass_within(&a, str_of(text), &out);
        refused += e != NULL;
    }
    CHECK(refused > 0);
}
