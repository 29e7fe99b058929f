// SPDX-License-Identifier: Apache-2.0
/* edit.c — the editor's commands as an action. */
#include "guest/edit/editor.h"
#include "guest/exec/act.h"
#include "guest/exec/inner.h"

static fallible edit_start(struct act *act)
{
    const struct wire_edit *edit = &act->action.edit;
    struct editor ed = act->exec->editor;
    struct edit_result r = {0};
    struct wire_observation o;
    struct json *line = NULL;

    if (!str_eq(edit->impl_source, STR("oh_aci")))
        return err_new(ERR_INVALID, "impl_source '" STR_FMT "' is done by the client, not here",
                       STR_ARG(str_first(edit->impl_source, 80)));
    if (edit->insert_line.is_set) {
        line = json_new_int(&act->arena, edit->insert_line.value);
        if (!line)
            return arena_check(&act->arena);
    }
    ed.space.cwd = exec_cwd(act->exec);
    struct editor_args args = {
        .command = edit->command,
        .path = edit->path,
        .file_text = edit->file_text,
        .old_str = edit->old_str,
        .new_str = edit->new_str,
        .insert_line = line,
    };
    TRY(editor_run(&ed, &args, &act->arena, &r));
    if (r.kind == EDIT_EXCEPTION)
        return err_new(ERR_INVALID, STR_FMT, STR_ARG(r.content));
    wire_observation_init(&o, WIRE_OBS_EDIT);
    o.content = r.content;
    o.edit.path = edit->path;
    o.edit.old_content = edit->old_str;
    o.edit.new_content = edit->new_str;
    o.edit.impl_source = edit->impl_source;
    o.edit.diff = r.diff;
    act_done(act, &o);
    return NULL;
}

ACT_HANDLER(edit) = {.type = WIRE_ACT_EDIT, .start = edit_start};
