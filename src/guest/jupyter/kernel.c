// SPDX-License-Identifier: Apache-2.0
/* kernel.c — see kernel.h. Whatever happens sets the state; what follows from it is decided in one
 * place, after the turn, so that no callback of an engine finds another one on its stack. */
#include "guest/jupyter/kernel.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sm.h"
#include "guest/jupyter/engine.h"
#include "guest/jupyter/job.h"
#include "guest/proc/env.h"
#include "guest/proc/proc.h"
#include "guest/jupyter/setup.h"
#include "guest/jupyter/spec.h"
#include "net/stream.h"

#define CONFIG_ARENA  (4u << 20)
#define START_MS      60000
#define WAITING_MAX   64
#define SETUP_SIZE    (256u << 10)
#define STUCK_TICK_MS 1000
#define STUCK_LIMIT                                                                                \
    4 /* ticks, each longer by a second, until a cell that waits may have a new kernel */

#define NOTE_PLAIN                                                                                 \
    "[No ipykernel for %s: cells run in plain Python, without magics (%%), shell escapes (!), "    \
    "rich display and images.]\n"
#define NOTE_RESTARTED                                                                             \
    STR("[Python kernel restarted: variables and imports of earlier cells are lost.]\n")

enum { K_NONE, K_STARTING, K_SETUP, K_IDLE, K_CHDIR, K_RUNNING, K_STUCK };

static const struct sm_state states[] = {
    [K_NONE] = {"none", TO(K_STARTING)},
    [K_STARTING] = {"starting", TO(K_SETUP) | TO(K_IDLE) | TO(K_NONE)},
    [K_SETUP] = {"setup", TO(K_IDLE) | TO(K_NONE)},
    [K_IDLE] = {"idle", TO(K_CHDIR) | TO(K_RUNNING) | TO(K_NONE)},
    [K_CHDIR] = {"chdir", TO(K_IDLE) | TO(K_STUCK) | TO(K_NONE)},
    [K_RUNNING] = {"running", TO(K_IDLE) | TO(K_STUCK) | TO(K_NONE)},
    [K_STUCK] = {"stuck", TO(K_IDLE) | TO(K_NONE)},
};

struct kernel {
    struct net *net;
    struct rng *rng;
    struct arena strings; /* of the configuration */
    const char *python, *spec, *run_dir;
    char **env;
    struct proc_user user;
    struct spawner *spawner;
    bool has_user, skills, plain, freed;
    bool lost;      /* a kernel is gone that had run cells */
    bool say_plain; /* not yet told what the plain engine lacks */
    size_t output_bytes;
    uint32_t start_ms;

    struct sm sm;
    struct engine *engine;
    struct list jobs; /* the first one runs when the state says so */
    unsigned waiting;
    struct buf printed, interpreter, cwd; /* of the setup; of python; last pushed */
    struct loop_timer setup_deadline, stuck;
    unsigned stuck_ticks;
    struct loop_later step, freeing;
};

static void on_step(struct loop_later *l);

static void kernel_move(struct kernel *k, unsigned to)
{
    sm_move(&k->sm, to, "kernel");
    loop_later(net_loop(k->net), &k->step, on_step);
}

static struct kernel_job *first_job(struct kernel *k)
{
    return LIST_FIRST(&k->jobs, struct kernel_job, link);
}

static bool has_cell(const struct kernel *k)
{
    return k->sm.now == K_CHDIR || k->sm.now == K_RUNNING;
}

static struct str kernel_interpreter(const struct kernel *k)
{
    return k->interpreter.len ? buf_str(&k->interpreter) : str_of(k->python);
}

static void end_job(struct kernel *k, struct kernel_job *job, enum job_end end,
                    const struct err *why)
{
    k->waiting--;
    job_finish(job, end, kernel_interpreter(k), why);
}

static void drop_engine(struct kernel *k)
{
    loop_timer_stop(&k->setup_deadline);
    loop_timer_stop(&k->stuck);
    engine_free(take(&k->engine));
    buf_reset(&k->cwd);
    kernel_move(k, K_NONE);
}

static void fail_all(struct kernel *k, struct err *why)
{
    own(err) e = err_wrap(why, "start the Python kernel");

    log_warn("kernel not started", KV_ERR(e));
    drop_engine(k);
    while (first_job(k) && !k->freed)
        end_job(k, first_job(k), JOB_FAILED, e);
}

/* --- what the engine tells --- */

static void kernel_execute(struct kernel *k, struct str code, unsigned to)
{
    struct err *e = k->engine->ops->execute(k->engine, code);

    if (!e) {
        kernel_move(k, to);
        return;
    }
    log_warn("kernel takes no cell", KV_ERR(e));
    struct kernel_job *job = first_job(k);
    if (k->sm.now == K_STARTING || !job) {
        fail_all(k, e);
        return;
    }
    drop_engine(k);
    k->lost = true;
    end_job(k, job, JOB_FAILED, e);
    err_free(e);
}

static void on_setup_deadline(struct loop_timer *t)
{
    struct kernel *k = container_of(t, struct kernel, setup_deadline);

    fail_all(k, err_new(ERR_TIMEOUT, "not ready after %u ms", k->start_ms));
}

static void on_ready(void *owner)
{
    struct kernel *k = owner;
    own_done(buf) code;

    buf_init(&code, SETUP_SIZE);
    if (!k->engine->python) {
        kernel_move(k, K_IDLE);
        return;
    }
    buf_reset(&k->printed);
    setup_put_first(&code, k->engine->magics, k->skills);
    loop_timer_start(net_loop(k->net), &k->setup_deadline, k->start_ms, on_setup_deadline);
    kernel_execute(k, buf_str(&code), K_SETUP);
}

static void on_text(void *owner, struct str text)
{
    struct kernel *k = owner;
    struct kernel_job *job = first_job(k);

    if (k->sm.now == K_SETUP)
        buf_add(&k->printed, text);
    if (k->sm.now != K_RUNNING || !job)
        return;
    output_add(&job->output, text);
    if (job->on_text)
        job->on_text(job->owner, text);
}

static void on_png(void *owner, struct str base64)
{
    struct kernel *k = owner;

    if (k->sm.now == K_RUNNING && first_job(k))
        output_add_png(&first_job(k)->output, base64);
}

static void end_setup(struct kernel *k)
{
    loop_timer_stop(&k->setup_deadline);
    struct str path = setup_interpreter(buf_str(&k->printed));
    if (path.len && path.p[0] == '/') {
        buf_reset(&k->interpreter);
        buf_add(&k->interpreter, path);
    } else {
        log_warn("kernel setup", KV("output", str_first(buf_str(&k->printed), 2000)));
    }
}

static void on_cell_done(void *owner)
{
    struct kernel *k = owner;
    unsigned was = k->sm.now;

    loop_timer_stop(&k->stuck);
    if (was == K_SETUP)
        end_setup(k);
    kernel_move(k, K_IDLE);
    if (was == K_RUNNING && first_job(k))
        end_job(k, first_job(k), JOB_DONE, NULL);
}

static bool turn_plain(struct kernel *k, const struct err *why)
{
    if (err_code(why) != ERR_UNSUPPORTED || k->plain || k->spec)
        return false;
    log_info("no ipykernel, cells run in plain Python", KV("python", k->python));
    k->plain = k->say_plain = true;
    return true;
}

/* A kernel that was on its way out when the cell came, after exit() for one, never began it. */
static bool run_again(struct kernel *k, struct kernel_job *job)
{
    bool begun = k->sm.now == K_RUNNING && k->engine->begun;

    if (begun || job->again)
        return false;
    job->again = true;
    return true;
}

static void tell_death(struct kernel_job *job, const struct err *why)
{
    char note[200];

    int n =
        snprintf(note, sizeof note, "[Python kernel died: %.100s. The next cell starts a new one.]",
                 err_text(why));
    output_end_line(&job->output);
    output_add(&job->output, str_n(note, (size_t)n));
}

static void on_gone(void *owner, struct err *why)
{
    struct kernel *k = owner;
    struct kernel_job *job = has_cell(k) ? first_job(k) : NULL;

    if (k->sm.now == K_STARTING || k->sm.now == K_SETUP) {
        if (!turn_plain(k, why)) {
            fail_all(k, why);
            return;
        }
        err_free(why);
        drop_engine(k);
        return;
    }
    own(err) e = why;
    log_warn("kernel died", KV_ERR(e));
    if (job && run_again(k, job))
        job = NULL;
    drop_engine(k);
    k->lost = true;
    if (!job)
        return;
    tell_death(job, e);
    end_job(k, job, JOB_DIED, NULL);
}

static const struct engine_events engine_events = {.on_ready = on_ready,
                                                   .on_text = on_text,
                                                   .on_png = on_png,
                                                   .on_cell_done = on_cell_done,
                                                   .on_gone = on_gone};

/* --- what to do next --- */

static void start_engine(struct kernel *k)
{
    struct engine_config c = {.net = k->net,
                              .rng = k->rng,
                              .kernel = k->spec,
                              .env = k->env,
                              .run_dir = k->run_dir,
                              .user = k->has_user ? &k->user : NULL,
                              .spawner = k->spawner,
                              .start_ms = k->start_ms,
                              .events = &engine_events,
                              .owner = k};

    kernel_move(k, K_STARTING);
    struct err *e = proc_find_program(&k->strings, k->python, k->env, &k->python);
    c.python = k->python;
    if (!e && k->plain)
        e = engine_start_plain(&c, &k->engine);
    else if (!e)
        e = engine_start_jupyter(&c, &k->engine);
    if (e)
        fail_all(k, e);
}

static void put_notes(struct kernel *k, struct kernel_job *job)
{
    char note[512];

    if (k->lost)
        output_add(&job->output, NOTE_RESTARTED);
    if (k->say_plain) {
        snprintf(note, sizeof note, NOTE_PLAIN, k->python);
        output_add(&job->output, str_of(note));
    }
    k->lost = k->say_plain = false;
}

static void start_cell(struct kernel *k, struct kernel_job *job)
{
    if (k->engine->python && job->cwd_len && !str_eq(job_cwd(job), buf_str(&k->cwd))) {
        own_done(buf) code;
        buf_init(&code, SETUP_SIZE);
        buf_reset(&k->cwd);
        buf_add(&k->cwd, job_cwd(job)); /* pushed, whether or not the directory is there */
        setup_put_chdir(&code, job_cwd(job));
        kernel_execute(k, buf_str(&code), K_CHDIR);
        return;
    }
    put_notes(k, job);
    kernel_execute(k, job_code(job), K_RUNNING);
}

/* The cell before was interrupted and does not end. */
static void replace_stuck(struct kernel *k)
{
    log_warn("kernel does not stop, replaced",
             KV("after_s", k->stuck_ticks * (k->stuck_ticks + 1) / 2));
    drop_engine(k);
    k->lost = true;
}

static void on_step(struct loop_later *l)
{
    struct kernel *k = container_of(l, struct kernel, step);
    struct kernel_job *job = first_job(k);

    if (!job)
        return;
    if (k->sm.now == K_NONE)
        start_engine(k);
    else if (k->sm.now == K_IDLE)
        start_cell(k, job);
    else if (k->sm.now == K_STUCK && k->stuck_ticks >= STUCK_LIMIT)
        replace_stuck(k);
}

static void on_stuck_tick(struct loop_timer *t)
{
    struct kernel *k = container_of(t, struct kernel, stuck);

    /* An interrupt between two cells was ignored: send another. On a busy machine a kernel that is
     * interrupted each second, while it reports an interrupt, never finishes: so wait longer each
     * time. */
    if (++k->stuck_ticks < STUCK_LIMIT) {
        k->engine->ops->interrupt(k->engine);
        loop_timer_start(net_loop(k->net), &k->stuck, (k->stuck_ticks + 1) * STUCK_TICK_MS,
                         on_stuck_tick);
    } else if (first_job(k)) {
        replace_stuck(k);
    }
}

/* The cell that runs no longer has an owner: it is to end. */
static void abandon_cell(struct kernel *k)
{
    k->stuck_ticks = 0;
    k->engine->ops->interrupt(k->engine);
    kernel_move(k, K_STUCK);
    loop_timer_start(net_loop(k->net), &k->stuck, STUCK_TICK_MS, on_stuck_tick);
}

static void on_deadline(struct loop_timer *t)
{
    struct kernel_job *job = container_of(t, struct kernel_job, deadline);
    struct kernel *k = job->kernel;

    if (has_cell(k) && job == first_job(k))
        abandon_cell(k);
    end_job(k, job, JOB_TIMED_OUT, NULL);
}

/* --- for others --- */

fallible kernel_probe(struct kernel *k)
{
    struct spec spec;

    TRY(proc_find_program(&k->strings, k->python, k->env, &k->python));
    return spec_find(&k->strings, k->spec, k->python, k->env, "", &spec);
}

fallible kernel_run(struct kernel *k, const struct kernel_cell *cell, struct kernel_job **ret_job)
{
    struct kernel_job *job;

    if (k->waiting >= WAITING_MAX)
        return err_new(ERR_BUSY, "%u cells wait already", k->waiting);
    if (!(cell->timeout_s >= 0 && cell->timeout_s < 1e9))
        return err_new(ERR_INVALID, "a timeout of %.3f seconds", cell->timeout_s);
    TRY(job_new(cell, k->output_bytes, &job));
    job->kernel = k;
    list_add(&k->jobs, &job->link);
    k->waiting++;
    if (cell->timeout_s > 0)
        loop_timer_start(net_loop(k->net), &job->deadline, (uint64_t)(cell->timeout_s * 1000) + 1,
                         on_deadline);
    loop_later(net_loop(k->net), &k->step, on_step);
    if (ret_job)
        *ret_job = job;
    return NULL;
}

void kernel_cancel(struct kernel_job *job)
{
    struct kernel *k = job->kernel;

    if (has_cell(k) && job == first_job(k))
        abandon_cell(k);
    k->waiting--;
    job_free(job);
}

static char **copy_env(struct kernel *k, const struct kernel_config *c)
{
    static char *const none[] = {NULL};
    struct arena *a = &k->strings;
    char *more[4] = {NULL};

    if (c->user) {
        more[0] = (char *)arena_printf(a, "USER=%s", c->user->name).p;
        more[1] = (char *)arena_printf(a, "LOGNAME=%s", c->user->name).p;
        more[2] = (char *)arena_printf(a, "HOME=%s", c->user->home).p;
    }
    char **env = proc_env_with(a, c->env ? c->env : none, more);
    for (char **v = env; v && *v; v++)
        *v = (char *)arena_cstr(a, str_of(*v));
    return env;
}

static const char *kernel_keep(struct kernel *k, const char *s, const char *otherwise)
{
    return arena_cstr(&k->strings, str_of(s ? s : otherwise));
}

fallible kernel_new(const struct kernel_config *c, struct kernel **ret_kernel)
{
    own(kernel) k = mem_new(sizeof *k);

    k->net = c->net;
    k->rng = c->rng;
    arena_init(&k->strings, CONFIG_ARENA);
    list_init(&k->jobs);
    buf_init(&k->printed, SETUP_SIZE);
    buf_init(&k->interpreter, SETUP_SIZE);
    buf_init(&k->cwd, SETUP_SIZE);
    sm_init(&k->sm, states, "kernel", K_NONE);
    k->env = copy_env(k, c);
    k->run_dir = kernel_keep(k, c->run_dir, "/tmp");
    k->spec = c->spec ? kernel_keep(k, c->spec, NULL) : NULL;
    k->python = kernel_keep(k, c->python, "python3");
    if (c->user) {
        k->user = *c->user;
        k->user.name = kernel_keep(k, c->user->name, "");
        k->user.home = kernel_keep(k, c->user->home, "/");
        k->has_user = true;
    }
    k->spawner = c->spawner;
    TRY(arena_check(&k->strings));
    k->output_bytes = c->output_bytes;
    k->start_ms = c->start_ms ? c->start_ms : START_MS;
    k->skills = c->skills;
    k->plain = k->say_plain = c->plain;
    *ret_kernel = take(&k);
    return NULL;
}

bool kernel_is_used(const struct kernel *k)
{
    return k->sm.now != K_NONE || k->lost || !list_empty(&k->jobs);
}

static void on_freeing(struct loop_later *l)
{
    struct kernel *k = container_of(l, struct kernel, freeing);

    arena_done(&k->strings);
    buf_done(&k->printed);
    buf_done(&k->interpreter);
    buf_done(&k->cwd);
    free(k);
}

void kernel_free(struct kernel *k)
{
    if (!k || k->freed)
        return;
    k->freed = true;
    loop_timer_stop(&k->setup_deadline);
    loop_timer_stop(&k->stuck);
    engine_free(take(&k->engine));
    LIST_EACH(job, &k->jobs, struct kernel_job, link)
        job_free(job);
    loop_later_cancel(&k->step);
    loop_later(net_loop(k->net), &k->freeing, on_freeing);
}
