// SPDX-License-Identifier: Apache-2.0
/* wants.c — limits, host name and mounts of one runtime: which are allowed here, and for which key.
 *
 * The launcher checks the same against its own policy. Here it is refused in the client's words,
 * and by key, which the launcher does not know. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>

#include "base/log.h"
#include "base/mem.h"
#include "host/server/grants.h"
#include "host/runtime/inner.h"
#include "host/runtime/start.h"

#define WANTS_BYTES (64u << 10)

/* --- as text --- */

char *wants_text(const struct wire_wants *wants)
{
    own_done(buf) out;
    struct jw w;

    buf_init(&out, WANTS_BYTES);
    if (!wants)
        return NULL;
    jw_init(&w, &out, JW_WEB);
    JW_OBJECT(&w, NULL)
        wire_put_wants(&w, wants);
    return buf_failed(&out) ? NULL : strndup(out.p, out.len);
}

fallible wants_read(struct arena *a, struct str text, const struct wire_wants **ret_wants)
{
    struct wire_wants *wants = arena_new(a, struct wire_wants);
    struct json *body;
    bool any;

    text = arena_copy(a, text);
    TRY(arena_check(a));
    TRY_WRAP(json_parse(a, text, NULL, &body), "what it was started with");
    TRY(wire_decode_wants(body, wants, &any));
    *ret_wants = wants;
    return NULL;
}

/* --- what may be asked for --- */

/* At most what the largest resource_factor gives, and what the machine has. machine 0: unknown.
 * unit: the unit that people write. */
static fallible check_limit(const char *field, uint64_t asked, uint64_t one, uint64_t machine,
                            unsigned unit, bool enforced)
{
    uint64_t most = one ? one * WIRE_FACTOR_MAX : machine;

    if (!asked)
        return NULL;
    if (!enforced)
        return err_new(ERR_UNPROCESSABLE,
                       "%s: this server cannot enforce such a limit; 'croft doctor' says why",
                       field);
    if (machine && machine < most)
        most = machine;
    if (most && asked > most)
        return err_new(ERR_UNPROCESSABLE, "%s: %llu is more than the %llu to be had here", field,
                       (unsigned long long)asked / unit, (unsigned long long)most / unit);
    return NULL;
}

static fallible check_limits(const struct manager *m, const struct wire_wants *w)
{
    const struct sbx_limits *one = &m->config.limits;
    unsigned caps = m->config.driver->caps;
    struct sysinfo machine = {0};
    struct statvfs disk = {0};

    bool here = caps & SBX_IS_HERE; /* what another machine has, it knows */
    if (here)
        sysinfo(&machine);
    if (!here || statvfs(m->config.driver->host->state_dir, &disk) < 0)
        disk.f_blocks = 0;
    TRY(check_limit("memory", w->memory_bytes, one->memory_bytes,
                    (uint64_t)machine.totalram * machine.mem_unit, 1, caps & SBX_LIMITS_MEMORY));
    TRY(check_limit("disk", w->disk_bytes, one->disk_bytes, (uint64_t)disk.f_blocks * disk.f_frsize,
                    1, caps & SBX_LIMITS_DISK));
    TRY(check_limit("pids", w->pids, one->pids, 0, 1, caps & SBX_LIMITS_PIDS));
    return check_limit("cpus", w->cpu_milli, one->cpu_permille,
                       here ? (uint64_t)get_nprocs() * 1000 : 0, 1000, caps & SBX_LIMITS_CPU);
}

/* Processors are shared anyway: a limit beyond what there are does no harm. */
fallible wants_check_factor(const struct manager *m, const struct wire_start *start)
{
    const struct sbx_limits *one = &m->config.limits;
    const struct wire_wants *own = start->wants; /* limits of its own are not multiplied */
    int64_t factor = start->resource_factor;
    struct sysinfo machine = {0};
    struct statvfs disk = {0};
    const struct {
        const char *of;
        uint64_t wanted;
    } both[] = {
        {"memory", own && own->memory_bytes ? 0 : one->memory_bytes * (uint64_t)factor},
        {"disk space", own && own->disk_bytes ? 0 : one->disk_bytes * (uint64_t)factor},
    };

    if (factor <= 1 || sysinfo(&machine) < 0)
        return NULL;
    if (statvfs(m->config.driver->host->state_dir, &disk) < 0)
        disk.f_blocks = 0;
    for (size_t i = 0; i < ARRAY_LEN(both); i++) {
        uint64_t there = i ? (uint64_t)disk.f_blocks * disk.f_frsize
                           : (uint64_t)machine.totalram * machine.mem_unit;
        if (there && both[i].wanted > there)
            return err_new(ERR_UNPROCESSABLE,
                           "resource_factor: %lld is %llu MiB of %s, and there are %llu MiB here",
                           (long long)factor, (unsigned long long)both[i].wanted >> 20, both[i].of,
                           (unsigned long long)there >> 20);
    }
    return NULL;
}

static bool is_below(struct str path, struct str dir)
{
    return str_starts(path, dir) && (path.len == dir.len || path.p[dir.len] == '/');
}

static bool is_named(const struct json *keys, const struct key *key)
{
    for (const struct json *k = keys ? keys->first : NULL; k; k = k->next)
        if (str_eq(k->s, str_of(key_tenant(key))))
            return true;
    return !keys || !keys->first;
}

static unsigned mode_bit(struct str mode)
{
    return str_eq(mode, STR("ro")) ? GRANT_RO : str_eq(mode, STR("rw")) ? GRANT_RW : GRANT_OVERLAY;
}

/* If one granted directory is within another, the inner one counts, as for the launcher. */
static size_t inner_len(const struct manager *m, struct str source)
{
    size_t longest = 0;

    for (size_t i = 0; i < m->config.mount_count; i++) {
        struct str path = m->config.mounts[i].path;
        if (path.len > longest && is_below(source, path))
            longest = path.len;
    }
    return longest;
}

/* One grant is enough, of several of the same directory. */
static fallible check_mount(const struct manager *m, const struct key *key,
                            const struct wire_mount *w, size_t at)
{
    const struct grant *found = NULL;
    size_t inner = inner_len(m, w->source);

    for (size_t i = 0; i < m->config.mount_count; i++) {
        const struct grant *has = &m->config.mounts[i];
        if (has->path.len != inner || !is_below(w->source, has->path) || !is_named(has->keys, key))
            continue;
        found = has;
        if (has->may & mode_bit(w->mode))
            return NULL;
    }
    if (found)
        return err_new(ERR_FORBIDDEN,
                       "mounts[%zu].mode: '" STR_FMT "' is not granted below '" STR_FMT
                       "' (mount." STR_FMT ".modes of the server's settings)",
                       at, STR_ARG(w->mode), STR_ARG(found->path), STR_ARG(found->name));
    return err_new(ERR_FORBIDDEN,
                   "mounts[%zu].source: '" STR_FMT "' is below no directory that key '%s' may "
                   "mount; whoever runs the server grants one with [mount.NAME]",
                   at, STR_ARG(w->source), key->name);
}

static fallible check_mounts(const struct manager *m, const struct key *key,
                             const struct wire_wants *wants)
{
    if (wants->mount_count && !(key->scopes & (KEY_ADMIN | KEY_MOUNT)))
        return err_new(ERR_FORBIDDEN,
                       "mounts: key '%s' lacks the scope 'mount'; 'croft token create NAME --scope "
                       "runtime,read,mount' makes one that has it",
                       key->name);
    for (size_t i = 0; i < wants->mount_count; i++)
        TRY(check_mount(m, key, &wants->mounts[i], i));
    return NULL;
}

fallible manager_check_wants(const struct manager *m, const struct key *key,
                             const struct wire_wants *wants)
{
    TRY(check_limits(m, wants));
    return check_mounts(m, key, wants);
}

/* It stays the sandbox of its key, even if an administrator resumes it. */
fallible runtime_check_mounts(const struct runtime *r)
{
    const struct keys *keys = r->manager->config.keys;
    const struct key *key = keys_find_name(keys, str_of(r->tenant->name));
    struct key all = {.scopes = keys_any(keys) ? 0 : KEY_ALL}; /* without keys it is everybody's */
    const struct wire_wants *wants;
    own_done(arena) a;

    arena_init(&a, 1u << 20);
    if (!r->wants)
        return NULL;
    if (key && key->revoked_ms)
        key = NULL;
    TRY(wants_read(&a, str_of(r->wants), &wants));
    snprintf(all.name, sizeof all.name, "%s", r->tenant->name);
    return err_wrap(check_mounts(r->manager, key ? key : &all, wants),
                    "it was started with what may not be had any more");
}

/* The directory must still be the key's to mount; *ret_may: and to be changed. */
static fallible look_at_target(const struct manager *m, const struct key *key,
                               const struct wire_mount *w, bool *ret_may)
{
    size_t inner = inner_len(m, w->source);
    bool found = false;

    *ret_may = false;
    for (size_t i = 0; i < m->config.mount_count; i++) {
        const struct grant *has = &m->config.mounts[i];
        bool named = is_named(has->keys, key) || key->scopes & KEY_ADMIN;
        if (has->path.len != inner || !is_below(w->source, has->path) || !named)
            continue;
        found = true;
        *ret_may |= has->may & (GRANT_APPLY | GRANT_RW);
    }
    if (found)
        return NULL;
    return err_new(ERR_FORBIDDEN,
                   "'" STR_FMT "' is below no directory that key '%s' may mount any more",
                   STR_ARG(w->source), key->name);
}

/* All of it is asked for, or some of it, or what it is in. */
static bool is_asked_for(const struct json *paths, struct str target)
{
    for (const struct json *p = paths ? paths->first : NULL; p; p = p->next)
        if (is_below(p->s, target) || is_below(target, p->s))
            return true;
    return !paths;
}

/* The launcher knows what every key may do; only we know what this key may. */
fallible manager_check_apply(const struct runtime *r, const struct key *key,
                             const struct json *paths)
{
    own_done(arena) a;
    struct wire_wants has;

    arena_init(&a, 1u << 20);
    TRY(runtime_wants(r, &a, &has));
    if (!(key->scopes & (KEY_ADMIN | KEY_MOUNT)))
        return err_new(ERR_FORBIDDEN, "key '%s' lacks the scope 'mount'", key->name);
    for (size_t i = 0; i < has.mount_count; i++) {
        bool may;
        if (!str_eq(has.mounts[i].mode, STR("overlay")))
            continue;
        TRY(look_at_target(r->manager, key, &has.mounts[i], &may));
        if (!may && is_asked_for(paths, has.mounts[i].target))
            return err_new(ERR_FORBIDDEN,
                           "'" STR_FMT "' may be worked on as a copy only; whoever runs the server "
                           "grants more with 'apply' in mount.NAME.modes",
                           STR_ARG(has.mounts[i].target));
    }
    return NULL;
}

/* --- what it is told --- */

static enum sbx_mount_mode mode_of(struct str mode)
{
    return str_eq(mode, STR("ro"))   ? SBX_MOUNT_RO
           : str_eq(mode, STR("rw")) ? SBX_MOUNT_RW
                                     : SBX_MOUNT_OVERLAY;
}

fallible wants_apply(const struct wire_wants *w, struct spec *s)
{
    struct sbx_limits *l = &s->sbx.limits;
    struct sbx_mount *mounts = arena_zalloc(&s->arena, (w->mount_count + 1) * sizeof *mounts);

    TRY(arena_check(&s->arena));
    l->memory_bytes = w->memory_bytes ? w->memory_bytes : l->memory_bytes;
    l->disk_bytes = w->disk_bytes ? w->disk_bytes : l->disk_bytes;
    l->pids = w->pids ? (uint32_t)w->pids : l->pids;
    l->cpu_permille = w->cpu_milli ? (uint32_t)w->cpu_milli : l->cpu_permille;
    if (w->hostname.p)
        s->sbx.hostname = arena_cstr(&s->arena, w->hostname);
    for (size_t i = 0; i < w->mount_count; i++)
        mounts[i] = (struct sbx_mount){.source = arena_cstr(&s->arena, w->mounts[i].source),
                                       .target = arena_cstr(&s->arena, w->mounts[i].target),
                                       .mode = mode_of(w->mounts[i].mode)};
    s->sbx.mounts = mounts;
    s->sbx.mount_count = w->mount_count;
    return arena_check(&s->arena);
}

bool wants_need_a_new_one(const struct manager *m, const struct wire_start *start)
{
    const struct wire_wants *w = start->wants;
    uint64_t has = m->config.limits.disk_bytes;
    uint64_t asked = w && w->disk_bytes ? w->disk_bytes : has * (uint64_t)start->resource_factor;

    if (asked != has)
        return true;
    for (size_t i = 0; w && has && i < w->mount_count; i++)
        if (str_eq(w->mounts[i].mode, STR("overlay"))) /* its disk is mounted already */
            return true;
    return false;
}

/* --- what it has --- */

fallible runtime_wants(const struct runtime *r, struct arena *a, struct wire_wants *ret)
{
    const struct sbx_limits *one = &r->manager->config.limits;
    const struct wire_wants *w = NULL;
    struct wire_wants has = {.memory_bytes = one->memory_bytes * r->factor,
                             .disk_bytes = one->disk_bytes * r->factor,
                             .pids = (uint64_t)one->pids * r->factor,
                             .cpu_milli = (uint64_t)one->cpu_permille * r->factor,
                             .hostname = str_of(r->id)};

    if (r->wants)
        TRY(wants_read(a, str_of(r->wants), &w));
    if (w) {
        memcpy(has.mounts, w->mounts, sizeof has.mounts);
        has.mount_count = w->mount_count;
        has.memory_bytes = w->memory_bytes ? w->memory_bytes : has.memory_bytes;
        has.disk_bytes = w->disk_bytes ? w->disk_bytes : has.disk_bytes;
        has.pids = w->pids ? w->pids : has.pids;
        has.cpu_milli = w->cpu_milli ? w->cpu_milli : has.cpu_milli;
        has.hostname = w->hostname.p ? w->hostname : has.hostname;
    }
    *ret = has;
    return NULL;
}
