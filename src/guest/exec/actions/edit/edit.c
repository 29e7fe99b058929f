// SPDX-License-Identifier: Apache-2.0
/* edit.c — the editor's commands as an action. With ENABLE_AUTO_LINT an edit also says what it
 * broke, once the language's own tool has looked at it. */
#include "guest/edit/editor.h"
#include "guest/edit/lint.h"
#include "guest/exec/act.h"
#include "guest/exec/document.h"
#include "guest/exec/inner.h"
#include "guest/proc/env.h"
#include "wire/api.h"

struct edit_act {
    struct act *act;
    struct edit_result r;
    struct lint *lint;
};

static void edit_observe(struct act *act, const struct edit_result *r)
{
    const struct wire_edit *edit = &act->action.edit;
    struct wire_observation o;

    if (r->kind == EDIT_EXCEPTION) {
        act_fail(act, err_new(ERR_INVALID, STR_FMT, STR_ARG(r->content)));
        return;
    }
    wire_observation_init(&o, WIRE_OBS_EDIT);
    o.content = r->content;
    o.edit.path = edit->path;
    o.edit.old_content = edit->old_str;
    o.edit.new_content = edit->new_str;
    o.edit.impl_source = edit->impl_source;
    o.edit.diff = r->diff;
    act_done(act, &o);
}

static void stop_lint(struct act *act)
{
    lint_free(((struct edit_act *)act->user)->lint);
}

static void on_linted(struct lint *l, struct str text, void *of)
{
    struct edit_act *e = of;
    struct err *error = lint_insert(&e->act->arena, &e->r, text);

    lint_free(l);
    if (error)
        act_fail(e->act, error);
    else
        edit_observe(e->act, &e->r);
}

static bool wants_lint(const struct exec *e)
{
    const char *word = proc_env_get((char *const *)e->config->envp, "ENABLE_AUTO_LINT");
    bool on = false;

    return word && wire_parse_bool(str_of(word), &on) && on;
}

/* The edit is done; the answer waits for the tool. */
static fallible start_lint(struct act *act, const struct edit_result *r)
{
    struct edit_act *e = arena_new(&act->arena, struct edit_act);
    const char *path = proc_env_get((char *const *)act->exec->env, "PATH");
    struct lint_args args = {
        .path = r->path,
        .old_text = r->old_text,
        .new_text = r->new_text,
        .search_path = path ? path : "/usr/local/bin:/usr/bin:/bin",
        .user = act->exec->run_as,
        .spawner = act->exec->spawner,
        .done = on_linted,
        .of = e,
    };

    if (!e)
        return arena_check(&act->arena);
    *e = (struct edit_act){.act = act, .r = *r};
    TRY(lint_start(act->exec->loop, &args, &e->lint));
    act->user = e;
    act->stop = stop_lint;
    return NULL;
}

static void on_edited(struct act *act, const struct edit_result *r)
{
    if (r->kind != EDIT_OK || !r->lint_at) {
        edit_observe(act, r);
        return;
    }
    struct err *e = start_lint(act, r);
    if (e)
        act_fail(act, e);
}

static fallible edit_start(struct act *act)
{
    const struct wire_edit *edit = &act->action.edit;
    struct editor ed = act->exec->editor;

    if (!str_eq(edit->impl_source, STR("oh_aci")))
        return err_new(ERR_INVALID, "impl_source '" STR_FMT "' is done by the client, not here",
                       STR_ARG(str_first(edit->impl_source, 80)));
    ed.space.cwd = exec_cwd(act->exec);
    struct editor_args args = {
        .command = edit->command,
        .path = edit->path,
        .file_text = edit->file_text,
        .old_str = edit->old_str,
        .new_str = edit->new_str,
        .insert_line = edit->insert_line,
        .lint = wants_lint(act->exec),
    };
    return document_run(act, &ed, &args, on_edited);
}

ACT_HANDLER(edit) = {.type = WIRE_ACT_EDIT, .start = edit_start};
