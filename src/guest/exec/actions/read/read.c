// SPDX-License-Identifier: Apache-2.0
/* read.c — files: lines and media by default, numbered lines through the editor. */
#include "guest/edit/file_read.h"
#include "guest/exec/act.h"
#include "guest/exec/document.h"
#include "guest/exec/inner.h"

static void read_observe(struct act *act, const struct edit_result *r)
{
    struct wire_observation o;

    if (r->kind == EDIT_EXCEPTION) {
        act_fail(act, err_new(ERR_INVALID, STR_FMT, STR_ARG(r->content)));
        return;
    }
    if (r->kind == EDIT_ERROR && !str_starts(r->content, STR("ERROR:\n"))) {
        act_error(act, r->content);
        return;
    }
    wire_observation_init(&o, WIRE_OBS_READ);
    o.content = r->content;
    o.read.path = r->path;
    o.read.impl_source = act->action.read.impl_source;
    act_done(act, &o);
}

static fallible read_start(struct act *act)
{
    const struct wire_read *read = &act->action.read;
    struct editor ed = act->exec->editor;
    struct edit_result r = {0};

    ed.space.cwd = exec_cwd(act->exec);
    if (!str_eq(read->impl_source, STR("oh_aci"))) {
        struct file_read_args args = {.path = read->path, .start = read->start, .end = read->end};
        TRY(file_read(&ed.space, &args, &act->arena, &r));
    } else if (!file_read_refuses(&ed.space, read->path, &r)) {
        struct editor_args args = {
            .command = STR("view"),
            .path = read->path,
            .view_range = read->view_range,
        };
        return document_run(act, &ed, &args, read_observe);
    }
    read_observe(act, &r);
    return NULL;
}

ACT_HANDLER(read) = {.type = WIRE_ACT_READ, .start = read_start};
