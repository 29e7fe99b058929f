// SPDX-License-Identifier: Apache-2.0
/* spec.c — from what a client asks for to what a sandbox is told. */
#include <stdio.h>
#include <string.h>

#include "host/images/config.h"
#include "host/runtime/hooks.h"
#include "host/runtime/inner.h"
#include "host/runtime/start.h"
#include "host/runtime/words.h"

#define SPEC_BYTES (8u << 20)
#define OURS       9    /* variables of our own */
#define COUNT_MAX  4000 /* variables in all, and bytes of them: so much goes into a sandbox */
#define BYTES_MAX  (1u << 20)
#define PATH       "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

void spec_done(struct spec *s)
{
    arena_done(&s->arena);
}

/* --- its image --- */

bool spec_image_is_host(struct str image)
{
    return str_eq(image, STR("host"));
}

/* Whether a store has it is known to the driver alone, when the sandbox starts. */
fallible spec_image(struct str image, char ret_known[SPEC_IMAGE])
{
    if (!image.len || image.len >= SPEC_IMAGE || memchr(image.p, '\0', image.len))
        return err_new(ERR_UNPROCESSABLE, "image: wanted 1 to %d characters", SPEC_IMAGE - 1);
    snprintf(ret_known, SPEC_IMAGE, STR_FMT, STR_ARG(image));
    return NULL;
}

/* --- its environment --- */

/* Keys are ours to give, whatever a client sends. */
static bool is_ours(struct str name)
{
    return str_eq(name, STR("SESSION_API_KEY")) || str_eq(name, STR("OH_SESSION_API_KEYS_0")) ||
           str_eq(name, STR("RUNTIME_ID")) || str_eq(name, STR("OH_RUNTIME_ID"));
}

struct variables {
    struct spec *spec;
    const char **env;
    size_t count, bytes;
};

static bool is_set(const struct variables *v, struct str name)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->env[i] && strncmp(v->env[i], name.p, name.len) == 0 && v->env[i][name.len] == '=')
            return true;
    return false;
}

static void spec_set(struct variables *v, struct str name, struct str value)
{
    v->env[v->count++] =
        arena_printf(&v->spec->arena, STR_FMT "=" STR_FMT, STR_ARG(name), STR_ARG(value)).p;
    v->bytes += name.len + value.len + 2;
}

static void set_default(struct variables *v, const char *name, const char *value)
{
    if (!is_set(v, str_of(name)))
        spec_set(v, str_of(name), str_of(value));
}

/* The environment that was asked for goes first. */
static void add_image(struct variables *v, const struct json *env)
{
    struct str pair, name;

    for (const struct json *at = env ? env->first : NULL; image_config_next(&at, &pair);) {
        str_cut(&pair, '=', &name);
        if (!is_ours(name) && !is_set(v, name))
            spec_set(v, name, pair);
    }
}

/* The session's key goes with the sandbox (sbx_spec.session_key); HOME is known inside. */
static void add_ours(struct variables *v, const struct runtime *r)
{
    static const struct {
        const char *name;
        uint16_t port;
    } ports[] = {{"OH_VSCODE_PORT", RUNTIME_VSCODE},
                 {"WORKER_1", RUNTIME_WORKER},
                 {"WORKER_2", RUNTIME_WORKER + 1}};
    char number[8];

    bool far = runtime_is_far(r); /* then these are the other server's to set */

    if (!far) {
        spec_set(v, STR("OH_SESSION_API_KEYS_0"), str_of(r->keys.inner));
        spec_set(v, STR("RUNTIME_ID"), str_of(r->id));
        spec_set(v, STR("OH_RUNTIME_ID"), str_of(r->id));
    }
    for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
        snprintf(number, sizeof number, "%u", ports[i].port);
        set_default(v, ports[i].name, number);
    }
    struct str url = runtime_url(r, &v->spec->arena);
    if (url.p && !far && !is_set(v, STR("RUNTIME_URL"))) /* below which its VS Code is */
        spec_set(v, STR("RUNTIME_URL"), url);
    if (v->spec->sbx.face == SBX_FACE_COMMAND)
        set_default(v, "PATH", PATH);
}

static fallible add_environment(struct spec *s, const struct runtime *r, const struct json *given,
                                const struct json *image)
{
    size_t all = (given ? given->count : 0) + (image ? image->count : 0);
    struct variables v = {.spec = s, .env = arena_alloc(&s->arena, (all + OURS) * sizeof *v.env)};

    if (!v.env)
        return arena_check(&s->arena);
    if (all > COUNT_MAX)
        return err_new(ERR_UNPROCESSABLE,
                       "environment: %zu variables with those of the image, at most %d", all,
                       COUNT_MAX);
    for (const struct json *c = given ? given->first : NULL; c; c = c->next)
        if (!is_ours(c->key))
            spec_set(&v, c->key, c->s);
    add_image(&v, image);
    add_ours(&v, r);
    TRY(arena_check(&s->arena));
    if (v.bytes > BYTES_MAX)
        return err_new(ERR_UNPROCESSABLE,
                       "environment: %zu bytes with that of the image, at most %u", v.bytes,
                       BYTES_MAX);
    v.env[v.count] = NULL;
    s->sbx.env = v.env;
    return NULL;
}

static uint16_t image_port(const struct json *env)
{
    struct str pair, name;
    uint64_t port;

    for (const struct json *at = env ? env->first : NULL; image_config_next(&at, &pair);) {
        str_cut(&pair, '=', &name);
        if (str_eq(name, STR("PORT")) && str_to_u64(pair, &port) && port >= 1 && port <= 65535)
            return (uint16_t)port;
    }
    return RUNTIME_PORT;
}

/* Root needs no word, unless its groups are others. */
static void set_number(struct spec *s, const struct wire_start *start, bool far)
{
    int64_t uid = start->run_as_user > 0 ? start->run_as_user : 0;
    int64_t gid = start->run_as_group >= 0          ? start->run_as_group
                  : uid > 0 && start->fs_group >= 0 ? start->fs_group
                                                    : uid;

    s->sbx.has_user = far ? start->run_as_user >= 0 : uid > 0 || gid > 0 || start->fs_group >= 0;
    s->sbx.has_group = far && start->run_as_group >= 0; /* else its image says which, there */
    s->sbx.uid = (uint32_t)uid;
    s->sbx.gid = (uint32_t)gid;
    s->sbx.has_fs_group = start->fs_group >= 0;
    s->sbx.fs_group = s->sbx.has_fs_group ? (uint32_t)start->fs_group : 0;
}

/* The number that was asked for, or the user that the image names; with the groups asked for. */
static void set_user(struct spec *s, const struct wire_start *start, struct str image_user,
                     bool far)
{
    struct str rest = image_user, name;
    char group[24] = "", more[24] = "";

    if (start->run_as_user >= 0 || !image_user.p) {
        set_number(s, start, far);
        return;
    }
    str_cut(&rest, ':', &name);
    if (start->run_as_group >= 0) {
        snprintf(group, sizeof group, "%lld", (long long)start->run_as_group);
        rest = str_of(group);
    }
    if (start->fs_group >= 0)
        snprintf(more, sizeof more, ":%lld", (long long)start->fs_group);
    s->sbx.user = arena_printf(&s->arena, STR_FMT "%s" STR_FMT "%s", STR_ARG(name),
                               rest.len || more[0] ? ":" : "", STR_ARG(rest), more)
                      .p;
}

static fallible set_place(struct spec *s, struct str asked, struct str image_dir)
{
    if (asked.p)
        s->sbx.working_dir = arena_cstr(&s->arena, asked);
    else if (image_dir.p)
        s->sbx.working_dir = arena_printf(&s->arena, "%s" STR_FMT, image_dir.p[0] == '/' ? "" : "/",
                                          STR_ARG(image_dir))
                                 .p;
    return arena_check(&s->arena);
}

static fallible set_command(struct spec *s, const struct wire_start *start,
                            const struct image_config *image, bool far)
{
    const char *const *words;
    size_t count;

    TRY(words_of(&s->arena, start->command, &words, &count));
    set_user(s, start, image->user, far);
    TRY(set_place(s, start->working_dir, image->working_dir));
    switch (words_face(words)) {
    case WORDS_ACTION:
        s->sbx.command = words;
        if (words_have(words, "--working-dir")) /* where shells start; the other is the program's */
            s->sbx.working_dir = NULL;
        if (words_have(words, "--username")) { /* asked for, if not by run_as_user */
            s->sbx.user = NULL;
            s->sbx.has_user = start->run_as_user > 0;
        }
        break;
    case WORDS_AGENT:
        if (far) /* what answers is the other server's to say */
            s->sbx.command = words;
        else
            s->note = "the agent server is not there yet: the action server answers";
        break;
    case WORDS_OTHER:
        s->sbx.face = SBX_FACE_COMMAND;
        s->sbx.command = words;
        s->sbx.port = words_port(words, start->environment, image_port(image->env));
        break;
    }
    return arena_check(&s->arena);
}

static uint32_t spec_times(uint32_t n, int64_t factor)
{
    uint64_t product = n * (uint64_t)factor;

    return product > UINT32_MAX ? UINT32_MAX : (uint32_t)product;
}

static void add_note(struct spec *s, const char *text)
{
    s->note = s->note ? arena_printf(&s->arena, "%s; %s", s->note, text).p : text;
}

/* Wants that are not fulfilled; clients read them in status_detail. */
static void add_notes(const struct runtime *r, const struct wire_start *start, struct spec *s)
{
    bool ours = s->sbx.face != SBX_FACE_COMMAND; /* our server answers */
    const struct sbx_backend *b = r->manager->config.driver->backend;

    if (b && b->warning)
        add_note(s, b->warning);
    if (ours && !(r->manager->config.driver->caps & SBX_CAN_USER) && s->sbx.command &&
        words_have(s->sbx.command, "--username"))
        add_note(s,
                 "sandboxes have no user but root here (croft doctor): --username is not heeded");
    if (ours && start->no_bash)
        add_note(s, "the image has no /bin/bash: no command can be run in it but one that is "
                    "started with it; files can be read and written (add bash to the image)");
}

fallible spec_make(const struct runtime *r, const struct wire_start *start, const char *image,
                   struct spec *ret)
{
    const struct sbx_limits *one = &r->manager->config.limits;
    int64_t factor = start->resource_factor;
    struct image_config own;

    *ret = (struct spec){0};
    arena_init(&ret->arena, SPEC_BYTES);
    ret->sbx = (struct sbx_spec){
        .id = r->id,
        .image = strcmp(image, "host") == 0 ? NULL : arena_cstr(&ret->arena, str_of(image)),
        .session_key = r->keys.inner,
        .limits = {.memory_bytes = one->memory_bytes * (uint64_t)factor,
                   .disk_bytes = one->disk_bytes * (uint64_t)factor,
                   .pids = spec_times(one->pids, factor),
                   .cpu_permille = spec_times(one->cpu_permille, factor),
                   .open_files = one->open_files},
        .factor = (uint16_t)factor,
        .on_gone = runtime_on_gone,
        .on_listens = runtime_on_listens,
        .arg = (void *)r, /* it becomes this one's sandbox */
    };
    if (start->image_id.p)
        ret->sbx.image_id = arena_cstr(&ret->arena, start->image_id);
    if (start->wants)
        TRY(wants_apply(start->wants, ret));
    TRY_WRAP(image_config_read(start->image_config, &own), "image '%s': its configuration", image);
    TRY(set_command(ret, start, &own, runtime_is_far(r)));
    add_notes(r, start, ret);
    return add_environment(ret, r, start->environment, own.env);
}
