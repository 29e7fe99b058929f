// SPDX-License-Identifier: Apache-2.0
#include "test/edit_kit.h"

#define OLD "one\r\ntwo\r\nthree"

static const struct {
    const char *command, *after;
} rows[] = {
    {"str_replace", "one\r\nTWO\r\nthree"},
    {"insert", "one\r\nTWO\r\ntwo\r\nthree"},
    {"undo_edit", "zero\n"},
    {"create", "text\n"},
    {"view", OLD},
    {"read", OLD},
    {"write", "TWO\n"},
};

static struct err *run(struct kit *k, const char *command, const char *name)
{
    struct json line = {.type = JSON_INT, .i = 1};
    struct editor_args args = {.command = str_of(command),
                               .path = kit_path(k, name),
                               .file_text = STR("text\n"),
                               .old_str = STR("two"),
                               .new_str = STR("TWO"),
                               .insert_line = &line};
    struct file_read_args in = {.path = str_of(name), .end = -1};
    struct file_write_args to = {.path = str_of(name), .content = STR("TWO"), .end = -1};

    if (strcmp(command, "read") == 0)
        return file_read(&k->ed.space, &in, &k->a, &k->r);
    if (strcmp(command, "write") == 0)
        return file_write(&k->ed.space, &to, &k->a, &k->r);
    if (strcmp(command, "undo_edit") == 0 || strcmp(command, "view") == 0)
        args.insert_line = NULL;
    return editor_run(&k->ed, &args, &k->a, &k->r);
}

static void prepare(struct kit *k, const char *command)
{
    unlink(kit_path(k, "f").p);
    if (strcmp(command, "create") == 0)
        return;
    kit_put(k, "f", STR("zero\n"));
    if (strcmp(command, "undo_edit") == 0)
        kit_replace(k, "f", "zero", "x");
    kit_put(k, "f", STR(OLD));
}

/* The n-th call fails: the file holds the old text or the new, and what is said fits. */
static bool fault_once(struct kit *k, size_t row, unsigned n, bool fenced)
{
    bool is_create = strcmp(rows[row].command, "create") == 0;

    prepare(k, rows[row].command);
    unsigned fds = test_open_fds();
    fault_at(n);
    struct err *e = run(k, rows[row].command, "f");
    bool fired = fault_fired();
    fault_at(0);
    k->a.failed = false;
    CHECK_INT(test_open_fds(), fds);
    CHECK(!kit_has_leftovers(k));
    bool exists = access(kit_path(k, "f").p, F_OK) == 0;
    CHECK(exists || is_create);
    struct str now = exists ? kit_get(k, "f") : STR("");
    bool is_new = str_eq(now, str_of(rows[row].after)) && (exists || !is_create);
    if (!is_new && !str_eq(now, is_create ? STR("") : STR(OLD)))
        FAIL("%s, call %u%s: left '" STR_FMT "'", rows[row].command, n, fenced ? ", fenced" : "",
             STR_ARG(now));
    if (!e && k->r.kind == EDIT_OK && !is_new)
        FAIL("%s, call %u: says it is done", rows[row].command, n);
    err_free(e);
    return fired;
}

TEST_LIMIT(edit_survives_every_single_failure, 120)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_open_undo(&k.undo);
    for (int fenced = 0; fenced < 2; fenced++) {
        for (size_t row = 0; row < ARRAY_LEN(rows); row++)
            for (unsigned n = 1; fault_once(&k, row, n, fenced); n++)
                CHECK(n < 500);
        if (!fenced)
            kit_fence(&k);
    }
}
