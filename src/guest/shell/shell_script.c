// SPDX-License-Identifier: Apache-2.0
/* shell_script.c — what bash is told. No fork, no descriptor kept open.
 *
 * CROFT_B begins a command: it takes the number and prints the START mark; CROFT_V does what some
 * commands need besides. CROFT_H reports; it
 * stands at the end of the typed line and, named by CROFT_N, again at the prompt, should an
 * interrupt or a fatal expansion error have skipped the first.
 *
 * They are functions, read-only, from a file that a shell reads once, and every word counts: a
 * function is copied whole at every call, and to expand and parse a character takes bash hundreds
 * of instructions. So what is seldom needed is text to be evaluated, and PROMPT_COMMAND is short.
 * Of all this a program sees PROMPT_COMMAND and CROFT_A, by which a shell inside this one finds the
 * file; a variable that is exported and changes would make bash build its environment anew for
 * every program. A shell knows by its number in CROFT_L that it has read the file. CROFT_C is the
 * text of a command; of a new shell, with the number of its start in CROFT_Q, what it does first:
 * these two it has from us as variables, and so may its start-up files. */
#include "guest/shell/shell_inner.h"

#define INLINE_MAX     1024 /* a line of the terminal holds 4095 */

#define PROMPT_COMMAND "${CROFT_N-eval \"$CROFT_A\"}"
/* A redirection costs bash ten system calls: there are as few as can be. */
#define REPORT "{ CROFT_H;} 2>/dev/null"

const char shell_script_prompt_command[] = PROMPT_COMMAND;
const struct str shell_script_probe = STR_INIT(" " REPORT "\n");

static const char begin[] =
    "CROFT_B(){\n"
    "CROFT_N=CROFT_R CROFT_Q=$1\n"
    "\\builtin printf '\\e]7771;%%s\\a' \"$1\" >/dev/tty\n"
    "}\n"
    "CROFT_V(){\n"
    "case ${1-} in '');;*)IFS= \\builtin read -rd '' CROFT_C <'%s'||:;;esac\n"
    "case $- in *a*)\\builtin export -n CROFT_C CROFT_K CROFT_L CROFT_N CROFT_Q CROFT_S "
    "CROFT_X;;esac\n"
    /* the command must see the status of the one before it */
    "case $- in *e*);;*)\\builtin return \"${CROFT_S-0}\";;esac\n"
    "}\n";

static const char report[] =
    "CROFT_H(){\n"
    "CROFT_S=${1-$?}\n"
    "case $-.${!-} in *x*.*|*.?*)\\builtin eval '"
    "case $- in *x*)\\builtin set +x;CROFT_X=\"CROFT_X=;\\builtin set -x;\";;esac;"
    "case ${!-} in \"\");;*)\\builtin jobs -n >|\"%s\";;esac';;esac\n"
    "\\builtin printf '\\0(croft\\0%%s\\0%%s\\0%%s\\0\\0)croft\\0' "
    "\"${CROFT_Q-} $CROFT_S ${!-} $$ $EUID $-${CROFT_X-}\" \"${PWD-}\" \"${PATH-}\" 1<>'%s'||"
    "\\builtin eval '"
    "\\builtin printf \"\\e]7771;%%s;%%s\\a\" \"${CROFT_Q-}\" \"$CROFT_S\" >/dev/tty'\n"
    /* The report is out, what follows delays no answer. The dump is a write per variable. A new
     * shell that has not read it yet must not make it. */
    "case ${CROFT_N-} in '');;*)"
    "{ \\builtin declare -px;\\builtin declare -p CROFT_Q;} >|'%s'||:;;esac\n"
    "PS1= PS2=\n"
    "\\builtin printf -v CROFT_N ''\n" /* by printf: only if that did anything above */
    /* what others put there would write between two commands */
    "case ${#PROMPT_COMMAND[@]}${PROMPT_COMMAND-} in '1" PROMPT_COMMAND "');;*)\\builtin eval '"
    "\\builtin unset PROMPT_COMMAND;"
    "\\builtin export PROMPT_COMMAND='\\''" PROMPT_COMMAND "'\\''||:';;esac\n"
    "}\n";

/* A function named builtin hides the commands of the shell. It can be unset where unset itself
 * cannot be hidden: in POSIX mode. */
static const char prompt[] =
    "CROFT_R(){\n"
    "CROFT_S=$? CROFT_K=\n"
    "\\builtin printf -v CROFT_K 1\n"
    "case $CROFT_K in 1);;*)\n"
    "CROFT_K=$SHELLOPTS POSIXLY_CORRECT=1\n"
    "\\unset -f builtin enable\n"
    "case $CROFT_K in *posix*);;*)\\unset POSIXLY_CORRECT;;esac\n"
    "\\enable builtin\n"
    "\\builtin printf 'croft: removed the function builtin, which hid commands of the shell\\n' "
    ">/dev/tty;;esac\n"
    "CROFT_H \"$CROFT_S\"\n"
    "} 2>/dev/null\n";

void shell_script_hook(struct buf *b, const struct shell_files *f)
{
    buf_add_cstr(b, "CROFT_S=$?\ncase ${CROFT_L-} in $$);;*)\n");
    buf_addf(b, begin, f->command);
    buf_addf(b, report, f->jobs, f->report, f->env);
    buf_add_cstr(b, prompt);
    buf_add_cstr(b, "\\builtin readonly -f CROFT_B CROFT_H CROFT_R CROFT_V\n"
                    "\\builtin export -n CROFT_C CROFT_L CROFT_N CROFT_Q\n"
                    "CROFT_L=$$\n"
                    "\\builtin eval \"${CROFT_C-}\"\n"
                    "CROFT_H \"$CROFT_S\";;esac\n");
}

void shell_script_find_hook(struct buf *b, const struct shell_files *f)
{
    buf_addf(b, "\\builtin . \"%s\" 2>/dev/null", f->hook);
}

void shell_script_init(struct buf *b, const struct shell_files *f, bool restore)
{
    if (restore)
        buf_addf(b,
                 "CROFT_C=$CROFT_Q CROFT_K=$PWD;\\builtin . '%s' 2>/dev/null;"
                 "CROFT_Q=$CROFT_C PWD=$CROFT_K;",
                 f->env);
    buf_addf(b,
             "\\builtin unset HISTFILE;"
             "\\builtin trap '{ { \\builtin declare -px;\\builtin declare -p CROFT_Q;} >|\"%s\";"
             "\\builtin printf %%s \"$PWD\" >|\"%s\"; } 2>/dev/null' EXIT",
             f->env, f->cwd);
}

/* Every character of it stands for itself between quotes, on a terminal and in the history. */
bool shell_script_fits(struct str text)
{
    if (text.len > INLINE_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] < ' ' || text.p[i] > '~' || text.p[i] == '\'' || text.p[i] == '!')
            return false;
    return true;
}

/* A start-up file may have set another hook. The leading blank keeps a line out of the history. */
void shell_script_sure(struct buf *b, const struct shell_files *f)
{
    buf_addf(b, " case ${CROFT_L-} in $$);;*)\\builtin . '%s';;esac\n", f->hook);
}

void shell_script_line(struct buf *b, enum shell_line line, const char *sequence, struct str text)
{
    buf_addf(b, " CROFT_B %s;", sequence);
    if (line == SHELL_LINE_PLAIN)
        buf_addf(b, "\\builtin eval '" STR_FMT "'", STR_ARG(text));
    else if (line == SHELL_LINE_INLINE)
        buf_addf(b, "CROFT_V;\\builtin eval \"${CROFT_X-}\"'" STR_FMT "'", STR_ARG(text));
    else
        buf_add_cstr(b, "CROFT_V 1;\\builtin eval \"${CROFT_X-}$CROFT_C\"");
    buf_add_cstr(b, ";" REPORT "\n");
}

void shell_script_mark(struct buf *b, const char *sequence)
{
    buf_addf(b, "\033]7771;%s\a", sequence);
}
