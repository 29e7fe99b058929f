// SPDX-License-Identifier: Apache-2.0
/* wants.c — see wants.h. */
#include "wire/wants.h"

#include <stdio.h>

#include "base/cfg.h"
#include "wire/known.h"

#define SMALLEST_BYTES (16u << 20) /* less holds neither a server nor a file system */
#define FEWEST_PIDS    16
#define MOST_PIDS      4194304
#define MOST_CPUS      4096
#define HOSTNAME_MAX   63

static fallible wants_wrong(const char *field, const char *wanted)
{
    return err_new(ERR_UNPROCESSABLE, "%s: wanted %s", field, wanted);
}

static const struct json *wants_member(const struct json *body, const char *key, bool *any)
{
    const struct json *v = json_get(body, str_of(key));

    if (!v || v->type == JSON_NULL)
        return NULL;
    *any = true;
    return v;
}

static fallible decode_size(const struct json *v, const char *field, uint64_t *ret)
{
    static const char *const wanted = "bytes, as a number or as text like \"512M\"";
    uint64_t bytes = 0;

    if (v->type == JSON_INT && v->i > 0)
        bytes = (uint64_t)v->i;
    else if (v->type == JSON_STR) {
        struct err *e = cfg_parse_size(v->s, &bytes);
        if (e) {
            err_free(e);
            return wants_wrong(field, wanted);
        }
    } else
        return wants_wrong(field, wanted);
    if (bytes < SMALLEST_BYTES || bytes > INT64_MAX)
        return err_new(ERR_UNPROCESSABLE, "%s: %llu bytes, at least %u are needed", field,
                       (unsigned long long)bytes, SMALLEST_BYTES);
    *ret = bytes;
    return NULL;
}

static fallible decode_cpus(const struct json *v, uint64_t *ret)
{
    double n = v->type == JSON_INT ? (double)v->i : v->type == JSON_DOUBLE ? v->d : 0;

    if (!(n >= 0.01 && n <= MOST_CPUS))
        return wants_wrong("cpus", "a number from 0.01 to 4096");
    *ret = (uint64_t)(n * 1000 + 0.5);
    return NULL;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* As resolvers have them: letters and digits, with '-' and '.' between. */
static bool is_hostname(struct str s)
{
    bool inside = false;

    for (size_t i = 0; i < s.len; i++) {
        bool plain = is_name_char(s.p[i]);
        if (!plain && (!inside || (s.p[i] != '-' && s.p[i] != '.')))
            return false;
        inside = plain || s.p[i] == '-';
    }
    return s.len && s.len <= HOSTNAME_MAX && is_name_char(s.p[s.len - 1]);
}

/* Absolute, no "..", no empty or "." part, nothing that a log or a terminal would act on. */
static bool is_plain_path(struct str path)
{
    struct str part;

    if (path.len < 2 || path.len > WIRE_PATH_MAX || path.p[0] != '/')
        return false;
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.p[i] < 0x20 || path.p[i] == 0x7f)
            return false;
    path = str_from(path, 1);
    for (bool more = true; more;) {
        more = str_cut(&path, '/', &part);
        if (!part.len || str_eq(part, STR(".")) || str_eq(part, STR("..")))
            return false;
    }
    return true;
}

static bool is_at_or_below(struct str path, struct str dir)
{
    return str_starts(path, dir) && (path.len == dir.len || path.p[dir.len] == '/');
}

static fallible check_target(struct str target, size_t at)
{
    static const char *const own[] = {"/proc", "/sys", "/dev"};

    if (!is_plain_path(target))
        return err_new(ERR_UNPROCESSABLE,
                       "mounts[%zu].target: wanted an absolute, plain path of at most %d bytes", at,
                       WIRE_PATH_MAX);
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (is_at_or_below(target, str_of(own[i])))
            return err_new(ERR_UNPROCESSABLE, "mounts[%zu].target: %s is the sandbox's own", at,
                           own[i]);
    return NULL;
}

static fallible decode_mount(const struct json *v, size_t at, struct wire_mount *ret)
{
    struct wire_mount m = {.source = json_get_str(v, "source", (struct str){0}),
                           .target = json_get_str(v, "target", (struct str){0}),
                           .mode = json_get_str(v, "mode", STR("overlay"))};
    const struct json *mode = json_get(v, STR("mode"));

    static const char *const known[] = {"source", "target", "mode", NULL};
    char before[32];

    if (v->type != JSON_OBJECT)
        return err_new(ERR_UNPROCESSABLE, "mounts[%zu]: wanted an object", at);
    snprintf(before, sizeof before, "mounts[%zu].", at);
    TRY(wire_check_known(v, before, known));
    if (!is_plain_path(m.source))
        return err_new(ERR_UNPROCESSABLE,
                       "mounts[%zu].source: wanted an absolute, plain path of at most %d bytes", at,
                       WIRE_PATH_MAX);
    TRY(check_target(m.target, at));
    if ((mode && mode->type != JSON_STR) ||
        (!str_eq(m.mode, STR("ro")) && !str_eq(m.mode, STR("rw")) &&
         !str_eq(m.mode, STR("overlay"))))
        return err_new(ERR_UNPROCESSABLE, "mounts[%zu].mode: wanted ro, rw or overlay", at);
    *ret = m;
    return NULL;
}

static fallible decode_mounts(const struct json *list, struct wire_wants *into)
{
    if (list->type != JSON_ARRAY)
        return wants_wrong("mounts", "an array of {source, target, mode}");
    if (list->count > WIRE_MOUNTS)
        return err_new(ERR_UNPROCESSABLE, "mounts: %u, at most %d", list->count, WIRE_MOUNTS);
    for (const struct json *v = list->first; v; v = v->next) {
        struct wire_mount *m = &into->mounts[into->mount_count];
        TRY(decode_mount(v, into->mount_count, m));
        for (size_t i = 0; i < into->mount_count; i++)
            if (str_eq(into->mounts[i].target, m->target))
                return err_new(ERR_UNPROCESSABLE, "mounts[%zu].target: mounts[%zu] is there",
                               into->mount_count, i);
        into->mount_count++;
    }
    return NULL;
}

fallible wire_decode_wants(const struct json *body, struct wire_wants *ret_wants, bool *ret_any)
{
    struct wire_wants w = {0};
    bool any = false;
    const struct json *v;
    int64_t pids = 0;

    if ((v = wants_member(body, "memory", &any)))
        TRY(decode_size(v, "memory", &w.memory_bytes));
    if ((v = wants_member(body, "disk", &any)))
        TRY(decode_size(v, "disk", &w.disk_bytes));
    if ((v = wants_member(body, "cpus", &any)))
        TRY(decode_cpus(v, &w.cpu_milli));
    if (wants_member(body, "pids", &any))
        TRY(json_take_int(body, "pids", FEWEST_PIDS, MOST_PIDS, &pids));
    w.pids = (uint64_t)pids;
    if ((v = wants_member(body, "hostname", &any))) {
        if (v->type != JSON_STR || !is_hostname(v->s))
            return wants_wrong("hostname",
                               "at most 63 letters and digits, with '-' and '.' between");
        w.hostname = v->s;
    }
    if ((v = wants_member(body, "mounts", &any)))
        TRY(decode_mounts(v, &w));
    *ret_wants = w;
    *ret_any = any;
    return NULL;
}

static void put_given(struct jw *w, const char *key, uint64_t n)
{
    if (n)
        jw_uint(w, key, n);
}

void wire_put_wants(struct jw *w, const struct wire_wants *wants)
{
    put_given(w, "memory", wants->memory_bytes);
    put_given(w, "disk", wants->disk_bytes);
    if (wants->cpu_milli)
        jw_double(w, "cpus", (double)wants->cpu_milli / 1000);
    put_given(w, "pids", wants->pids);
    if (wants->hostname.p)
        jw_str(w, "hostname", wants->hostname);
    JW_ARRAY(w, "mounts")
        for (size_t i = 0; i < wants->mount_count; i++)
            JW_OBJECT(w, NULL) {
                jw_str(w, "source", wants->mounts[i].source);
                jw_str(w, "target", wants->mounts[i].target);
                jw_str(w, "mode", wants->mounts[i].mode);
            }
}
