// SPDX-License-Identifier: Apache-2.0
/* shell_text.c — results in words. Pure: no shell, no clock. */
#include "guest/shell/shell_text.h"

#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

static struct str strip_left(struct str s)
{
    uint32_t c;

    while (s.len) {
        size_t n = utf8_decode(s, &c);
        if (!is_space(c))
            break;
        s = str_from(s, n);
    }
    return s;
}

static struct str strip_right(struct str s)
{
    while (s.len) {
        size_t n = 1;
        uint32_t c;
        while (n < 4 && n < s.len && ((unsigned char)s.p[s.len - n] & 0xc0) == 0x80)
            n++;
        if (utf8_decode(str_from(s, s.len - n), &c) != n || !is_space(c))
            break;
        s.len -= n;
    }
    return s;
}

struct str shell_text_strip(struct str s)
{
    return strip_right(strip_left(s));
}

struct str shell_text_since(struct str before, struct str now, size_t dropped)
{
    struct str line;

    while (dropped-- > 0 && before.len)
        str_cut(&before, '\n', &line);
    if (str_starts(now, before))
        return str_from(now, before.len);
    size_t same = 0, max = before.len < now.len ? before.len : now.len;
    while (same < max && before.p[same] == now.p[same])
        same++;
    while (same > 0 && now.p[same - 1] != '\n')
        same--;
    return str_from(now, same);
}

void shell_text_truncate(struct buf *b, struct str text, size_t limit_chars)
{
    size_t chars = limit_chars && text.len > limit_chars ? utf8_count(text) : 0;

    if (chars <= limit_chars) {
        buf_add(b, text);
        return;
    }
    size_t half = limit_chars / 2;
    buf_add(b, str_first(text, utf8_offset(text, half)));
    buf_add(b, STR("\n[... Observation truncated due to length ...]\n"));
    buf_add(b, str_from(text, utf8_offset(text, chars - half)));
}

static void add_parts(struct buf *b, const struct shell_result *r)
{
    buf_add_cstr(b, "ERROR: Cannot execute multiple commands at once.\n"
                    "Please run each command separately OR chain them into a single command via && "
                    "or ;\nProvided commands:\n");
    for (size_t i = 0; i < r->parts_count; i++) {
        buf_addf(b, "%s(%zu) ", i ? "\n" : "", i + 1);
        buf_add(b, r->parts[i]);
    }
}

static struct str text_trimmed(const struct shell_result *r)
{
    struct str text = strip_left(r->text);

    if (r->is_input && r->command.len && str_starts(text, r->command) && !r->key)
        text = strip_left(str_from(text, r->command.len)); /* the echo of the input */
    return strip_right(text);
}

void shell_text_content(struct buf *b, const struct shell_result *r, size_t limit_chars)
{
    struct buf whole;

    switch (r->status) {
    case SHELL_SEVERAL:
        add_parts(b, r);
        return;
    case SHELL_FAILED:
        buf_add_cstr(b, r->error ? err_text(r->error) : "the shell failed");
        return;
    case SHELL_NOTHING_RUNS:
        buf_add_cstr(b, r->command.len
                            ? "ERROR: No previous running command to interact with."
                            : "ERROR: No previous running command to retrieve logs from.");
        return;
    default:
        break;
    }
    struct str text = text_trimmed(r), previous = shell_text_strip(r->previous);
    if (previous.len == 0) {
        shell_text_truncate(b, text, limit_chars);
        return;
    }
    buf_init(&whole, b->limit_bytes);
    buf_add(&whole, previous);
    if (text.len)
        buf_add_char(&whole, '\n');
    buf_add(&whole, text);
    shell_text_truncate(b, buf_str(&whole), limit_chars);
    b->no_memory |= whole.no_memory;
    buf_done(&whole);
}

static size_t count_lines(struct str text)
{
    size_t lines = 0;
    struct str line;

    while (str_cut(&text, '\n', &line))
        lines++;
    return lines + (line.len > 0);
}

void shell_text_prefix(struct buf *b, const struct shell_result *r)
{
    bool runs = r->status == SHELL_NO_CHANGE || r->status == SHELL_HARD_TIMEOUT ||
                r->status == SHELL_NOT_EXECUTED;

    if ((runs && r->continued) || shell_text_strip(r->previous).len)
        buf_add_cstr(b, "[Below is the output of the previous command.]\n");
    else if (r->status == SHELL_COMPLETED && r->dropped_lines)
        buf_addf(
            b,
            "[Previous command outputs are truncated. Showing the last %zu lines of the output "
            "below.]\n",
            count_lines(shell_text_strip(r->text)));
}

static void add_hint(struct buf *b)
{
    buf_add_cstr(
        b, "You may wait longer to see additional output by sending empty command '', send other "
           "commands to interact with the current process, send keys (\"C-c\", \"C-z\", \"C-d\") "
           "to interrupt/kill the previous command before sending your new command, or use the "
           "timeout parameter in execute_bash for future commands.]");
}

static void add_completed(struct buf *b, const struct shell_result *r)
{
    buf_addf(b, "\n[The command completed with exit code %d.", r->meta.exit_code);
    if (r->key)
        buf_addf(b, " CTRL+%c was sent.",
                 r->key >= 'a' && r->key <= 'z' ? r->key - 'a' + 'A' : r->key);
    buf_add_char(b, ']');
}

void shell_text_suffix(struct buf *b, const struct shell_result *r)
{
    char seconds[JSON_DOUBLE_MAX];

    switch (r->status) {
    case SHELL_COMPLETED:
        add_completed(b, r);
        break;
    case SHELL_NO_CHANGE:
        buf_addf(b, "\n[The command has no new output after %llu seconds. ",
                 (unsigned long long)r->timeout_s);
        add_hint(b);
        break;
    case SHELL_HARD_TIMEOUT:
        buf_addf(b, "\n[The command timed out after %.*s seconds. ",
                 (int)json_format_double(r->timeout_s, seconds), seconds);
        add_hint(b);
        break;
    case SHELL_NOT_EXECUTED:
        buf_add_cstr(b, "\n[Your command \"");
        buf_add(b, r->command);
        buf_add_cstr(b,
                     "\" is NOT executed. The previous command is still running - You CANNOT send "
                     "new commands until the previous command is completed. By setting `is_input` "
                     "to `true`, you can interact with the current process: ");
        add_hint(b);
        break;
    default:
        return;
    }
    if (r->happened & SHELL_RESPAWNED)
        buf_add_cstr(b,
                     "\n[The shell ended and was started again in the same directory with the same "
                     "exported variables; functions, aliases and other variables are lost.]");
    if (r->happened & SHELL_OOM)
        buf_add_cstr(b, "\n[The sandbox ran out of memory and a process was killed.]");
}
