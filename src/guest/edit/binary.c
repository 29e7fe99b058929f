// SPDX-License-Identifier: Apache-2.0
/* binary.c — the heuristic of binaryornot, byte shares included. */
#include "guest/edit/binary.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/utf8.h"
#include "guest/edit/space.h"
#include "guest/edit/text.h"

/* The look may end inside a character. */
static struct str whole_characters(struct str s)
{
    for (size_t cut = 1; cut < 4 && cut < s.len; cut++) {
        unsigned char c = (unsigned char)s.p[s.len - cut];
        if (c < 0x80)
            break;
        if (c >= 0xc0)
            return c >= (cut == 1 ? 0xc0 : cut == 2 ? 0xe0 : 0xf0) ? str_first(s, s.len - cut) : s;
    }
    return s;
}

/* The detector is sure of UTF-8 from four characters on; with fewer, NUL still tells. */
static bool is_sure_utf8(struct str s)
{
    size_t wide = 0;

    for (size_t i = 0; i < s.len; i++)
        wide += (unsigned char)s.p[i] >= 0xc0;
    if (!utf8_valid(s))
        return false;
    return wide >= 4 || (wide > 0 && !memchr(s.p, '\0', s.len));
}

bool binary_bytes(struct str start)
{
    struct str s = str_first(start, BINARY_LOOK_BYTES);
    size_t plain = 0, high = 0;
    bool has_tell = false;

    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.p[i];
        plain += (c >= 32 && c < 127) || (c && strchr("\n\r\t\f\b", c));
        high += c >= 127;
        has_tell |= c == 0 || c == 0xff;
    }
    if (s.len == 0)
        return false;
    double other = (double)(s.len - plain) / (double)s.len;
    double low = (double)(s.len - high) / (double)s.len;
    bool likely = (other > 0.3 && low < 0.05) || (other > 0.8 && low > 0.8);
    if (is_sure_utf8(start.len >= BINARY_LOOK_BYTES ? whole_characters(s) : s) || text_is_utf16(s))
        return false;
    return likely || has_tell;
}

bool binary_name(struct str path)
{
    return str_ends(path, STR(".pyc"));
}

bool binary_file(const struct edit_space *space, struct str path)
{
    own_done(buf) b;
    own_fd fd = -1;
    struct stat st;

    buf_init(&b, BINARY_LOOK_BYTES);
    if (binary_name(path))
        return true;
    struct err *e = space_open(space, path, O_RDONLY, &fd);
    if (!e && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        e = fd_read_all(fd, &b); /* more than the limit is fine, the start is there */
    err_free(e);
    return binary_bytes(buf_str(&b));
}
