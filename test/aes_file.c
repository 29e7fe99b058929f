// SPDX-License-Identifier: Apache-2.0
/* aes_file.c — see aes_file.h. */
#include "test/aes_file.h"

#include <stdio.h>
#include <stdlib.h>

static bool is(const struct file_step *s, const char *word)
{
    return strcmp(s->does, word) == 0;
}

static bool is_edit(const struct file_step *s)
{
    return !is(s, "read") && !is(s, "write") && !is(s, "view");
}

static void put_args(struct jw *w, const struct file_step *s, const char *path)
{
    jw_cstr(w, "path", path);
    if (is(s, "write"))
        jw_cstr(w, "content", s->text);
    if (is(s, "view"))
        jw_cstr(w, "impl_source", "oh_aci");
    if (s->range)
        jw_raw(w, "view_range", str_of(s->range));
    if (s->window) {
        char *end;
        jw_int(w, "start", strtol(s->window, &end, 10));
        jw_int(w, "end", strtol(end + 1, NULL, 10));
    }
    if (!is_edit(s))
        return;
    jw_cstr(w, "command", s->does);
    jw_cstr(w, "file_text", s->text);
    jw_cstr(w, "old_str", s->old_str);
    jw_cstr(w, "new_str", s->new_str);
    if (s->line)
        jw_raw(w, "insert_line", str_of(s->line));
    jw_cstr(w, "impl_source", "oh_aci");
}

static void put_request(struct buf *out, const struct file_step *s, const char *path)
{
    struct jw w;

    jw_init(&w, out, JW_WEB);
    JW_OBJECT(&w, NULL) {
        JW_OBJECT(&w, "action") {
            jw_cstr(&w, "action", is_edit(s) ? "edit" : is(s, "write") ? "write" : "read");
            JW_OBJECT(&w, "args")
                put_args(&w, s, path);
        }
    }
}

static void put_extras(struct jw *w, const struct file_step *s, const char *path, const char *diff)
{
    jw_cstr(w, "path", path);
    if (!is_edit(s) && !is(s, "write"))
        jw_cstr(w, "impl_source", is(s, "view") ? "oh_aci" : "default");
    if (!is_edit(s))
        return;
    jw_bool(w, "prev_exist", false);
    jw_cstr(w, "old_content", s->old_str);
    jw_cstr(w, "new_content", s->new_str);
    jw_cstr(w, "impl_source", "oh_aci");
    jw_cstr(w, "diff", diff);
    jw_null(w, "_diff_cache");
}

static void put_want(struct buf *out, struct aes *a, const struct file_step *s, const char *path,
                     struct str content)
{
    const char *verb = is_edit(s) ? "edited" : is(s, "write") ? "wrote to" : "read";
    struct jw w;

    jw_init(&w, out, JW_WEB);
    JW_OBJECT(&w, NULL) {
        if (s->error) {
            jw_str(&w, "message", content);
            jw_cstr(&w, "observation", "error");
            jw_str(&w, "content", content);
            JW_OBJECT(&w, "extras")
                jw_cstr(&w, "error_id", "");
        } else {
            jw_cstr(&w, "message", aes_text(a, "I %s the file %s.", verb, path));
            jw_cstr(&w, "observation", is_edit(s) ? "edit" : is(s, "write") ? "write" : "read");
            jw_str(&w, "content", content);
            JW_OBJECT(&w, "extras")
                put_extras(&w, s, path, aes_fill(a, s->diff ? s->diff : "", "{}", path));
        }
    }
}

static struct str read_answer(struct aes *a, const struct file_step *s, const char *path)
{
    own_done(buf) body;

    buf_init(&body, 64u << 20);
    put_request(&body, s, path);
    struct aes_answer got =
        aes_ask(a, "POST", "/execute_action", "Content-Type: application/json\r\n", buf_str(&body));
    if (got.status != 200)
        FAIL("%s: %s %s: %d " STR_FMT, s->row, s->does, path, got.status, STR_ARG(got.body));
    return got.body;
}

struct str aes_file(struct aes *a, const struct file_step *s)
{
    const char *path = s->path ? s->path : aes_path(a, s->name);
    own_done(buf) whole;

    buf_init(&whole, 64u << 20);
    if (s->put)
        aes_put(a, s->name, str_of(s->put));
    struct str got = read_answer(a, s, path);
    struct str content = json_get_str(aes_json(a, got), "content", STR("(none)"));
    const char *want = aes_fill(a, s->want ? s->want : "", "{}", path);
    bool part = want[0] == '~';
    if (part ? str_find(content, str_of(want + 1)) < 0 : !str_eq(content, str_of(want)))
        FAIL("%s: %s: want %s\n  got  " STR_FMT, s->row, s->does, want, STR_ARG(content));
    put_want(&whole, a, s, s->seen ? aes_fill(a, s->seen, "{}", a->dir) : path, content);
    if (!str_eq(got, buf_str(&whole)))
        FAIL("%s: %s: another observation\n  got  " STR_FMT "\n  want " STR_FMT, s->row, s->does,
             STR_ARG(got), STR_ARG(buf_str(&whole)));
    if (s->after && !str_eq(aes_get(a, s->name), str_of(s->after)))
        FAIL("%s: %s left \"" STR_FMT "\"", s->row, s->does, STR_ARG(aes_get(a, s->name)));
    return content;
}

void aes_file_rows(struct aes *a, const struct file_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        aes_file(a, &steps[i]);
}
