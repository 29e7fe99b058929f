// SPDX-License-Identifier: Apache-2.0
/* below.c — see below.h. */
#include "host/run/below.h"

#include "base/fd.h"
#include "base/plain.h"
#include "host/changes/changes.h"
#include "host/run/run.h"

#define TABLE_MAX (4u << 20)
#define NAMED     3 /* the others are counted */

enum { FIELD_WHERE = 4 }; /* of a line of mountinfo: where it is mounted */

static bool is_digit(char c)
{
    return c >= '0' && c <= '7';
}

/* The kernel writes blanks and backslashes as \ooo. */
static void below_unescape(struct str text, struct buf *out)
{
    buf_reset(out);
    for (size_t i = 0; i < text.len; i++) {
        const char *p = text.p + i;
        bool octal =
            *p == '\\' && text.len - i > 3 && is_digit(p[1]) && is_digit(p[2]) && is_digit(p[3]);
        buf_add_char(out,
                     octal ? (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0')) : *p);
        i += octal ? 3 : 0;
    }
}

static bool is_below(struct str path, struct str dir)
{
    return path.len > dir.len && path.p[dir.len] == '/' && str_starts(path, dir);
}

static void put_all(struct buf *out, struct str table, struct str dir, struct str except)
{
    own_done(buf) where;
    struct str line, field;
    size_t count = 0;

    buf_init(&where, 64u << 10);
    while (str_cut(&table, '\n', &line)) {
        for (unsigned i = 0; i <= FIELD_WHERE; i++)
            str_cut(&line, ' ', &field);
        below_unescape(field, &where);
        struct str path = buf_str(&where);
        if (!is_below(path, dir) || is_below(path, except) || count++ >= NAMED)
            continue;
        buf_add_cstr(out, count == 1 ? "croft run: mounted here: " : ", ");
        plain_put_name(out, str_from(path, dir.len + 1));
    }
    if (count > NAMED)
        buf_addf(out, " and %zu more", count - NAMED);
    if (count)
        buf_add_cstr(out, "; the copy has empty directories there, and what is put into them "
                          "cannot be applied\n");
}

void below_tell(int fd, const struct run_spec *s)
{
    own_done(buf) table;
    own_done(buf) out;

    buf_init(&table, TABLE_MAX);
    buf_init(&out, 1u << 16);
    struct err *e = fd_read_file("/proc/self/mountinfo", &table);
    for (size_t i = 0; !e && i < s->mount_count; i++)
        if (s->mounts[i].mode == NATIVE_OVERLAY)
            put_all(&out, buf_str(&table), str_of(s->mounts[i].source), str_of(s->state));
    err_free(e); /* it is a hint, no more */
    err_free(fd_write_all(fd, buf_str(&out)));
}
