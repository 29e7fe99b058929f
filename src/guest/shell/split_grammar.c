// SPDX-License-Identifier: Apache-2.0
/* split_grammar.c — words, operators and reserved words: where one command ends. */
#include <string.h>

#include "guest/shell/split_inner.h"

static bool in_command(const struct frame *f)
{
    return f->state <= STATE_AFTER;
}

void scan_comment(struct scan *s)
{
    const char *end = memchr(s->text.p + s->at, '\n', s->text.len - s->at);

    s->at = end ? (size_t)(end - s->text.p) : s->text.len;
}

/* --- reserved words --- */

static void open_loop(struct scan *s, bool is_for)
{
    scan_push(s, FRAME_LOOP);
    s->top->is_for = is_for;
    s->top->state = is_for ? STATE_FOR_NAME : STATE_START;
}

static void open_brace(struct scan *s)
{
    if (s->top->kind == FRAME_LOOP && s->top->is_for && !s->top->is_do)
        *s->top = (struct frame){.kind = FRAME_BRACE, .word = NO_WORD};
    else
        scan_push(s, FRAME_BRACE);
}

/* Words that begin something; false if w is an ordinary word. */
static bool opening_word(struct scan *s, struct str w)
{
    if (str_eq(w, STR("if"))) {
        scan_push(s, FRAME_IF);
    } else if (str_eq(w, STR("while")) || str_eq(w, STR("until"))) {
        open_loop(s, false);
    } else if (str_eq(w, STR("for"))) {
        open_loop(s, true);
    } else if (str_eq(w, STR("{"))) {
        open_brace(s);
    } else if (str_eq(w, STR("function"))) {
        s->top->state = STATE_FUNC_NAME;
    } else if (str_eq(w, STR("!"))) {
        return true;
    } else {
        return false;
    }
    return true;
}

/* The same for those that bashlex cannot parse. */
static bool opening_word_unsure(struct scan *s, struct str w)
{
    if (str_eq(w, STR("case"))) {
        scan_push(s, FRAME_CASE);
        s->top->state = STATE_CASE_WORD;
    } else if (str_eq(w, STR("select"))) {
        open_loop(s, true);
    } else if (str_eq(w, STR("[["))) {
        scan_push(s, FRAME_COND);
    } else if (!str_eq(w, STR("time")) && !str_eq(w, STR("coproc"))) {
        return false;
    }
    s->unsure = true;
    return true;
}

static void close_frame(struct scan *s, bool fits)
{
    if (!fits) {
        s->bad = true;
        return;
    }
    scan_pop(s);
    s->top->state = STATE_AFTER;
}

/* Words that end or divide a compound command; false if w is none of them. */
static bool closing_word(struct scan *s, struct str w)
{
    struct frame *f = s->top;

    if (str_eq(w, STR("then")) || str_eq(w, STR("else")) || str_eq(w, STR("elif"))) {
        s->bad |= f->kind != FRAME_IF;
        f->state = STATE_START;
    } else if (str_eq(w, STR("do"))) {
        s->bad |= f->kind != FRAME_LOOP || f->is_do;
        f->is_do = true;
        f->state = STATE_START;
    } else if (str_eq(w, STR("done"))) {
        close_frame(s, f->kind == FRAME_LOOP && f->is_do);
    } else if (str_eq(w, STR("fi"))) {
        close_frame(s, f->kind == FRAME_IF);
    } else if (str_eq(w, STR("esac"))) {
        close_frame(s, f->kind == FRAME_CASE);
    } else if (str_eq(w, STR("}"))) {
        close_frame(s, f->kind == FRAME_BRACE);
    } else {
        return false;
    }
    return true;
}

static void command_word(struct scan *s, struct str w, bool plain)
{
    struct frame *f = s->top;
    bool after = f->state == STATE_AFTER;

    if (plain && closing_word(s, w))
        return;
    if (after)
        s->bad = true;
    if (after || (plain && (opening_word(s, w) || opening_word_unsure(s, w))))
        return;
    f->state = STATE_ARGS;
    f->named = plain;
}

void scan_word_end(struct scan *s)
{
    struct frame *f = s->top;
    struct str w = scan_word(s);
    bool plain = !f->word_quoted;

    f->word = NO_WORD;
    f->word_quoted = false;
    if (f->redirect) {
        f->redirect = false;
        if (f->state == STATE_START)
            f->state = STATE_ARGS;
        return;
    }
    switch (f->state) {
    case STATE_START:
    case STATE_AFTER:
        command_word(s, w, plain);
        break;
    case STATE_ARGS:
        f->named = false;
        break;
    case STATE_FUNC_NAME:
        f->state = STATE_START;
        f->need_more = true;
        break;
    case STATE_FOR_NAME:
        f->state = STATE_FOR_IN;
        break;
    case STATE_FOR_IN:
        if (plain && str_eq(w, STR("in")))
            f->state = STATE_ARGS;
        else if (!plain || !str_eq(w, STR("do")) || !closing_word(s, w))
            s->bad = true;
        break;
    case STATE_CASE_WORD:
        f->state = STATE_CASE_IN;
        break;
    case STATE_CASE_IN:
        s->bad |= !plain || !str_eq(w, STR("in"));
        f->state = STATE_CASE_PATTERN;
        break;
    case STATE_CASE_PATTERN:
        f->state = STATE_CASE_NEXT;
        if (plain && str_eq(w, STR("esac")))
            close_frame(s, true);
        break;
    case STATE_CASE_NEXT:
        s->bad = true;
        break;
    }
}

/* --- here-documents --- */

static void read_bodies(struct scan *s)
{
    for (size_t i = 0; i < s->heredocs_len; i++) {
        const struct heredoc *h = &s->heredocs[i];
        bool joined = false, found = false;
        while (!found && s->at < s->text.len) {
            struct str line = str_from(s->text, s->at);
            ptrdiff_t nl = str_find_char(line, '\n');
            line.len = nl < 0 ? line.len : (size_t)nl;
            size_t line_start = s->at;
            s->at += line.len + (nl >= 0);
            struct str body = line;
            while (h->strip_tabs && body.len && body.p[0] == '\t')
                body = str_from(body, 1);
            if (!joined && str_eq(body, h->delimiter)) {
                found = true;
            } else if (!joined && s->top->kind == FRAME_SUB && body.len > h->delimiter.len &&
                       str_starts(body, h->delimiter) && body.p[h->delimiter.len] == ')') {
                s->unsure = found = true; /* $(cat <<E … E): bash warns and accepts it */
                s->at = line_start + (size_t)(body.p - line.p) + h->delimiter.len;
            }
            size_t slashes = 0;
            while (slashes < line.len && line.p[line.len - 1 - slashes] == '\\')
                slashes++;
            joined = !h->quoted && slashes % 2 == 1;
        }
        s->open |= !found;
    }
    s->heredocs_len = 0;
}

/* The word behind <<, its quotes removed. */
static void read_delimiter(struct scan *s, struct heredoc *h)
{
    struct str rest = str_from(s->text, s->at);
    char *out = arena_alloc(s->arena, rest.len < 4096 ? rest.len : 4096);
    size_t n = 0;
    char quote = 0;

    for (; s->at < s->text.len && n < 4096; s->at++) {
        char c = s->text.p[s->at];
        if (quote ? c == quote : c == '\'' || c == '"') {
            quote = quote ? 0 : c;
            h->quoted = true;
            continue;
        }
        if (!quote && char_in(c, STR(" \t\n;&|<>()")))
            break;
        if (!quote && c == '\\' && s->at + 1 < s->text.len) {
            h->quoted = true;
            c = s->text.p[++s->at];
        }
        if (out)
            out[n] = c;
        n++;
    }
    s->failed |= !out;
    s->open |= quote != 0;
    s->bad |= !out || n == 4096 || (n == 0 && !h->quoted);
    h->delimiter = str_n(out, n);
}

static void open_heredoc(struct scan *s, bool strip_tabs)
{
    if (s->heredocs_len == HEREDOCS_MAX) {
        s->bad = true;
        return;
    }
    while (s->at < s->text.len && (s->text.p[s->at] == ' ' || s->text.p[s->at] == '\t'))
        s->at++;
    struct heredoc *h = &s->heredocs[s->heredocs_len++];
    *h = (struct heredoc){.strip_tabs = strip_tabs};
    read_delimiter(s, h);
    if (s->top->state == STATE_START)
        s->top->state = STATE_ARGS;
    s->top->named = false;
}

/* --- operators --- */

static void end_word(struct scan *s)
{
    if (s->top->word != NO_WORD)
        scan_word_end(s);
}

static void step_newline(struct scan *s)
{
    end_word(s);
    if (s->bad)
        return;
    struct frame *f = s->top;
    s->at++;
    read_bodies(s);
    s->bad |= f->redirect;
    switch (f->state) {
    case STATE_CASE_IN:
    case STATE_CASE_PATTERN:
        return;
    case STATE_FUNC_NAME:
    case STATE_FOR_NAME:
    case STATE_CASE_WORD:
    case STATE_CASE_NEXT:
        s->bad = true;
        return;
    default:
        break;
    }
    if (f->need_more)
        return;
    f->state = STATE_START;
    if (s->depth == 1)
        s->in_part = false;
}

/* An operator that must follow a command; more: another command must come. */
static void grammar_separator(struct scan *s, size_t len, bool more)
{
    struct frame *f = s->top;

    s->at += len;
    if (f->state == STATE_FOR_IN && len == 1 && !more)
        f->state = STATE_ARGS;
    s->bad |= f->redirect || (f->state != STATE_ARGS && f->state != STATE_AFTER);
    f->state = STATE_START;
    f->need_more = more;
}

static void step_semicolon(struct scan *s)
{
    struct frame *f = s->top;
    size_t len = scan_at(s, STR(";;&"))                           ? 3
                 : scan_at(s, STR(";;")) || scan_at(s, STR(";&")) ? 2
                                                                  : 1;

    if (len == 1) {
        grammar_separator(s, 1, false);
        return;
    }
    s->bad |= f->kind != FRAME_CASE || !in_command(f) || f->need_more || f->redirect;
    s->at += len;
    f->state = STATE_CASE_PATTERN;
}

static void grammar_redirect(struct scan *s, size_t len)
{
    struct frame *f = s->top;

    s->bad |= f->redirect || !in_command(f);
    if (f->state == STATE_START)
        scan_begin(s, s->at);
    s->at += len;
    f->redirect = true;
    f->named = false;
}

static void step_ampersand(struct scan *s)
{
    if (scan_at(s, STR("&&")))
        grammar_separator(s, 2, true);
    else if (scan_at(s, STR("&>>")))
        grammar_redirect(s, 3);
    else if (scan_at(s, STR("&>")))
        grammar_redirect(s, 2);
    else
        grammar_separator(s, 1, false);
}

static void step_bar(struct scan *s)
{
    if (s->top->state == STATE_CASE_NEXT) {
        s->at++;
        s->top->state = STATE_CASE_PATTERN;
        return;
    }
    grammar_separator(s, scan_at(s, STR("||")) || scan_at(s, STR("|&")) ? 2 : 1, true);
}

static bool is_fd_word(struct str w)
{
    if (w.len > 2 && w.p[0] == '{' && w.p[w.len - 1] == '}')
        return true;
    for (size_t i = 0; i < w.len; i++)
        if (!isdigit((unsigned char)w.p[i]))
            return false;
    return w.len > 0;
}

static void step_angle(struct scan *s)
{
    static const struct str two[] = {STR_INIT("<&"), STR_INIT("<>"), STR_INIT(">>"),
                                     STR_INIT(">&"), STR_INIT(">|"), STR_INIT("<(")};

    if (s->top->word != NO_WORD && !s->top->word_quoted && is_fd_word(scan_word(s)))
        s->top->word = NO_WORD;
    end_word(s);
    if (s->bad)
        return;
    if (scan_at(s, STR("<<<"))) {
        grammar_redirect(s, 3);
        return;
    }
    if (scan_at(s, STR("<<"))) {
        bool tabs = scan_at(s, STR("<<-"));
        grammar_redirect(s, tabs ? 3 : 2);
        s->top->redirect = false;
        open_heredoc(s, tabs);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(two); i++) {
        if (scan_at(s, two[i])) {
            grammar_redirect(s, 2);
            return;
        }
    }
    grammar_redirect(s, 1);
}

/* Position of a ')' that follows with nothing but blanks between, or 0. */
static size_t closing_follows(const struct scan *s)
{
    size_t i = s->at + 1;

    while (i < s->text.len && (s->text.p[i] == ' ' || s->text.p[i] == '\t'))
        i++;
    return i < s->text.len && s->text.p[i] == ')' ? i : 0;
}

static void function_parens(struct scan *s, size_t close)
{
    struct frame *f = s->top;

    s->at = close + 1;
    f->word = NO_WORD;
    f->word_quoted = f->named = false;
    f->state = STATE_START;
    f->need_more = true;
}

static void paren_in_word(struct scan *s)
{
    struct str w = scan_word(s);
    size_t close = closing_follows(s);

    if (s->top->state == STATE_START && !s->top->word_quoted && close) {
        function_parens(s, close);
    } else if (char_in(w.p[w.len - 1], STR("=?*+@!"))) {
        s->unsure = true;
        s->top->word_quoted = true;
        s->at++;
        scan_push(s, FRAME_ARRAY);
    } else {
        s->bad = true;
    }
}

static void step_open_paren(struct scan *s)
{
    struct frame *f = s->top;
    size_t close = closing_follows(s);

    if (f->word != NO_WORD) {
        paren_in_word(s);
    } else if (f->state == STATE_CASE_PATTERN) {
        s->at++;
    } else if (close && ((f->state == STATE_ARGS && f->named) ||
                         (f->state == STATE_START && f->need_more))) {
        function_parens(s, close);
    } else if (f->redirect || (f->state != STATE_START && f->state != STATE_FOR_NAME)) {
        s->bad = true;
    } else if (scan_at(s, STR("(("))) {
        scan_begin(s, s->at);
        s->unsure = true;
        s->at += 2;
        scan_push(s, FRAME_ARITH);
    } else {
        scan_begin(s, s->at);
        s->bad |= f->state != STATE_START;
        s->at++;
        scan_push(s, FRAME_PAREN);
    }
}

static void step_close_paren(struct scan *s)
{
    struct frame *f = s->top;

    s->at++;
    if (f->kind == FRAME_CASE && f->state == STATE_CASE_NEXT) {
        f->state = STATE_START;
        return;
    }
    bool is_sub = f->kind == FRAME_SUB;
    if ((!is_sub && f->kind != FRAME_PAREN) || !in_command(f) || f->redirect || f->need_more) {
        s->bad = true;
        return;
    }
    scan_pop(s);
    if (!is_sub)
        s->top->state = STATE_AFTER;
}

static void step_word(struct scan *s)
{
    struct frame *f = s->top;

    if (scan_at(s, STR("\\\n"))) {
        s->at += 2;
        return;
    }
    if (f->word == NO_WORD) {
        f->word = s->at;
        if (f->state == STATE_START && !f->redirect)
            scan_begin(s, s->at);
    }
    size_t before = s->at;
    if (scan_at(s, STR("<(")) || scan_at(s, STR(">("))) {
        f->word_quoted = true;
        s->at += 2;
        scan_push(s, FRAME_SUB);
    } else if (char_in(s->text.p[before], STR("\\'\"`$"))) {
        f->word_quoted = true;
        if (!scan_quoting(s))
            s->at++;
    } else {
        s->at++;
    }
}

void scan_command_step(struct scan *s)
{
    char c = s->text.p[s->at];
    bool angle = c == '<' || c == '>';

    if (angle && s->at + 1 < s->text.len && s->text.p[s->at + 1] == '(') {
        step_word(s);
        return;
    }
    if (c == '(') {
        step_open_paren(s);
        return;
    }
    if (c == '#' && s->top->word == NO_WORD) {
        scan_comment(s);
        return;
    }
    if (angle) {
        step_angle(s);
        return;
    }
    if (!char_in(c, STR(" \t\n;&|)"))) {
        step_word(s);
        return;
    }
    end_word(s);
    if (s->bad || s->top->kind > FRAME_COMMANDS_LAST)
        return; /* the word opened [[ */
    if (c == '\n')
        step_newline(s);
    else if (c == ';')
        step_semicolon(s);
    else if (c == '&')
        step_ampersand(s);
    else if (c == '|')
        step_bar(s);
    else if (c == ')')
        step_close_paren(s);
    else
        s->at++;
}
