// SPDX-License-Identifier: Apache-2.0
#include "guest/shell/split.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "test/test.h"

struct row {
    const char *text;
    const char *want; /* "1", "…" for incomplete, or the parts joined by " | " */
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena a;
        struct split got;
        struct buf b;

        arena_init(&a, 1 << 20);
        buf_init(&b, 1 << 20);
        CHECK_OK(split_commands(&a, str_of(rows[i].text), &got));
        if (got.verdict == SPLIT_ONE)
            buf_add_cstr(&b, "1");
        if (got.verdict == SPLIT_INCOMPLETE)
            buf_add_cstr(&b, "...");
        for (size_t k = 0; k < got.count; k++)
            buf_addf(&b, "%s" STR_FMT, k ? " | " : "", STR_ARG(got.parts[k]));
        if (!str_eq(buf_str(&b), str_of(rows[i].want)))
            FAIL("row %zu '%s': got '" STR_FMT "', want '%s'", i, rows[i].text,
                 STR_ARG(buf_str(&b)), rows[i].want);
        buf_done(&b);
        arena_done(&a);
    }
}

/* Every row of the table in the contract, section 3.5. */
TEST(split_agrees_with_the_table_of_the_contract)
{
    static const struct row rows[] = {
        {"ls -l", "1"},
        {"cd /tmp && touch t", "1"},
        {"a | b", "1"},
        {"ls; pwd;", "1"},
        {"ls & pwd", "1"},
        {"echo \"a\nb\"", "1"},
        {"echo a \\\n b", "1"},
        {"ls |\n wc", "1"},
        {"a &&\nb", "1"},
        {"cat <<EOF\ntext\nEOF", "1"},
        {"cat <<EOF\ntext\nEOF\necho Done", "cat <<EOF\ntext\nEOF | echo Done"},
        {"ls\n\npwd", "ls | pwd"},
        {"ls &\npwd", "ls & | pwd"},
        {"echo \"Hello\" # c\n# d\nls -l", "echo \"Hello\" # c\n# d | ls -l"},
        {"# c\nls", "1"}, /* DEF-4: comments never count */
        {"# only", "1"},
        {"# one\n# two\n", "1"},
        {"f() {\n echo x\n}\nf", "f() {\n echo x\n} | f"},
        {"f() {\n echo x\n}; f", "1"},
        {"export A=1\nexport B=2", "export A=1 | export B=2"},
        {"[[ -f x ]] && echo y\nls", "1"},
        {"case x in\nx) echo a;;\nesac\nls", "1"},
        {"echo $((1+2))\nls", "1"},
        {"a=(1 2)\nls", "1"},
        {"time ls\nls", "1"},
        {"for m in {01..04}; do\n touch \"$m\"\ndone && echo ok", "1"},
        {"echo \"unclosed", "..."},
        {"", "1"},
        {" \n ", "1"},
        {"echo hi # c\n# d", "1"}, /* DEF-41 */
        {"echo hi\necho there", "echo hi | echo there"},
    };

    check_rows(rows, ARRAY_LEN(rows));
}

TEST(split_knows_quotes_and_expansions)
{
    static const struct row rows[] = {
        {"echo 'a\nb'\nls", "echo 'a\nb' | ls"},
        {"echo 'it'\\''s'\nls", "echo 'it'\\''s' | ls"},
        {"echo \"a'b\"\nls", "echo \"a'b\" | ls"},
        {"echo \"a\\\"\nb\"", "1"},
        {"echo \"$(echo \"x\ny\")\"\nls", "echo \"$(echo \"x\ny\")\" | ls"},
        {"echo \"$(echo ')')\"\nls", "echo \"$(echo ')')\" | ls"},
        {"echo `echo \"x\n`\nls", "echo `echo \"x\n` | ls"},
        {"echo `a \\`b\n\\` c`\nls", "echo `a \\`b\n\\` c` | ls"},
        {"echo $'a\\'b\nc'\nls", "echo $'a\\'b\nc' | ls"},
        {"echo $\"x\ny\"", "1"},
        {"echo ${x:-a\nb}\nls", "echo ${x:-a\nb} | ls"},
        {"echo ${x:-'}'}\nls", "echo ${x:-'}'} | ls"},
        {"echo \"${x:-it's}\"\nls", "1"},
        {"echo \"${x#'}'}\"\nls", "echo \"${x#'}'}\" | ls"},
        {"echo ${#x} ${#}\nls", "echo ${#x} ${#} | ls"},
        {"echo $# # c\nls", "echo $# # c | ls"},
        {"echo a#b\nls", "echo a#b | ls"},
        {"diff <(ls a\n) <(ls b)\nls", "diff <(ls a\n) <(ls b) | ls"},
        {"tee >(wc -l\n)", "1"},
        {"echo \\\nfoo\nls", "echo \\\nfoo | ls"},
        {"ec\\\nho foo", "1"},
        {"echo '", "..."},
        {"echo `date", "..."},
        {"echo $(date", "..."},
        {"echo ${x", "..."},
        {"echo \"$(", "..."},
        {"echo $'a\\'", "..."},
        {"echo $((1+", "..."},
        {"echo a \\", "..."},
        {"echo a \\\\", "1"},
        {"echo $((1 << 2))", "1"},
        {"echo $((1 + (2*3)))", "1"},
        {"echo $((ls); pwd)", "1"},
        {"((x = 1))", "1"},
        {"((x)); (y)", "1"},
        {"find . -exec grep x {} \\;", "1"},
    };

    check_rows(rows, ARRAY_LEN(rows));
}

TEST(split_knows_here_documents)
{
    static const struct row rows[] = {
        {"cat <<'EOF'\n$(\n`\nEOF\nls", "cat <<'EOF'\n$(\n`\nEOF | ls"},
        {"cat <<\"E F\"\nx\nE F\nls", "cat <<\"E F\"\nx\nE F | ls"},
        {"cat <<\\EOF\nx\\\nEOF\nls", "cat <<\\EOF\nx\\\nEOF | ls"},
        {"cat <<EOF\nx\\\nEOF\nEOF", "1"},
        {"cat <<-EOF\n\tx\n\tEOF\nls", "cat <<-EOF\n\tx\n\tEOF | ls"},
        {"cat << EOF > f\nx\nEOF\nls", "cat << EOF > f\nx\nEOF | ls"},
        {"cat <<EOF && ls\nx\nEOF", "1"},
        {"cat <<A <<B\na\nA\nb\nB\nls", "cat <<A <<B\na\nA\nb\nB | ls"},
        {"cat <<A | cat <<B\na\nA\nb\nB", "1"},
        {"x=$(cat <<EOF\n)\"\nEOF\n)\nls", "x=$(cat <<EOF\n)\"\nEOF\n) | ls"},
        {"x=$(cat <<EOF\nhi\nEOF)", "1"},
        {"if true; then\ncat <<EOF\nfi\nEOF\nfi\nls", "if true; then\ncat <<EOF\nfi\nEOF\nfi | ls"},
        {"cat <<EOF", "..."},
        {"cat <<EOF\nx", "..."},
        {"cat <<EOF\n EOF", "..."},
        {"cat <<A <<B\na\nA\nb", "..."},
        {"cat <<-'EOF'\n\t\tEOF", "1"},
        {"wc -l <<< abc\nls", "wc -l <<< abc | ls"},
        {"cat <<EOF # note\nx\nEOF", "1"},
    };

    check_rows(rows, ARRAY_LEN(rows));
}

TEST(split_knows_compound_commands)
{
    static const struct row rows[] = {
        {"if a\nthen b\nfi\nls", "if a\nthen b\nfi | ls"},
        {"if a; then\nif b; then c; fi fi", "1"},
        {"if a; then b; elif c; then d; else e; fi", "1"},
        {"while read x\ndo\necho $x\ndone < f\nls", "while read x\ndo\necho $x\ndone < f | ls"},
        {"until a; do b; done", "1"},
        {"for i do echo $i; done", "1"},
        {"for i\ndo echo $i\ndone", "1"},
        {"for i in a b\ndo\necho done\ndone", "1"},
        {"for ((i=0;i<3;i++)); do\necho $i\ndone\nls", "1"},
        {"for i in 1 2; { echo $i; }", "1"},
        {"select x in a b; do\nbreak\ndone\nls", "1"},
        {"{ a\nb\n}\nls", "{ a\nb\n} | ls"},
        {"(a\nb)\nls", "(a\nb) | ls"},
        {"{ { a; } }", "1"},
        {"function f {\necho x\n}\nf", "function f {\necho x\n} | f"},
        {"function f () {\necho x\n}", "1"},
        {"f ()\n{\necho x\n}\nls", "f ()\n{\necho x\n} | ls"},
        {"f() ( a\n )", "1"},
        {"case $x in\n(a|b) c;;\n*) d ;&\nesac", "1"},
        {"case x in x) echo m;; esac", "1"},
        {"case x in\nx) case y in y) z;; esac;;\nesac\nls", "1"},
        {"[[ $x =~ ^(a|b)$ ]]\nls", "1"},
        {"[[ a\n&& b ]]", "1"},
        {"a=(1\n# (\n2)\nls", "1"},
        {"declare -A m=([a]=1 [b]=2)\nls", "1"},
        {"echo !(a|b)\nls", "1"},
        {"! true\nls", "! true | ls"},
        {"a ||\n\n# c\nb", "1"},
        {"a |&\nb", "1"},
        {"A=1 B=2 cmd\nls", "A=1 B=2 cmd | ls"},
        {">f\nls", ">f | ls"},
        {"ls 2>&1 >/dev/null &>x\nls", "ls 2>&1 >/dev/null &>x | ls"},
        {"echo if\necho done", "echo if | echo done"},
        {"echo }\nls", "echo } | ls"},
        {"coproc cat\nls", "1"},
        {"if a; then", "..."},
        {"while a", "..."},
        {"for i in 1 2 3; do", "..."},
        {"f()", "..."},
        {"f() {", "..."},
        {"(a", "..."},
        {"a &&", "..."},
        {"a |", "..."},
        {"case x in", "..."},
        {"[[ a", "..."},
        {"a=(1", "..."},
        {"echo )", "1"},
        {"fi", "1"},
        {"; ls\nls", "1"},
        {"a && || b\nls", "1"},
        {"if a; fi\ndone\n'", "1"},
        {"ls;\n# c\npwd", "ls;\n# c | pwd"},
        {"ls\r\npwd\r\n", "ls | pwd"},
    };

    check_rows(rows, ARRAY_LEN(rows));
}

static void check_splits(struct str text)
{
    struct arena a;
    struct split got;

    arena_init(&a, 256u << 20);
    CHECK_OK(split_commands(&a, text, &got));
    arena_done(&a);
}

TEST(split_takes_time_in_proportion_to_the_text)
{
    static const char *const units[] = {
        "(",  "\"$(", "`",  "<<E\n",   "a\n",    "${x:-", "if ", "x=(", "$((1 ", "cat <<E ", "[[ ",
        "{ ", "f() ", "\\", "case x ", "for i ", "<(",    "'",   "#\n", "&&\n",  "\t"};

    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        struct buf b;
        buf_init(&b, 4u << 20);
        while (b.len < (2u << 20))
            buf_add_cstr(&b, units[i]);
        check_splits(buf_str(&b)); /* anything quadratic would pass the time limit */
        buf_done(&b);
    }
}

TEST(split_refuses_politely_when_memory_is_short)
{
    struct arena a;
    struct split got;
    struct buf b;

    arena_init(&a, 4096);
    buf_init(&b, 1 << 20);
    for (int i = 0; i < 10000; i++)
        buf_add_cstr(&b, "x\n");
    CHECK_ERR(split_commands(&a, buf_str(&b), &got), ERR_NO_MEMORY, "4096");
    buf_done(&b);
    arena_done(&a);
}
