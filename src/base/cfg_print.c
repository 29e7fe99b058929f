// SPDX-License-Identifier: Apache-2.0
/* cfg_print.c — what rows say to people: --help, the man page, and every value with its source. */
#include <stdio.h>

#include "base/cfg_family.h"
#include "base/cfg_row.h"
#include "base/wrap.h"

#define LEFT_MAX 26

/* -l, --listen TEXT */
static bool put_left(const struct cfg_row *row, char *out, size_t size)
{
    static const char *const words[] = {
        [CFG_TYPE_BOOL] = "",        [CFG_TYPE_INT] = " N",    [CFG_TYPE_UINT] = " N",
        [CFG_TYPE_DOUBLE] = " N",    [CFG_TYPE_STR] = " TEXT", [CFG_TYPE_SECRET] = " SECRET",
        [CFG_TYPE_SIZE] = " SIZE",   [CFG_TYPE_MS] = " TIME",  [CFG_TYPE_LIST] = " A,B",
        [CFG_TYPE_DICT] = " {K: V}",
    };
    char flag[CFG_NAME_MAX];

    if (!cfg_row_flag(row, flag))
        return false;
    bool on = row->type == CFG_TYPE_BOOL && row->otherwise && strcmp(row->otherwise, "true") == 0;
    const char letter[] = {'-', row->letter, ',', ' ', '\0'};
    own_done(buf) text;
    buf_init(&text, CHOICES_BYTES);
    const char *choices = cfg_row_choices(row, &text);
    snprintf(out, size, "%s--%s%s%s%s", row->letter ? letter : "", on ? "no-" : "", flag,
             choices ? " " : "", choices ? choices : words[row->type]);
    return true;
}

static void put_help_text(const struct cfg_row *row, int indent, struct buf *out)
{
    own_done(buf) text;

    buf_init(&text, 1u << 16);
    buf_add_cstr(&text, row->help);
    if (row->otherwise && row->otherwise[0] && row->type != CFG_TYPE_BOOL)
        buf_addf(&text, " [%s]", row->otherwise);
    wrap_put_words(out, buf_str(&text), (size_t)indent, (size_t)indent);
    buf_add_char(out, '\n');
}

void cfg_put_help(const struct cfg_table *t, struct buf *out)
{
    char left[256];
    int width = 0;

    for (size_t i = 0; i < t->count; i++) {
        int n = put_left(&t->rows[i], left, sizeof left) ? (int)strlen(left) : 0;
        if (n > width && n <= LEFT_MAX)
            width = n;
    }
    for (size_t i = 0; i < t->count; i++) {
        const struct cfg_row *row = &t->rows[i];
        if (!put_left(row, left, sizeof left))
            continue;
        if ((int)strlen(left) > width)
            buf_addf(out, "  %s\n  %*s  ", left, width, "");
        else
            buf_addf(out, "  %-*s  ", width, left);
        put_help_text(row, width + 4, out);
    }
}

/* troff reads a leading dot or quote as a request and a backslash as an escape. */
static void put_troff(struct buf *out, const char *s)
{
    if (*s == '.' || *s == '\'')
        buf_add_cstr(out, "\\&");
    for (; *s; s++) {
        if (*s == '\\')
            buf_add_cstr(out, "\\e");
        else if (*s == '-')
            buf_add_cstr(out, "\\-");
        else
            buf_add_char(out, *s);
    }
}

static void put_troff_font(struct buf *out, char font, const char *before, const char *s)
{
    buf_addf(out, "\\f%c%s", font, before);
    put_troff(out, s);
    buf_add_cstr(out, "\\fR");
}

static void put_man_tail(const struct cfg_row *row, bool choices, bool otherwise, struct buf *out)
{
    own_done(buf) text;

    buf_init(&text, CHOICES_BYTES);
    const char *words = cfg_row_choices(row, &text);
    put_troff(out, row->help);
    if (words && choices) {
        buf_add_cstr(out, " One of ");
        put_troff(out, words);
        buf_add_char(out, '.');
    }
    if (row->otherwise && row->otherwise[0] && otherwise) {
        buf_add_cstr(out, " Default: ");
        put_troff(out, row->otherwise);
    }
    buf_add_char(out, '\n');
}

void cfg_put_man(const struct cfg_table *t, struct buf *out)
{
    char left[256], env[CFG_NAME_MAX];

    for (size_t i = 0; i < t->count; i++) {
        const struct cfg_row *row = &t->rows[i];
        bool flag = put_left(row, left, sizeof left), option = cfg_row_is_option(row);
        buf_add_cstr(out, ".TP\n");
        put_troff_font(out, 'B', "", option ? left : row->key);
        if (!option && flag) {
            buf_add_cstr(out, ", ");
            put_troff_font(out, 'B', "", left);
        }
        if (cfg_row_env(row, env)) {
            buf_add_cstr(out, ", ");
            put_troff_font(out, 'I', "", env);
        }
        buf_add_char(out, '\n');
        put_man_tail(row, !flag, !option, out);
    }
}

void cfg_put_family_man(const struct cfg_family *f, struct buf *out)
{
    char key[CFG_NAME_MAX];

    for (size_t i = 0; i < f->count; i++) {
        snprintf(key, sizeof key, "%s.NAME.%s", f->section, f->rows[i].key);
        buf_add_cstr(out, ".TP\n");
        put_troff_font(out, 'B', "", key);
        buf_add_char(out, '\n');
        put_man_tail(&f->rows[i], true, true, out);
    }
}

/* --- values --- */

static void put_json_value(struct jw *w, const struct cfg_row *row, const union cfg_value *v)
{
    if (!cfg_value_is_set(row, v)) {
        jw_null(w, "value");
        return;
    }
    switch (row->type) {
    case CFG_TYPE_BOOL:
        jw_bool(w, "value", v->b);
        break;
    case CFG_TYPE_INT:
        jw_int(w, "value", v->i);
        break;
    case CFG_TYPE_UINT:
    case CFG_TYPE_SIZE:
        jw_uint(w, "value", v->u);
        break;
    case CFG_TYPE_MS: /* in seconds, as it is read */
        if (v->u % 1000)
            jw_double(w, "value", (double)v->u / 1000);
        else
            jw_uint(w, "value", v->u / 1000);
        break;
    case CFG_TYPE_DOUBLE:
        jw_double(w, "value", v->d);
        break;
    case CFG_TYPE_STR:
        jw_str(w, "value", v->s);
        break;
    case CFG_TYPE_SECRET:
        jw_cstr(w, "value", "***");
        break;
    case CFG_TYPE_LIST:
        jw_value(w, "value", v->j);
        break;
    case CFG_TYPE_DICT: /* variables and such: any of them may be a secret */
        JW_OBJECT(w, "value")
            for (const struct json *m = v->j->first; m; m = m->next) {
                jw_key(w, m->key);
                jw_cstr(w, NULL, "***");
            }
        break;
    }
}

static bool is_bare(struct str key)
{
    for (size_t i = 0; i < key.len; i++) {
        char c = key.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-'))
            return false;
    }
    return key.len > 0;
}

/* A list of strings reads the same in JSON and TOML; what a dict holds is not shown. */
static void put_toml_dict(struct buf *out, const struct json *v)
{
    buf_add_char(out, '{');
    for (const struct json *m = v->first; m; m = m->next) {
        struct json key = {.type = JSON_STR, .s = m->key};
        if (is_bare(m->key))
            buf_add(out, m->key);
        else
            json_write(out, &key, 0);
        buf_add_cstr(out, m->next ? " = \"***\", " : " = \"***\"");
    }
    buf_add_char(out, '}');
}

static void put_toml_value(struct buf *out, const struct cfg_row *row, const union cfg_value *v)
{
    struct json text = {.type = JSON_STR, .s = v->s};
    struct json number = {.type = JSON_DOUBLE, .d = v->d};

    switch (row->type) {
    case CFG_TYPE_BOOL:
        buf_add_cstr(out, v->b ? "true" : "false");
        break;
    case CFG_TYPE_INT:
        buf_addf(out, "%lld", (long long)v->i);
        break;
    case CFG_TYPE_UINT:
    case CFG_TYPE_SIZE:
        buf_addf(out, "%llu", (unsigned long long)v->u);
        break;
    case CFG_TYPE_MS:
        if (v->u % 1000)
            buf_addf(out, "\"%llums\"", (unsigned long long)v->u);
        else
            buf_addf(out, "%llu", (unsigned long long)v->u / 1000);
        break;
    case CFG_TYPE_DOUBLE:
        json_write(out, &number, JW_ALLOW_NAN);
        break;
    case CFG_TYPE_STR:
        json_write(out, &text, 0);
        break;
    case CFG_TYPE_SECRET:
        buf_add_cstr(out, "\"***\"");
        break;
    case CFG_TYPE_LIST:
        json_write(out, v->j, JW_SPACED);
        break;
    case CFG_TYPE_DICT:
        put_toml_dict(out, v->j);
        break;
    }
}

static void put_line(struct buf *out, const struct cfg_row *row, const union cfg_value *v,
                     const char *source)
{
    if (!cfg_value_is_set(row, v)) {
        buf_addf(out, "# %s is not set\n", row->key);
        return;
    }
    buf_addf(out, "%s = ", row->key);
    put_toml_value(out, row, v);
    buf_addf(out, "  # %s\n", source);
}

void cfg_put_values(const struct cfg *c, struct buf *out, bool json)
{
    struct jw w;
    union cfg_value v;
    size_t n = 0;

    jw_init(&w, out, JW_SPACED);
    if (json)
        jw_begin_object(&w, NULL);
    for (size_t t = 0; t < c->table_count; t++) {
        for (size_t i = 0; i < c->tables[t].count; i++, n++) {
            const struct cfg_row *row = &c->tables[t].rows[i];
            if (cfg_row_is_option(row))
                continue;
            cfg_value_load(row, c->tables[t].into, &v);
            if (!json) {
                put_line(out, row, &v, c->sources[n]);
                continue;
            }
            JW_OBJECT(&w, row->key) {
                put_json_value(&w, row, &v);
                jw_cstr(&w, "source", c->sources[n]);
            }
        }
    }
    if (json)
        jw_end_object(&w);
}
