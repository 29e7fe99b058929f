// SPDX-License-Identifier: Apache-2.0
/* split_inner.h — what the two halves of the splitter share: split.c has quotes and expansions,
 * split_grammar.c the words and operators of commands. */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

enum frame_kind {
    FRAME_TOP,
    FRAME_PAREN, /* ( … ) */
    FRAME_SUB,   /* $( … ), <( … ) */
    FRAME_BRACE, /* { …; } */
    FRAME_IF,
    FRAME_LOOP, /* for, while, until, select */
    FRAME_CASE,
    FRAME_COMMANDS_LAST = FRAME_CASE, /* those above hold commands, those below do not */
    FRAME_QUOTE,                      /* " … " */
    FRAME_PARAM,                      /* ${ … } */
    FRAME_ARITH,                      /* $(( … )), (( … )) */
    FRAME_ARRAY,                      /* a=( … ) and extended patterns */
    FRAME_COND,                       /* [[ … ]] */
};

enum scan_state {
    STATE_START, /* a command may begin: reserved words count */
    STATE_ARGS,
    STATE_AFTER,     /* behind a compound command: only operators, redirections and closing words */
    STATE_FUNC_NAME, /* behind `function` */
    STATE_FOR_NAME,  /* behind `for` or `select` */
    STATE_FOR_IN,    /* behind the variable of a loop */
    STATE_CASE_WORD, /* behind `case` */
    STATE_CASE_IN,
    STATE_CASE_PATTERN,
    STATE_CASE_NEXT, /* inside a pattern: | or ) must come */
};

#define NO_WORD        SIZE_MAX
#define SCAN_DEPTH_MAX 10000u
#define HEREDOCS_MAX   256u

struct frame {
    enum frame_kind kind;
    enum scan_state state;
    size_t word;        /* where the word being read began */
    uint32_t parens;    /* FRAME_ARITH: open inside it */
    bool word_quoted;   /* the word is not plain text: no reserved word, no name */
    bool named;         /* one plain word so far: "()" would make it a function */
    bool redirect;      /* the next word is the target of a redirection */
    bool need_more;     /* behind && || | or f(): a newline ends nothing */
    bool is_do;         /* FRAME_LOOP: its body has begun */
    bool is_for;        /* FRAME_LOOP: for or select, whose body may stand in braces */
    bool sub;           /* FRAME_ARITH: $(( rather than (( */
    bool literal_quote; /* FRAME_PARAM: a single quote is an ordinary character */
};

struct heredoc {
    struct str delimiter; /* without its quotes */
    bool strip_tabs, quoted;
};

struct scan {
    struct arena *arena;
    struct str text;
    size_t at;
    struct frame *frames, *top;
    size_t depth, cap;
    struct heredoc heredocs[HEREDOCS_MAX]; /* announced, their bodies begin after this line */
    size_t heredocs_len;
    size_t *starts;
    size_t starts_len, starts_cap;
    bool in_part;
    bool open;   /* the text ends inside a quote, here-document or continued line */
    bool unsure; /* more than one part would be a guess */
    bool bad;    /* a syntax error, or too deep to say */
    bool failed; /* no memory */
};

static inline bool char_in(char c, struct str set)
{
    return str_find_char(set, c) >= 0;
}

struct str scan_word(const struct scan *s);
bool scan_at(const struct scan *s, struct str what);
void scan_push(struct scan *s, enum frame_kind kind);
void scan_pop(struct scan *s);
void scan_begin(struct scan *s, size_t at);
bool scan_quoting(struct scan *s);

void scan_command_step(struct scan *s);
void scan_word_end(struct scan *s);
void scan_comment(struct scan *s);
