// SPDX-License-Identifier: Apache-2.0
/* lint_check.c — the languages: a tool and how to read what it prints, or a parser of ours. */
#include "base/buf.h"
#include "base/embed.h"
#include "base/json.h"
#include "base/toml.h"
#include "base/utf8.h"
#include "guest/edit/diff.h"
#include "guest/edit/lint_inner.h"
#include "guest/edit/space.h"

/* "3:5: text", as every tool but bash says it once its name for the file is gone. */
static bool read_place(struct arena *a, struct str line, struct lint_issue *ret_issue)
{
    struct str number;
    uint64_t at, column;

    if (!str_cut(&line, ':', &number) || !str_to_u64(number, &at) ||
        !str_cut(&line, ':', &number) || !str_to_u64(number, &column) || at == 0)
        return false;
    *ret_issue = (struct lint_issue){at, column ? column : 1, arena_copy(a, str_trim(line))};
    return !a->failed;
}

EMBED(lint, "src/guest/edit/lint.py");

static bool read_compiler(struct arena *a, struct str line, struct lint_issue *ret_issue)
{
    struct str from = STR("<stdin>:");
    struct str error = STR("error: "), fatal = STR("fatal error: ");

    if (!str_starts(line, from) || !read_place(a, str_from(line, from.len), ret_issue))
        return false;
    struct str *m = &ret_issue->message;
    if (!str_starts(*m, error) && !str_starts(*m, fatal))
        return false; /* warnings and notes */
    *m = str_from(*m, str_starts(*m, error) ? error.len : fatal.len);
    return true;
}

/* "bash: line 3: syntax error near …" */
static bool read_shell(struct arena *a, struct str line, struct lint_issue *ret_issue)
{
    struct str mark = STR(": line "), number;
    ptrdiff_t at = str_find(line, mark);
    uint64_t n;

    if (at < 0)
        return false;
    line = str_from(line, (size_t)at + mark.len);
    if (!str_cut(&line, ':', &number) || !str_to_u64(number, &n) || n == 0)
        return false;
    line = str_trim(line);
    if (str_starts(line, STR("`"))) /* it repeats the line on a line of its own */
        return false;
    *ret_issue = (struct lint_issue){n, 1, arena_copy(a, line)};
    return !a->failed;
}

/* "line 3 column 5: what" is how our parsers begin. */
static void add_parse_error(struct arena *a, struct err *e, struct lint_issues *into)
{
    struct str text = str_of(e ? err_text(e) : ""), word = STR("line "), number;
    struct lint_issue issue = {1, 1, {NULL, 0}};
    uint64_t n;

    if (!e || err_code(e) == ERR_NO_MEMORY) {
        err_free(e);
        return;
    }
    ptrdiff_t at = str_find(text, word);
    if (at >= 0) {
        struct str rest = str_from(text, (size_t)at + word.len);
        if (str_cut(&rest, ' ', &number) && str_to_u64(number, &n))
            issue.line = n;
        if (str_cut(&rest, ' ', &number) && str_cut(&rest, ':', &number) && str_to_u64(number, &n))
            issue.column = n;
        text = str_trim(rest);
    }
    issue.message = arena_copy(a, text);
    into->list[into->count++] = issue;
    err_free(e);
}

static void check_json(struct arena *a, struct str text, struct lint_issues *into)
{
    struct json *v;

    add_parse_error(a, json_parse(a, text, NULL, &v), into);
}

static void check_toml(struct arena *a, struct str text, struct lint_issues *into)
{
    struct json *v;

    add_parse_error(a, toml_parse(a, text, &v), into);
}

#define COMPILER(language) "cc", "-fsyntax-only", "-fmax-errors=50", "-w", "-x", language, "-"

static const struct lint_checker python = {
    .argv = {"python3", "-I", "-W", "ignore", "-c"}, .is_python = true, .read_line = read_place};
static const struct lint_checker c = {.argv = {COMPILER("c"), NULL}, .read_line = read_compiler};
static const struct lint_checker cplus = {.argv = {COMPILER("c++"), NULL},
                                          .read_line = read_compiler};
static const struct lint_checker shell = {.argv = {"bash", "--norc", "-n", NULL},
                                          .read_line = read_shell};
static const struct lint_checker json = {.check = check_json};
static const struct lint_checker toml = {.check = check_toml};

static const struct {
    struct str suffix;
    const struct lint_checker *checker;
} languages[] = {
    {STR_INIT(".py"), &python}, {STR_INIT(".json"), &json},  {STR_INIT(".toml"), &toml},
    {STR_INIT(".c"), &c},       {STR_INIT(".h"), &c},        {STR_INIT(".cc"), &cplus},
    {STR_INIT(".cpp"), &cplus}, {STR_INIT(".cxx"), &cplus},  {STR_INIT(".hpp"), &cplus},
    {STR_INIT(".sh"), &shell},  {STR_INIT(".bash"), &shell},
};

const struct lint_checker *lint_checker_of(struct str path)
{
    struct str suffix = space_suffix(path);

    for (size_t i = 0; i < ARRAY_LEN(languages); i++)
        if (str_eq(suffix, languages[i].suffix))
            return languages[i].checker;
    return NULL;
}

fallible lint_fill_argv(const struct lint_checker *checker, struct arena *a,
                        const char *ret_argv[LINT_ARGV_MAX])
{
    own_done(buf) script;
    size_t n = 0;

    buf_init(&script, 64u << 10);
    for (; checker->argv[n]; n++)
        ret_argv[n] = checker->argv[n];
    if (checker->is_python) {
        TRY(inflate_all(EMBEDDED(lint), &script));
        ret_argv[n++] = arena_cstr(a, buf_str(&script));
    }
    ret_argv[n] = NULL;
    return arena_check(a);
}

void lint_read_output(const struct lint_checker *checker, struct arena *a, struct str output,
                      struct lint_issues *into)
{
    struct str line;
    own_done(buf) clean;

    buf_init(&clean, SIZE_MAX / 2); /* at most three times what was read */
    utf8_add_replaced(&clean, output);
    output = buf_str(&clean);
    while (output.len && into->count < LINT_ISSUES_MAX) {
        str_cut(&output, '\n', &line);
        if (checker->read_line(a, line, &into->list[into->count]))
            into->count++;
    }
}

/* The old line that became line n of the new text; 0 if the edit touched it. Both from 1. */
static size_t old_line_of(const struct diff *d, size_t n)
{
    size_t at = n - 1, shift_new = 0, shift_old = 0;

    for (size_t i = 0; i < d->count && d->changes[i].new_from <= at; i++) {
        if (at < d->changes[i].new_to)
            return 0;
        shift_new = d->changes[i].new_to;
        shift_old = d->changes[i].old_to;
    }
    return n - shift_new + shift_old;
}

static bool was_there(const struct lint_issues *old_issues, const struct lint_issue *issue,
                      size_t old_line)
{
    for (size_t i = 0; i < old_issues->count; i++) {
        const struct lint_issue *o = &old_issues->list[i];
        if (o->line == old_line && o->column == issue->column && str_eq(o->message, issue->message))
            return true;
    }
    return false;
}

fallible lint_drop_old(struct arena *a, struct str old_text, struct str new_text,
                       const struct lint_issues *old_issues, struct lint_issues *issues)
{
    struct diff d;
    size_t kept = 0;

    TRY(diff_lines(a, old_text, new_text, &d));
    for (size_t i = 0; i < issues->count; i++) {
        size_t old_line = old_line_of(&d, issues->list[i].line);
        if (old_line == 0 || !was_there(old_issues, &issues->list[i], old_line))
            issues->list[kept++] = issues->list[i];
    }
    issues->count = kept;
    return NULL;
}

struct str lint_format(struct arena *a, const struct lint_issues *issues)
{
    own_done(buf) b;

    buf_init(&b, 1u << 20);
    if (issues->count == 0)
        return STR("\nNo linting issues found in the changes.\n");
    buf_add_cstr(&b, "\nLinting issues found in the changes:\n");
    for (size_t i = 0; i < issues->count; i++) {
        const struct lint_issue *s = &issues->list[i];
        buf_addf(&b, "- Line %zu, Column %zu: ", s->line, s->column);
        buf_add(&b, s->message);
        buf_add_char(&b, '\n');
    }
    buf_add_char(&b, '\n');
    return arena_copy(a, buf_str(&b));
}

fallible lint_insert(struct arena *a, struct edit_result *r, struct str text)
{
    own_done(buf) b;

    buf_init(&b, SIZE_MAX / 2);
    if (r->lint_at == 0)
        return NULL;
    buf_add(&b, str_first(r->content, r->lint_at));
    buf_add(&b, text);
    buf_add(&b, str_from(r->content, r->lint_at));
    TRY(buf_check(&b));
    struct str content = arena_copy(a, buf_str(&b));
    TRY(arena_check(a));
    r->content = content;
    r->lint_at = 0;
    return NULL;
}
