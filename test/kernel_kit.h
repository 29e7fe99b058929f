// SPDX-License-Identifier: Apache-2.0
/* kernel_kit.h — for tests of cells: a kernel on a loop of its own, and what its cells answered. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "guest/jupyter/kernel.h"
#include "loop/loop.h"
#include "net/stream.h"
#include "test/test.h"

#define KIT_PYTHON "/usr/bin/python3"
#define KIT_CELLS  16

struct kit_answer {
    struct kit *kit;
    char *content, *image, *failed;
    unsigned image_count, order; /* order: 1 for the first that came */
    bool timed_out, died;
};

struct kit {
    struct loop *loop;
    struct net *net;
    struct kernel *kernel;
    char cwd[1024];
    double timeout_s;
    bool extra;
    struct kit_answer answers[KIT_CELLS];
    struct kit_answer *last;
    unsigned asked, done;
};

#define KIT __attribute__((unused)) static

KIT void kit_need_ipykernel(void)
{
    if (access(KIT_PYTHON, X_OK) < 0)
        SKIP("no " KIT_PYTHON);
    if (system(KIT_PYTHON " -c 'import importlib.util as u, sys; "
                          "sys.exit(u.find_spec(\"ipykernel\") is None)'"))
        SKIP(KIT_PYTHON " has no ipykernel (apt install python3-ipykernel)");
}

KIT struct kit *kit_with(struct kernel_config config)
{
    extern char **environ;
    struct kit *k = mem_new(sizeof *k);

    CHECK_OK(loop_new(&clock_system, &k->loop));
    CHECK_OK(net_new(k->loop, &k->net));
    config.net = k->net;
    config.rng = rng_system();
    config.run_dir = config.run_dir ? config.run_dir : test_dir();
    config.env = config.env ? config.env : environ;
    config.python = config.python ? config.python : KIT_PYTHON;
    CHECK_OK(kernel_new(&config, &k->kernel));
    k->timeout_s = 50;
    snprintf(k->cwd, sizeof k->cwd, "%s", test_dir());
    return k;
}

KIT struct kit *kit_new(void)
{
    kit_need_ipykernel();
    return kit_with((struct kernel_config){0});
}

KIT void kit_free(struct kit *k)
{
    kernel_free(k->kernel);
    net_free(k->net);
    loop_free(k->loop);
    for (unsigned i = 0; i < KIT_CELLS; i++) {
        free(k->answers[i].content);
        free(k->answers[i].image);
        free(k->answers[i].failed);
    }
    free(k);
}

KIT char *kit_copy(struct str s)
{
    char *p = mem_new(s.len + 1);

    if (s.len)
        memcpy(p, s.p, s.len);
    return p;
}

KIT void kit_on_done(void *owner, const struct kernel_result *r)
{
    struct kit_answer *a = owner;

    free(a->content);
    free(a->failed);
    free(a->image);
    *a = (struct kit_answer){.kit = a->kit, .order = ++a->kit->done};
    a->failed = r->failed ? mem_dup_cstr(err_text(r->failed)) : NULL;
    a->content = kit_copy(r->content);
    a->image_count = r->image_count;
    a->image = r->image_count ? kit_copy(r->images[0]) : NULL;
    a->timed_out = r->timed_out;
    a->died = r->died;
}

KIT struct kit_answer *kit_ask(struct kit *k, const char *code)
{
    struct kit_answer *a = &k->answers[k->asked++ % KIT_CELLS];
    struct kernel_cell cell = {.code = str_of(code),
                               .cwd = str_of(k->cwd),
                               .timeout_s = k->timeout_s,
                               .include_extra = k->extra,
                               .done = kit_on_done,
                               .owner = a};
    a->kit = k;
    CHECK_OK(kernel_run(k->kernel, &cell, NULL));
    return a;
}

KIT void kit_wait(struct kit *k)
{
    while (k->done < k->asked)
        CHECK_OK(loop_turn(k->loop, -1));
}

/* The content of one cell. */
KIT const char *kit_run(struct kit *k, const char *code)
{
    k->last = kit_ask(k, code);
    kit_wait(k);
    if (k->last->failed)
        FAIL("cell failed: %s", k->last->failed);
    return k->last->content;
}
