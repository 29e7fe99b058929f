// SPDX-License-Identifier: Apache-2.0
/* spec.c — from what a client asks for to what a sandbox is told. */
#include <stdio.h>
#include <string.h>

#include "host/runtime/inner.h"
#include "host/runtime/words.h"

#define SPEC_BYTES (8u << 20)
#define OURS       8 /* variables of our own */
#define PATH       "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

void spec_done(struct spec *s)
{
    arena_done(&s->arena);
}

static const char *pair(struct spec *s, const char *name, const char *value)
{
    return arena_printf(&s->arena, "%s=%s", name, value).p;
}

/* Keys are ours to give, whatever a client sends. */
static bool is_ours(struct str name)
{
    return str_eq(name, STR("SESSION_API_KEY")) || str_eq(name, STR("OH_SESSION_API_KEYS_0")) ||
           str_eq(name, STR("RUNTIME_ID")) || str_eq(name, STR("OH_RUNTIME_ID"));
}

/* The session's key goes with the sandbox (sbx_spec.session_key); HOME is known inside. */
static fallible add_environment(struct spec *s, const struct runtime *r, const struct json *given)
{
    static const struct {
        const char *name;
        uint16_t port;
    } ports[] = {{"OH_VSCODE_PORT", RUNTIME_VSCODE},
                 {"WORKER_1", RUNTIME_WORKER},
                 {"WORKER_2", RUNTIME_WORKER + 1}};
    size_t n = 0, room = (given ? given->count : 0) + OURS;
    const char **env = arena_alloc(&s->arena, room * sizeof *env);
    char number[8];

    if (!env)
        return arena_check(&s->arena);
    for (const struct json *c = given ? given->first : NULL; c; c = c->next)
        if (!is_ours(c->key))
            env[n++] =
                arena_printf(&s->arena, STR_FMT "=" STR_FMT, STR_ARG(c->key), STR_ARG(c->s)).p;
    env[n++] = pair(s, "OH_SESSION_API_KEYS_0", r->inner_key);
    env[n++] = pair(s, "RUNTIME_ID", r->id);
    env[n++] = pair(s, "OH_RUNTIME_ID", r->id);
    for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
        snprintf(number, sizeof number, "%u", ports[i].port);
        if (!given || !json_get(given, str_of(ports[i].name)))
            env[n++] = pair(s, ports[i].name, number);
    }
    if (s->sbx.face == SBX_FACE_COMMAND && (!given || !json_get(given, STR("PATH"))))
        env[n++] = pair(s, "PATH", PATH);
    env[n] = NULL;
    s->sbx.env = env;
    return arena_check(&s->arena);
}

static fallible set_command(struct spec *s, const struct wire_start *start)
{
    const char *const *words;
    size_t count;

    TRY(words_of(&s->arena, start->command, &words, &count));
    if (start->working_dir.p)
        s->sbx.working_dir = arena_cstr(&s->arena, start->working_dir);
    switch (words_face(words)) {
    case WORDS_ACTION:
        s->sbx.command = words;
        if (words_have(words, "--working-dir")) /* where shells start; the other is the program's */
            s->sbx.working_dir = NULL;
        break;
    case WORDS_AGENT:
        s->note = "the agent server is not there yet: the action server answers";
        break;
    case WORDS_OTHER:
        s->sbx.face = SBX_FACE_COMMAND;
        s->sbx.command = words;
        s->sbx.port = words_port(words, start->environment, RUNTIME_PORT);
        break;
    }
    return arena_check(&s->arena);
}

static uint32_t times(uint32_t n, int64_t factor)
{
    uint64_t product = n * (uint64_t)factor;

    return product > UINT32_MAX ? UINT32_MAX : (uint32_t)product;
}

fallible spec_make(const struct runtime *r, const struct wire_start *start, const char *image,
                   struct spec *ret)
{
    const struct sbx_limits *one = &r->manager->config.limits;
    int64_t factor = start->resource_factor;

    *ret = (struct spec){0};
    arena_init(&ret->arena, SPEC_BYTES);
    ret->sbx = (struct sbx_spec){
        .id = r->id,
        .image = strcmp(image, "host") == 0 ? NULL : image,
        .session_key = r->inner_key,
        .limits = {.memory_bytes = one->memory_bytes * (uint64_t)factor,
                   .disk_bytes = one->disk_bytes * (uint64_t)factor,
                   .pids = times(one->pids, factor),
                   .cpu_permille = times(one->cpu_permille, factor),
                   .open_files = one->open_files},
        .has_user = start->run_as_user > 0,
        .uid = start->run_as_user > 0 ? (uint32_t)start->run_as_user : 0,
        .on_gone = runtime_on_gone,
        .on_listens = runtime_on_listens,
        .arg = (void *)r, /* whose sandbox it becomes */
    };
    if (ret->sbx.has_user)
        ret->sbx.gid = (uint32_t)(start->run_as_group >= 0 ? start->run_as_group
                                  : start->fs_group >= 0   ? start->fs_group
                                                           : start->run_as_user);
    struct err *e = start->wants ? wants_apply(start->wants, ret) : NULL;
    if (!e)
        e = set_command(ret, start);
    if (!e)
        e = add_environment(ret, r, start->environment);
    return e;
}
