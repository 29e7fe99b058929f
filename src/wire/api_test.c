// SPDX-License-Identifier: Apache-2.0
/* api_test.c — bodies of the Action Execution Server, and of what it refuses. */
#include "wire/api.h"

#include "test/wire/kit.h"

static struct buf out_buf;
static struct jw out;

static struct jw *begin(void)
{
    buf_init(&out_buf, 1 << 20);
    jw_init(&out, &out_buf, JW_WEB);
    return &out;
}

static struct str end(void)
{
    return kit_keep(&out_buf);
}

TEST(api_bodies_are_compact)
{
    wire_put_detail(begin(), STR("Not Found"));
    CHECK_STR(end(), "{\"detail\":\"Not Found\"}");
    wire_put_token(begin(), STR("t"));
    CHECK_STR(end(), "{\"token\":\"t\"}");
    wire_put_token(begin(), (struct str){0});
    CHECK_STR(end(), "{\"token\":null}");
    arena_done(&kit_arena);
}

TEST(api_server_info_comes_back_as_it_was)
{
    static const char body[] =
        "{\"uptime\":12.3,\"idle_time\":4.5,\"resources\":{\"cpu_percent\":0.0,\"memory\":{\"rss\":"
        "123456789,\"vms\":987654321,\"percent\":1.23},\"disk\":{\"total\":1,\"used\":2,\"free\":"
        "3,\"percent\":12.3},\"io\":{\"read_bytes\":0,\"write_bytes\":4}}}";
    struct wire_server_info info;

    CHECK_OK(wire_decode_server_info(&kit_arena, kit_tree(str_of(body)), &info));
    CHECK(info.idle_time == 4.5);
    CHECK_INT(info.resources.disk.free, 3);
    wire_put_server_info(begin(), &info);
    CHECK_STR(end(), body);
    CHECK_OK(wire_decode_server_info(&kit_arena, kit_quoted("{'uptime':7}"), &info));
    CHECK(info.uptime == 7 && info.idle_time == 0);
    CHECK_ERR(wire_decode_server_info(&kit_arena,
                                      kit_quoted("{'resources':{'io':{'read_bytes':"
                                                 "'x'}}}"),
                                      &info),
              ERR_INVALID, "field 'resources.io.read_bytes' must be an integer");
    CHECK_ERR(wire_decode_server_info(&kit_arena, NULL, &info), ERR_INVALID, "not nothing");
    arena_done(&kit_arena);
}

TEST(api_upload_answers_what_was_stored)
{
    struct wire_upload u = {STR("a.txt"), STR("/workspace"), false};

    wire_put_upload(begin(), &u);
    struct str body = end();
    CHECK_STR(body, "{\"filename\":\"a.txt\",\"destination\":\"/workspace\",\"recursive\":false}");
    arena_done(&kit_arena);
}

TEST(api_reads_booleans_of_a_query_as_pydantic)
{
    static const char *const yes[] = {"1", "true", "True", "TRUE", "on", "t", "y", "YES"};
    static const char *const no[] = {"0", "false", "off", "F", "n", "No"};
    static const char *const neither[] = {"", "2", "truex", " true", "null", "enabled"};
    bool b = false;

    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        CHECK(wire_parse_bool(str_of(yes[i]), &b) && b);
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        CHECK(wire_parse_bool(str_of(no[i]), &b) && !b);
    for (size_t i = 0; i < ARRAY_LEN(neither); i++)
        CHECK(!wire_parse_bool(str_of(neither[i]), &b));
}

/* --- 422 --- */

static struct str refusal(const char *body)
{
    struct wire_problem p;
    const struct json *event;

    CHECK(!wire_find_action(body ? kit_quoted(body) : NULL, &event, &p));
    wire_put_problems(begin(), &p, 1);
    return end();
}

#define REFUSAL(errors) "{\"detail\":\"Invalid request parameters\",\"errors\":\"" errors "\"}"

TEST(api_refuses_a_request_in_the_words_of_pydantic)
{
    CHECK_STR(refusal("{'a':'b\\u0027s','n':[1,null,true]}"),
              REFUSAL("[{'type': 'missing', 'loc': ('body', 'action'), 'msg': 'Field required', "
                      "'input': {'a': \\\"b's\\\", 'n': [1, None, True]}}]"));
    CHECK_STR(refusal("{'action':'run'}"),
              REFUSAL("[{'type': 'dict_type', 'loc': ('body', 'action'), 'msg': 'Input should be "
                      "a valid dictionary', 'input': 'run'}]"));
    CHECK_STR(refusal("[1]"),
              REFUSAL("[{'type': 'model_attributes_type', 'loc': ('body',), 'msg': 'Input should "
                      "be a valid dictionary or object to extract fields from', 'input': [1]}]"));
    CHECK_STR(refusal(NULL), REFUSAL("[{'type': 'missing', 'loc': ('body',), 'msg': 'Field "
                                     "required', 'input': None}]"));
    CHECK_STR(refusal("null"), refusal(NULL));
    arena_done(&kit_arena);
}

TEST(api_lists_several_problems)
{
    const struct wire_problem problems[] = {
        wire_problem_missing("body", "file", NULL),
        wire_problem_not_bool("query", "recursive", kit_quoted("'maybe'")),
        wire_problem_not_json(5, "Expecting value"),
    };

    wire_put_problems(begin(), problems, 3);
    CHECK_STR(
        end(),
        REFUSAL("[{'type': 'missing', 'loc': ('body', 'file'), 'msg': 'Field required', 'input': "
                "None}, {'type': 'bool_parsing', 'loc': ('query', 'recursive'), 'msg': 'Input "
                "should be a valid boolean, unable to interpret input', 'input': 'maybe'}, "
                "{'type': 'json_invalid', 'loc': ('body', 5), 'msg': 'JSON decode error', "
                "'input': {}, 'ctx': {'error': 'Expecting value'}}]"));
    wire_put_problems(begin(), NULL, 0);
    CHECK_STR(end(), REFUSAL("[]"));
    arena_done(&kit_arena);
}

TEST(api_finds_the_action_of_a_request)
{
    struct wire_problem p;
    const struct json *event = NULL;

    CHECK(wire_find_action(kit_quoted("{'action':{'action':'null'},'x':1}"), &event, &p));
    CHECK_INT(wire_event_kind(event), WIRE_ACTION);
    arena_done(&kit_arena);
}
