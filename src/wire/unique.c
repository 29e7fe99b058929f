// SPDX-License-Identifier: Apache-2.0
/* unique.c — see unique.h. The text is JSON, that is known by now: outside of strings each colon is
 * a member. As long as there are as many in the tree nothing more is looked at. */
#include "wire/unique.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/own.h"

#define DEPTH_NAMED 16
#define NAMES_BYTES (16u << 20) /* for finding which; more names than fit, and it stays unsaid */

/* From behind its first quote to behind its last; false: there is none. */
static bool skip_string(struct str *rest)
{
    while (rest->len && rest->p[0] != '"')
        *rest = str_from(*rest, rest->p[0] == '\\' && rest->len > 1 ? 2 : 1);
    if (!rest->len)
        return false;
    *rest = str_from(*rest, 1);
    return true;
}

static size_t members_in_text(struct str rest)
{
    size_t n = 0;

    while (rest.len) {
        char c = rest.p[0];
        rest = str_from(rest, 1);
        n += c == ':';
        if (c == '"' && !skip_string(&rest))
            break;
    }
    return n;
}

static size_t members_in_tree(const struct json *v)
{
    bool object = v->type == JSON_OBJECT;
    size_t n = object ? v->count : 0;

    if (object || v->type == JSON_ARRAY)
        for (const struct json *c = v->first; c; c = c->next)
            n += members_in_tree(c);
    return n;
}

struct search {
    struct arena arena;
    struct map seen; /* "NUMBER:name", by the number of the object */
    struct {
        unsigned number;
        struct str name; /* of the member we are in */
    } in[DEPTH_NAMED + 1];
    unsigned depth, objects;
};

/* As it is meant: names are the same in any spelling. */
static struct str unique_plain(struct search *s, struct str quoted)
{
    struct json *v;
    own(err) e = json_parse(&s->arena, quoted, NULL, &v);

    return e ? STR("") : v->s;
}

static fallible said_twice(const struct search *s)
{
    char path[200];
    size_t n = 0;

    for (unsigned i = 1; i <= s->depth; i++) {
        struct str name = str_first(s->in[i].name, 80);
        size_t dot = n && name.len;
        if (n + dot + name.len >= sizeof path)
            break;
        if (dot)
            path[n++] = '.';
        if (name.len)
            memcpy(path + n, name.p, name.len);
        n += name.len;
    }
    return err_new(ERR_UNPROCESSABLE, "%.*s: it is there twice; say it once", (int)n, path);
}

static fallible note_name(struct search *s, struct str quoted)
{
    if (s->depth > DEPTH_NAMED)
        return NULL;
    s->in[s->depth].name = unique_plain(s, quoted);
    struct str key = arena_printf(&s->arena, "%u:" STR_FMT, s->in[s->depth].number,
                                  STR_ARG(s->in[s->depth].name));
    return key.p && map_put(&s->seen, key, s) ? said_twice(s) : NULL;
}

static bool is_name(struct str rest)
{
    while (rest.len && memchr(" \t\r\n", rest.p[0], 4))
        rest = str_from(rest, 1);
    return rest.len && rest.p[0] == ':';
}

static fallible unique_find(struct search *s, struct str rest)
{
    while (rest.len) {
        const char *at = rest.p;
        rest = str_from(rest, 1);
        if (*at == '{' || *at == '[') {
            if (++s->depth <= DEPTH_NAMED) {
                s->in[s->depth].number = ++s->objects;
                s->in[s->depth].name = STR("");
            }
        } else if ((*at == '}' || *at == ']') && s->depth) {
            s->depth--;
        } else if (*at == '"') {
            if (!skip_string(&rest))
                break;
            if (is_name(rest))
                TRY(note_name(s, str_n(at, (size_t)(rest.p - at))));
        }
    }
    return err_new(ERR_UNPROCESSABLE, "the body: a member is there twice");
}

fallible wire_check_unique(struct str text, const struct json *tree)
{
    struct search s = {.depth = 0};

    if (members_in_text(text) == members_in_tree(tree))
        return NULL;
    arena_init(&s.arena, NAMES_BYTES);
    map_init(&s.seen);
    struct err *e = unique_find(&s, text);
    map_done(&s.seen);
    arena_done(&s.arena);
    return e;
}
