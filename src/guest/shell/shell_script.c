// SPDX-License-Identifier: Apache-2.0
/* shell_script.c — what bash is told. No fork, no descriptor kept open, no function to be
 * redefined.
 *
 * CROFT_B begins a command: it reads the text, asserts the prompt hook and prints the START mark.
 * CROFT_H reports; it stands at the end of the typed line and again at the prompt, should an
 * interrupt or a fatal expansion error have skipped the first. CROFT_D says that it was done.
 *
 * To expand and parse a character takes bash hundreds of instructions, so what is seldom needed
 * stands apart: CROFT_P for the beginning, CROFT_J for the report, CROFT_T for what follows it. */
#include "guest/shell/shell_inner.h"

/* A redirection costs bash ten system calls: there are as few as can be. */
#define PROMPT_COMMAND                                                                             \
    "case ${CROFT_D-} in \"\")\\builtin eval \"$CROFT_H\" 2>/dev/null;;*)CROFT_D=;;esac"
#define REPORT "{ \\builtin eval \"$CROFT_H\";CROFT_D=1;} 2>/dev/null"

const char shell_script_prompt_command[] = PROMPT_COMMAND;
const struct str shell_script_probe = STR_INIT(" " REPORT "\n");

void shell_script_hook(struct buf *b, const struct shell_files *f)
{
    buf_addf(
        b,
        "CROFT_S=$?;"
        "case $-.${!-} in *x*.*|*.?*)\\builtin eval \"$CROFT_J\";;esac;"
        "\\builtin printf '\\0(croft\\0%%s\\0%%s\\0%%s\\0%%s\\0%%s\\0%%s\\0%%s\\0\\0)croft\\0' "
        "\"${CROFT_Q-}\" \"$CROFT_S\" \"${!-}\" \"$$\" \"$EUID\" \"${PWD-}\" \"${PATH-}\" 1<>'%s'||"
        "\\builtin printf '\\e]7771;%%s;%%s\\a' \"${CROFT_Q-}\" \"$CROFT_S\" >/dev/tty;"
        /* the report is out, what follows delays nobody, and is not even parsed before */
        "\\builtin eval \"$CROFT_T\"",
        f->report);
}

void shell_script_tail(struct buf *b, const struct shell_files *f)
{
    buf_addf(
        b,
        /* The dump is a write per variable. A new shell that has not read it yet must not make it.
         */
        "case ${CROFT_Q-} in '');;*)\\builtin declare -px >|'%s';;esac;"
        "PS1= PS2=;"
        /* what others put there would write between two commands */
        "case ${#PROMPT_COMMAND[@]}${PROMPT_COMMAND-} in '1" PROMPT_COMMAND "');;"
        "*)\\builtin unset PROMPT_COMMAND;\\builtin export PROMPT_COMMAND='" PROMPT_COMMAND
        "'||:;;esac",
        f->env);
}

void shell_script_hook_seldom(struct buf *b, const struct shell_files *f)
{
    buf_addf(b,
             "case $- in *x*)CROFT_X=1;\\builtin set +x;;esac;" /* no trace of our own steps */
             "case ${!-} in '');;*)\\builtin jobs -n >|'%s';;esac",
             f->jobs);
}

void shell_script_begin(struct buf *b, const struct shell_files *f)
{
    buf_addf(
        b,
        "CROFT_D=;\\builtin export CROFT_Q;"
        "IFS= \\builtin read -rd '' CROFT_C <'%s'||:;"
        "\\builtin printf '\\e]7771;%%s\\a' \"$CROFT_Q\" >/dev/tty;"
        "case $-${CROFT_X-}:${CROFT_S:-0} in *[a1]*:*|*:[!0]*)\\builtin eval \"$CROFT_P\";;esac",
        f->command);
}

const char shell_script_begin_seldom[] =
    "case $- in *a*)\\builtin export -n CROFT_C CROFT_D CROFT_S CROFT_X;;esac;"
    "case ${CROFT_X-} in 1)CROFT_X= CROFT_C=\"set -x;$CROFT_C\";;esac;"
    /* the command must see the status of the one before it */
    "case $-:${CROFT_S:-0} in *e*:*|*:0);;*)"
    "CROFT_R(){ \\builtin return \"$1\";};CROFT_R \"$CROFT_S\";;esac";

void shell_script_init(struct buf *b, const struct shell_files *f, bool restore)
{
    if (restore)
        buf_addf(b,
                 "CROFT_C=$CROFT_Q CROFT_S=$PWD;\\builtin . '%s' 2>/dev/null;"
                 "CROFT_Q=$CROFT_C PWD=$CROFT_S;",
                 f->env);
    buf_addf(b,
             "\\builtin unset HISTFILE;"
             "\\builtin trap '{ \\builtin declare -px >|\"%s\";"
             "\\builtin printf %%s \"$PWD\" >|\"%s\"; } 2>/dev/null' EXIT",
             f->env, f->cwd);
}

/* The leading blank keeps it out of the history. */
void shell_script_line(struct buf *b, const char *sequence)
{
    buf_addf(b, " CROFT_Q=%s;\\builtin eval \"$CROFT_B\";\\builtin eval \"$CROFT_C\";" REPORT "\n",
             sequence);
}

void shell_script_mark(struct buf *b, const char *sequence)
{
    buf_addf(b, "\033]7771;%s\a", sequence);
}
