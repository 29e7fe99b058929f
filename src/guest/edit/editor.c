// SPDX-License-Identifier: Apache-2.0
/* editor.c — what may be done to which path, in the order the original checks it; create, undo. */
#include "guest/edit/editor.h"

#include <errno.h>

#include "guest/edit/binary.h"
#include "guest/edit/diff.h"
#include "guest/edit/editor_inner.h"
#include "guest/edit/history.h"
#include "guest/edit/pytext.h"
#include "guest/edit/space.h"

#define NEW_FILE_MODE 0644

void job_fail_os(struct job *j, const struct err *e, const char *doing)
{
    own_done(buf) why;

    buf_init(&why, SIZE_MAX / 2);
    if (space_is_outside(e)) {
        job_fail(j,
                 "You're not allowed to access this path: {}. You can only access paths inside "
                 "the workspace.",
                 j->path);
        return;
    }
    py_add_oserror(&why, e, j->path);
    job_fail(j, "Ran into {} while trying to {} {}", buf_str(&why), str_of(doing), j->path);
}

struct str job_number(struct job *j, long long n)
{
    return arena_printf(j->a, "%lld", n);
}

struct str job_repr(struct job *j, const struct json *v)
{
    own_done(buf) b;

    buf_init(&b, SIZE_MAX / 2);
    py_add_repr_json(&b, v);
    if (buf_failed(&b))
        j->a->failed = true;
    return arena_copy(j->a, buf_str(&b));
}

static void fail_too_large(struct job *j, size_t size)
{
    struct str mb = arena_printf(j->a, "%.1f", (double)size / 1024 / 1024);

    job_fail(j,
             "File validation failed for {}: File is too large ({}MB). Maximum allowed size is "
             "10MB.",
             j->path, mb);
}

bool job_validate(struct job *j)
{
    if (!S_ISREG(j->st.st_mode))
        return true; /* loading it says what is wrong */
    if (j->st.st_size > EDITOR_MAX_FILE_BYTES) {
        fail_too_large(j, (size_t)j->st.st_size);
        return false;
    }
    if (!answer_is_document(j->path) && binary_file(&j->ed->space, j->path)) {
        job_fail(j,
                 "File validation failed for {}: File appears to be binary and this file type "
                 "cannot be read or edited by this tool.",
                 j->path);
        return false;
    }
    return true;
}

bool job_load(struct job *j)
{
    own_done(buf) raw;

    buf_init(&raw, EDITOR_MAX_FILE_BYTES);
    own(err) e = space_load(&j->ed->space, j->path, &raw, &j->st);
    if (e && err_code(e) == ERR_TOO_LARGE) {
        fail_too_large(j, EDITOR_MAX_FILE_BYTES + 1); /* grew since it was validated */
        return false;
    }
    if (e) {
        job_fail_os(j, e, "read");
        return false;
    }
    text_decode(j->a, arena_copy(j->a, buf_str(&raw)), &j->old);
    return !j->a->failed;
}

bool job_diff(struct job *j, struct str old_text, struct str new_text)
{
    own(err) e = diff_unified(j->a, old_text, new_text, j->args->path, &j->r->diff);

    if (e)
        j->a->failed = true;
    return !e;
}

/* Without an undo the next undo_edit would go back too far and say otherwise: so no edit either. */
static bool save_raw(struct job *j, struct str raw, const struct str *keep, bool is_new)
{
    struct space_save save = {.path = j->path,
                              .data = raw,
                              .old = is_new ? NULL : &j->st,
                              .old_data = j->old.raw,
                              .mode = NEW_FILE_MODE};
    struct editor_undo *u = j->ed->undo;

    if (keep && u->fd < 0)
        u->open(u);
    own(err) e = !keep       ? NULL
                 : u->fd < 0 ? err_sys("make a directory for undo")
                             : history_push(u->fd, j->path, *keep);
    if (!e) {
        e = space_save(&j->ed->space, &save, NULL);
        if (e && keep)
            err_free(history_drop(u->fd, j->path)); /* an undo too many does nothing */
    }
    if (!e)
        return true;
    j->r->diff = STR("");
    j->r->lint_at = 0;
    job_fail_os(j, e, "write to");
    return false;
}

bool job_save(struct job *j, struct str text, const struct str *keep, bool is_new)
{
    enum text_encoding encoding = is_new ? TEXT_UTF8 : j->old.encoding;
    struct str raw, why;

    if (j->a->failed)
        return false;
    if (!text_encode(j->a, text, encoding, &raw, &why)) {
        j->r->diff = STR("");
        j->r->lint_at = 0;
        job_fail(j, "Ran into {} while trying to write to {}", why, j->path);
        return false;
    }
    if (!is_new && raw.len > EDITOR_MAX_FILE_BYTES) {
        j->r->diff = STR("");
        j->r->lint_at = 0;
        fail_too_large(j, raw.len);
        return false;
    }
    return !j->a->failed && save_raw(j, raw, keep, is_new);
}

static void editor_create(struct job *j)
{
    struct str text = j->args->file_text;

    if (!text.p) {
        job_fail(j, "Parameter `file_text` is required for command: create.");
        return;
    }
    answer(j->a, j->r, EDIT_OK, "File created successfully at: {}", j->path);
    if (job_diff(j, STR(""), text_universal(j->a, text)))
        job_save(j, text, &text, true); /* the undo that follows does nothing, as in the original */
}

static void editor_undo_last(struct job *j)
{
    own_done(buf) raw;
    own_done(buf) b;
    struct text back;
    bool found = false;

    buf_init(&raw, SIZE_MAX / 2);
    buf_init(&b, SIZE_MAX / 2);
    if (!job_validate(j) || !job_load(j))
        return;
    int history = j->ed->undo->fd;
    own(err) e = history < 0 ? NULL : history_last(history, j->path, &raw, &found);
    if (e) {
        job_fail_os(j, e, "read");
        return;
    }
    if (!found) {
        job_fail(j, "No edit history found for {}.", j->path);
        return;
    }
    text_decode(j->a, arena_copy(j->a, buf_str(&raw)), &back);
    answer_add(&b, "Last edit to {} undone successfully. ", j->path);
    view_add(&b, back.view, j->path, 1);
    answer_buf(j->a, j->r, EDIT_OK, &b);
    if (j->a->failed || !job_diff(j, j->old.view, back.view) || !save_raw(j, back.raw, NULL, false))
        return;
    err_free(history_drop(history, j->path)); /* then the next undo does it again */
}

static void fail_relative(struct job *j)
{
    struct stat st;
    struct str hint = STR("");

    if (j->ed->workdir.len) {
        struct str whole = space_join(j->a, j->ed->workdir, j->path);
        struct err *e = j->a->failed ? NULL : space_stat(&j->ed->space, whole, &st);
        if (!e && !j->a->failed)
            hint = arena_printf(j->a, " Maybe you meant " STR_FMT "?", STR_ARG(whole));
        err_free(e);
    }
    job_fail(j,
             "Invalid `path` parameter: {}. The path should be an absolute path, starting with "
             "`/`.{}",
             j->path, hint);
}

/* Path.exists(): what cannot be looked at for want of permission is an error, not absent. */
static bool editor_look(struct job *j, bool *ret_exists)
{
    own(err) e = space_stat(&j->ed->space, j->path, &j->st);
    int errnum = e ? err_errno(e) : 0;

    *ret_exists = !e;
    if (e && err_code(e) == ERR_NO_MEMORY) {
        j->a->failed = true;
        return false;
    }
    if (!e || errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP || errnum == 0)
        return true;
    job_fail_os(j, e, "read");
    return false;
}

static bool validate_path(struct job *j)
{
    bool exists, is_create = str_eq(j->args->command, STR("create"));
    bool is_view = str_eq(j->args->command, STR("view"));

    if (!str_starts(j->path, STR("/"))) {
        fail_relative(j);
        return false;
    }
    if (!editor_look(j, &exists))
        return false;
    if (is_create && exists)
        job_fail(j,
                 "Invalid `path` parameter: {}. File already exists at: {}. Cannot overwrite files "
                 "using command `create`.",
                 j->path, j->path);
    else if (!is_create && !exists)
        job_fail(j,
                 "Invalid `path` parameter: {}. The path {} does not exist. Please provide a valid "
                 "path.",
                 j->path, j->path);
    else if (!is_view && exists && S_ISDIR(j->st.st_mode))
        job_fail(j,
                 "Invalid `path` parameter: {}. The path {} is a directory and only the `view` "
                 "command can be used on directories.",
                 j->path, j->path);
    else if (!is_view && answer_is_document(j->path))
        job_fail(j,
                 "Invalid `path` parameter: {}. The path {} points to a binary file ({}) and only "
                 "the `view` command can be used on supported binary files.",
                 j->path, j->path, space_suffix(j->path));
    else
        return true;
    return false;
}

static const struct {
    const char *name;
    void (*run)(struct job *j);
} commands[] = {
    {"view", view_run},        {"create", editor_create},       {"str_replace", change_replace},
    {"insert", change_insert}, {"undo_edit", editor_undo_last},
};

static void editor_dispatch(struct job *j)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (str_eq(j->args->command, str_of(commands[i].name))) {
            commands[i].run(j);
            return;
        }
    job_fail(j,
             "Unrecognized command {}. The allowed commands for the oh_editor tool are: view, "
             "create, str_replace, insert, undo_edit",
             j->args->command);
}

fallible editor_run(const struct editor *ed, const struct editor_args *args, struct arena *a,
                    struct edit_result *ret_result)
{
    struct edit_result r = {.path = args->path, .diff = STR(""), .content = STR("")};
    struct job j = {.ed = ed, .args = args, .a = a, .r = &r, .path = space_normal(a, args->path)};
    const struct json *line = args->insert_line;
    int64_t number;

    TRY(arena_check(a));
    if (line && line->type == JSON_STR && !str_to_i64(py_strip(line->s), &number))
        job_fail(&j, "Invalid insert_line value: '{}'. Expected an integer.", line->s);
    else if (validate_path(&j))
        editor_dispatch(&j);
    TRY(arena_check(a));
    *ret_result = r;
    return NULL;
}
