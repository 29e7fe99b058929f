// SPDX-License-Identifier: Apache-2.0
/* shell_keys.c — keys by name. */
#include "guest/shell/shell_keys.h"

#include <termios.h>

#include "base/own.h"

static const struct {
    struct str name, bytes;
} keys[] = {
    {STR_INIT("UP"), STR_INIT("\033[A")},    {STR_INIT("DOWN"), STR_INIT("\033[B")},
    {STR_INIT("RIGHT"), STR_INIT("\033[C")}, {STR_INIT("LEFT"), STR_INIT("\033[D")},
    {STR_INIT("HOME"), STR_INIT("\033[H")},  {STR_INIT("END"), STR_INIT("\033[F")},
    {STR_INIT("PGUP"), STR_INIT("\033[5~")}, {STR_INIT("PGDN"), STR_INIT("\033[6~")},
    {STR_INIT("TAB"), STR_INIT("\t")},       {STR_INIT("ESC"), STR_INIT("\033")},
    {STR_INIT("BS"), STR_INIT("\177")},      {STR_INIT("ENTER"), STR_INIT("\r")},
};

char shell_keys_control(struct str text)
{
    if (text.len != 3 || text.p[0] != 'C' || text.p[1] != '-' || text.p[2] <= ' ' ||
        text.p[2] >= 127)
        return 0;
    char c = text.p[2];
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool shell_keys_one(struct buf *b, struct str key)
{
    char control = shell_keys_control(key);

    if (control) {
        bool has = control >= '@' && control != '`' && control < '{';
        buf_add_char(b, control == '?' ? '\177' : has ? (char)(control & 0x1f) : control);
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (str_eq(key, keys[i].name)) {
            buf_add(b, keys[i].bytes);
            return true;
        }
    }
    return false;
}

void shell_keys_bytes(struct buf *b, struct str text, bool named, int tty)
{
    struct termios t;

    if ((named || shell_keys_control(text)) && shell_keys_one(b, text))
        return;
    buf_add(b, text);
    /* Enter is CR; a line-wise terminal that does not translate it would wait for ever. */
    bool lf = tty >= 0 && tcgetattr(tty, &t) == 0 && (t.c_lflag & ICANON) && !(t.c_iflag & ICRNL);
    buf_add_char(b, lf ? '\n' : '\r');
}
