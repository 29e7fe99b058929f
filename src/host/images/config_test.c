// SPDX-License-Identifier: Apache-2.0
#include "host/images/config.h"

#include <stdio.h>

#include "base/json.h"
#include "test/test.h"

static struct arena a;

static fallible read_text(const char *text, struct image_config *ret)
{
    struct json *config;

    arena_init(&a, 16u << 20);
    CHECK_OK(json_parse(&a, str_of(text), NULL, &config));
    struct err *e = image_config_read(config, ret);
    return e;
}

TEST(an_image_says_its_environment_place_and_user)
{
    struct image_config c;
    struct str pair;

    CHECK_OK(read_text("{\"Env\":[\"A=1\",\"odd\",\"=x\",\"B=\"],\"WorkingDir\":\"/app\","
                       "\"User\":\"web:www\",\"Cmd\":[\"x\"]}",
                       &c));
    const struct json *at = c.env->first;
    CHECK(image_config_next(&at, &pair));
    CHECK_STR(pair, "A=1");
    CHECK(image_config_next(&at, &pair));
    CHECK_STR(pair, "B=");
    CHECK(!image_config_next(&at, &pair));
    CHECK_STR(c.working_dir, "/app");
    CHECK_STR(c.user, "web:www");
    arena_done(&a);
    CHECK_OK(image_config_read(NULL, &c));
    CHECK(!c.env && !c.working_dir.p && !c.user.p);
}

TEST(an_image_whose_user_is_root_names_nobody)
{
    static const char *const root[] = {"", "root", "0", "0:0", "root:root", "0:root", "root:"};
    static const char *const others[] = {"1", "root:1", "0:www", "rooty", "00x"};
    struct image_config c;
    char text[64];

    for (size_t i = 0; i < ARRAY_LEN(root) + ARRAY_LEN(others); i++) {
        bool is = i < ARRAY_LEN(root);
        const char *user = is ? root[i] : others[i - ARRAY_LEN(root)];
        snprintf(text, sizeof text, "{\"User\":\"%s\"}", user);
        CHECK_OK(read_text(text, &c));
        if (is != !c.user.p)
            FAIL("'%s' is %sroot", user, is ? "" : "not ");
        arena_done(&a);
    }
}

TEST(an_image_that_says_nonsense_is_refused_by_the_name_of_the_member)
{
    static const struct {
        const char *text, *why;
    } bad[] = {{"{\"Env\":[\"A=1\",7]}", "Env[1]"},
               {"{\"Env\":[\"A=\\u0000\"]}", "Env[0]: wanted a string without NUL"},
               {"{\"WorkingDir\":7}", "WorkingDir"},
               {"{\"WorkingDir\":\"/a\\u0000\"}", "WorkingDir"},
               {"{\"User\":[]}", "User"},
               {"{\"User\":\"a\\u0000\"}", "User"}};
    struct image_config c;
    own_done(buf) text;

    buf_init(&text, 1u << 20);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_ERR(read_text(bad[i].text, &c), ERR_UNPROCESSABLE, bad[i].why);
        arena_done(&a);
    }
    buf_add_cstr(&text, "{\"Env\":[\"A=");
    for (size_t i = 0; i < IMAGE_TEXT_MAX; i++)
        buf_add_char(&text, 'x');
    buf_add_cstr(&text, "\"]}");
    CHECK_ERR(read_text(buf_cstr(&text), &c), ERR_UNPROCESSABLE, "Env[0]: 131073 bytes");
    arena_done(&a);
}
