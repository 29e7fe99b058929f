// SPDX-License-Identifier: Apache-2.0
/* read.c — files: lines and media by default, numbered lines through the editor. */
#include "guest/edit/file_read.h"
#include "guest/exec/act.h"
#include "guest/exec/inner.h"

static fallible through_editor(struct act *act, const struct wire_read *read,
                               struct edit_result *ret)
{
    struct editor ed = act->exec->editor;
    struct editor_args args = {
        .command = STR("view"),
        .path = read->path,
        .view_range = read->view_range,
    };

    ed.space.cwd = exec_cwd(act->exec);
    if (file_read_refuses(&ed.space, read->path, ret))
        return NULL;
    return editor_run(&ed, &args, &act->arena, ret);
}

static fallible read_start(struct act *act)
{
    const struct wire_read *read = &act->action.read;
    bool editor = str_eq(read->impl_source, STR("oh_aci"));
    struct edit_space space = act->exec->editor.space;
    struct edit_result r = {0};
    struct wire_observation o;

    space.cwd = exec_cwd(act->exec);
    struct file_read_args args = {.path = read->path, .start = read->start, .end = read->end};
    TRY(editor ? through_editor(act, read, &r) : file_read(&space, &args, &act->arena, &r));
    if (r.kind == EDIT_EXCEPTION)
        return err_new(ERR_INVALID, STR_FMT, STR_ARG(r.content));
    if (r.kind == EDIT_ERROR && !str_starts(r.content, STR("ERROR:\n"))) {
        act_error(act, r.content);
        return NULL;
    }
    wire_observation_init(&o, WIRE_OBS_READ);
    o.content = r.content;
    o.read.path = r.path;
    o.read.impl_source = read->impl_source;
    act_done(act, &o);
    return NULL;
}

ACT_HANDLER(read) = {.type = WIRE_ACT_READ, .start = read_start};
