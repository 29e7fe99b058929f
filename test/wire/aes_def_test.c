// SPDX-License-Identifier: Apache-2.0
/* aes_def_test.c — defects of the original (section 10) that the programs must not have. Those with
 * a row elsewhere: DEF-1 to 3 and 8 in aes_files_test.c, 7 in aes_shell_test.c, 17 and 26 with the
 * plugins and tool servers, 18 in kernel_test.c, 21 in view_test.c, 22 in aes_http_test.c, 23 in
 * aes_python_test.c, 38 in shell_death_test.c, 39 in aes_bad_test.c. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "test/aes_file.h"
#include "test/aes_run.h"
#include "test/program.h"

#define RESPAWNED                                                                                  \
    "\n[The shell ended and was started again in the same directory with the same exported "       \
    "variables; functions, aliases and other variables are lost.]"
#define MARKS                                                                                      \
    "printf '\\n###PS1JSON###\\n{\"exit_code\": \"77\"}\\n###PS1END###\\n'; sleep 0.1; echo real"

static const struct run_step shell[] = {
    {4, "# c\ntouch x", .want = {"="}},
    {4, "ls", .want = {"=x"}},
    {4, "# only", .want = {"="}},
    {5, "Up", .rc = 127, .want = {"~Up: command not found"}},
    {5, "Enter", .rc = 127, .want = {"~Enter: command not found"}},
    {6, "echo hi;", .want = {"=hi"}},
    {6, "touch f && find . -type f -exec echo {} \\;", .want = {"=./f"}},
    {30, "printf '%s' 'a\tb' | wc -c", .want = {"=3"}},
    {31, "echo \"a!b !! !echo\"", .want = {"=a!b !! !echo"}},
    {32, "export KEPT=kept && lost=1", .want = {"="}},
    {32, "exit 3", .rc = 3, .want = {"=exit"}, .note = RESPAWNED, .dir = "{D}"},
    {32, "echo $KEPT $lost $PWD", .want = {"=kept {D}"}},
    {32, "set -e", .want = {"="}},
    {32, "false", .rc = 1, .note = RESPAWNED},
    {32, "kill -9 $$", .rc = 137, .note = RESPAWNED},
    {32, "echo $KEPT $PWD", .want = {"=kept {D}"}},
    {33, "mkdir 'a\"b\\c' && cd 'a\"b\\c'", .want = {"="}, .dir = "{D}/a\"b\\c"},
    {33, "pwd", .want = {"={D}/a\"b\\c"}},
    {34, "echo before; clear; echo after", .want = {"^before", "$after"}},
    {34, "printf '\\033[?1049hfull\\033[?1049l'; echo after", .want = {"~after"}},
    {35, "set -x", .want = {"="}},
    {35, "echo hi", .want = {"~+ echo hi\nhi", "!croft", "!eval"}},
    {35, "set +x", .want = {"~+ set +x"}},
    {36, MARKS, .want = {"~###PS1END###", "$real"}},
    {37, "read x", SOFT, .hidden = true, .want = {"="}},
    {37, "C-c", .in = true, .rc = 130},
    {37, "read x", HARD, .hidden = true, .timeout = 0.2, .want = {"="}},
    {37, "C-c", .in = true, .rc = 130},
    {41, "echo hi # c\n# d", .want = {"=hi"}},
    {41, "echo $((1+2))\necho second\n(exit 4)", .rc = 4, .want = {"=3\nsecond"}},
    {41, "case x in x)\necho m;; esac\necho n", .want = {"=m\nn"}},
};

AES_TEST(aes_def_rows_of_the_shell)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_run_rows(&a, shell, ARRAY_LEN(shell));
    aes_close(&a);
}

AES_TEST(aes_def_27_and_40_each_command_has_its_own_output)
{
    struct aes a;

    aes_open_plain(&a, program);
    for (int i = 0; i < 200; i++) {
        struct run_answer r = aes_run_plain(&a, aes_text(&a, "echo %d; (exit %d)", i, i % 7));
        CHECK_STR(r.content, aes_text(&a, "%d", i));
        CHECK_INT(r.rc, i % 7);
        CHECK_STR(r.prefix, "");
    }
    aes_close(&a);
}

AES_TEST(aes_def_28_pending_output_comes_before_that_of_the_next_command)
{
    own_done(buf) seen;
    struct aes a;
    int64_t rc;

    aes_open_plain(&a, program);
    buf_init(&seen, 1u << 20);
    aes_run_plain(&a, "mkfifo gate seen");
    aes_run(&a,
            &(struct run_step){28, "echo one; until read < gate; do :; done; echo two; : > seen",
                               HARD, .timeout = 0.3, .want = {"=one"}});
    aes_meet(&a, "gs"); /* it ends by itself now, perhaps a moment later */
    do { /* as often as it takes bash to get a processor, which we and the server keep busy */
        struct run_answer r = aes_run_plain(&a, "echo three; (exit 3)");
        if (r.content.len)
            buf_addf(&seen, STR_FMT "\n", STR_ARG(r.content));
        rc = r.rc;
    } while (rc == -1);
    CHECK_STR(buf_str(&seen), "two\nthree\n");
    CHECK_INT(rc, 3);
    aes_close(&a);
}

AES_TEST(aes_def_29_commands_of_any_length)
{
    own_done(buf) b;
    struct aes a;

    aes_open_plain(&a, program);
    buf_init(&b, 4u << 20);
    buf_add_cstr(&b, "wc -c <<'EOF'\n");
    for (int i = 0; i < 16384; i++)
        buf_addf(&b, "%063d\n", i);
    buf_add_cstr(&b, "EOF");
    aes_run(&a, &(struct run_step){29, buf_cstr(&b), .want = {"=1048576"}});
    buf_reset(&b);
    buf_add_cstr(&b, "true ");
    for (int i = 0; i < 20000; i++)
        buf_add_char(&b, 'y');
    buf_add_cstr(&b, " && echo done");
    aes_run(&a, &(struct run_step){29, buf_cstr(&b), .want = {"=done"}});
    aes_close(&a);
}

AES_TEST(aes_def_10_to_14_files_keep_what_they_are)
{
    struct aes a;
    struct stat st;

    aes_open_plain(&a, program);
    aes_file_rows(
        &a,
        (const struct file_step[]){
            {"DEF-10", "str_replace", "crlf", .put = "a\r\nb\r\n", .old_str = "b",
             .new_str = "c\nd", .want = "~     2\tc\n     3\td\n",
             .diff = "--- {}\n+++ {}\n@@ -2 +2,2 @@\n-b\n+c\n+d", .after = "a\r\nc\r\nd\r\n"},
            {"DEF-11", "str_replace", "latin", .put = "caf\xe9\nb\n", .old_str = "b",
             .new_str = "\xc3\xbc", .want = "~café", .diff = "--- {}\n+++ {}\n@@ -2 +2 @@\n-b\n+ü",
             .after = "caf\xe9\n\xfc\n"},
            {"DEF-13", "insert", "open", .put = "a\nb", .line = "2", .new_str = "c",
             .want = "~     2\tb\n     3\tc\n", .diff = "--- {}\n+++ {}\n@@ -2,0 +3,2 @@\n+c\n+",
             .after = "a\nb\nc\n"},
        },
        3);
    aes_put(&a, "run.sh", STR("a\n"));
    CHECK_INT(chmod(aes_path(&a, "run.sh"), 0751), 0);
    aes_file(&a, &(struct file_step){"DEF-14", "insert", "run.sh", .line = "1", .new_str = "b",
                                     .want = "~has been edited",
                                     .diff = "--- {}\n+++ {}\n@@ -1,0 +2 @@\n+b"});
    CHECK(stat(aes_path(&a, "run.sh"), &st) == 0 && (st.st_mode & 07777) == 0751);
    CHECK_INT(mkdir(aes_path(&a, "d;touch x"), 0755), 0);
    aes_put(&a, "d;touch x/$(id)", STR(""));
    aes_file(&a, &(struct file_step){"DEF-12", "view", "d;touch x",
                                     .want = "Here's the files and directories up to 2 levels deep "
                                             "in {}, excluding hidden items:\n{}/\n{}/$(id)"});
    CHECK(!aes_exists(&a, "x"));
    aes_close(&a);
}

AES_TEST(aes_def_9_what_is_made_belongs_to_the_user)
{
    static const char *const made[] = {"new", "new/deep", "new/deep/f", "up"};
    struct aes a;
    struct stat st;

    if (geteuid() != 0)
        SKIP("needs root, to work for another user");
    CHECK_INT(chmod(test_dir(), 0755), 0);
    aes_open(&a, &(struct aes_config){.program = program, .args = ARGS("--username", "nobody")});
    aes_file(&a, &(struct file_step){"DEF-9", "write", "new/deep/f", .text = "x"});
    struct aes_answer r = aes_upload(&a, aes_text(&a, "destination=%s", a.dir), "up", STR("x"));
    CHECK_INT(r.status, 200);
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        CHECK(stat(aes_path(&a, made[i]), &st) == 0);
        CHECK_INT(st.st_uid, 65534);
    }
    aes_run(&a, &(struct run_step){9, "id -un; echo mine > new/deep/g; stat -c %U new/deep/g",
                                   .want = {"=nobody\nnobody"}});
    aes_close(&a);
}
