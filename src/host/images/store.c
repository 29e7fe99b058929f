// SPDX-License-Identifier: Apache-2.0
/* store.c — records and layers on disk; see images.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "host/images/inner.h"
#include "host/tree/inner.h"
#include "host/tree/tree.h"

#define LIST_MAX    10000
#define ALIASES_MAX 1000
#define DIGITS_SURE 6

void imagestore_done(struct imagestore *s)
{
    own_close(s->dir);
    own_close(s->layers);
    own_close(s->tmp);
    own_close(s->lock);
}

static fallible open_parts(struct imagestore *s, int state, bool change)
{
    TRY(fd_make_dirs(state, STR("images"), 0700, &s->dir));
    TRY(fd_make_dirs(s->dir, STR("layers"), 0700, &s->layers));
    TRY(fd_make_dirs(s->dir, STR("tmp"), 0700, &s->tmp));
    if (!change)
        return NULL;
    TRY(tree_lock(s->dir, &s->lock));
    return tree_empty(s->tmp); /* of an import that was cut short: none is under way now */
}

fallible imagestore_open(int state, bool change, struct imagestore *ret)
{
    struct imagestore s = {-1, -1, -1, -1};
    struct err *e = open_parts(&s, state, change);

    if (e) {
        imagestore_done(&s);
        return err_wrap(e, "the store of images");
    }
    *ret = s;
    return NULL;
}

/* --- records --- */

static bool is_digest(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (str_digit(s.p[i]) > 15)
            return false;
    }
    return s.len == IMAGE_ID_LEN;
}

static void put_record(struct jw *w, const struct image *i)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "id", i->id);
        jw_str(w, "name", i->name);
        JW_ARRAY(w, "aliases") {
            for (size_t k = 0; k < i->alias_count; k++)
                jw_str(w, NULL, i->aliases[k]);
        }
        jw_uint(w, "bytes", i->bytes);
        jw_uint(w, "made_wall_ns", i->made_wall_ns);
        JW_ARRAY(w, "layers") {
            for (size_t k = 0; k < i->layer_count; k++)
                jw_str(w, NULL, i->layers[k]);
        }
        jw_value(w, "config", i->config);
        if (i->no_bash)
            jw_bool(w, "no_bash", true);
    }
}

static fallible write_record(const struct imagestore *s, const struct image *i)
{
    own_done(buf) text;
    struct jw w;
    char name[IMAGE_ID_LEN + 8];

    buf_init(&text, RECORD_MAX);
    jw_init(&w, &text, 0);
    put_record(&w, i);
    TRY(buf_check(&text));
    snprintf(name, sizeof name, STR_FMT ".json", STR_ARG(i->id));
    return fd_replace_file(s->dir, name, buf_str(&text), 0600);
}

static fallible parse_aliases(struct arena *a, const struct json *list, struct image *i)
{
    if (!list || list->type != JSON_ARRAY)
        return NULL;                                                     /* of an older croft */
    i->aliases = arena_alloc(a, (list->count + 1) * sizeof *i->aliases); /* room for the name */
    TRY(arena_check(a));
    for (const struct json *n = list->first; n; n = n->next)
        if (n->type == JSON_STR)
            i->aliases[i->alias_count++] = n->s;
    return NULL;
}

static fallible parse_record(struct arena *a, struct str text, struct image *ret)
{
    struct json *doc;
    struct image i = {0};

    TRY(json_parse(a, text, NULL, &doc));
    i.id = json_get_str(doc, "id", STR(""));
    i.name = json_get_str(doc, "name", STR(""));
    TRY(parse_aliases(a, json_get(doc, STR("aliases")), &i));
    i.bytes = (uint64_t)json_get_int(doc, "bytes", 0);
    i.made_wall_ns = (uint64_t)json_get_int(doc, "made_wall_ns", 0);
    i.config = json_get(doc, STR("config"));
    i.no_bash = json_get_bool(doc, "no_bash", false);
    const struct json *layers = json_get(doc, STR("layers"));
    if (!is_digest(i.id) || !layers || layers->type != JSON_ARRAY || !layers->count ||
        layers->count > ARCHIVE_LAYERS_MAX)
        return err_new(ERR_CORRUPT, "not a record of an image");
    i.layers = arena_alloc(a, layers->count * sizeof *i.layers);
    if (!i.layers)
        return arena_check(a);
    for (const struct json *l = layers->first; l; l = l->next) {
        if (l->type != JSON_STR || !is_digest(l->s))
            return err_new(ERR_CORRUPT, "not a record of an image: a layer without a digest");
        i.layers[i.layer_count++] = l->s;
    }
    *ret = i;
    return NULL;
}

static fallible read_record(const struct imagestore *s, struct arena *a, const char *name,
                            struct image *ret)
{
    own_done(buf) text;
    own_fd fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    buf_init(&text, RECORD_MAX);
    if (fd < 0)
        return err_sys("open '%s'", name);
    TRY_WRAP(fd_read_all(fd, &text), "'%s'", name);
    struct str kept = arena_copy(a, buf_str(&text)); /* the tree points into its text */
    if (!kept.p)
        return arena_check(a);
    TRY_WRAP(parse_record(a, kept, ret), "'%s'", name);
    return NULL;
}

static int by_name(const void *x, const void *y)
{
    const struct image *a = x, *b = y;
    int order = str_cmp(a->name, b->name);

    return order ? order : str_cmp(a->id, b->id);
}

static fallible read_all(const struct imagestore *s, struct arena *a, struct image **ret_list,
                         size_t *ret_count)
{
    own_done(buf) names = {0};
    size_t count, n = 0;

    TRY(tree_read_names(s->dir, 4u << 20, &names, &count));
    if (count > LIST_MAX)
        return err_new(ERR_TOO_LARGE, "more than %d images", LIST_MAX);
    struct image *list = arena_alloc(a, count * sizeof *list);
    if (!list)
        return arena_check(a);
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        struct str id = str_of(name);
        if (str_ends(id, STR(".json")) && is_digest(str_first(id, id.len - 5)))
            TRY(read_record(s, a, name, &list[n++]));
    }
    qsort(list, n, sizeof *list, by_name);
    *ret_list = list;
    *ret_count = n;
    return NULL;
}

fallible images_list(int state, struct arena *a, struct image **ret_list, size_t *ret_count)
{
    struct imagestore s;

    TRY(imagestore_open(state, false, &s));
    struct err *e = read_all(&s, a, ret_list, ret_count);
    imagestore_done(&s);
    return e;
}

/* Gives whether it had it. */
static bool lose_name(struct image *i, struct str name)
{
    size_t kept = 0;
    bool had = str_eq(i->name, name);

    for (size_t k = 0; k < i->alias_count; k++) {
        had |= str_eq(i->aliases[k], name);
        if (!str_eq(i->aliases[k], name))
            i->aliases[kept++] = i->aliases[k];
    }
    i->alias_count = kept;
    if (!str_eq(i->name, name))
        return had;
    i->name = kept ? i->aliases[--i->alias_count] : STR("");
    return true;
}

/* The same archive again has the names it had, and its new one if it brings one. */
static fallible keep_names(struct arena *a, struct image *image, struct image *before)
{
    lose_name(before, image->name);
    if (before->alias_count >= ALIASES_MAX)
        return err_new(ERR_LIMIT, "the image has more than %d names; remove one first",
                       ALIASES_MAX);
    image->aliases = arena_alloc(a, (before->alias_count + 1) * sizeof *image->aliases);
    TRY(arena_check(a));
    for (size_t k = 0; k < before->alias_count; k++)
        image->aliases[image->alias_count++] = arena_copy(a, before->aliases[k]);
    if (!image->name.len)
        image->name = arena_copy(a, before->name);
    else if (before->name.len)
        image->aliases[image->alias_count++] = arena_copy(a, before->name);
    return arena_check(a);
}

fallible imagestore_publish(const struct imagestore *s, struct arena *a, struct image *image)
{
    struct arena records;
    struct image *list = NULL;
    size_t count = 0;

    arena_init(&records, 256u << 20);
    struct err *e = read_all(s, &records, &list, &count);
    struct image named = *image;
    for (size_t i = 0; !e && i < count; i++) {
        if (str_eq(list[i].id, image->id))
            e = keep_names(a, &named, &list[i]);
        else if (image->name.len && lose_name(&list[i], image->name))
            e = write_record(s, &list[i]);
    }
    if (!e)
        e = write_record(s, &named);
    arena_done(&records);
    if (!e)
        *image = named;
    return e;
}

/* --- finding, opening, removing --- */

static bool is_named(struct str name, struct str which)
{
    return str_eq(name, which) ||
           (str_ends(name, STR(":latest")) && str_eq(str_first(name, name.len - 7), which));
}

static bool has_name(const struct image *i, struct str which)
{
    bool has = is_named(i->name, which);

    for (size_t k = 0; !has && k < i->alias_count; k++)
        has = is_named(i->aliases[k], which);
    return has;
}

/* Names and whole ids come before the first digits of an id, however few those are. */
static fallible store_find(const struct imagestore *s, const char *which, size_t digits,
                           struct arena *a, struct image *ret)
{
    struct image *list;
    size_t count, found = 0;
    struct str text = str_of(which);

    if (str_starts(text, STR("sha256:")))
        text = str_from(text, 7);
    TRY(read_all(s, a, &list, &count));
    for (unsigned by_digits = 0; by_digits <= 1 && !found && text.len; by_digits++) {
        for (size_t i = 0; i < count; i++) {
            if (by_digits ? text.len < digits || !str_starts(list[i].id, text)
                          : !str_eq(list[i].id, text) && !has_name(&list[i], text))
                continue;
            *ret = list[i];
            found++;
        }
    }
    if (found == 1)
        return NULL;
    if (found)
        return err_new(ERR_CONFLICT, "'%.80s' means %zu images; give more of the id", which, found);
    return err_new(ERR_NOT_FOUND,
                   "no image '%.80s'; 'croft image ls' lists them, 'croft image import' adds one",
                   which);
}

static fallible open_and_find(int state, const char *which, size_t digits, struct arena *a,
                              struct image *ret)
{
    struct imagestore s;

    TRY(imagestore_open(state, false, &s));
    struct err *e = store_find(&s, which, digits, a, ret);
    imagestore_done(&s);
    return e;
}

fallible images_find(int state, const char *which, struct arena *a, struct image *ret)
{
    return open_and_find(state, which, 1, a, ret);
}

fallible images_find_sure(int state, const char *which, struct arena *a, struct image *ret)
{
    return open_and_find(state, which, DIGITS_SURE, a, ret);
}

fallible images_get(int state, struct str id, struct arena *a, struct image *ret)
{
    struct imagestore s;
    char name[IMAGE_ID_LEN + 8];

    if (!is_digest(id))
        return err_new(ERR_INVALID, "the id of an image has %d hex digits", IMAGE_ID_LEN);
    snprintf(name, sizeof name, STR_FMT ".json", STR_ARG(id));
    TRY(imagestore_open(state, false, &s));
    struct err *e = read_record(&s, a, name, ret);
    imagestore_done(&s);
    if (e && err_code(e) == ERR_NOT_FOUND) {
        err_free(e);
        e = err_new(ERR_NOT_FOUND, "no image %.12s", id.p);
    }
    return e;
}

fallible images_open_record(int state, const struct image *image, int *ret_fd)
{
    struct imagestore s;
    char name[IMAGE_ID_LEN + 8];

    snprintf(name, sizeof name, STR_FMT ".json", STR_ARG(image->id));
    TRY(imagestore_open(state, false, &s));
    int fd = openat(s.dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    struct err *e = fd < 0 ? err_sys("open the record of image %.12s", image->id.p) : NULL;
    imagestore_done(&s);
    if (!e)
        *ret_fd = fd;
    return e;
}

fallible images_open(int state, const struct image *image, struct rootfs *ret)
{
    struct imagestore s;
    struct err *e = NULL;

    TRY(imagestore_open(state, false, &s));
    struct rootfs_mount *m = rootfs_add_mount(ret, "", "upper", "work");
    snprintf(ret->id, sizeof ret->id, "image-%.32s", image->id.p);
    for (size_t i = image->layer_count; !e && i--;) {
        char name[IMAGE_ID_LEN + 1];
        snprintf(name, sizeof name, STR_FMT, STR_ARG(image->layers[i]));
        int fd = openat(s.layers, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (fd < 0)
            e = err_sys("layer '%s' of the image", name);
        else
            rootfs_add_lower(m, fd);
    }
    imagestore_done(&s);
    return e;
}

static bool has_layer(const struct image *list, size_t count, struct str layer)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < list[i].layer_count; k++) {
            if (str_eq(list[i].layers[k], layer))
                return true;
        }
    }
    return false;
}

fallible imagestore_sweep(const struct imagestore *s)
{
    struct arena a;
    struct image *list = NULL;
    size_t images = 0, count = 0;
    own_done(buf) names = {0};

    arena_init(&a, 256u << 20);
    struct err *e = read_all(s, &a, &list, &images);
    if (!e)
        e = tree_read_names(s->layers, 16u << 20, &names, &count);
    for (const char *name = names.p; !e && count--; name += strlen(name) + 1) {
        if (!has_layer(list, images, str_of(name)))
            e = tree_remove(s->layers, name);
    }
    arena_done(&a);
    return e;
}

static fallible remove_image(const struct imagestore *s, const struct image *image)
{
    char name[IMAGE_ID_LEN + 8];

    snprintf(name, sizeof name, STR_FMT ".json", STR_ARG(image->id));
    if (unlinkat(s->dir, name, 0) < 0 && errno != ENOENT)
        return err_sys("remove '%s'", name);
    return imagestore_sweep(s);
}

static fallible check_unused(const struct image *image, bool (*in_use)(void *arg, struct str id),
                             void *arg)
{
    if (in_use && in_use(arg, image->id))
        return err_new(ERR_BUSY,
                       "a sandbox runs on image '%.12s'; remove that first ('croft pool set NAME "
                       "--target 0' those a server keeps warm)",
                       image->id.p);
    return NULL;
}

fallible images_remove(int state, const struct image *image,
                       bool (*in_use)(void *arg, struct str id), void *arg)
{
    struct imagestore s;

    TRY(check_unused(image, in_use, arg));
    TRY(imagestore_open(state, true, &s));
    struct err *e = remove_image(&s, image);
    imagestore_done(&s);
    return e;
}

/* --- as people ask for it --- */

/* The name as it is written there. "x:latest" goes for "x" only if nothing is called just that. */
static struct str name_meant(const struct image *i, struct str which)
{
    struct str meant = is_named(i->name, which) ? i->name : (struct str){0};

    for (size_t k = 0; k < i->alias_count; k++)
        if (str_eq(i->aliases[k], which) || (!meant.len && is_named(i->aliases[k], which)))
            meant = i->aliases[k];
    return str_eq(i->name, which) ? i->name : meant;
}

static fallible store_drop(const struct imagestore *s, const char *which,
                           bool (*in_use)(void *arg, struct str id), void *arg, struct arena *a,
                           struct image *ret)
{
    struct image i;

    TRY(store_find(s, which, 1, a, &i));
    struct str name = name_meant(&i, str_of(which));
    if (!name.len || !i.alias_count) {
        *ret = i;
        TRY(check_unused(&i, in_use, arg));
        return remove_image(s, &i);
    }
    lose_name(&i, name);
    TRY(write_record(s, &i));
    *ret = i;
    ret->name = name;
    ret->aliases = NULL;
    ret->alias_count = 0;
    return NULL;
}

fallible images_drop(int state, const char *which, bool (*in_use)(void *arg, struct str id),
                     void *arg, struct arena *a, struct image *ret)
{
    struct imagestore s;

    TRY(imagestore_open(state, true, &s));
    struct err *e = store_drop(&s, which, in_use, arg, a, ret);
    imagestore_done(&s);
    return e;
}
