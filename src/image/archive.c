// SPDX-License-Identifier: Apache-2.0
/* archive.c — see archive.h. Members are indexed in one pass; the documents that tie them together
 * are small and come after. */
#include "image/archive.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "image/tar.h"

#define MEMBERS_MAX  4096
#define DOCUMENT_MAX (4u << 20)
#define DEPTH_MAX    4 /* of an index that names an index */

struct member {
    struct archive_piece piece;
    char path[]; /* of a link: of what it names */
};

struct reader {
    int fd;
    struct arena a;
    struct map members;
    unsigned seen; /* members, those that came twice counted twice */
    struct archive *out;
};

/* --- members --- */

/* Of two members of one name the later counts, as for programs that unpack: 'tar -r' and some
 * builds repeat members. The digest in the configuration says which bytes a layer has. */
static fallible add_member(struct reader *r, const struct tar *t, const struct tar_entry *e)
{
    if (r->seen++ >= MEMBERS_MAX)
        return err_new(ERR_TOO_LARGE, "more than %d files in the archive", MEMBERS_MAX);
    size_t n = strlen(e->path);
    struct member *m = arena_alloc(&r->a, sizeof *m + n + 1);
    if (!m)
        return arena_check(&r->a);
    memcpy(m->path, e->path, n + 1);
    m->piece = (struct archive_piece){t->at, e->size};
    if (e->type != TAR_FILE) { /* docker links a layer that is there already */
        const char *target = e->target;
        while (e->type == TAR_LINK && strncmp(target, "../", 3) == 0)
            target += 3; /* "../HASH/layer.tar", from one directory down */
        const struct member *to = map_get(&r->members, str_of(target));
        if (!to) { /* a link to nowhere, in the place of what was there */
            map_del(&r->members, str_n(m->path, n));
            return NULL;
        }
        m->piece = to->piece;
    }
    map_put(&r->members, str_n(m->path, n), m);
    return NULL;
}

static fallible index_members(struct reader *r, uint64_t size)
{
    struct source_file file;
    struct tar t;
    const struct tar_entry *e = NULL;

    source_file_init(&file, r->fd, 0, size);
    tar_init(&t, &file.source);
    struct err *err = tar_next(&t, &e);
    while (!err && e) {
        if (e->type == TAR_FILE || e->type == TAR_LINK || e->type == TAR_HARD_LINK)
            err = add_member(r, &t, e);
        if (!err && e->type == TAR_FILE && file.left >= t.left + t.pad) { /* jump over its bytes */
            uint64_t over = t.left + t.pad;
            file.at += over;
            file.left -= over;
            t.at += over;
            t.left = t.pad = 0;
        }
        if (!err)
            err = tar_next(&t, &e);
    }
    tar_done(&t);
    return err;
}

static fallible archive_find(struct reader *r, struct str path, struct archive_piece *ret)
{
    const struct member *m = map_get(&r->members, path);

    if (!m)
        return err_new(ERR_INVALID, "the archive names '" STR_FMT "' and does not hold it",
                       STR_ARG(str_first(path, 200)));
    *ret = m->piece;
    return NULL;
}

static fallible read_piece(struct reader *r, const struct archive_piece *p, struct str *ret)
{
    struct source_file file;
    size_t n;

    if (p->size > DOCUMENT_MAX)
        return err_new(ERR_TOO_LARGE, "a document of the archive has %llu bytes",
                       (unsigned long long)p->size);
    char *text = arena_alloc(&r->a, (size_t)p->size);
    if (!text)
        return arena_check(&r->a);
    source_file_init(&file, r->fd, p->at, p->size);
    TRY(source_fill(&file.source, text, (size_t)p->size, &n));
    *ret = str_n(text, n);
    return NULL;
}

static fallible read_json(struct reader *r, struct str path, struct json **ret)
{
    struct archive_piece p;
    struct str text;
    struct json_limits limits = {.size_bytes = DOCUMENT_MAX, .depth = 32};

    TRY(archive_find(r, path, &p));
    TRY(read_piece(r, &p, &text));
    TRY_WRAP(json_parse(&r->a, text, &limits, ret), "'" STR_FMT "'", STR_ARG(str_first(path, 200)));
    return NULL;
}

/* --- docker: manifest.json --- */

static fallible set_name(struct archive *out, struct str name)
{
    if (name.len >= sizeof out->name)
        return err_new(ERR_INVALID, "the image's name is too long");
    memcpy(out->name, name.p, name.len);
    out->name[name.len] = '\0';
    return NULL;
}

static fallible add_layer(struct reader *r, struct str path)
{
    if (r->out->layer_count == ARCHIVE_LAYERS_MAX)
        return err_new(ERR_TOO_LARGE, "more than %d layers", ARCHIVE_LAYERS_MAX);
    TRY(archive_find(r, path, &r->out->layers[r->out->layer_count]));
    r->out->layer_count++;
    return NULL;
}

static fallible read_docker(struct reader *r)
{
    struct json *list;
    struct str config;

    TRY(read_json(r, STR("manifest.json"), &list));
    const struct json *m = json_at(list, 0);
    if (!m || list->count != 1)
        return err_new(ERR_INVALID, "'manifest.json' names %u images, wanted one",
                       list->type == JSON_ARRAY ? list->count : 0);
    TRY_WRAP(json_want_str(m, "Config", &config), "'manifest.json'");
    TRY(archive_find(r, config, &r->out->config));
    const struct json *layers = json_get(m, STR("Layers"));
    for (const struct json *l = layers && layers->type == JSON_ARRAY ? layers->first : NULL; l;
         l = l->next) {
        if (l->type != JSON_STR)
            return err_new(ERR_INVALID, "'manifest.json': a layer that is no string");
        TRY(add_layer(r, l->s));
    }
    const struct json *tag = json_at(json_get(m, STR("RepoTags")), 0);
    return tag && tag->type == JSON_STR ? set_name(r->out, tag->s) : NULL;
}

/* --- OCI: index.json, manifests and blobs by digest --- */

static int hex_digit(char c)
{
    unsigned d = str_digit(c);

    return d < 16 && !(c >= 'A' && c <= 'F') ? (int)d : -1;
}

static bool read_digest(struct str text, uint8_t out[SHA256_LEN])
{
    if (!str_starts(text, STR("sha256:")) || text.len != 7 + 2 * SHA256_LEN)
        return false;
    for (size_t i = 0; i < SHA256_LEN; i++) {
        int high = hex_digit(text.p[7 + 2 * i]), low = hex_digit(text.p[8 + 2 * i]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* The blob's path, its digest checked against its bytes only where they are read anyway. */
static fallible blob_path(struct reader *r, const struct json *descriptor, struct str *ret)
{
    struct str digest;
    uint8_t bytes[SHA256_LEN];

    TRY(json_want_str(descriptor, "digest", &digest));
    if (!read_digest(digest, bytes))
        return err_new(ERR_UNSUPPORTED, "digest '" STR_FMT "': only sha256 is read",
                       STR_ARG(str_first(digest, 100)));
    *ret = arena_printf(&r->a, "blobs/sha256/" STR_FMT, STR_ARG(str_from(digest, 7)));
    return ret->p ? NULL : arena_check(&r->a);
}

static bool fits_machine(const struct json *descriptor)
{
    static const struct {
        const char *kernel, *image;
    } words[] = {{"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"}, {"i686", "386"}};
    struct utsname u;
    const struct json *p = json_get(descriptor, STR("platform"));

    if (!p || uname(&u) < 0)
        return true;
    struct str arch = str_of(u.machine);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(u.machine, words[i].kernel) == 0)
            arch = str_of(words[i].image);
    }
    return str_eq(json_get_str(p, "architecture", arch), arch);
}

static fallible read_manifest(struct reader *r, const struct json *m)
{
    struct str path;
    const struct json *config = json_get(m, STR("config")), *layers = json_get(m, STR("layers"));

    if (!config || !layers || layers->type != JSON_ARRAY)
        return err_new(ERR_INVALID, "a manifest without config or layers");
    TRY(blob_path(r, config, &path));
    TRY(archive_find(r, path, &r->out->config));
    for (const struct json *l = layers->first; l; l = l->next) {
        TRY(blob_path(r, l, &path));
        TRY(add_layer(r, path));
    }
    return NULL;
}

static fallible read_oci(struct reader *r)
{
    struct str path = STR("index.json");

    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        struct json *doc;
        TRY(read_json(r, path, &doc));
        const struct json *list = json_get(doc, STR("manifests")), *pick = NULL;
        if (!list || list->type != JSON_ARRAY)
            return read_manifest(r, doc);
        for (const struct json *d = list->first; d && !pick; d = d->next)
            pick = fits_machine(d) ? d : NULL;
        if (!pick)
            return err_new(ERR_INVALID, "the archive has no image for this kind of machine");
        const struct json *notes = json_get(pick, STR("annotations"));
        struct str name =
            json_get_str(notes, "io.containerd.image.name",
                         json_get_str(notes, "org.opencontainers.image.ref.name", STR("")));
        if (name.len)
            TRY(set_name(r->out, name));
        TRY(blob_path(r, pick, &path));
    }
    return err_new(ERR_INVALID, "an index that names an index that names an index");
}

/* --- the configuration --- */

static fallible read_diff_ids(struct reader *r)
{
    struct str text;
    struct json *config;
    struct json_limits limits = {.size_bytes = ARCHIVE_CONFIG_MAX, .depth = 32};

    TRY(read_piece(r, &r->out->config, &text));
    TRY_WRAP(json_parse(&r->a, text, &limits, &config), "the image's configuration");
    const struct json *ids = json_get(json_get(config, STR("rootfs")), STR("diff_ids"));
    if (!ids || ids->type != JSON_ARRAY || ids->count != r->out->layer_count)
        return err_new(ERR_INVALID, "the configuration names %u layers, the manifest %u",
                       ids && ids->type == JSON_ARRAY ? ids->count : 0, r->out->layer_count);
    size_t i = 0;
    for (const struct json *id = ids->first; id; id = id->next, i++) {
        if (id->type != JSON_STR || !read_digest(id->s, r->out->diff_ids[i]))
            return err_new(ERR_INVALID, "the configuration's diff_ids are not all sha256 digests");
    }
    return NULL;
}

static fallible read_all(struct reader *r, uint64_t size)
{
    TRY(index_members(r, size));
    if (map_get(&r->members, STR("manifest.json")))
        TRY(read_docker(r));
    else if (map_get(&r->members, STR("index.json")))
        TRY(read_oci(r));
    else
        return err_new(ERR_INVALID,
                       "neither 'manifest.json' nor 'index.json' is in it: not an image archive");
    if (!r->out->layer_count)
        return err_new(ERR_INVALID, "an image without layers");
    return read_diff_ids(r);
}

fallible archive_read(int fd, uint64_t size, struct archive *ret)
{
    struct archive *out = mem_try(sizeof *out);
    struct reader r = {.fd = fd, .out = out};

    if (!out)
        return err_no_memory();
    memset(out, 0, sizeof *out);
    arena_init(&r.a, 64u << 20);
    map_init(&r.members);
    struct err *e = read_all(&r, size);
    if (!e)
        *ret = *out;
    map_done(&r.members);
    arena_done(&r.a);
    free(out);
    return e;
}

bool archive_is_image(const char *name)
{
    static const char *const known[] = {"manifest.json", "index.json", "oci-layout",
                                        "repositories"};
    struct str s = str_of(name);

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcmp(name, known[i]) == 0)
            return true;
    }
    if (strcmp(name, "blobs") == 0 || str_starts(s, STR("blobs/")))
        return true;
    size_t hex = 0;
    while (hex < s.len && hex_digit(s.p[hex]) >= 0)
        hex++;
    return hex == 64; /* docker names layers and configurations by digest */
}

fallible archive_config(struct str text, struct buf *ret_json)
{
    static const char *const kept[] = {"Env", "Cmd", "Entrypoint", "WorkingDir", "User"};
    struct arena a;
    struct json *doc;
    struct json_limits limits = {.size_bytes = ARCHIVE_CONFIG_MAX, .depth = 32};
    struct jw w;

    arena_init(&a, 16u << 20);
    struct err *e = text.len ? json_parse(&a, text, &limits, &doc) : NULL;
    if (!e) {
        const struct json *config = text.len ? json_get(doc, STR("config")) : NULL;
        jw_init(&w, ret_json, 0);
        JW_OBJECT(&w, NULL) {
            for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
                const struct json *v = config ? json_get(config, str_of(kept[i])) : NULL;
                if (v && v->type != JSON_NULL)
                    jw_value(&w, kept[i], v);
            }
        }
        e = buf_check(ret_json);
    }
    arena_done(&a);
    return e ? err_wrap(e, "the image's configuration") : NULL;
}
