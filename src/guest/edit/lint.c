// SPDX-License-Identifier: Apache-2.0
/* lint.c — running the tools on the new text, then on the old one. */
#include "guest/edit/lint.h"

#include <stdlib.h>

#include "base/mem.h"
#include "guest/edit/lint_inner.h"
#include "guest/tool/tool.h"
#include "loop/loop.h"

#define ARENA_BYTES (64u << 20)

struct lint {
    struct loop *loop;
    struct lint_args args;
    const struct lint_checker *checker;
    struct arena a;
    struct lint_issues found, old_found;
    bool on_old;       /* the second run: what was wrong before */
    struct tool *tool; /* while it runs */
    struct loop_later later;
};

static void run_step(struct lint *l);

static void lint_finish(struct lint *l)
{
    if (l->on_old) {
        struct err *e =
            lint_drop_old(&l->a, l->args.old_text, l->args.new_text, &l->old_found, &l->found);
        err_free(e); /* then all of them are told, which is no lie */
    }
    l->args.done(l, lint_format(&l->a, &l->found), l->args.of);
}

static void on_step_done(struct lint *l)
{
    if (l->on_old || l->found.count == 0) {
        lint_finish(l);
        return;
    }
    l->on_old = true;
    run_step(l);
}

static void on_later(struct loop_later *later)
{
    on_step_done(container_of(later, struct lint, later));
}

static void on_tool_done(void *arg, const struct tool_result *r)
{
    struct lint *l = arg;

    l->tool = NULL;
    lint_read_output(l->checker, &l->a, r->output, l->on_old ? &l->old_found : &l->found);
    on_step_done(l);
}

static fallible start_tool(struct lint *l)
{
    const struct lint_args *args = &l->args;
    const char *env[] = {arena_printf(&l->a, "PATH=%s", args->search_path).p, "LC_ALL=C",
                         "HOME=/nonexistent", NULL};
    const char *argv[LINT_ARGV_MAX];
    struct tool_config config = {
        .argv = argv,
        .env = env,
        .user = args->user,
        .spawner = args->spawner,
        .input = l->on_old ? args->old_text : args->new_text,
        .limit_ms = args->timeout_ms ? args->timeout_ms : LINT_TIMEOUT_MS,
        .output_bytes = LINT_OUTPUT_BYTES,
        .with_errors = true,
        .done = on_tool_done,
        .arg = l,
    };

    TRY(arena_check(&l->a));
    TRY(lint_fill_argv(l->checker, &l->a, argv));
    return tool_run(l->loop, &config, &l->tool);
}

/* Whatever goes wrong here means that nothing was found. */
static void run_step(struct lint *l)
{
    if (l->checker && l->checker->check) {
        l->checker->check(&l->a, l->on_old ? l->args.old_text : l->args.new_text,
                          l->on_old ? &l->old_found : &l->found);
    } else if (l->checker) {
        struct err *e = start_tool(l);
        if (!e)
            return;
        err_free(e);
    }
    loop_later(l->loop, &l->later, on_later);
}

fallible lint_start(struct loop *loop, const struct lint_args *args, struct lint **ret_lint)
{
    own(lint) l = mem_try(sizeof *l);

    if (!l)
        return err_no_memory();
    l->loop = loop;
    l->args = *args;
    arena_init(&l->a, ARENA_BYTES);
    l->args.old_text = arena_copy(&l->a, args->old_text);
    l->args.new_text = arena_copy(&l->a, args->new_text);
    l->args.search_path = arena_cstr(&l->a, str_of(args->search_path));
    TRY(arena_check(&l->a));
    l->checker = lint_checker_of(args->path);
    run_step(l);
    *ret_lint = take(&l);
    return NULL;
}

void lint_free(struct lint *l)
{
    if (!l)
        return;
    loop_later_cancel(&l->later);
    tool_stop(l->tool);
    arena_done(&l->a);
    free(l);
}
