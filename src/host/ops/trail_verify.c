// SPDX-License-Identifier: Apache-2.0
/* trail_verify.c — see trail_verify.h. */
#include "host/ops/trail_verify.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/json.h"
#include "event/format.h"
#include "host/ops/trail.h"

#define SEAL_BYTES 4096 /* of memory, for one */

struct seal { /* what a record says of a log */
    char log[256], hash[2 * SHA256_LEN + 1];
    uint64_t last;
};

struct walk {
    struct trail_verdict *v;
    const struct trail_part *in; /* the log whose records are read */
};

const char *trail_seal_word(enum trail_seal_state s)
{
    static const char *const words[] = {[TRAIL_OPEN] = "open",
                                        [TRAIL_SEALED] = "sealed",
                                        [TRAIL_UNSEALED] = "unsealed",
                                        [TRAIL_REWRITTEN] = "rewritten"};

    return words[s];
}

bool trail_base_of(const char *name, const char *file, uint64_t *ret_base)
{
    size_t len = strlen(name);

    *ret_base = 0;
    if (strncmp(name, file, len) != 0)
        return false;
    return file[len] == '\0' || (file[len] == '.' && strlen(file) == len + 1 + TRAIL_DIGITS &&
                                 str_to_u64(str_of(file + len + 1), ret_base) && *ret_base);
}

/* --- seals --- */

static bool read_seal(const struct event_record *r, struct seal *ret)
{
    own_done(arena) a;
    struct json *body;

    arena_init(&a, SEAL_BYTES);
    if (!str_eq(r->kind, STR(TRAIL_SEAL)))
        return false;
    struct err *e = json_parse(&a, r->payload, NULL, &body);
    if (e) {
        err_free(e);
        return false;
    }
    struct str log = json_get_str(body, "log", STR("")),
               hash = json_get_str(body, "sha256", STR(""));
    int64_t last = json_get_int(body, "last", -1);
    if (!log.len || log.len >= sizeof ret->log || hash.len != sizeof ret->hash - 1 || last < 0)
        return false;
    *ret = (struct seal){.last = (uint64_t)last};
    memcpy(ret->log, log.p, log.len);
    memcpy(ret->hash, hash.p, hash.len);
    return true;
}

static fallible look_for(int log, const char *name, bool *ret_found)
{
    uint8_t bytes[EVENT_HEADER_LEN];
    struct event_header header;
    struct event_reader rd;
    struct event_view v;
    const char *why = NULL;
    struct err *e = NULL;
    struct seal s;
    size_t n;

    *ret_found = false;
    TRY(event_pread(log, bytes, sizeof bytes, 0, &n));
    if (n < sizeof bytes || event_header_get(bytes, &header))
        return NULL;
    event_reader_init(&rd, log, header.marker, EVENT_HEADER_LEN, UINT64_MAX);
    while (!e && !why && !*ret_found) {
        e = event_reader_next(&rd, &v, &why);
        *ret_found = !e && !why && read_seal(&v.r, &s) && strcmp(s.log, name) == 0;
    }
    event_reader_done(&rd);
    return e;
}

bool trail_has_seal(int log, const char *name)
{
    bool found = false;

    err_free(look_for(log, name, &found)); /* what cannot be read has none, and is told elsewhere */
    return found;
}

static bool verify_fits(const struct trail_part *p, const struct seal *s)
{
    char head[2 * SHA256_LEN + 1];

    hash_hex(p->verdict.head, sizeof p->verdict.head, head);
    return s->last == p->base + p->verdict.last_seq && strcmp(s->hash, head) == 0;
}

static void verify_fault(struct trail_verdict *v, const struct trail_part *p, const char *why)
{
    if (v->bad)
        return;
    v->bad = p;
    snprintf(v->why, sizeof v->why, "%s", why);
}

/* Checks a seal. Logs come oldest first, so the sealed log was read before; if not, it was
 * removed. */
static void on_record(void *arg, const struct event_record *r)
{
    struct walk *w = arg;
    struct seal s;

    if (!read_seal(r, &s))
        return;
    for (struct trail_part *p = w->v->parts; p; p = p->next) {
        if (p == w->in || strcmp(p->name, s.log) != 0)
            continue;
        bool good = verify_fits(p, &s);
        if (p->seal != TRAIL_REWRITTEN)
            p->seal = good ? TRAIL_SEALED : TRAIL_REWRITTEN;
        snprintf(p->sealed_in, sizeof p->sealed_in, "%s", w->in->name);
        if (!good)
            verify_fault(w->v, p, "is not what it was when it was sealed");
        return;
    }
}

/* --- logs --- */

static fallible add_part(struct arena *a, const char *file, uint64_t base, struct trail_verdict *v)
{
    struct trail_part *p = arena_new(a, struct trail_part), **at = &v->parts;

    TRY(arena_check(a));
    *p = (struct trail_part){.base = base, .seal = TRAIL_UNSEALED};
    snprintf(p->name, sizeof p->name, "%s", file);
    while (*at && (*at)->base < base)
        at = &(*at)->next;
    p->next = *at;
    *at = p;
    v->count++;
    return NULL;
}

static fallible find_parts(int dir, const char *name, struct arena *a, struct trail_verdict *v)
{
    own_fd fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct err *e = NULL;
    uint64_t base;

    if (!d)
        return err_sys("list its directory");
    (void)take_fd(&fd);
    for (struct dirent *one; !e && (one = readdir(d));)
        if (trail_base_of(name, one->d_name, &base))
            e = add_part(a, one->d_name, base, v);
    closedir(d);
    if (!e && !v->parts)
        return err_new(ERR_NOT_FOUND, "there is no log '%s'", name);
    return e;
}

static fallible check_part(int dir, struct trail_part *p, struct trail_verdict *v)
{
    struct walk w = {.v = v, .in = p};
    char index_name[sizeof p->name + 8];

    snprintf(index_name, sizeof index_name, "%s.idx", p->name);
    own_fd log = openat(dir, p->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (log < 0)
        return err_sys("open '%s'", p->name);
    own_fd index = openat(dir, index_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* -1: none */
    TRY_WRAP(event_verify_each(log, index, on_record, &w, &p->verdict), "verify '%s'", p->name);
    if (p->verdict.state != EVENT_OK)
        verify_fault(v, p, "is damaged");
    return NULL;
}

/* A commit that failed may leave a gap between two logs; numbers that come twice are another thing.
 */
static void check_order(struct trail_verdict *v)
{
    for (const struct trail_part *p = v->parts; p && p->next; p = p->next)
        if (p->next->base < p->base + p->verdict.last_seq)
            verify_fault(v, p->next, "begins before the log before it ends");
}

fallible trail_verify(int dir, const char *name, struct arena *a, struct trail_verdict *ret)
{
    *ret = (struct trail_verdict){0};
    TRY(find_parts(dir, name, a, ret));
    for (struct trail_part *p = ret->parts; p; p = p->next) {
        if (!p->next)
            p->seal = TRAIL_OPEN;
        TRY(check_part(dir, p, ret));
    }
    check_order(ret);
    for (const struct trail_part *p = ret->parts; p; p = p->next)
        if (p->seal == TRAIL_UNSEALED)
            verify_fault(ret, p, "is not sealed by a later log");
    return NULL;
}
