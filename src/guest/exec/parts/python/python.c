// SPDX-License-Identifier: Apache-2.0
/* python.c — run_ipython: Python cells. The kernel starts with the first one and follows the
 * shell's directory. */
#include "base/cfg.h"
#include "base/rng.h"
#include "guest/exec/act.h"
#include "guest/exec/inner.h"
#include "guest/exec/parts/python/python.h"
#include "guest/exec/plugin.h"
#include "guest/jupyter/kernel.h"

struct python {
    struct kernel *kernel; /* NULL: not wanted yet */
};

static struct python *python_of(const struct exec *e);

fallible python_kernel(struct exec *e, struct kernel **ret_kernel)
{
    struct python *p = python_of(e);
    struct kernel_config config = {
        .net = e->net,
        .rng = rng_system(),
        .env = (char *const *)e->env,
        .user = e->run_as,
        .spawner = e->spawner,
        .spec = cfg_env_get(e->config->envp, "CROFT_KERNEL"),
        .skills = plugin_find(e, "agent_skills") != NULL,
    };

    if (!p->kernel)
        TRY(kernel_new(&config, &p->kernel));
    *ret_kernel = p->kernel;
    return NULL;
}

/* Without the plugin in the words of the original. One that failed is tried again: a Python may
 * have been installed since. */
static fallible find_kernel(struct exec *e, struct kernel **ret_kernel)
{
    if (!plugin_find(e, "jupyter"))
        return err_new(ERR_INTERNAL, "Internal server error: JupyterRequirement not found. Unable "
                                     "to run IPython action.");
    return python_kernel(e, ret_kernel);
}

static struct json *images_of(struct act *act, const struct kernel_result *r)
{
    struct json *list = r->image_count ? json_new(&act->arena, JSON_ARRAY) : NULL;

    for (unsigned i = 0; list && i < r->image_count; i++)
        json_push(list, json_new_str(&act->arena, r->images[i]));
    return list;
}

static void on_cell_done(void *owner, const struct kernel_result *r)
{
    struct act *act = owner;
    struct wire_observation o;

    if (r->failed) {
        act_error(act, str_of(err_text(r->failed)));
        return;
    }
    wire_observation_init(&o, WIRE_OBS_RUN_IPYTHON);
    o.content = r->content;
    o.run_ipython.code = act->action.run_ipython.code;
    o.run_ipython.image_urls = images_of(act, r);
    act_done(act, &o);
}

static void cell_stop(struct act *act)
{
    kernel_cancel(act->user);
}

static fallible run_ipython_start(struct act *act)
{
    const struct wire_action *a = &act->action;
    struct kernel *kernel;
    struct kernel_job *job;
    struct kernel_cell cell = {
        .code = a->run_ipython.code,
        .cwd = exec_cwd(act->exec),
        .timeout_s = a->has_timeout && a->timeout_s > 0 ? a->timeout_s : 0,
        .include_extra = a->run_ipython.include_extra,
        .done = on_cell_done,
        .owner = act,
    };

    TRY(find_kernel(act->exec, &kernel));
    TRY(kernel_run(kernel, &cell, &job));
    act->user = job;
    act->stop = cell_stop;
    return NULL;
}

static void python_close(struct exec *e, void *state)
{
    (void)e;
    kernel_free(((struct python *)state)->kernel);
}

static bool python_is_busy(const void *state)
{
    const struct python *p = state;

    return p->kernel && kernel_is_used(p->kernel);
}

EXEC_PART(python) = {
    .state_bytes = sizeof(struct python), .close = python_close, .is_busy = python_is_busy};

static struct python *python_of(const struct exec *e)
{
    return exec_part_state(e, &exec_parts_python);
}

ACT_HANDLER(run_ipython) = {.type = WIRE_ACT_RUN_IPYTHON, .start = run_ipython_start};
