// SPDX-License-Identifier: Apache-2.0
/* count.c — the actions of sandboxes, counted from outside. It reads the word in the first bytes of
 * a request, the word in the first bytes of its answer, and the time between.
 *
 * The sandbox is not asked, and not believed: a word that is not in the list is "other". */
#include "host/proxy/inner.h"
#include "host/proxy/peek.h"

#define CUT_LEAST 30000 /* an answer that was cut is not shorter */

static const char cut_mark[] = "[... Observation truncated due to length ...]";

static const char *const actions[] = {
    "run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive", "call_tool_mcp"};

static const char *count_known(struct str word)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        if (str_eq(word, str_of(actions[i])))
            return actions[i];
    return "other";
}

static enum count_kind kind_of(const struct http_req *req)
{
    struct str path = req->path;

    if (str_eq(req->head.method, STR("POST"))) {
        if (str_ends(path, STR("/execute_action")))
            return COUNT_ACTION;
        if (str_find(path, STR("/croft/v1/shells/")) < 0)
            return COUNT_NOTHING;
        return str_ends(path, STR("/run")) ? COUNT_RUN : COUNT_SHELL;
    }
    bool live = str_ends(path, STR("/output")) && str_find(path, STR("/croft/v1/shells/")) >= 0;
    return live ? COUNT_LIVE : COUNT_NOTHING;
}

void count_begin(struct call *c)
{
    if (c->inside)
        return;
    c->kind = (uint8_t)kind_of(c->req);
    c->asked_ns = c->target->last_ns;
    if (c->kind == COUNT_RUN)
        c->action = actions[0];
}

void count_asked(struct call *c, struct str piece)
{
    if (c->kind == COUNT_ACTION && !c->action)
        c->action = count_known(peek_member(piece, 2, STR("action")));
}

void count_head(struct call *c, const struct http_head *h)
{
    bool commands = c->kind == COUNT_RUN || (c->kind == COUNT_ACTION && c->action == actions[0]);

    c->result = h->status < 400 ? "ok" : h->status < 500 ? "refused" : "error";
    c->output = c->kind == COUNT_LIVE || commands;
    c->look = c->kind == COUNT_ACTION;
    c->may_be_cut = commands && (h->framing != HTTP_LENGTH || h->length >= CUT_LEAST);
}

/* The mark begins with a character that it does not have again. */
static void look_for_cut(struct call *c, struct str piece)
{
    for (size_t i = 0; i < piece.len; i++) {
        char at = piece.p[i];
        c->marked = at == cut_mark[c->marked] ? c->marked + 1 : at == cut_mark[0];
        if (c->marked < sizeof cut_mark - 1)
            continue;
        c->p->stats.cut++;
        c->may_be_cut = false;
        return;
    }
}

void count_answered(struct call *c, struct str piece)
{
    if (c->look) {
        c->look = false;
        if (str_eq(peek_member(piece, 1, STR("observation")), STR("error")))
            c->result = "error";
    }
    if (c->output)
        c->p->stats.output_bytes[c->kind == COUNT_LIVE] += piece.len;
    if (c->may_be_cut)
        look_for_cut(c, piece);
}

/* A request that never got inside was no action. */
void count_end(const struct call *c)
{
    const struct proxy_watch *watch = &c->p->watch;

    if ((c->kind == COUNT_ACTION || c->kind == COUNT_RUN) && c->state >= CALL_HEAD &&
        watch->on_action)
        watch->on_action(watch->ctx, c->action ? c->action : "other", c->whole ? c->result : "lost",
                         clock_mono_ns(loop_clock(c->p->loop)) - c->asked_ns);
}
