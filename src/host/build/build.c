// SPDX-License-Identifier: Apache-2.0
/* build.c — the queue of builds: a few at a time, the others wait, and there is a bound. */
#include "host/build/build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "host/build/inner.h"
#include "host/tree/tree.h"

static unsigned count_of(const struct list *builds, const char *key_name)
{
    unsigned n = 0;

    LIST_EACH(b, builds, const struct build, link)
        n += !key_name || strcmp(b->key_name, key_name) == 0;
    return n;
}

struct build *build_next(struct builds *all)
{
    struct build *next = NULL;
    unsigned fewest = BUILDS_AT_ONCE;

    LIST_EACH(b, &all->waiting, struct build, link) {
        unsigned working = count_of(&all->working, b->key_name);
        if (working >= fewest)
            continue;
        next = b;
        fewest = working;
    }
    return next;
}

static void on_next(struct loop_later *l)
{
    struct builds *all = container_of(l, struct builds, next);
    struct build *b;

    while (all->working_count < BUILDS_AT_ONCE && (b = build_next(all))) {
        list_del(&b->link);
        all->waiting_count--;
        list_add(&all->working, &b->link);
        all->working_count++;
        b->status = BUILD_WORKING;
        build_row_update(b);
        build_run(b);
    }
}

static fallible check_room(const struct builds *b, const char *key_name)
{
    unsigned all = b->waiting_count + count_of(&b->posted, NULL);
    unsigned sent = count_of(&b->posted, key_name);
    unsigned own = sent + count_of(&b->waiting, key_name);

    if (all >= b->config.most)
        return err_new(ERR_LIMIT,
                       "%u builds wait or are being sent already, which is the most "
                       "(server.most_builds)",
                       all);
    if (sent >= b->config.most_sent)
        return err_new(ERR_LIMIT,
                       "key '%s' is sending %u builds already, which is the most "
                       "(tenant.most_contexts)",
                       key_name, sent);
    if (own >= b->config.most_of_key)
        return err_new(ERR_LIMIT,
                       "%u builds of key '%s' wait or are being sent already, which is the most of "
                       "one key (tenant.most_builds)",
                       own, key_name);
    return NULL;
}

fallible build_check_room(const struct builds *b, const char *key_name)
{
    return err_again(check_room(b, key_name), BUILD_AGAIN_S);
}

fallible build_new(struct builds *all, const char *key_name, struct build **ret_build)
{
    struct build *b = mem_try(sizeof *b);

    if (!b)
        return err_no_memory();
    *b = (struct build){.builds = all, .dir = -1, .archive = -1};
    list_init(&b->link);
    rng_hex(rng_system(), b->id);
    snprintf(b->key_name, sizeof b->key_name, "%s", key_name);
    if (mkdirat(all->dir, b->id, 0700) == 0)
        b->dir = openat(all->dir, b->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (b->dir < 0) {
        struct err *e = err_sys("make a directory for the build");
        build_drop(b);
        return e;
    }
    list_add(&all->posted, &b->link);
    *ret_build = b;
    return NULL;
}

void build_drop(struct build *b)
{
    list_del(&b->link);
    fd_remove_tree(b->builds->dir, b->id);
    b->builds->bytes -= b->bytes;
    own_close_p(&b->dir);
    own_close_p(&b->archive);
    free(b->error);
    free(b);
}

static void build_tell(const struct build *b, bool failed, const char *message)
{
    const struct builds *all = b->builds;

    if (all->on_news)
        all->on_news(all->news_arg, &(struct build_news){.key_name = b->key_name,
                                                         .request = b->request,
                                                         .message = message,
                                                         .failed = failed});
}

static bool is_tagged(const struct list *builds, struct str image)
{
    LIST_EACH(b, builds, const struct build, link)
        for (unsigned i = 0; i < b->tag_count; i++) {
            struct str tag = str_of(b->tags[i]);
            if (str_eq(tag, image) ||
                (str_starts(tag, image) && str_eq(str_from(tag, image.len), STR(":latest"))))
                return true;
        }
    return false;
}

/* --- whose a name is --- */

struct owner {
    int64_t made_ms;
    char key_name[KEY_NAME_SIZE];
    char image[];
};

/* "x" of "x:latest". */
static struct str plain_name(struct str image)
{
    image.len -= str_ends(image, STR(":latest")) ? 7 : 0;
    return image;
}

void build_set_owner(struct builds *all, struct str image, struct str key_name, int64_t made_ms)
{
    struct str name = plain_name(image);
    struct owner *o = map_get(&all->owners, name);

    if (o && o->made_ms > made_ms)
        return;
    if (!o) {
        o = mem_new(sizeof *o + name.len + 1);
        memcpy(o->image, name.p, name.len);
        map_put(&all->owners, str_n(o->image, name.len), o);
    }
    o->made_ms = made_ms;
    snprintf(o->key_name, sizeof o->key_name, STR_FMT, STR_ARG(key_name));
}

/* The tags of b that other has too, a bit each. */
static unsigned shared_tags(const struct build *b, const struct build *other)
{
    unsigned bits = 0;

    for (unsigned i = 0; i < b->tag_count; i++)
        for (unsigned j = 0; j < other->tag_count; j++)
            if (str_eq(plain_name(str_of(b->tags[i])), plain_name(str_of(other->tags[j]))))
                bits |= 1u << i;
    return bits;
}

fallible build_check_owner(struct build *b, unsigned tag, const struct err *missing)
{
    const struct owner *owner = map_get(&b->builds->owners, plain_name(str_of(b->tags[tag])));

    if (missing && err_code(missing) == ERR_NOT_FOUND)
        return NULL;
    if (missing)
        return err_copy(missing);
    if (b->admin || (owner && strcmp(owner->key_name, b->key_name) == 0))
        return NULL;
    return err_new(ERR_CONFLICT, "%s: there is an image '%s' that key '%s' did not build",
                   tag ? "tags" : "target_image", b->tags[tag], b->key_name);
}

static fallible check_others_in(const struct build *b, const struct list *builds)
{
    LIST_EACH(other, builds, const struct build, link) {
        unsigned bits = shared_tags(b, other);
        if (!bits || strcmp(b->key_name, other->key_name) == 0)
            continue;
        unsigned tag = (unsigned)__builtin_ctz(bits);
        return err_new(ERR_CONFLICT, "%s: another key's build of image '%s' is under way",
                       tag ? "tags" : "target_image", b->tags[tag]);
    }
    return NULL;
}

fallible build_check_others(const struct build *b)
{
    TRY(check_others_in(b, &b->builds->waiting));
    return check_others_in(b, &b->builds->working);
}

bool builds_under_way(const struct builds *b, struct str image)
{
    return b && (is_tagged(&b->waiting, image) || is_tagged(&b->working, image));
}

void builds_wait(struct builds *b, struct builds_waiter *w)
{
    list_add(&b->waiters, &w->link);
}

void builds_wait_drop(struct builds_waiter *w)
{
    list_del(&w->link);
}

/* Calls all waiters. One that waits again is called at the next end. */
static void tell_waiters(struct builds *all)
{
    struct list now;

    list_init(&now);
    while (!list_empty(&all->waiters)) {
        struct builds_waiter *w = LIST_FIRST(&all->waiters, struct builds_waiter, link);
        list_del(&w->link);
        list_add(&now, &w->link);
    }
    while (!list_empty(&now)) {
        struct builds_waiter *w = LIST_FIRST(&now, struct builds_waiter, link);
        list_del(&w->link);
        w->done(w);
    }
}

void build_queue(struct build *b, store_done *done, void *arg)
{
    struct builds *all = b->builds;
    char text[320];

    list_del(&b->link);
    list_add(&all->waiting, &b->link);
    all->waiting_count++;
    build_row_insert(b, done, arg);
    snprintf(text, sizeof text, "building image '%.200s' (build %s)", b->tags[0], b->id);
    build_tell(b, false, text);
    loop_later(all->config.loop, &all->next, on_next);
}

void build_end(struct build *b, enum build_status status, const char *fmt, ...)
{
    struct builds *all = b->builds;
    char text[BUILD_LOG + 512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    build_stop(b);
    b->status = status;
    if (text[0])
        b->error = strdup(text);
    log_info("build ended", KV("build", (const char *)b->id), KV("image", (const char *)b->tags[0]),
             KV("status", build_status_word(status)), KV("request_id", (const char *)b->request));
    build_row_update(b);
    if (status == BUILD_SUCCESS) {
        int64_t now = (int64_t)(clock_wall_ns(loop_clock(all->config.loop)) / NS_PER_MS);
        for (unsigned i = 0; i < b->tag_count; i++)
            build_set_owner(all, str_of(b->tags[i]), str_of(b->key_name), now);
    } else {
        snprintf(text, sizeof text, "image '%.200s' was not built (build %s): %.400s", b->tags[0],
                 b->id, b->error ? b->error : build_status_word(status));
        build_tell(b, true, text);
    }
    all->working_count--;
    build_drop(b);
    loop_later(all->config.loop, &all->next, on_next);
    tell_waiters(all);
}

fallible builds_open(const struct builds_config *config, struct builds **ret_builds)
{
    struct builds *all = mem_new(sizeof *all);
    own(builds) owned = all;

    *all = (struct builds){.config = *config, .dir = -1, .path = mem_dup_cstr(config->dir)};
    list_init(&all->posted);
    list_init(&all->waiting);
    list_init(&all->working);
    list_init(&all->waiters);
    map_init(&all->owners);
    all->config.dir = all->path;
    if (!all->config.timeout_ms)
        all->config.timeout_ms = 30 * 60 * 1000;
    if (!all->config.image_bytes)
        all->config.image_bytes = 16ull << 30;
    if (!all->config.context_bytes)
        all->config.context_bytes = 8ull << 30;
    if (mkdir(all->path, 0700) < 0 && errno != EEXIST)
        return err_sys("make '%s'", all->path);
    all->dir = open(all->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (all->dir < 0)
        return err_sys("open '%s'", all->path);
    TRY_WRAP(tree_empty(all->dir), "'%s'", all->path); /* of a server before us */
    *ret_builds = take(&owned);
    return NULL;
}

void builds_tell(struct builds *b, void (*on_news)(void *arg, const struct build_news *news),
                 void *arg)
{
    b->on_news = on_news;
    b->news_arg = arg;
}

struct str builds_prefix(const struct builds *b)
{
    return b->config.registry_prefix;
}

void builds_reconfigure(struct builds *all, const struct builds_config *config)
{
    all->config.registry_prefix = config->registry_prefix;
    all->config.context_bytes = config->context_bytes;
    all->config.most = config->most;
    all->config.most_of_key = config->most_of_key;
    all->config.most_sent = config->most_sent;
}

void builds_free(struct builds *all)
{
    if (!all)
        return;
    loop_later_cancel(&all->next);
    LIST_EACH(b, &all->working, struct build, link) {
        build_stop(b);
        build_drop(b);
    }
    LIST_EACH(b, &all->waiting, struct build, link)
        build_drop(b);
    MAP_EACH(slot, &all->owners)
        free(slot->value);
    map_done(&all->owners);
    own_close_p(&all->dir);
    free(all->path);
    free(all);
}
