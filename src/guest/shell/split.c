// SPDX-License-Identifier: Apache-2.0
/* split.c — a scanner with a stack of open constructs instead of a grammar.
 *
 * It knows just enough of bash to see where a top-level command ends. Two ways out make it safe:
 * `unsure` (a construct bashlex cannot parse, or that we cannot judge) and `bad` (bash will report
 * a syntax error) both mean "one command". */
#include "guest/shell/split.h"

#include <string.h>

#include "guest/shell/split_inner.h"

struct str scan_word(const struct scan *s)
{
    return str_n(s->text.p + s->top->word, s->at - s->top->word);
}

bool scan_at(const struct scan *s, struct str what)
{
    return str_starts(str_from(s->text, s->at), what);
}

void scan_push(struct scan *s, enum frame_kind kind)
{
    if (s->depth == SCAN_DEPTH_MAX || s->failed) {
        s->bad = true;
        return;
    }
    if (s->depth == s->cap) {
        size_t cap = s->cap * 2;
        struct frame *grown = arena_alloc(s->arena, cap * sizeof *grown);
        if (!grown) {
            s->bad = s->failed = true;
            return;
        }
        memcpy(grown, s->frames, s->depth * sizeof *grown);
        s->frames = grown;
        s->cap = cap;
    }
    s->frames[s->depth++] = (struct frame){.kind = kind, .word = NO_WORD};
    s->top = &s->frames[s->depth - 1];
}

void scan_pop(struct scan *s)
{
    s->depth--;
    s->top = &s->frames[s->depth - 1];
}

/* A simple command or compound begins here; at the top level it may begin a part. */
void scan_begin(struct scan *s, size_t at)
{
    s->top->need_more = false;
    if (s->depth > 1 || s->in_part)
        return;
    s->in_part = true;
    if (s->starts_len == s->starts_cap) {
        size_t cap = s->starts_cap ? s->starts_cap * 2 : 16;
        size_t *grown = arena_alloc(s->arena, cap * sizeof *grown);
        if (!grown) {
            s->bad = s->failed = true;
            return;
        }
        if (s->starts_len)
            memcpy(grown, s->starts, s->starts_len * sizeof *grown);
        s->starts = grown;
        s->starts_cap = cap;
    }
    s->starts[s->starts_len++] = at;
}

/* --- quotes and expansions: their ends do not depend on the command grammar --- */

static void skip_single_quotes(struct scan *s, bool escapes)
{
    for (s->at++; s->at < s->text.len; s->at++) {
        char c = s->text.p[s->at];
        if (escapes && c == '\\') {
            s->at++;
        } else if (c == '\'') {
            s->at++;
            return;
        }
    }
    s->open = true;
}

static void skip_backticks(struct scan *s)
{
    for (s->at++; s->at < s->text.len; s->at++) {
        char c = s->text.p[s->at];
        if (c == '\\') {
            s->at++;
        } else if (c == '`') {
            s->at++;
            return;
        }
    }
    s->open = true;
}

/* Inside "${x:-'}" a single quote is a plain character, inside "${x#'}'}" it is not. */
static bool param_is_pattern(struct str rest)
{
    size_t i = 0;

    while (i < rest.len && (rest.p[i] == '!' || rest.p[i] == '#'))
        i++;
    while (i < rest.len && (isalnum((unsigned char)rest.p[i]) || rest.p[i] == '_'))
        i++;
    return i < rest.len && char_in(rest.p[i], STR("#%/^,"));
}

static void open_param(struct scan *s, bool quoted)
{
    s->at += 2;
    bool literal_quote = quoted && !param_is_pattern(str_from(s->text, s->at));
    scan_push(s, FRAME_PARAM);
    s->top->literal_quote = literal_quote;
}

/* After '$'. True if something was opened or skipped. */
static bool scan_dollar(struct scan *s, bool quoted)
{
    if (scan_at(s, STR("$(("))) {
        s->unsure = true;
        s->at += 3;
        scan_push(s, FRAME_ARITH);
        s->top->sub = true;
    } else if (scan_at(s, STR("$("))) {
        s->at += 2;
        scan_push(s, FRAME_SUB);
    } else if (scan_at(s, STR("${"))) {
        open_param(s, quoted);
    } else if (!quoted && scan_at(s, STR("$'"))) {
        s->at++;
        skip_single_quotes(s, true);
    } else {
        return false;
    }
    return true;
}

/* Takes quoting that any word may have. False: the character is an ordinary one, not yet
 * consumed. */
bool scan_quoting(struct scan *s)
{
    switch (s->text.p[s->at]) {
    case '\\':
        if (s->at + 1 == s->text.len)
            s->open = true; /* a line to be continued */
        s->at += 2;
        return true;
    case '\'':
        skip_single_quotes(s, false);
        return true;
    case '"':
        s->at++;
        scan_push(s, FRAME_QUOTE);
        return true;
    case '`':
        skip_backticks(s);
        return true;
    case '$':
        return scan_dollar(s, false);
    default:
        return false;
    }
}

static void step_quote(struct scan *s)
{
    char c = s->text.p[s->at];

    if (c == '"') {
        s->at++;
        scan_pop(s);
    } else if (c == '$') {
        if (!scan_dollar(s, true))
            s->at++;
    } else if (c == '\'' || !scan_quoting(s)) {
        s->at++;
    }
}

static void step_param(struct scan *s)
{
    char c = s->text.p[s->at];

    if (c == '}') {
        s->at++;
        scan_pop(s);
    } else if (c == '\'' && s->top->literal_quote) {
        s->unsure = true;
        s->at++;
    } else if (!scan_quoting(s)) {
        s->at++;
    }
}

/* $(( … )) and (( … )); a lone ')' says that it was two nested subshells after all. */
static void step_arith(struct scan *s)
{
    char c = s->text.p[s->at];

    if (c == '(') {
        s->top->parens++;
        s->at++;
    } else if (c == ')' && s->top->parens > 0) {
        s->top->parens--;
        s->at++;
    } else if (scan_at(s, STR("))"))) {
        bool sub = s->top->sub;
        s->at += 2;
        scan_pop(s);
        if (!sub)
            s->top->state = STATE_AFTER;
    } else if (c == ')') {
        s->at++;
        s->top->kind = s->top->sub ? FRAME_SUB : FRAME_PAREN;
        s->top->state = STATE_AFTER;
    } else if (!scan_quoting(s)) {
        s->at++;
    }
}

static void step_array(struct scan *s)
{
    char c = s->text.p[s->at];

    if (c == ')') {
        s->at++;
        scan_pop(s);
    } else if (c == '#' && (s->text.p[s->at - 1] == '\n' || s->text.p[s->at - 1] == ' ' ||
                            s->text.p[s->at - 1] == '\t' || s->text.p[s->at - 1] == '(')) {
        scan_comment(s);
    } else if (c == '(') {
        s->at++;
        scan_push(s, FRAME_ARRAY);
    } else if (!scan_quoting(s)) {
        s->at++;
    }
}

/* [[ … ]]: ends at the word ]]; parentheses of a regular expression are of no interest. */
static void step_cond(struct scan *s)
{
    struct frame *f = s->top;
    char c = s->text.p[s->at];

    if (c == ' ' || c == '\t' || c == '\n' || c == ')' || c == ';' || c == '&' || c == '|') {
        f->word = NO_WORD;
        s->at++;
    } else if (f->word == NO_WORD && scan_at(s, STR("]]")) &&
               (s->at + 2 == s->text.len || char_in(s->text.p[s->at + 2], STR(" \t\n;&|)")))) {
        s->at += 2;
        scan_pop(s);
        s->top->state = STATE_AFTER;
    } else {
        if (f->word == NO_WORD)
            f->word = s->at;
        if (!scan_quoting(s))
            s->at++;
    }
}

static void split_step(struct scan *s)
{
    switch (s->top->kind) {
    case FRAME_QUOTE:
        step_quote(s);
        break;
    case FRAME_PARAM:
        step_param(s);
        break;
    case FRAME_ARITH:
        step_arith(s);
        break;
    case FRAME_ARRAY:
        step_array(s);
        break;
    case FRAME_COND:
        step_cond(s);
        break;
    default:
        scan_command_step(s);
        break;
    }
}

static fallible cut_parts(struct scan *s, struct split *ret)
{
    ret->parts = arena_alloc(s->arena, s->starts_len * sizeof *ret->parts);
    if (!ret->parts)
        return arena_check(s->arena);
    for (size_t i = 0; i < s->starts_len; i++) {
        size_t end = i + 1 < s->starts_len ? s->starts[i + 1] : s->text.len;
        struct str part = str_n(s->text.p + s->starts[i], end - s->starts[i]);
        while (part.len > 1 && isspace((unsigned char)part.p[part.len - 1]))
            part.len--;
        ret->parts[i] = part;
    }
    ret->count = s->starts_len;
    return NULL;
}

fallible split_commands(struct arena *arena, struct str text, struct split *ret_split)
{
    struct scan s = {.arena = arena, .text = text, .cap = 32};
    struct split out = {.verdict = SPLIT_ONE};

    s.frames = arena_alloc(arena, s.cap * sizeof *s.frames);
    if (!s.frames)
        return arena_check(arena);
    scan_push(&s, FRAME_TOP);
    while (s.at < text.len && !s.bad)
        split_step(&s);
    if (s.at > text.len)
        s.at = text.len;
    if (!s.bad && !s.open && s.top->word != NO_WORD && s.top->kind <= FRAME_COMMANDS_LAST)
        scan_word_end(&s);
    if (s.failed)
        return arena_check(arena);
    if (!s.bad && (s.open || s.depth > 1 || s.top->need_more || s.heredocs_len))
        out.verdict = SPLIT_INCOMPLETE;
    else if (!s.bad && !s.unsure && s.starts_len > 1)
        out.verdict = SPLIT_SEVERAL;
    if (out.verdict == SPLIT_SEVERAL)
        TRY(cut_parts(&s, &out));
    *ret_split = out;
    return NULL;
}
