// SPDX-License-Identifier: Apache-2.0
/* aes_defects_test.c — defects of the original's shell (section 10 of the contract) that must not
 * come back, through HTTP. Rows carry the number of the defect. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/aes_run.h"

static const struct run_step rows[] = {
    {4, "# only a comment", .want = {"="}},
    {4, "# first\necho hi", .want = {"=hi"}},
    {4, "# first\n\n# second\necho hi # third\n# fourth", .want = {"=hi"}},
    {5, "Up", .rc = 127, .want = {"~Up: command not found"}},
    {5, "Enter", .rc = 127, .want = {"~Enter: command not found"}},
    {6, "echo hi;", .want = {"=hi"}},
    {6, "find . -name nothing -exec echo {} \\;", .want = {"="}},
    {6, "echo a\\;b \\| c", .want = {"=a;b | c"}},
    {7, "printf '\\n\\n  lead\\n in\\n\\n'", .want = {"=lead\n in"}},
    {30, "echo 'a\tb' | od -An -c", .want = {"=a  \\t   b  \\n"}},
    {30, "echo \tx", .want = {"=x"}},
    {31, "echo earlier", .want = {"=earlier"}},
    {31, "echo \"a!b !! !e\"", .want = {"=a!b !! !e"}},
    {33, "mkdir 'q\"\\' && cd 'q\"\\'", .want = {"="}, .dir = "{D}/q\"\\"},
    {33, "echo in", .want = {"=in"}, .dir = "{D}/q\"\\"},
    {34, "echo one; clear; echo two", .want = {"=one\ntwo"}},
    {34, "printf '\\033[?1049hscreen\\033[?1049l'; echo back", .want = {"=back"}},
    {34, "printf '\\033[2J\\033[Hdrawn\\n'; seq 3", .want = {"=drawn\n1\n2\n3"}},
    {35, "set -x", .want = {"="}},
    {35, "echo traced", .want = {"~traced", "!PS1", "!PROMPT", "!CROFT"}},
    {35, "set +x", .want = {"!PS1", "!PROMPT"}},
    {35, "echo plain", .want = {"=plain"}},
    {36, "printf '\\n###PS1JSON###\\n{\"exit_code\": \"0\"}\\n###PS1END###\\n'; (exit 9)", .rc = 9,
     .want = {"~###PS1END###"}},
    {41, "echo hi # c\n# d", .want = {"=hi"}},
    {41, "[[ -n x ]] && echo y\nls /nonexistent\necho $((1+2))", .want = {"^y\n", "$\n3"}},
    {41, "case x in x) echo m;; esac\na=(1 2); echo ${a[1]}\nfalse", .rc = 1, .want = {"=m\n2"}},
};

AES_TEST(defects_of_the_original_shell_are_not_there)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_run_rows(&a, rows, ARRAY_LEN(rows));
    aes_close(&a);
}

AES_TEST(defect_27_a_command_is_never_taken_for_the_one_before)
{
    struct aes a;

    aes_open_plain(&a, program);
    for (int i = 0; i < 100; i++) {
        struct run_answer r = aes_run_plain(&a, aes_text(&a, "echo line-%d; (exit %d)", i, i));
        CHECK_STR(r.content, aes_text(&a, "line-%d", i));
        CHECK_INT(r.rc, i);
        CHECK_STR(r.prefix, "");
    }
    aes_close(&a);
}

AES_TEST(defect_28_the_rest_of_a_command_comes_before_the_next_one)
{
    struct run_answer r;
    struct aes a;
    int gate;

    aes_open_plain(&a, program);
    CHECK_INT(mkfifo(aes_path(&a, "gate"), 0600), 0);
    aes_run(&a, &(struct run_step){28, "echo early; read x < gate; echo old", HARD, .timeout = 0.2,
                                   .blocking = true, .want = {"=early"}});
    gate = open(aes_path(&a, "gate"), O_WRONLY | O_CLOEXEC);
    CHECK_INT(write(gate, "\n", 1), 1);
    close(gate);
    bool old = false;
    do { /* refused while the old one runs */
        r = aes_run_plain(&a, "echo new; (exit 5)");
        old |= str_find(r.content, STR("old")) >= 0;
    } while (r.rc == -1);
    CHECK_INT(r.rc, 5);
    CHECK(old);
    CHECK(str_ends(r.content, STR("new")));
    aes_close(&a);
}

AES_TEST(defect_29_a_command_may_be_of_any_length)
{
    struct aes a;
    own_done(buf) long_one;

    buf_init(&long_one, 4u << 20);
    aes_open_plain(&a, program);
    buf_add_cstr(&long_one, "cat > big <<'EOF'\n");
    for (int i = 0; i < 20000; i++)
        buf_addf(&long_one, "line %d of a text that is longer than any terminal takes\n", i);
    buf_add_cstr(&long_one, "EOF");
    struct run_answer r = aes_run_plain(&a, buf_cstr(&long_one));
    CHECK_INT(r.rc, 0);
    CHECK_STR(r.content, "");
    CHECK_INT(aes_get(&a, "big").len, long_one.len - 18 - 3);
    aes_close(&a);
}

AES_TEST(defect_32_a_shell_that_ends_is_back_with_what_it_had)
{
    static const struct {
        const char *command;
        int rc;
    } ends[] = {
        {"exit 3", 3},
        {"set -e; false", 1},
        {"kill -9 $$", 137},
        {"exec true", 0},
    };
    struct aes a;

    aes_open_plain(&a, program);
    aes_run_plain(&a, "mkdir -p sub; cd sub; export KEPT=yes");
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        struct run_answer r = aes_run_plain(&a, ends[i].command);
        CHECK_INT(r.rc, ends[i].rc);
        CHECK_HAS(r.suffix, aes_text(&a, "[The command completed with exit code %d.", ends[i].rc));
        CHECK(r.suffix.len > strlen("\n[The command completed with exit code 999.]")); /* a note */
        CHECK_STR(aes_run_plain(&a, "echo $KEPT ${PWD##*/}").content, "yes sub");
    }
    aes_close(&a);
}

AES_TEST(defect_37_hidden_is_kept_when_time_is_up)
{
    static const struct run_step steps[] = {
        {37, "read x", SOFT, .hidden = true, .want = {"="}},
        {37, "", HARD, .timeout = 0.2, .blocking = true, .hidden = true, .more = true,
         .want = {"="}},
        {37, "echo no", REFUSED, .hidden = true, .more = true, .want = {"="}},
        {37, "C-c", .rc = 130, .in = true, .hidden = true, .want = {"~^C"}},
    };
    struct aes a;

    aes_open_plain(&a, program);
    aes_run_here(&a, steps, ARRAY_LEN(steps));
    aes_close(&a);
}

AES_TEST(defect_38_a_static_command_leaves_no_shell_behind)
{
    struct aes a;
    struct run_answer r;

    aes_open_plain(&a, program);
    for (int i = 0; i < 5; i++) {
        struct json *o = aes_act(&a, "run", "'command':'echo $$','is_static':true");
        struct str pid = json_get_str(o, "content", STR(""));
        do /* its end is under way when the answer comes */
            r = aes_run_plain(&a, aes_text(&a, "kill -0 " STR_FMT " 2>/dev/null", STR_ARG(pid)));
        while (r.rc == 0);
        CHECK_INT(r.rc, 1);
    }
    aes_close(&a);
}
