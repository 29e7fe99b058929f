// SPDX-License-Identifier: Apache-2.0
/* diff.c — the matching of difflib.SequenceMatcher, autojunk included: in a text of 200 lines and
 * more, a line that is over one percent of them starts no match. */
#include "guest/edit/diff.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/own.h"
#include "base/rng.h"
#include "guest/edit/pytext.h"
#include "guest/edit/text.h"

#define EXACT_LINES_MAX 16384       /* of both texts together; above, the ends are trimmed first */
#define STEPS_MAX       (16u << 20) /* comparisons before the rest is told as one change */
#define AUTOJUNK_LINES  200

struct side {
    struct str *lines;
    uint32_t *ids; /* equal lines have equal ids */
    size_t count;
};

struct block {
    size_t a, b, size;
};

struct range {
    size_t alo, ahi, blo, bhi;
};

struct matcher {
    struct side a, b;
    uint32_t *first, *next; /* of each id, its lines in b, ascending; lists end in NONE */
    uint32_t *runs, *runs_before;
    struct block *blocks;
    size_t block_count, steps;
};
#define NONE UINT32_MAX

static void matcher_done(struct matcher *m)
{
    free(m->a.lines);
    free(m->b.lines);
    free(m->a.ids);
    free(m->b.ids);
    free(m->first);
    free(m->next);
    free(m->runs);
    free(m->runs_before);
    free(m->blocks);
}

static fallible diff_split(struct str text, struct side *s)
{
    s->count = text_count_char(text, '\n') + 1;
    s->lines = mem_try(s->count * sizeof *s->lines);
    s->ids = mem_try(s->count * sizeof *s->ids);
    if (!s->lines || !s->ids)
        return err_no_memory();
    for (size_t i = 0; i < s->count; i++)
        str_cut(&text, '\n', &s->lines[i]);
    return NULL;
}

struct slot {
    struct str line;
    uint32_t id;
    bool used;
};

static uint32_t id_of(struct slot *slots, size_t mask, const uint64_t seed[2], struct str line,
                      uint32_t *count)
{
    size_t at = map_hash(seed, line.p, line.len) & mask;

    while (slots[at].used && !str_eq(slots[at].line, line))
        at = (at + 1) & mask;
    if (!slots[at].used)
        slots[at] = (struct slot){line, (*count)++, true};
    return slots[at].id;
}

static fallible number_lines(struct matcher *m, uint32_t *ret_ids)
{
    const uint64_t seed[2] = {rng_u64(rng_system()), rng_u64(rng_system())};
    size_t cap = 16;

    while (cap < 2 * (m->a.count + m->b.count))
        cap *= 2;
    own_free struct slot *slots = mem_try(cap * sizeof *slots);
    if (!slots)
        return err_no_memory();
    *ret_ids = 0;
    for (size_t i = 0; i < m->a.count; i++)
        m->a.ids[i] = id_of(slots, cap - 1, seed, m->a.lines[i], ret_ids);
    for (size_t i = 0; i < m->b.count; i++)
        m->b.ids[i] = id_of(slots, cap - 1, seed, m->b.lines[i], ret_ids);
    return NULL;
}

static fallible index_lines(struct matcher *m, uint32_t ids)
{
    size_t often = m->b.count >= AUTOJUNK_LINES ? m->b.count / 100 + 1 : SIZE_MAX;
    own_free uint32_t *uses = mem_try(ids * sizeof *uses);

    m->first = mem_try(ids * sizeof *m->first);
    m->next = mem_try(m->b.count * sizeof *m->next);
    m->runs = mem_try((m->b.count + 1) * sizeof *m->runs);
    m->runs_before = mem_try((m->b.count + 1) * sizeof *m->runs_before);
    if (!uses || !m->first || !m->next || !m->runs || !m->runs_before)
        return err_no_memory();
    memset(m->first, 0xff, ids * sizeof *m->first);
    for (size_t j = m->b.count; j-- > 0;) {
        uint32_t id = m->b.ids[j];
        m->next[j] = m->first[id];
        m->first[id] = (uint32_t)j;
        uses[id]++;
    }
    for (uint32_t id = 0; id < ids; id++)
        if (uses[id] > often)
            m->first[id] = NONE;
    return NULL;
}

/* runs[j + 1] is the length of the match that ends in a[i] and b[j]; what row i wrote is cleared
 * by the walk of row i + 1, so a row costs no more than its matches. */
static void clear_row(struct matcher *m, uint32_t *row, uint32_t id, const struct range *r)
{
    for (uint32_t j = m->first[id]; j != NONE && j < r->bhi; j = m->next[j])
        row[j + 1] = 0;
}

static struct block longest_start(struct matcher *m, const struct range *r)
{
    struct block best = {r->alo, r->blo, 0};

    for (size_t i = r->alo; i < r->ahi && m->steps < STEPS_MAX; i++) {
        uint32_t *row = m->runs, *before = m->runs_before;
        for (uint32_t j = m->first[m->a.ids[i]]; j != NONE && j < r->bhi; j = m->next[j]) {
            m->steps++;
            if (j < r->blo)
                continue;
            uint32_t k = row[j + 1] = before[j] + 1;
            if (k > best.size)
                best = (struct block){i + 1 - k, j + 1 - k, k};
        }
        if (i > r->alo)
            clear_row(m, before, m->a.ids[i - 1], r);
        m->runs = before;
        m->runs_before = row;
    }
    if (r->ahi > r->alo)
        clear_row(m, m->runs_before, m->a.ids[r->ahi - 1], r);
    return best;
}

static struct block longest_match(struct matcher *m, const struct range *r)
{
    struct block s = longest_start(m, r);

    while (s.a > r->alo && s.b > r->blo && m->a.ids[s.a - 1] == m->b.ids[s.b - 1])
        s = (struct block){s.a - 1, s.b - 1, s.size + 1};
    while (s.a + s.size < r->ahi && s.b + s.size < r->bhi &&
           m->a.ids[s.a + s.size] == m->b.ids[s.b + s.size])
        s.size++;
    m->steps += r->ahi - r->alo;
    return s;
}

static int by_place(const void *x, const void *y)
{
    const struct block *a = x, *b = y;

    return a->a < b->a ? -1 : a->a > b->a;
}

/* Every block parts a range in two, so at most min(lines) + 1 ranges wait at once. */
static fallible match_all(struct matcher *m, struct range whole)
{
    size_t room = (m->a.count < m->b.count ? m->a.count : m->b.count) + 3;
    own_free struct range *waiting = mem_try(room * sizeof *waiting);
    size_t n = 0;

    m->blocks = mem_try(room * sizeof *m->blocks);
    if (!waiting || !m->blocks)
        return err_no_memory();
    waiting[n++] = whole;
    while (n && m->steps < STEPS_MAX) {
        struct range r = waiting[--n];
        struct block s = longest_match(m, &r);
        if (!s.size)
            continue;
        m->blocks[m->block_count++] = s;
        if (r.alo < s.a && r.blo < s.b)
            waiting[n++] = (struct range){r.alo, s.a, r.blo, s.b};
        if (s.a + s.size < r.ahi && s.b + s.size < r.bhi)
            waiting[n++] = (struct range){s.a + s.size, r.ahi, s.b + s.size, r.bhi};
    }
    qsort(m->blocks, m->block_count, sizeof *m->blocks, by_place);
    return NULL;
}

static fallible find_changes(struct arena *a, const struct matcher *m, struct range whole,
                             struct diff *ret_diff)
{
    struct diff d = {arena_alloc(a, (m->block_count + 1) * sizeof *d.changes), 0};
    size_t at_a = whole.alo, at_b = whole.blo;

    if (!d.changes)
        return arena_check(a);
    for (size_t i = 0; i <= m->block_count; i++) {
        struct block end = {whole.ahi, whole.bhi, 0};
        struct block s = i < m->block_count ? m->blocks[i] : end;
        if (at_a < s.a || at_b < s.b)
            d.changes[d.count++] = (struct diff_change){at_a, s.a, at_b, s.b};
        at_a = s.a + s.size;
        at_b = s.b + s.size;
    }
    *ret_diff = d;
    return NULL;
}

static struct range diff_trim(const struct matcher *m)
{
    struct range r = {0, m->a.count, 0, m->b.count};

    if (m->a.count + m->b.count <= EXACT_LINES_MAX)
        return r;
    while (r.alo < r.ahi && r.blo < r.bhi && m->a.ids[r.alo] == m->b.ids[r.blo])
        r.alo++, r.blo++;
    while (r.ahi > r.alo && r.bhi > r.blo && m->a.ids[r.ahi - 1] == m->b.ids[r.bhi - 1])
        r.ahi--, r.bhi--;
    return r;
}

static fallible diff_run(struct arena *a, struct matcher *m, struct str old_text,
                         struct str new_text, struct diff *ret_diff)
{
    uint32_t ids = 0;

    TRY(diff_split(old_text, &m->a));
    TRY(diff_split(new_text, &m->b));
    TRY(number_lines(m, &ids));
    TRY(index_lines(m, ids));
    struct range whole = diff_trim(m);
    TRY(match_all(m, whole));
    return find_changes(a, m, whole, ret_diff);
}

fallible diff_lines(struct arena *a, struct str old_text, struct str new_text,
                    struct diff *ret_diff)
{
    __attribute__((cleanup(matcher_done))) struct matcher m = {.steps = 0};

    return diff_run(a, &m, old_text, new_text, ret_diff);
}

static void add_range(struct buf *b, char sign, size_t from, size_t to)
{
    if (to - from == 1)
        buf_addf(b, "%c%zu", sign, from + 1);
    else
        buf_addf(b, "%c%zu,%zu", sign, from + (to > from), to - from);
}

static void add_lines(struct buf *b, char sign, const struct side *s, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        buf_addf(b, "\n%c", sign);
        buf_add(b, py_rstrip(s->lines[i]));
    }
}

fallible diff_unified(struct arena *a, struct str old_text, struct str new_text, struct str path,
                      struct str *ret_text)
{
    __attribute__((cleanup(matcher_done))) struct matcher m = {.steps = 0};
    own_done(buf) b;
    struct diff d = {NULL, 0};

    buf_init(&b, SIZE_MAX / 2);
    if (str_eq(old_text, new_text)) {
        *ret_text = STR("");
        return NULL;
    }
    TRY(diff_run(a, &m, old_text, new_text, &d));
    buf_add_cstr(&b, "--- ");
    buf_add(&b, py_rstrip(path));
    buf_add_cstr(&b, "\n+++ ");
    buf_add(&b, py_rstrip(path));
    for (size_t i = 0; i < d.count; i++) {
        const struct diff_change *c = &d.changes[i];
        buf_add_cstr(&b, "\n@@ ");
        add_range(&b, '-', c->old_from, c->old_to);
        buf_add_char(&b, ' ');
        add_range(&b, '+', c->new_from, c->new_to);
        buf_add_cstr(&b, " @@");
        add_lines(&b, '-', &m.a, c->old_from, c->old_to);
        add_lines(&b, '+', &m.b, c->new_from, c->new_to);
    }
    TRY(buf_check(&b));
    *ret_text = arena_copy(a, buf_str(&b));
    return arena_check(a);
}
