// SPDX-License-Identifier: Apache-2.0
/* log_test.c — what reaches the descriptor, read back from a pipe. */
#include "base/log.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/utf8.h"
#include "test/test.h"

static int lines = -1; /* reading end of the log */

static void log_to_pipe(enum log_level level, enum log_format format)
{
    int pair[2];

    CHECK(pipe2(pair, O_CLOEXEC | O_NONBLOCK) == 0);
    lines = pair[0];
    log_setup(pair[1], level, format);
}

/* The line written last, without its newline; there must be exactly one. */
static struct str line(void)
{
    static char text[8192];
    ssize_t n = read(lines, text, sizeof text);

    if (n <= 0)
        return STR("");
    CHECK(text[n - 1] == '\n' && memchr(text, '\n', (size_t)n) == text + n - 1);
    return str_n(text, (size_t)n - 1);
}

/* From the message on: the time changes. */
static struct str tail_of(struct str s, const char *from)
{
    ptrdiff_t at = str_find(s, str_of(from));

    CHECK(at >= 0);
    return str_from(s, (size_t)at);
}

TEST(json_lines_hold_every_kind_of_field)
{
    own(err) e = err_new(ERR_IO, "disk \"gone\"");
    bool yes = true; /* the bare word is an int in C17 */

    log_to_pipe(LOG_INFO, LOG_JSON);
    log_warn("sandbox lost", KV("id", "s1"), KV("s", STR("slice")), KV("i", -5), KV("u", 7u),
             KV("l", 1ull << 63), KV("d", 1.5), KV("b", yes), KV("none", (char *)NULL), KV_ERR(e));
    struct str s = line();
    CHECK(str_starts(s, STR("{\"time\":\"20")));
    CHECK_STR(tail_of(s, ",\"level\""),
              ",\"level\":\"warn\",\"msg\":\"sandbox lost\",\"id\":\"s1\",\"s\":\"slice\","
              "\"i\":-5,\"u\":7,\"l\":9223372036854775808,\"d\":1.5,\"b\":true,\"none\":\"\","
              "\"error\":\"disk \\\"gone\\\"\"}");
    log_warn("x", KV("nan", (double)NAN), KV("inf", (double)INFINITY), KV_ERR(NULL));
    CHECK_STR(tail_of(line(), ",\"nan\""), ",\"nan\":null,\"inf\":null,\"error\":\"none\"}");
}

TEST(text_lines_quote_only_what_needs_it)
{
    log_to_pipe(LOG_DEBUG, LOG_TEXT);
    log_debug("starting up", KV("id", "s1"), KV("path", "a b"), KV("empty", ""), KV("eq", "a=b"),
              KV("q", "say \"x\""), KV("n", 3));
    struct str s = line();
    CHECK(s.p[2] == ':' && s.p[5] == ':');
    CHECK_STR(tail_of(s, "starting"),
              "starting up id=s1 path=\"a b\" empty=\"\" eq=\"a=b\" q=\"say \\\"x\\\"\" n=3");
}

TEST(secrets_are_never_written)
{
    struct secret key = {STR("hunter2")};

    log_to_pipe(LOG_INFO, LOG_JSON);
    log_info("login", KV("key", key));
    struct str s = line();
    CHECK_HAS(s, "\"key\":\"***\"");
    CHECK_INT(str_find(s, STR("hunter2")), -1);
    log_to_pipe(LOG_INFO, LOG_TEXT);
    log_info("login", KV("key", key));
    CHECK_STR(tail_of(line(), "login"), "login key=***");
}

TEST(levels_below_the_set_one_are_not_even_evaluated)
{
    int evaluated = 0;
    enum log_level level;

    log_to_pipe(LOG_WARN, LOG_JSON);
    log_info("quiet", KV("n", ++evaluated));
    CHECK_INT(evaluated, 0);
    CHECK_STR(line(), "");
    log_error("loud", KV("n", ++evaluated));
    CHECK_HAS(line(), "loud");
    log_to_pipe(LOG_OFF, LOG_JSON);
    log_error("off");
    CHECK_STR(line(), "");
    CHECK(log_level_parse(STR("Warning"), &level) && level == LOG_WARN);
    CHECK(log_level_parse(STR("DEBUG"), &level) && level == LOG_DEBUG);
    CHECK(log_level_parse(STR("off"), &level) && level == LOG_OFF);
    CHECK(!log_level_parse(STR("verbose"), &level));
}

TEST(auto_format_is_json_when_nobody_looks)
{
    log_to_pipe(LOG_INFO, LOG_AUTO);
    log_info("x");
    CHECK(str_starts(line(), STR("{")));
}

TEST(control_characters_never_reach_a_terminal)
{
    /* C0, DEL, C1 in UTF-8 (C2 9B is CSI), a lone C1 byte, and a direction override left alone */
    struct str nasty = STR("a\033[2Jb\nc\x7f"
                           "d\xc2\x9b"
                           "31me\x9b"
                           "f\rg\th");

    for (int way = 0; way < 3; way++) {
        log_to_pipe(LOG_INFO, way == 2 ? LOG_JSON : LOG_TEXT);
        log_info(way == 0 ? nasty.p : "m", KV("k", way == 0 ? STR("") : nasty));
        struct str s = tail_of(line(), way == 0 ? "a" : "k");
        CHECK_HAS(s, "a\\u001b[2Jb\\nc\\u007fd\\u009b31me\\ufffdf\\u000dg\\u0009h");
        for (size_t i = 0; i < s.len; i++)
            CHECK((unsigned char)s.p[i] >= ' ' && s.p[i] != 0x7f && (unsigned char)s.p[i] < 0x80);
    }
    log_to_pipe(LOG_INFO, LOG_TEXT);
    log_info("m", KV("k", "\xc2\x9bx"), KV("j", "\xff"), KV("ok", "日本"));
    CHECK_STR(tail_of(line(), "m k"), "m k=\"\\u009bx\" j=\"\\ufffd\" ok=日本");
}

TEST(a_line_that_is_too_long_keeps_whole_fields_and_says_so)
{
    static char big[6000];

    memset(big, 'x', sizeof big - 1);
    for (int way = 0; way < 2; way++) {
        log_to_pipe(LOG_INFO, way ? LOG_TEXT : LOG_JSON);
        log_info("m", KV("a", 1), KV("big", big), KV("b", 2));
        CHECK_STR(tail_of(line(), way ? "m a" : ",\"a\""),
                  way ? "m a=1 b=2 cut=true" : ",\"a\":1,\"b\":2,\"cut\":true}");
        log_info(big);
        struct str s = line();
        CHECK(str_ends(s, way ? STR("x cut=true") : STR("x\",\"cut\":true}")));
        CHECK(s.len < 4096);
    }
}

/* Every length near the edge, with characters of every width, must give a line Python can read. */
TEST(json_lines_are_json_at_every_length)
{
    static char text[5000];
    char command[700];
    static const char *const fills[] = {"x", "\"", "\n", "\x01", "€", "\xff", "😀", "\xc2\x85"};
    own_fd dir = test_dir_fd();

    if (system("python3 -c pass") != 0)
        SKIP("python3 is not here");
    own_fd out = openat(dir, "log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    log_setup(out, LOG_INFO, LOG_JSON);
    for (size_t f = 0; f < ARRAY_LEN(fills); f++)
        for (size_t n = 600; n < 4200; n += n < 3900 && n != 600 ? 99 : 1) {
            size_t width = strlen(fills[f]), len = n / width * width;
            for (size_t i = 0; i < len; i += width)
                memcpy(text + i, fills[f], width);
            log_info("m", KV("a", 1), KV("k", str_n(text, len)), KV("b", 2));
            text[len] = '\0';
            log_info(text, KV("a", 1));
        }
    snprintf(command, sizeof command,
             "cd '%s' && python3 -c '\nimport json\n"
             "for l in open(\"log\", \"rb\"):\n"
             "    d = json.loads(l.decode(\"utf-8\"))\n"
             "    assert (\"cut\" in d) or d[\"a\"] == 1, l\n"
             "    assert len(l) <= 4096\n"
             "    assert d[\"msg\"] != \"m\" or \"k\" in d or \"cut\" in d, l\n'",
             test_dir());
    CHECK_INT(system(command), 0);
}

TEST(logging_asks_for_no_memory_and_bears_a_failing_write)
{
    log_to_pipe(LOG_INFO, LOG_JSON);
    fault_at(UINT32_MAX);
    log_info("x", KV("a", 1.25), KV("s", "text"));
    CHECK_INT(fault_calls(), 1); /* the write */
    fault_at(1);
    log_info("x");
    CHECK(fault_fired());
}
