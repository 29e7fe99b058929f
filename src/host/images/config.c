// SPDX-License-Identifier: Apache-2.0
/* config.c — see config.h. */
#include "host/images/config.h"

#include "base/json.h"

#define DIR_MAX 4095

static bool has_nul(struct str s)
{
    return s.len && memchr(s.p, '\0', s.len);
}

static fallible check_env(const struct json *env)
{
    size_t at = 0;

    for (const struct json *v = env->first; v; v = v->next, at++) {
        if (v->type != JSON_STR || has_nul(v->s))
            return err_new(ERR_UNPROCESSABLE, "Env[%zu]: wanted a string without NUL", at);
        if (v->s.len > IMAGE_TEXT_MAX)
            return err_new(ERR_UNPROCESSABLE, "Env[%zu]: %zu bytes, at most %u", at, v->s.len,
                           IMAGE_TEXT_MAX);
    }
    return NULL;
}

/* "", "root", "0", "0:0": the user it is anyway. */
static bool is_root(struct str user)
{
    struct str rest = user, name;
    bool grouped = str_cut(&rest, ':', &name);
    struct str parts[] = {name, grouped ? rest : name};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (parts[i].len && !str_eq(parts[i], STR("root")) && !str_eq(parts[i], STR("0")))
            return false;
    return true;
}

fallible image_config_read(const struct json *config, struct image_config *ret)
{
    struct image_config c = {.env = json_get(config, STR("Env"))};

    if (c.env && c.env->type != JSON_ARRAY)
        c.env = NULL;
    if (c.env)
        TRY(check_env(c.env));
    TRY(json_take_str(config, "WorkingDir", &c.working_dir));
    TRY(json_take_str(config, "User", &c.user));
    if (c.working_dir.len > DIR_MAX || has_nul(c.working_dir))
        return err_new(ERR_UNPROCESSABLE, "WorkingDir: wanted at most %d bytes without NUL",
                       DIR_MAX);
    if (c.user.len > IMAGE_USER_MAX || has_nul(c.user))
        return err_new(ERR_UNPROCESSABLE, "User: wanted at most %d bytes without NUL",
                       IMAGE_USER_MAX);
    if (!c.working_dir.len)
        c.working_dir = (struct str){0};
    if (is_root(c.user))
        c.user = (struct str){0};
    *ret = c;
    return NULL;
}

bool image_config_next(const struct json **at, struct str *ret_pair)
{
    for (const struct json *v = *at; v; v = v->next)
        if (str_find_char(v->s, '=') > 0) {
            *ret_pair = v->s;
            *at = v->next;
            return true;
        }
    *at = NULL;
    return false;
}
