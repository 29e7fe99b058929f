// SPDX-License-Identifier: Apache-2.0
/* words.c — see words.h. */
#include "host/runtime/words.h"

#include <string.h>

#include "base/own.h"

/* --- a string, split --- */

struct splitter {
    struct str in;
    char *out; /* as long as the input: words only get shorter */
    size_t len;
};

static fallible take_quoted(struct splitter *s, char quote)
{
    s->in = str_from(s->in, 1);
    for (; s->in.len && s->in.p[0] != quote; s->in = str_from(s->in, 1)) {
        bool escaped =
            quote == '"' && s->in.p[0] == '\\' && s->in.len > 1 && strchr("\"\\$`", s->in.p[1]);
        if (escaped)
            s->in = str_from(s->in, 1);
        s->out[s->len++] = s->in.p[0];
    }
    if (!s->in.len)
        return err_new(ERR_UNPROCESSABLE, "command: a quote %c is not closed", quote);
    s->in = str_from(s->in, 1);
    return NULL;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static fallible take_word(struct splitter *s)
{
    while (s->in.len && !is_space(s->in.p[0])) {
        char c = s->in.p[0];
        if (c == '"' || c == '\'') {
            TRY(take_quoted(s, c));
            continue;
        }
        if (c == '\\' && s->in.len > 1)
            s->in = str_from(s->in, 1);
        s->out[s->len++] = s->in.p[0];
        s->in = str_from(s->in, 1);
    }
    s->out[s->len++] = '\0';
    return NULL;
}

static fallible too_many(void)
{
    return err_new(ERR_UNPROCESSABLE, "command: more than %d words", WORDS_MOST);
}

static fallible words_split(struct arena *a, struct str text, const char **words, size_t *ret_count)
{
    struct splitter s = {.in = text, .out = arena_alloc(a, 2 * text.len + 2)};
    size_t n = 0;

    if (!s.out)
        return arena_check(a);
    for (;;) {
        while (s.in.len && is_space(s.in.p[0]))
            s.in = str_from(s.in, 1);
        if (!s.in.len)
            break;
        if (n == WORDS_MOST)
            return too_many();
        words[n++] = s.out + s.len;
        TRY(take_word(&s));
    }
    if (!n)
        return err_new(ERR_UNPROCESSABLE, "command: no word in it; null is our own server");
    *ret_count = n;
    return NULL;
}

fallible words_of(struct arena *a, const struct json *command, const char *const **ret_words,
                  size_t *ret_count)
{
    bool list = command && command->type == JSON_ARRAY;
    size_t n = 0, room = !command ? 0 : list ? command->count : WORDS_MOST;

    if (room > WORDS_MOST)
        return too_many();
    const char **words = arena_alloc(a, (room + 1) * sizeof *words);
    if (!words)
        return arena_check(a);
    if (command && !list)
        TRY(words_split(a, command->s, words, &n));
    for (const struct json *c = list ? command->first : NULL; c; c = c->next)
        words[n++] = arena_cstr(a, c->s);
    words[n] = NULL;
    TRY(arena_check(a));
    *ret_words = words;
    *ret_count = n;
    return NULL;
}

/* --- which server is meant --- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool is_one_of(const char *word, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(word, *names) == 0)
            return true;
    return false;
}

enum words_face words_face(const char *const *words)
{
    static const char *const actions[] = {"openhands.runtime.action_execution_server",
                                          "openhands.runtime.action_execution_server:app", NULL};
    static const char *const agents[] = {"openhands.agent_server", NULL};
    static const char *const agent_programs[] = {"openhands-agent-server", "agent-server", NULL};
    static const char *const ours[] = {"croft", "croft-guest", NULL};

    if (!words[0])
        return WORDS_AGENT;
    if (is_one_of(last_part(words[0]), agent_programs))
        return WORDS_AGENT;
    if (strcmp(words[0], "action-server") == 0 ||
        (is_one_of(last_part(words[0]), ours) && words[1] &&
         strcmp(words[1], "action-server") == 0))
        return WORDS_ACTION;
    for (size_t i = 1; words[i]; i++) {
        if (strcmp(words[i - 1], "-m") != 0)
            continue;
        if (is_one_of(words[i], actions))
            return WORDS_ACTION;
        if (is_one_of(words[i], agents))
            return WORDS_AGENT;
    }
    return WORDS_OTHER;
}

static struct str value_of(const char *const *words, const char *flag)
{
    size_t n = strlen(flag);

    for (; *words; words++) {
        if (strncmp(*words, flag, n) != 0)
            continue;
        if ((*words)[n] == '=')
            return str_of(*words + n + 1);
        if (!(*words)[n] && words[1])
            return str_of(words[1]);
    }
    return (struct str){0};
}

bool words_have(const char *const *words, const char *flag)
{
    return value_of(words, flag).p != NULL;
}

uint16_t words_port(const char *const *words, const struct json *environment, uint16_t otherwise)
{
    struct str from[] = {value_of(words, "--port"),
                         environment ? json_get_str(environment, "PORT", (struct str){0})
                                     : (struct str){0}};

    for (size_t i = 0; i < ARRAY_LEN(from); i++) {
        uint64_t port;
        if (from[i].p && str_to_u64(from[i], &port) && port >= 1 && port <= 65535)
            return (uint16_t)port;
    }
    return otherwise;
}
