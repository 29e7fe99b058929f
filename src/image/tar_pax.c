// SPDX-License-Identifier: Apache-2.0
/* tar_pax.c — "LENGTH KEY=VALUE\n" records, which win over the header's own fields. */
#include "image/tar_pax.h"

#include <string.h>

static fallible pax_bad(const struct tar *t, const char *what)
{
    return err_new(ERR_INVALID, "tar archive, byte %llu: %s", (unsigned long long)t->at, what);
}

/* Takes one record off *rest. */
static bool cut_record(struct str *rest, struct str *ret_key, struct str *ret_value)
{
    ptrdiff_t space = str_find_char(str_first(*rest, 12), ' ');
    uint64_t len;

    if (space < 1 || !str_to_u64(str_first(*rest, (size_t)space), &len) || len > rest->len ||
        len < (size_t)space + 4 || rest->p[len - 1] != '\n')
        return false;
    struct str record = str_n(rest->p + space + 1, (size_t)len - (size_t)space - 2);
    ptrdiff_t equals = str_find_char(record, '=');
    if (equals < 1)
        return false;
    *ret_key = str_first(record, (size_t)equals);
    *ret_value = str_from(record, (size_t)equals + 1);
    *rest = str_from(*rest, (size_t)len);
    return true;
}

static fallible set_text(struct buf *b, struct str value)
{
    buf_reset(b);
    buf_add(b, value);
    return buf_check(b);
}

static bool set_number(struct str value, uint64_t *ret)
{
    ptrdiff_t dot = str_find_char(value, '.');

    return str_to_u64(dot >= 0 ? str_first(value, (size_t)dot) : value, ret);
}

static fallible add_xattr(struct tar *t, struct str name, struct str value)
{
    struct tar_entry *e = &t->entry;

    if (e->xattr_count == TAR_XATTRS_MAX || name.len > 255)
        return pax_bad(t, "too many or too long attributes");
    if (memchr(name.p, '\0', name.len))
        return pax_bad(t, "an attribute's name holds a NUL");
    e->xattrs[e->xattr_count++] = (struct tar_xattr){name, value};
    return NULL;
}

static fallible apply_one(struct tar *t, struct str key, struct str value)
{
    struct tar_entry *e = &t->entry;
    uint64_t n;

    if (str_eq(key, STR("path")))
        return set_text(&t->path, value);
    if (str_eq(key, STR("linkpath")))
        return set_text(&t->link, value);
    if (str_starts(key, STR("SCHILY.xattr.")))
        return add_xattr(t, str_from(key, sizeof "SCHILY.xattr." - 1), value);
    if (str_starts(key, STR("GNU.sparse.")))
        return pax_bad(t, "sparse files are not read; make the archive without --sparse");
    if (str_eq(key, STR("mtime"))) {
        bool before = value.len && value.p[0] == '-'; /* taken as 1970: the exact time does not
                                                       * matter */
        if (!before && !set_number(value, &n))
            return pax_bad(t, "an extended header's mtime is no number");
        e->mtime_s = before || n > INT64_MAX / 2 ? 0 : (int64_t)n;
        return NULL;
    }
    uint64_t *to = str_eq(key, STR("size"))  ? &e->size
                   : str_eq(key, STR("uid")) ? &e->uid
                   : str_eq(key, STR("gid")) ? &e->gid
                                             : NULL;
    if (to && !str_to_u64(value, to))
        return pax_bad(t, "an extended header's number is none");
    return NULL;
}

static fallible apply_all(struct tar *t, struct buf *records)
{
    struct str rest = buf_str(records), key, value;

    while (rest.len) {
        if (!cut_record(&rest, &key, &value))
            return pax_bad(t, "an extended header is broken");
        TRY(apply_one(t, key, value));
    }
    return NULL;
}

fallible tar_pax_apply(struct tar *t)
{
    TRY(apply_all(t, &t->global));
    TRY(apply_all(t, &t->pax));
    if (t->entry.size > INT64_MAX / 2)
        return pax_bad(t, "a file is larger than any disk");
    return NULL;
}
