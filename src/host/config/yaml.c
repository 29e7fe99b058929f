// SPDX-License-Identifier: Apache-2.0
/* yaml.c — libyaml's events into a tree; see yaml.h.
 *
 * For hostile input: depth, nodes and bytes are bounded, an alias may not stand inside its own
 * anchor, and each mapping of many keys gets a hash while it is built. */
#include "host/config/yaml.h"

#include <yaml.h>

#include "base/map.h"
#include "host/config/yaml_reader.h"

#define TAG_PREFIX  "tag:yaml.org,2002:"
#define MANY_KEYS   16
#define ANCHORS_MAX 1000

struct anchor {
    struct anchor *next;
    struct str name;
    struct json *value; /* NULL while it is being read */
};

struct yaml {
    struct arena *arena;
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; always initialised */
    struct anchor *anchors;
    unsigned anchor_count, nodes;
};

/* A mapping while it is read: members with their keys looked up by hash. */
struct mapping {
    struct json *object;
    struct map index; /* key to member, once there are many */
};

static fallible read_node(struct yaml *y, unsigned depth, struct json **ret_value);

/* --- errors and events --- */

static fallible wrong_at(yaml_mark_t at, const char *what, const char *more)
{
    return err_new(ERR_INVALID, "line %zu column %zu: %s%s", at.line + 1, at.column + 1, what,
                   more);
}

static fallible yaml_wrong(const struct yaml *y, const char *what)
{
    return wrong_at(y->event.start_mark, what, "");
}

static fallible parser_error(const struct yaml *y)
{
    const yaml_parser_t *p = &y->parser;

    if (p->error == YAML_MEMORY_ERROR)
        return err_no_memory();
    if (p->error == YAML_READER_ERROR)
        return err_new(ERR_INVALID, "byte %zu: %s", p->problem_offset,
                       p->problem ? p->problem : "unreadable");
    return wrong_at(p->problem_mark, p->problem ? p->problem : "not YAML", "");
}

static fallible yaml_next(struct yaml *y)
{
    yaml_event_delete(&y->event);
    return yaml_parser_parse(&y->parser, &y->event) ? NULL : parser_error(y);
}

static fallible count_node(struct yaml *y)
{
    if (++y->nodes > YAML_MAX_NODES)
        return yaml_wrong(y, "the document grows too large (are aliases nested in aliases?)");
    return NULL;
}

/* --- anchors --- */

static struct str text_of(struct arena *a, const yaml_char_t *s, size_t len)
{
    return arena_copy(a, str_n(s, len));
}

static fallible yaml_remember(struct yaml *y, const yaml_char_t *name, struct anchor **ret_anchor)
{
    *ret_anchor = NULL;
    if (!name)
        return NULL;
    if (++y->anchor_count > ANCHORS_MAX)
        return yaml_wrong(y, "too many anchors");
    struct anchor *a = arena_new(y->arena, struct anchor);
    struct str copy = text_of(y->arena, name, strlen((const char *)name));
    TRY(arena_check(y->arena));
    a->name = copy;
    a->next = y->anchors;
    y->anchors = a;
    *ret_anchor = a;
    return NULL;
}

static fallible copy_tree(struct yaml *y, const struct json *from, struct json **ret_value)
{
    struct json *to = json_new(y->arena, from->type), *child;

    TRY(count_node(y));
    if (!to)
        return arena_check(y->arena);
    *to = *from;
    to->next = NULL;
    if (from->type == JSON_ARRAY || from->type == JSON_OBJECT) {
        to->first = to->last = NULL;
        to->count = 0;
        for (const struct json *m = from->first; m; m = m->next) {
            TRY(copy_tree(y, m, &child));
            if (to->last)
                to->last->next = child;
            else
                to->first = child;
            to->last = child;
            to->count++;
        }
    }
    *ret_value = to;
    return NULL;
}

static fallible read_alias(struct yaml *y, struct json **ret_value)
{
    struct str name = str_of((const char *)y->event.data.alias.anchor);

    for (const struct anchor *a = y->anchors; a; a = a->next) {
        if (!str_eq(a->name, name))
            continue;
        if (!a->value)
            return yaml_wrong(y, "the alias stands inside its own anchor");
        TRY(copy_tree(y, a->value, ret_value));
        return yaml_next(y);
    }
    return wrong_at(y->event.start_mark, "no anchor named ", name.p);
}

/* --- scalars --- */

static bool is_scalar_tag(struct str word)
{
    static const char *const words[] = {"str", "int", "float", "bool", "null", "timestamp"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_eq(word, str_of(words[i])))
            return true;
    return false;
}

static fallible read_scalar(struct yaml *y, struct json **ret_value)
{
    const yaml_event_t *e = &y->event;
    struct str text = text_of(y->arena, e->data.scalar.value, e->data.scalar.length);
    struct str tag = str_of((const char *)e->data.scalar.tag);

    TRY(arena_check(y->arena));
    if (!tag.len && !e->data.scalar.plain_implicit)
        tag = STR(TAG_PREFIX "str");
    else if (str_eq(tag, STR("!")))
        tag = STR(TAG_PREFIX "str");
    struct str word = str_from(tag, tag.len ? sizeof TAG_PREFIX - 1 : 0);
    if (tag.len && !(str_starts(tag, STR(TAG_PREFIX)) && is_scalar_tag(word)))
        return wrong_at(e->start_mark, "unknown tag ", tag.p);
    struct err *bad = yaml_resolve(y->arena, text, word, ret_value);
    if (bad)
        return err_wrap(bad, "line %zu column %zu", e->start_mark.line + 1,
                        e->start_mark.column + 1);
    if (!*ret_value)
        return wrong_at(e->start_mark, "the value does not fit its tag ", tag.p);
    return yaml_next(y);
}

/* --- collections --- */

static fallible read_sequence(struct yaml *y, unsigned depth, struct json **ret_value)
{
    struct json *array = json_new(y->arena, JSON_ARRAY), *value;

    if (!array)
        return arena_check(y->arena);
    TRY(yaml_next(y));
    while (y->event.type != YAML_SEQUENCE_END_EVENT) {
        TRY(read_node(y, depth + 1, &value));
        json_push(array, value);
    }
    *ret_value = array;
    return yaml_next(y);
}

/* As json_set, but by hash when there are many; overwrite false keeps what is there. */
static void put_member(struct mapping *m, struct str key, struct json *value, bool overwrite)
{
    struct json *old = NULL;

    if (m->object->count < MANY_KEYS) {
        old = json_get(m->object, key);
    } else {
        if (!m->index.count)
            for (struct json *c = m->object->first; c; c = c->next)
                map_put(&m->index, c->key, c);
        old = map_get(&m->index, key);
    }
    if (old && overwrite) { /* in place, with its neighbours */
        struct json *next_member = old->next;
        *old = *value;
        old->next = next_member;
        old->key = key;
    }
    if (old)
        return;
    value->key = key;
    value->next = NULL;
    if (m->object->last)
        m->object->last->next = value;
    else
        m->object->first = value;
    m->object->last = value;
    m->object->count++;
    if (m->index.count)
        map_put(&m->index, key, value);
}

static fallible key_text(struct yaml *y, yaml_mark_t at, const struct json *key,
                         struct str *ret_text)
{
    own_done(buf) out;

    buf_init(&out, 4096);
    if (key->type == JSON_STR) {
        *ret_text = key->s;
        return NULL;
    }
    if (key->type == JSON_ARRAY || key->type == JSON_OBJECT)
        return wrong_at(at, "a key must be a single word or string", "");
    json_write(&out, key, JW_PYTHON);
    *ret_text = arena_copy(y->arena, buf_str(&out));
    return arena_check(y->arena);
}

/* The members of from, those already in m winning. */
static void merge_object(struct mapping *m, struct json *from)
{
    for (struct json *c = from->first, *following; c; c = following) {
        following = c->next;
        put_member(m, c->key, c, false);
    }
}

/* "<<": a mapping, or a list of them in which the earlier wins. */
static fallible yaml_merge(struct yaml *y, yaml_mark_t at, struct mapping *m, struct json *from)
{
    (void)y;
    if (from->type == JSON_OBJECT) {
        merge_object(m, from);
        return NULL;
    }
    for (struct json *c = from->type == JSON_ARRAY ? from->first : NULL, *following; c;
         c = following) {
        following = c->next;
        if (c->type != JSON_OBJECT)
            return wrong_at(at, "'<<' merges mappings only", "");
        merge_object(m, c);
    }
    return from->type == JSON_ARRAY ? NULL : wrong_at(at, "'<<' merges mappings only", "");
}

static bool is_merge_key(const yaml_event_t *e)
{
    return e->type == YAML_SCALAR_EVENT && e->data.scalar.plain_implicit &&
           e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && e->data.scalar.length == 2 &&
           memcmp(e->data.scalar.value, "<<", 2) == 0;
}

/* merged collects what '<<' brought, in front of the mapping's own members in the end. */
static fallible read_members(struct yaml *y, unsigned depth, struct mapping *m,
                             struct mapping *merged)
{
    struct json *key, *value;
    struct str name;

    while (y->event.type != YAML_MAPPING_END_EVENT) {
        yaml_mark_t at = y->event.start_mark;
        bool is_merge = is_merge_key(&y->event);
        TRY(read_node(y, depth + 1, &key));
        TRY(read_node(y, depth + 1, &value));
        if (is_merge) {
            TRY(yaml_merge(y, at, merged, value));
            continue;
        }
        TRY(key_text(y, at, key, &name));
        put_member(m, name, value, true);
    }
    return NULL;
}

static fallible read_mapping(struct yaml *y, unsigned depth, struct json **ret_value)
{
    struct mapping m = {.object = json_new(y->arena, JSON_OBJECT)};
    struct mapping merged = {.object = json_new(y->arena, JSON_OBJECT)};

    TRY(arena_check(y->arena));
    TRY(yaml_next(y));
    map_init(&m.index);
    map_init(&merged.index);
    struct err *e = read_members(y, depth, &m, &merged);
    if (!e && merged.object->count) {
        for (struct json *c = m.object->first, *following; c; c = following) {
            following = c->next;
            put_member(&merged, c->key, c, true);
        }
        m.object = merged.object;
    }
    map_done(&m.index);
    map_done(&merged.index);
    TRY(e);
    *ret_value = m.object;
    return yaml_next(y);
}

static fallible check_collection_tag(const struct yaml *y, const yaml_char_t *tag, const char *want)
{
    struct str s = str_of((const char *)tag);

    if (!s.len || str_eq(s, STR("!")) || str_eq(s, str_of(want)))
        return NULL;
    return wrong_at(y->event.start_mark, "unknown tag ", s.p);
}

static fallible read_node(struct yaml *y, unsigned depth, struct json **ret_value)
{
    const yaml_event_t *e = &y->event;
    struct anchor *anchor = NULL;

    if (depth > YAML_MAX_DEPTH)
        return yaml_wrong(y, "nested too deep");
    TRY(count_node(y));
    switch (e->type) {
    case YAML_ALIAS_EVENT:
        return read_alias(y, ret_value);
    case YAML_SCALAR_EVENT:
        TRY(yaml_remember(y, e->data.scalar.anchor, &anchor));
        TRY(read_scalar(y, ret_value));
        break;
    case YAML_SEQUENCE_START_EVENT:
        TRY(check_collection_tag(y, e->data.sequence_start.tag, TAG_PREFIX "seq"));
        TRY(yaml_remember(y, e->data.sequence_start.anchor, &anchor));
        TRY(read_sequence(y, depth, ret_value));
        break;
    case YAML_MAPPING_START_EVENT:
        TRY(check_collection_tag(y, e->data.mapping_start.tag, TAG_PREFIX "map"));
        TRY(yaml_remember(y, e->data.mapping_start.anchor, &anchor));
        TRY(read_mapping(y, depth, ret_value));
        break;
    default:
        return yaml_wrong(y, "a value should be here");
    }
    if (anchor) /* a copy: the tree itself may be taken apart by a merge */
        TRY(copy_tree(y, *ret_value, &anchor->value));
    return NULL;
}

/* --- the document --- */

static fallible read_stream(struct yaml *y, struct json **ret_value)
{
    TRY(yaml_next(y)); /* stream start */
    TRY(yaml_next(y));
    if (y->event.type == YAML_STREAM_END_EVENT) {
        *ret_value = json_new(y->arena, JSON_NULL);
        return arena_check(y->arena);
    }
    TRY(yaml_next(y)); /* document start */
    TRY(read_node(y, 1, ret_value));
    TRY(yaml_next(y)); /* document end */
    return y->event.type == YAML_STREAM_END_EVENT ? NULL
                                                  : yaml_wrong(y, "a second document begins here");
}

fallible yaml_parse(struct arena *a, struct str text, struct json **ret_value)
{
    struct yaml y = {.arena = a};

    if (text.len > YAML_MAX_SIZE)
        return err_new(ERR_TOO_LARGE, "%zu bytes are too much; the limit is %u", text.len,
                       YAML_MAX_SIZE);
    if (!yaml_parser_initialize(&y.parser))
        return err_no_memory();
    yaml_parser_set_input_string(&y.parser, (const unsigned char *)(text.p ? text.p : ""),
                                 text.len);
    struct err *e = read_stream(&y, ret_value);
    yaml_event_delete(&y.event);
    yaml_parser_delete(&y.parser);
    return e;
}
