// SPDX-License-Identifier: Apache-2.0
/* document.c — see document.h. The editor runs twice: first to find out whether it wants
 * the Markdown at all, then with it. */
#include "guest/exec/document.h"

#include "base/embed.h"
#include "guest/exec/act.h"
#include "guest/exec/inner.h"
#include "guest/tool/tool.h"

EMBED_ELSEWHERE(jupyter_skills);

struct document { /* in the arena of its action */
    struct editor ed;
    struct editor_args args;
    struct act *act;
    void (*done)(struct act *act, const struct edit_result *r);
    struct tool *tool;
    bool wanted, read, failed;
    struct str text; /* or why not */
};

static fallible to_markdown(const struct editor *ed, struct str path, struct arena *a,
                            struct str *ret_text)
{
    struct document *d = container_of((struct editor *)ed, struct document, ed);

    (void)path;
    (void)a;
    d->wanted = true;
    if (!d->read || d->failed)
        return err_new(ERR_UNSUPPORTED, STR_FMT, STR_ARG(d->text));
    *ret_text = d->text;
    return NULL;
}

static fallible run_editor(struct document *d, struct edit_result *ret_result)
{
    *ret_result = (struct edit_result){0};
    return editor_run(&d->ed, &d->args, &d->act->arena, ret_result);
}

static void document_finish(struct document *d)
{
    struct edit_result r;

    d->read = true;
    struct err *e = run_editor(d, &r);
    if (e)
        act_fail(d->act, e);
    else
        d->done(d->act, &r);
}

static void stop_document(struct act *act)
{
    tool_stop(((struct document *)act->user)->tool);
}

static void on_read(void *arg, const struct tool_result *r)
{
    struct document *d = arg;

    d->failed = r->exit_code != 0;
    d->text = arena_copy(&d->act->arena, r->output);
    if (r->timed_out)
        d->text = STR("it took too long");
    else if (d->failed && !r->output.len)
        d->text = arena_printf(&d->act->arena, "the reader ended with status %d", r->exit_code);
    document_finish(d);
}

static fallible start_reader(struct document *d)
{
    struct exec *e = d->act->exec;
    own_done(buf) script;
    const char *argv[] = {"python3", "-I", "-", arena_cstr(&d->act->arena, d->args.path), NULL};

    buf_init(&script, 256u << 10);
    TRY(inflate_all(EMBEDDED(jupyter_skills), &script));
    buf_add_cstr(&script, "\n_print_markdown()\n");
    TRY(buf_check(&script));
    TRY(arena_check(&d->act->arena));
    struct tool_config config = {
        .argv = argv,
        .env = e->env,
        .user = e->run_as,
        .spawner = e->spawner,
        .input = buf_str(&script),
        .limit_ms = DOCUMENT_LIMIT_MS,
        .done = on_read,
        .arg = d,
    };
    return tool_run(e->loop, &config, &d->tool);
}

fallible document_run(struct act *act, const struct editor *ed, const struct editor_args *args,
                      void (*done)(struct act *act, const struct edit_result *r))
{
    struct document *d = arena_new(&act->arena, struct document);
    struct edit_result r;

    if (!d)
        return arena_check(&act->arena);
    *d = (struct document){.ed = *ed, .args = *args, .act = act, .done = done};
    d->ed.to_markdown = to_markdown;
    TRY(run_editor(d, &r));
    if (!d->wanted) {
        done(act, &r);
        return NULL;
    }
    d->ed.space.cwd = arena_copy(&act->arena, ed->space.cwd); /* the shell may move meanwhile */
    struct err *e = start_reader(d);
    if (!e) {
        act->user = d;
        act->stop = stop_document;
        return NULL;
    }
    d->failed = true;
    d->text = arena_copy(&act->arena, str_of(err_text(e)));
    err_free(e);
    document_finish(d);
    return NULL;
}
