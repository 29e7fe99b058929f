// SPDX-License-Identifier: Apache-2.0
/* log.c — one write(2) per event from a buffer on the stack. Logging never allocates and never
 * fails; a line that is too long is cut and says so. */
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"

static struct {
    int fd;
    enum log_level level;
    bool json, colour;
} sink = {STDERR_FILENO, LOG_INFO, false, false};

static const struct {
    const char *word, *colour;
} levels[] = {
    [LOG_DEBUG] = {"debug", "\033[2m"},
    [LOG_INFO] = {"info", "\033[32m"},
    [LOG_WARN] = {"warn", "\033[33m"},
    [LOG_ERROR] = {"error", "\033[31m"},
    [LOG_OFF] = {"off", ""},
};

struct line {
    char text[4096];
    size_t len;
};

#define LINE_TAIL 32 /* kept free for the end of a cut line */
/* From here on there is no room for another \u009b. */
#define LINE_FULL (sizeof((struct line *)0)->text - LINE_TAIL - 6)

static void log_put(struct line *l, struct str s)
{
    size_t room = sizeof l->text - LINE_TAIL - l->len, n = s.len < room ? s.len : room;

    if (n)
        memcpy(l->text + l->len, s.p, n);
    l->len += n;
}

static void put_cstr(struct line *l, const char *s)
{
    log_put(l, str_of(s));
}

/* C0, DEL, C1 (U+009B starts a sequence as ESC [ does), and bytes that are not UTF-8. */
static bool must_escape(uint32_t cp, size_t len)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || (cp == 0xfffd && len == 1);
}

/* Control characters never reach a terminal, broken bytes never break a JSON line. */
static void put_escaped(struct line *l, struct str s)
{
    while (s.len && l->len < LINE_FULL) {
        uint32_t cp;
        size_t n = utf8_decode(s, &cp);
        char esc[16];
        if (cp == '"' || cp == '\\') {
            put_cstr(l, cp == '"' ? "\\\"" : "\\\\");
        } else if (cp == '\n') {
            put_cstr(l, "\\n");
        } else if (must_escape(cp, n)) {
            snprintf(esc, sizeof esc, "\\u%04x", cp);
            put_cstr(l, esc);
        } else {
            log_put(l, str_first(s, n));
        }
        s = str_from(s, n);
    }
}

static void put_quoted(struct line *l, struct str s)
{
    put_cstr(l, "\"");
    put_escaped(l, s);
    put_cstr(l, "\"");
}

static bool is_plain(struct str s)
{
    bool some = s.len > 0;

    while (s.len) {
        uint32_t cp;
        size_t n = utf8_decode(s, &cp);
        if (cp == ' ' || cp == '"' || cp == '=' || must_escape(cp, n))
            return false;
        s = str_from(s, n);
    }
    return some;
}

static void put_text(struct line *l, struct str s)
{
    if (!sink.json && is_plain(s))
        log_put(l, s);
    else
        put_quoted(l, s);
}

static void put_value(struct line *l, const struct log_kv *kv)
{
    char number[40] = "";

    switch (kv->kind) {
    case LOG_KV_STR:
        put_text(l, kv->s);
        return;
    case LOG_KV_SECRET:
        put_text(l, STR("***"));
        return;
    case LOG_KV_ERR:
        put_text(l, kv->e ? str_of(err_text(kv->e)) : STR("none"));
        return;
    case LOG_KV_BOOL:
        put_cstr(l, kv->b ? "true" : "false");
        return;
    case LOG_KV_INT:
        snprintf(number, sizeof number, "%lld", (long long)kv->i);
        break;
    case LOG_KV_UINT:
        snprintf(number, sizeof number, "%llu", (unsigned long long)kv->u);
        break;
    case LOG_KV_DOUBLE:
        number[json_format_double(kv->d, number)] = '\0';
        if (sink.json && (kv->d - kv->d) != 0)
            snprintf(number, sizeof number, "null");
        break;
    case LOG_KV_END:
        break;
    }
    put_cstr(l, number);
}

static void put_head(struct line *l, enum log_level level, const char *msg)
{
    char when[CLOCK_ISO_MAX];
    size_t n = clock_format_iso(clock_wall_ns(&clock_system), true, when);

    if (sink.json) {
        put_cstr(l, "{\"time\":");
        put_quoted(l, str_n(when, n));
        put_cstr(l, ",\"level\":");
        put_quoted(l, str_of(levels[level].word));
        put_cstr(l, ",\"msg\":");
        put_quoted(l, str_of(msg));
        return;
    }
    log_put(l, str_n(when + 11, 8)); /* a person reads the hour, not the year */
    put_cstr(l, " ");
    put_cstr(l, sink.colour ? levels[level].colour : "");
    put_cstr(l, levels[level].word);
    put_cstr(l, sink.colour ? "\033[0m " : " ");
    put_escaped(l, str_of(msg));
}

bool log_enabled(enum log_level level)
{
    return level >= sink.level;
}

bool log_is_text(void)
{
    return !sink.json;
}

void log_event(enum log_level level, const char *msg, const struct log_kv *kv)
{
    struct line l;

    l.len = 0;
    put_head(&l, level, msg);
    bool cut = l.len >= LINE_FULL;
    for (; kv->kind != LOG_KV_END; kv++) {
        size_t before = l.len;
        put_cstr(&l, sink.json ? ",\"" : " ");
        put_escaped(&l, str_of(kv->key));
        put_cstr(&l, sink.json ? "\":" : "=");
        put_value(&l, kv);
        if (l.len >= LINE_FULL) {
            l.len = before; /* a field is whole or absent */
            cut = true;
        }
    }
    const char *tail =
        sink.json ? (cut ? ",\"cut\":true}\n" : "}\n") : (cut ? " cut=true\n" : "\n");
    size_t n = strlen(tail);
    memcpy(l.text + l.len, tail, n);
    ssize_t ignored = write(sink.fd, l.text, l.len + n);
    (void)ignored; /* there is nowhere left to say it */
}

void log_setup(int fd, enum log_level level, enum log_format format)
{
    sink.fd = fd;
    sink.level = level;
    bool terminal = isatty(fd);
    const char *no_colour = getenv("NO_COLOR");
    sink.json = format == LOG_JSON || (format == LOG_AUTO && !terminal);
    sink.colour = terminal && !(no_colour && no_colour[0]);
}

bool log_level_parse(struct str word, enum log_level *ret_level)
{
    for (unsigned i = 0; i < ARRAY_LEN(levels); i++)
        if (str_eq_nocase(word, str_of(levels[i].word))) {
            *ret_level = (enum log_level)i;
            return true;
        }
    if (!str_eq_nocase(word, STR("warning")))
        return false;
    *ret_level = LOG_WARN;
    return true;
}
