// SPDX-License-Identifier: Apache-2.0
/* peek.c — see peek.h. Strings and brackets are told apart, and nothing else is looked at. */
#include "host/proxy/peek.h"

/* The rest of a string, up to its closing quote; text then begins behind it. .p NULL: the string
 * does not end here. */
static struct str take_string(struct str *text)
{
    for (size_t i = 0; i < text->len; i++) {
        if (text->p[i] == '\\')
            i++;
        else if (text->p[i] == '"') {
            struct str s = str_first(*text, i);
            *text = str_from(*text, i + 1);
            return s;
        }
    }
    return (struct str){0};
}

static void skip_space(struct str *text)
{
    while (text->len && (text->p[0] == ' ' || text->p[0] == '\n' || text->p[0] == '\t'))
        *text = str_from(*text, 1);
}

/* Is the string before it the name of a member? */
static bool take_colon(struct str *text)
{
    skip_space(text);
    if (!text->len || text->p[0] != ':')
        return false;
    *text = str_from(*text, 1);
    skip_space(text);
    return true;
}

static struct str plain_value(struct str text)
{
    if (!text.len || text.p[0] != '"')
        return (struct str){0};
    text = str_from(text, 1);
    struct str value = take_string(&text);
    for (size_t i = 0; i < value.len; i++)
        if (value.p[i] == '\\')
            return (struct str){0};
    return value;
}

struct str peek_member(struct str text, unsigned depth, struct str key)
{
    unsigned at = 0;

    text = str_first(text, PEEK_BYTES);
    while (text.len) {
        char c = text.p[0];
        text = str_from(text, 1);
        if (c == '{' || c == '[')
            at++;
        else if ((c == '}' || c == ']') && at)
            at--;
        if (c != '"')
            continue;
        struct str s = take_string(&text);
        if (!s.p)
            break;
        if (at == depth && str_eq(s, key) && take_colon(&text)) {
            struct str value = plain_value(text);
            if (value.len)
                return value;
        }
    }
    return (struct str){0};
}
