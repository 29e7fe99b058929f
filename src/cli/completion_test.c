// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include "test/program.h"
#include "test/test.h"

/* What bash offers for a line that ends where the cursor is. */
static void complete(const char *line, const char *words, int at, struct buf *out)
{
    char script[2000];

    snprintf(script, sizeof script,
             "PATH=\"$(dirname '%s'):$PATH\"; source <(croft completion bash); COMP_WORDS=(%s); "
             "COMP_CWORD=%d; COMP_LINE='%s'; _croft; printf '%%s\\n' \"${COMPREPLY[@]}\"",
             test_program("croft"), words, at, line);
    buf_init(out, 1 << 16);
    CHECK_INT(program_run((const char *const[]){"bash", "-c", script, NULL}, out), 0);
}

TEST(bash_completes_commands_words_and_flags)
{
    own_done(buf) commands;
    own_done(buf) flags;
    own_done(buf) words;

    complete("croft ver", "croft ver", 1, &commands);
    CHECK_STR(buf_str(&commands), "version\n");
    complete("croft run --mem", "croft run --mem", 2, &flags);
    CHECK_STR(buf_str(&flags), "--memory\n");
    complete("croft image im", "croft image im", 2, &words);
    CHECK_STR(buf_str(&words), "import\n");
}

TEST(completion_is_there_for_three_shells_and_says_so)
{
    own_done(buf) out;
    char command[3000];

    buf_init(&out, 1 << 20);
    snprintf(command, sizeof command,
             "croft=%s; $croft completion bash | bash -n && $croft completion zsh >/dev/null && "
             "$croft completion fish >/dev/null && ! $croft completion csh",
             test_program("croft"));
    CHECK_INT(program_run((const char *const[]){"sh", "-c", command, NULL}, &out), 0);
}

/* The shell itself reads it, without running anything. */
static void check_syntax(const char *shell)
{
    own_done(buf) out;
    char command[3000];

    buf_init(&out, 1 << 20);
    snprintf(command, sizeof command, "command -v %s", shell);
    if (program_run((const char *const[]){"sh", "-c", command, NULL}, &out) != 0)
        SKIP("%s is not installed", shell);
    snprintf(command, sizeof command, "%s completion %s >%s/c && %s -n %s/c", test_program("croft"),
             shell, test_dir(), shell, test_dir());
    buf_reset(&out);
    int code = program_run((const char *const[]){"sh", "-c", command, NULL}, &out);
    if (code != 0 || out.len)
        FAIL("%s says: " STR_FMT, shell, STR_ARG(buf_str(&out)));
}

TEST(completion_for_zsh_is_read_by_zsh)
{
    check_syntax("zsh");
}

TEST(completion_for_fish_is_read_by_fish)
{
    check_syntax("fish");
}
