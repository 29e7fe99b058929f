// SPDX-License-Identifier: Apache-2.0
#include "host/runtime/words.h"

#include "base/own.h"
#include "test/test.h"

static struct str joined(struct arena *a, const char *text)
{
    struct json v = {.type = JSON_STR, .s = str_of(text)};
    const char *const *words;
    size_t count;
    struct str all = STR("");

    CHECK_OK(words_of(a, &v, &words, &count));
    for (size_t i = 0; i < count; i++)
        all = arena_printf(a, STR_FMT "[%s]", STR_ARG(all), words[i]);
    CHECK(words[count] == NULL);
    return all;
}

TEST(a_command_that_is_a_string_is_split_as_a_shell_would)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"a", "[a]"},
        {"  a \t b\n", "[a][b]"},
        {"a 'b c' d", "[a][b c][d]"},
        {"a \"b c\"d e", "[a][b cd][e]"},
        {"a '' b", "[a][][b]"},
        {"a\\ b c", "[a b][c]"},
        {"'a\\b' \"a\\\"b\\n\"", "[a\\b][a\"b\\n]"},
        {"$HOME *.c ; x", "[$HOME][*.c][;][x]"},
    };
    own_done(arena) a;

    arena_init(&a, 1u << 20);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(joined(&a, cases[i].text), cases[i].words);
}

TEST(a_command_without_words_or_with_an_open_quote_is_refused)
{
    own_done(arena) a;
    const char *const *words;
    size_t count;
    struct json v = {.type = JSON_STR, .s = STR("a 'b")};

    arena_init(&a, 1u << 20);
    CHECK_ERR(words_of(&a, &v, &words, &count), ERR_UNPROCESSABLE, "command: a quote ' is not");
    v.s = STR("   ");
    CHECK_ERR(words_of(&a, &v, &words, &count), ERR_UNPROCESSABLE, "command: no word");
    CHECK_OK(words_of(&a, NULL, &words, &count));
    CHECK_INT(count, 0);
    CHECK(words[0] == NULL);
}

#define W(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

TEST(the_command_says_whose_server_is_meant)
{
    CHECK_INT(words_face(W()), WORDS_AGENT);
    CHECK_INT(words_face(W("/usr/local/bin/openhands-agent-server", "--port", "1")), WORDS_AGENT);
    CHECK_INT(words_face(W("python", "-m", "openhands.agent_server")), WORDS_AGENT);
    CHECK_INT(words_face(W("python", "-u", "-m", "openhands.runtime.action_execution_server")),
              WORDS_ACTION);
    CHECK_INT(words_face(W("croft", "action-server", "60000")), WORDS_ACTION);
    CHECK_INT(words_face(W("action-server")), WORDS_ACTION);
    CHECK_INT(words_face(W("python", "openhands.agent_server")), WORDS_OTHER);
    CHECK_INT(words_face(W("bash", "-c", "openhands-agent-server")), WORDS_OTHER);
}

TEST(the_port_of_a_command_is_in_its_line_or_its_environment)
{
    own_done(arena) a;
    struct json *env;

    arena_init(&a, 1u << 20);
    CHECK_OK(json_parse(&a, STR("{\"PORT\":\"70\"}"), NULL, &env));
    CHECK_INT(words_port(W("x", "--port", "80"), env, 9), 80);
    CHECK_INT(words_port(W("x", "--port=81"), env, 9), 81);
    CHECK_INT(words_port(W("x", "--port"), env, 9), 70);
    CHECK_INT(words_port(W("x", "--port", "99999"), NULL, 9), 9);
    CHECK_INT(words_port(W("x", "--portable=7"), NULL, 9), 9);
}
