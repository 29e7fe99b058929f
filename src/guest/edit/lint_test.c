// SPDX-License-Identifier: Apache-2.0
#include "guest/edit/lint.h"

#include <sys/wait.h>

#include "guest/edit/lint_inner.h"
#include "guest/spawn/spawn.h"
#include "loop/loop.h"
#include "test/edit_kit.h"

#define NONE_FOUND "\nNo linting issues found in the changes.\n"
#define FOUND      "\nLinting issues found in the changes:\n"
#define TOOLS      "/usr/local/bin:/usr/bin:/bin"

struct outcome {
    bool called;
    char text[4096];
};

static void on_done(struct lint *l, struct str text, void *of)
{
    struct outcome *o = of;

    (void)l;
    o->called = true;
    snprintf(o->text, sizeof o->text, STR_FMT, STR_ARG(text));
}

static const char *lint_with(struct lint_args args)
{
    static struct outcome o;
    own(loop) loop = NULL;
    own(lint) l = NULL;

    o.called = false;
    args.done = on_done;
    args.of = &o;
    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK_OK(lint_start(loop, &args, &l));
    CHECK(!o.called);
    while (!o.called)
        CHECK_OK(loop_turn(loop, -1));
    return o.text;
}

static const char *lint(const char *path, const char *old_text, const char *new_text)
{
    return lint_with((struct lint_args){.path = str_of(path),
                                        .old_text = str_of(old_text),
                                        .new_text = str_of(new_text),
                                        .search_path = TOOLS});
}

static void need(const char *program)
{
    if (access(program, X_OK) < 0)
        SKIP("no %s", program);
}

TEST(edit_lint_json_and_toml)
{
    CHECK_STR(lint("/w/a.json", "{}", "{\"a\": 1}"), NONE_FOUND);
    const char *text = lint("/w/a.json", "{}", "{\n  \"a\": ]\n}");
    CHECK(str_starts(str_of(text), STR(FOUND "- Line 2, Column 8: ")));
    CHECK(str_ends(str_of(text), STR("\n\n")));
    CHECK_HAS(lint("/w/a.toml", "a = 1\n", "a = 1\nb = = 2\n"), FOUND "- Line 2, Column ");
    CHECK_STR(lint("/w/a.toml", "", "a = 1\n"), NONE_FOUND);
    CHECK_STR(lint("/w/a.unknown", "", "]]]"), NONE_FOUND);
}

TEST(edit_lint_tells_only_what_is_new)
{
    CHECK_STR(lint("/w/a.json", "{\n\"a\": ]\n}", "\n{\n\"a\": ]\n}"), NONE_FOUND);
    CHECK_HAS(lint("/w/a.json", "{\n\"a\": ]\n}", "{\n\"ab\": ]\n}"), "- Line 2, Column 7: ");
}

TEST_LIMIT(edit_lint_python, 60)
{
    need("/usr/bin/python3");
    CHECK_STR(lint("/w/a.py", "x = 1\n", "x = 2\n"), NONE_FOUND);
    CHECK_HAS(lint("/w/a.py", "x = 1\n", "x = 1\ndef f(:\n"),
              FOUND "- Line 2, Column 7: E999 SyntaxError: invalid syntax\n\n");
    CHECK_HAS(lint("/w/a.py", "", "if 1:\nx\n"), "E999 IndentationError: ");
    CHECK_STR(lint("/w/a.py", "def f(:\n", "# more\ndef f(:\n"), NONE_FOUND);
    CHECK_HAS(lint("/w/a.py", "", "return 1\n"), "'return' outside function");
}

TEST_LIMIT(edit_lint_c_and_shell, 60)
{
    need("/usr/bin/cc");
    need("/usr/bin/bash");
    CHECK_STR(lint("/w/a.c", "", "int main(void) { return 0; }\n"), NONE_FOUND);
    CHECK_HAS(lint("/w/a.c", "", "int main(void)\n{\n    return x;\n}\n"),
              FOUND "- Line 3, Column 12: ");
    CHECK_HAS(lint("/w/a.cpp", "", "class A { int x }\n"), FOUND "- Line 1, Column ");
    CHECK_STR(lint("/w/a.sh", "", "if true; then echo; fi\n"), NONE_FOUND);
    CHECK_HAS(lint("/w/a.sh", "", "echo\nfi\n"),
              FOUND "- Line 2, Column 1: syntax error near unexpected token `fi'\n\n");
}

TEST(edit_lint_without_its_tool_finds_nothing)
{
    CHECK_STR(lint_with((struct lint_args){.path = STR("/w/a.py"),
                                           .old_text = STR(""),
                                           .new_text = STR("def f(:\n"),
                                           .search_path = "/nowhere:"}),
              NONE_FOUND);
}

static void put_tool(struct kit *k, const char *text)
{
    struct str path = kit_put(k, "bash", str_of(text));

    CHECK(chmod(path.p, 0755) == 0);
}

TEST(edit_lint_has_a_deadline_and_a_limit)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    struct lint_args args = {.path = STR("/w/a.sh"),
                             .old_text = STR("a"),
                             .new_text = STR("b"),
                             .search_path = k.dir.p,
                             .timeout_ms = 50};
    unsigned fds = test_open_fds();
    put_tool(&k, "#!/bin/sh\n/bin/sleep 1000 & exec /bin/sleep 1000\n");
    CHECK_STR(lint_with(args), NONE_FOUND);
    args.timeout_ms = 20000;
    put_tool(&k, "#!/bin/sh\nI=0\nwhile [ $I -lt 3000 ]; do I=$((I+1))\n"
                 "echo \"x: line $I: a message that is about forty bytes long\"; done\n");
    char lines[201] = "";
    for (size_t i = 0; i < 200; i += 2)
        memcpy(lines + i, "b\n", 3);
    args.new_text = str_of(lines); /* all of them new */
    struct str text = str_of(lint_with(args));
    CHECK_HAS(text, "- Line 1, Column 1: a message");
    CHECK_HAS(text, "- Line 50, Column 1: a message");
    CHECK(str_find(text, STR("Line 51,")) < 0);
    put_tool(&k, "#!/bin/sh\n/bin/sleep 1000 >&1 &\necho 'x: line 1: y'\n");
    CHECK_HAS(lint_with(args), "- Line 1, Column 1: y"); /* the pipe is held, the child has gone */
    CHECK_INT(test_open_fds(), fds);
}

TEST(edit_lint_can_be_dropped_while_it_runs)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    own(loop) loop = NULL;
    struct outcome o = {false, ""};
    struct lint *l;

    kit_init(&k);
    put_tool(&k, "#!/bin/sh\nexec /bin/sleep 1000\n");
    CHECK_OK(loop_new(&clock_system, &loop));
    unsigned fds = test_open_fds();
    struct lint_args args = {
        .path = STR("/w/a.sh"), .search_path = k.dir.p, .done = on_done, .of = &o};
    CHECK_OK(lint_start(loop, &args, &l));
    lint_free(l);
    args.path = STR("/w/a.json");
    CHECK_OK(lint_start(loop, &args, &l));
    lint_free(l);
    CHECK_OK(loop_turn(loop, 0));
    CHECK(!o.called);
    CHECK_INT(test_open_fds(), fds);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0); /* no child is left */
}

TEST(edit_lint_runs_its_tool_as_the_user)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    if (geteuid() != 0)
        SKIP("needs root to become somebody else");
    kit_init(&k);
    CHECK(chmod(test_dir(), 0755) == 0);
    put_tool(&k, "#!/bin/sh\necho \"x: line 1: $(/usr/bin/id -u) $(/usr/bin/id -G) $HOME\"\n");
    CHECK_HAS(
        lint_with((struct lint_args){.path = STR("/w/a.sh"),
                                     .old_text = STR("a"),
                                     .new_text = STR("b"),
                                     .search_path = k.dir.p,
                                     .user = &(struct proc_user){"nobody", "/", 65534, 65533}}),
        "1: 65534 65533 /nonexistent\n");
}

TEST(edit_lint_goes_between_snippet_and_closing)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "a.json", STR("[1]\n"));
    kit_edit(&k, (struct editor_args){.old_str = STR("1"), .new_str = STR("1,,2"), .lint = true},
             "str_replace", "a.json");
    CHECK_STR(k.r.old_text, "[1]\n");
    CHECK_STR(k.r.new_text, "[1,,2]\n");
    struct str text = str_of(lint_with((struct lint_args){.path = k.r.path,
                                                          .old_text = k.r.old_text,
                                                          .new_text = k.r.new_text,
                                                          .search_path = TOOLS}));
    CHECK_OK(lint_insert(&k.a, &k.r, text));
    CHECK_HAS(k.r.content,
              "     2\t\n\nLinting issues found in the changes:\n- Line 1, Column 4: ");
    CHECK_HAS(k.r.content, "\n\nReview the changes and make sure");
    CHECK_OK(lint_insert(&k.a, &k.r, text)); /* once */
    CHECK(str_find(str_from(k.r.content, k.r.content.len - 100), STR("Linting")) < 0);
}

/* Nothing leaks and done comes, whatever fails. */
TEST_LIMIT(edit_lint_survives_every_single_failure, 60)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    own(loop) loop = NULL;
    bool fired = true;

    test_alone();
    kit_init(&k);
    put_tool(&k, "#!/bin/sh\necho 'x: line 1: y'\n");
    CHECK_OK(loop_new(&clock_system, &loop));
    unsigned fds = test_open_fds();
    for (unsigned n = 1; fired; n++) {
        struct outcome o = {false, ""};
        own(lint) l = NULL;
        struct lint_args args = {.path = STR("/w/a.sh"),
                                 .old_text = STR("a"),
                                 .new_text = STR("b"),
                                 .search_path = k.dir.p,
                                 .done = on_done,
                                 .of = &o};
        fault_at(n);
        struct err *e = lint_start(loop, &args, &l);
        while (!e && !o.called)
            err_free(loop_turn(loop, 1000));
        fired = fault_fired();
        fault_at(0);
        err_free(e);
        lint_free(take(&l));
        CHECK_INT(test_open_fds(), fds);
    }
}
