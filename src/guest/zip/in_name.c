// SPDX-License-Identifier: Apache-2.0
/* in_name.c — names of entries become paths: relative, clean, UTF-8. A name that is not said to be
 * UTF-8 and is not either is in the character set of the first PCs. */
#include <limits.h>

#include "base/utf8.h"
#include "guest/zip/in.h"

static const uint16_t cp437[128] = {
    0x00c7, 0x00fc, 0x00e9, 0x00e2, 0x00e4, 0x00e0, 0x00e5, 0x00e7, 0x00ea, 0x00eb, 0x00e8, 0x00ef,
    0x00ee, 0x00ec, 0x00c4, 0x00c5, 0x00c9, 0x00e6, 0x00c6, 0x00f4, 0x00f6, 0x00f2, 0x00fb, 0x00f9,
    0x00ff, 0x00d6, 0x00dc, 0x00a2, 0x00a3, 0x00a5, 0x20a7, 0x0192, 0x00e1, 0x00ed, 0x00f3, 0x00fa,
    0x00f1, 0x00d1, 0x00aa, 0x00ba, 0x00bf, 0x2310, 0x00ac, 0x00bd, 0x00bc, 0x00a1, 0x00ab, 0x00bb,
    0x2591, 0x2592, 0x2593, 0x2502, 0x2524, 0x2561, 0x2562, 0x2556, 0x2555, 0x2563, 0x2551, 0x2557,
    0x255d, 0x255c, 0x255b, 0x2510, 0x2514, 0x2534, 0x252c, 0x251c, 0x2500, 0x253c, 0x255e, 0x255f,
    0x255a, 0x2554, 0x2569, 0x2566, 0x2560, 0x2550, 0x256c, 0x2567, 0x2568, 0x2564, 0x2565, 0x2559,
    0x2558, 0x2552, 0x2553, 0x256b, 0x256a, 0x2518, 0x250c, 0x2588, 0x2584, 0x258c, 0x2590, 0x2580,
    0x03b1, 0x00df, 0x0393, 0x03c0, 0x03a3, 0x03c3, 0x00b5, 0x03c4, 0x03a6, 0x0398, 0x03a9, 0x03b4,
    0x221e, 0x03c6, 0x03b5, 0x2229, 0x2261, 0x00b1, 0x2265, 0x2264, 0x2320, 0x2321, 0x00f7, 0x2248,
    0x00b0, 0x2219, 0x00b7, 0x221a, 0x207f, 0x00b2, 0x25a0, 0x00a0,
};

static void add_cp437(struct buf *b, struct str s)
{
    char out[4];

    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        buf_add_mem(b, out, utf8_encode(c < 0x80 ? c : cp437[c - 0x80], out));
    }
}

static fallible name_clean(struct str text, struct buf *path, enum zip_in_name *ret_kind)
{
    struct str part;

    *ret_kind = str_ends(text, STR("/")) ? ZIP_NAME_DIR : ZIP_NAME_FILE;
    if (str_starts(text, STR("/")))
        *ret_kind = ZIP_NAME_UNSAFE;
    while (text.len) {
        str_cut(&text, '/', &part);
        if (part.len == 0 || str_eq(part, STR(".")))
            continue;
        if (str_eq(part, STR("..")))
            *ret_kind = ZIP_NAME_UNSAFE;
        if (part.len > NAME_MAX)
            return err_new(ERR_INVALID, "the archive has a name of %zu bytes", part.len);
        if (path->len)
            buf_add_char(path, '/');
        buf_add(path, part);
    }
    if (path->over_limit)
        return err_new(ERR_INVALID, "the archive has a path of over %u bytes", ZIP_PATH_MAX);
    if (!path->len)
        *ret_kind = ZIP_NAME_NOTHING;
    return buf_check(path);
}

fallible zip_name_clean(struct str name, bool utf8, bool exact, struct buf *path,
                        enum zip_in_name *ret_kind)
{
    own_done(buf) decoded;

    buf_init(&decoded, (size_t)4 * ZIP_PATH_MAX);
    buf_reset(path);
    if (str_find_char(name, '\0') >= 0)
        return err_new(ERR_INVALID, "the archive has a name with a zero byte");
    if (exact || utf8_valid(name))
        return name_clean(name, path, ret_kind);
    if (utf8)
        return err_new(ERR_INVALID, "the archive has a name that is not UTF-8, as it says");
    add_cp437(&decoded, name);
    if (decoded.over_limit)
        return err_new(ERR_INVALID, "the archive has a path of over %u bytes", ZIP_PATH_MAX);
    TRY(buf_check(&decoded));
    return name_clean(buf_str(&decoded), path, ret_kind);
}
