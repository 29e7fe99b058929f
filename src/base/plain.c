// SPDX-License-Identifier: Apache-2.0
/* plain.c — see plain.h. */
#include "base/plain.h"

#include "base/utf8.h"

static bool is_plain(struct str name)
{
    if (!utf8_valid(name) || !name.len || name.p[0] == '"' || name.p[0] == ' ' ||
        name.p[name.len - 1] == ' ' || str_find(name, STR(" -> ")) >= 0)
        return false; /* an arrow is ours */
    while (name.len) {
        uint32_t cp;
        name = str_from(name, utf8_decode(name, &cp));
        if (utf8_is_trap(cp) || cp == '\\')
            return false;
    }
    return true;
}

void plain_put_name(struct buf *out, struct str name)
{
    if (is_plain(name)) {
        buf_add(out, name);
        return;
    }
    buf_add_char(out, '"');
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c == '\n')
            buf_add_cstr(out, "\\n");
        else if (c == '"' || c == '\\')
            buf_addf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            buf_addf(out, "\\%03o", c);
        else
            buf_add_char(out, (char)c);
    }
    buf_add_char(out, '"');
}

void plain_put_cell(struct buf *out, struct str text, size_t width)
{
    size_t before = out->len;

    if (text.len)
        plain_put_name(out, text);
    if (buf_failed(out))
        return;
    for (size_t n = utf8_count(str_from(buf_str(out), before)); n < width; n++)
        buf_add_char(out, ' ');
}

void plain_put_lines(struct buf *out, struct str text)
{
    for (size_t n = 0; text.len; n = 0) {
        while (n < text.len && text.p[n] != '\n' && text.p[n] != '\t')
            n++;
        utf8_add_shown(out, str_first(text, n));
        if (n < text.len)
            buf_add_char(out, text.p[n++]);
        text = str_from(text, n);
    }
}
