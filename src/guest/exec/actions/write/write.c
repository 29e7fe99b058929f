// SPDX-License-Identifier: Apache-2.0
/* write.c — a file made whole, or a range of its lines replaced. */
#include "guest/edit/file_write.h"
#include "guest/exec/act.h"
#include "guest/exec/inner.h"

static fallible write_start(struct act *act)
{
    const struct wire_write *write = &act->action.write;
    struct edit_space space = act->exec->editor.space;
    struct file_write_args args = {write->path, write->content, write->start, write->end};
    struct edit_result r = {0};
    struct wire_observation o;

    space.cwd = exec_cwd(act->exec);
    TRY(file_write(&space, &args, &act->arena, &r));
    if (r.kind == EDIT_EXCEPTION)
        return err_new(ERR_INVALID, STR_FMT, STR_ARG(r.content));
    if (r.kind == EDIT_ERROR) {
        act_error(act, r.content);
        return NULL;
    }
    wire_observation_init(&o, WIRE_OBS_WRITE);
    o.content = r.content;
    o.write.path = r.path;
    act_done(act, &o);
    return NULL;
}

ACT_HANDLER(write) = {.type = WIRE_ACT_WRITE, .start = write_start};
