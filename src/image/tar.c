// SPDX-License-Identifier: Apache-2.0
/* tar.c — see tar.h. */
#include "image/tar.h"

#include <string.h>

#include "image/tar_pax.h"

#define BLOCK   512u
#define PAX_MAX (1u << 20) /* of one extended header */

void tar_init(struct tar *t, struct source *from)
{
    *t = (struct tar){.from = from};
    buf_init(&t->path, PATH_MAX);
    buf_init(&t->link, PATH_MAX);
    buf_init(&t->pax, PAX_MAX);
    buf_init(&t->global, PAX_MAX);
}

void tar_done(struct tar *t)
{
    buf_done(&t->path);
    buf_done(&t->link);
    buf_done(&t->pax);
    buf_done(&t->global);
}

static fallible tar_at(const struct tar *t, const char *what)
{
    return err_new(ERR_INVALID, "tar archive, byte %llu: %s", (unsigned long long)t->at, what);
}

fallible tar_read(struct tar *t, void *p, size_t n, size_t *ret_len)
{
    size_t want = n < t->left ? n : (size_t)t->left;

    *ret_len = 0;
    if (!want)
        return NULL;
    TRY(t->from->read(t->from, p, want, ret_len));
    if (!*ret_len)
        return tar_at(t, "it ends in the middle of a file");
    t->left -= *ret_len;
    t->at += *ret_len;
    return NULL;
}

static fallible tar_skip(struct tar *t)
{
    char rest[8192];

    t->left += t->pad;
    t->pad = 0;
    while (t->left) {
        size_t n;
        TRY(tar_read(t, rest, sizeof rest, &n));
    }
    return NULL;
}

/* Octal, blank-padded, or base 256 where the first bit is set. */
static bool tar_number(const unsigned char *p, size_t n, uint64_t *ret)
{
    uint64_t v = 0;
    size_t i = 0;

    if (p[0] & 0x80) {
        if (p[0] != 0x80)
            return false; /* negative */
        for (i = 1; i < n; i++) {
            if (v >> 55)
                return false;
            v = v << 8 | p[i];
        }
        *ret = v;
        return true;
    }
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++) {
        if (v >> 60)
            return false;
        v = v << 3 | (uint64_t)(p[i] - '0');
    }
    for (; i < n; i++) {
        if (p[i] != ' ' && p[i] != '\0')
            return false;
    }
    *ret = v;
    return true;
}

static bool checksum_fits(const unsigned char b[BLOCK])
{
    uint64_t want, sum = 0;

    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : b[i];
    return tar_number(b + 148, 8, &want) && want == sum;
}

static bool is_zero(const unsigned char b[BLOCK])
{
    for (size_t i = 0; i < BLOCK; i++) {
        if (b[i])
            return false;
    }
    return true;
}

static struct str tar_field(const unsigned char *p, size_t n)
{
    return str_n(p, strnlen((const char *)p, n));
}

/* The header's own fields; extended ones come after and win. */
static fallible read_header(struct tar *t, const unsigned char b[BLOCK])
{
    struct tar_entry *e = &t->entry;
    uint64_t mode, mtime;

    *e = (struct tar_entry){0};
    if (!tar_number(b + 100, 8, &mode) || !tar_number(b + 108, 8, &e->uid) ||
        !tar_number(b + 116, 8, &e->gid) || !tar_number(b + 124, 12, &e->size) ||
        !tar_number(b + 136, 12, &mtime))
        return tar_at(t, "a number in the header is none");
    e->mode = (unsigned)mode & 07777;
    e->mtime_s = (int64_t)mtime;
    if (!t->has_path) {
        buf_reset(&t->path);
        struct str prefix = tar_field(b + 345, 155);
        if (memcmp(b + 257,
                   "ustar\0"
                   "00",
                   8) == 0 &&
            prefix.len) {
            buf_add(&t->path, prefix);
            buf_add_char(&t->path, '/');
        }
        buf_add(&t->path, tar_field(b, 100));
    }
    if (!t->has_link) {
        buf_reset(&t->link);
        buf_add(&t->link, tar_field(b + 157, 100));
    }
    return NULL;
}

/* Reads the data of the entry into b, without the NUL a long name ends in. */
static fallible read_text(struct tar *t, uint64_t size, struct buf *b)
{
    buf_reset(b);
    if (size > b->limit_bytes)
        return tar_at(t, "an extended header is too long");
    t->left = size;
    t->pad = (BLOCK - size % BLOCK) % BLOCK;
    char *to = size ? buf_reserve(b, (size_t)size) : NULL;
    if (size && !to)
        return err_no_memory();
    for (size_t have = 0; have < size;) {
        size_t n;
        TRY(tar_read(t, to + have, (size_t)size - have, &n));
        have += n;
    }
    buf_commit(b, (size_t)size);
    return tar_skip(t);
}

static fallible read_long(struct tar *t, uint64_t size, struct buf *b, bool *has)
{
    TRY(read_text(t, size, b));
    b->len = b->len ? strnlen(b->p, b->len) : 0;
    *has = true;
    return NULL;
}

/* Takes "..", ".", "" and a leading '/' out of a name, in place; a name that climbs is refused. */
static fallible tar_clean(struct tar *t, struct buf *b)
{
    struct str rest = buf_str(b), part;
    size_t len = 0;

    TRY(buf_check(b));
    if (memchr(rest.p ? rest.p : "", '\0', rest.len))
        return tar_at(t, "a name holds a NUL");
    while (str_cut(&rest, '/', &part) || part.len) {
        if (!part.len || str_eq(part, STR(".")))
            continue;
        if (str_eq(part, STR("..")))
            return tar_at(t, "a name leads out of the archive ('..')");
        if (part.len > NAME_MAX)
            return tar_at(t, "a name is too long");
        if (len)
            b->p[len++] = '/';
        memmove(b->p + len, part.p, part.len);
        len += part.len;
    }
    b->len = len;
    return buf_cstr(b) ? NULL : err_no_memory();
}

static fallible set_type(struct tar *t, char flag)
{
    switch (flag) {
    case '0':
    case '\0':
    case '7':
        t->entry.type = TAR_FILE;
        break;
    case '1':
        t->entry.type = TAR_HARD_LINK;
        break;
    case '2':
        t->entry.type = TAR_LINK;
        break;
    case '3':
    case '4':
        t->entry.type = TAR_DEVICE;
        break;
    case '5':
        t->entry.type = TAR_DIR;
        break;
    case '6':
        t->entry.type = TAR_FIFO;
        break;
    default:
        return tar_at(t, flag == 'S'
                             ? "sparse files are not read; make the archive without --sparse"
                             : "an entry of a type croft does not know");
    }
    return NULL;
}

static fallible tar_finish(struct tar *t, char flag)
{
    struct tar_entry *e = &t->entry;

    TRY(tar_pax_apply(t));
    bool slash = t->path.len && t->path.p[t->path.len - 1] == '/';
    TRY(set_type(t, flag == '\0' && slash ? '5' : flag));
    TRY(tar_clean(t, &t->path));
    if (e->type == TAR_HARD_LINK)
        TRY(tar_clean(t, &t->link));
    if (e->type == TAR_LINK && memchr(t->link.p ? t->link.p : "", '\0', t->link.len))
        return tar_at(t, "a link holds a NUL");
    if (!buf_cstr(&t->link))
        return err_no_memory();
    if ((e->type == TAR_LINK || e->type == TAR_HARD_LINK) && !t->link.len)
        return tar_at(t, "a link to nothing");
    e->path = t->path.p;
    e->target = t->link.p;
    if (e->type != TAR_FILE)
        e->size = 0;
    t->left = e->size;
    t->pad = (BLOCK - e->size % BLOCK) % BLOCK;
    t->has_path = t->has_link = false;
    return NULL;
}

/* A header, checked; the end is an empty block, or no more bytes. */
static fallible read_block(struct tar *t, unsigned char b[BLOCK], bool *ret_end)
{
    size_t n;

    TRY(source_fill(t->from, b, BLOCK, &n));
    t->at += n;
    *ret_end = n == 0 || (n == BLOCK && is_zero(b));
    if (*ret_end)
        return NULL;
    if (n < BLOCK)
        return tar_at(t, "it is cut short");
    if (!checksum_fits(b))
        return tar_at(t, "not a tar header (its checksum is wrong)");
    return NULL;
}

fallible tar_next(struct tar *t, const struct tar_entry **ret_entry)
{
    unsigned char b[BLOCK];
    bool end;

    buf_reset(&t->pax);
    for (;;) {
        TRY(tar_skip(t));
        TRY(read_block(t, b, &end));
        if (end) {
            *ret_entry = NULL;
            return t->has_path || t->has_link ? tar_at(t, "a name without its file") : NULL;
        }
        TRY(read_header(t, b));
        uint64_t size = t->entry.size;
        switch (b[156]) {
        case 'L':
            TRY(read_long(t, size, &t->path, &t->has_path));
            break;
        case 'K':
            TRY(read_long(t, size, &t->link, &t->has_link));
            break;
        case 'x':
            TRY(read_text(t, size, &t->pax));
            break;
        case 'g':
            TRY(read_text(t, size, &t->global));
            break;
        default:
            TRY(tar_finish(t, (char)b[156]));
            *ret_entry = &t->entry;
            return NULL;
        }
    }
}
