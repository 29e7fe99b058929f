// SPDX-License-Identifier: Apache-2.0
/* plain.c — the engine for a Python without ipykernel; its other half is plain.py.
 *
 * Text comes through the pipe of the process, the end of a cell through a socket: when the end is
 * read the pipe is drained first, for it holds all that was printed before. */
#include <signal.h>
#include <sys/socket.h>

#include "base/embed.h"
#include "base/json.h"
#include "base/mem.h"
#include "guest/jupyter/engine.h"
#include "guest/proc/env.h"
#include "guest/proc/proc.h"
#include "loop/loop.h"
#include "net/stream.h"

#define FRAME_MAX 256 /* of an answer */
#define CODE_SIZE (64u << 20)
#define ARENA     (1u << 20)
#define HEAD_LEN  4

EMBED(jupyter_plain, "src/guest/jupyter/plain.py");

struct plain {
    struct engine engine;
    struct net *net;
    const struct engine_events *events;
    void *owner;
    struct proc proc;
    struct stream *stream;
    struct loop_timer start_deadline;
    struct loop_later freeing;
    uint32_t start_ms;
    bool ready, dead, freed;
};

static void plain_gone(struct plain *p, struct err *why)
{
    if (p->dead) {
        err_free(why);
        return;
    }
    p->dead = true;
    loop_timer_stop(&p->start_deadline);
    p->events->on_gone(p->owner, why);
}

static void on_frame(struct plain *p)
{
    if (p->ready) {
        proc_drain(&p->proc);
        if (!p->freed)
            p->events->on_cell_done(p->owner);
        return;
    }
    p->ready = true;
    loop_timer_stop(&p->start_deadline);
    p->events->on_ready(p->owner);
}

static size_t on_data(struct stream *s, struct str data)
{
    struct plain *p = stream_owner(s);
    size_t used = 0;

    while (data.len - used >= HEAD_LEN && !p->dead) {
        const uint8_t *h = (const uint8_t *)data.p + used;
        size_t len = (size_t)h[0] << 24 | (size_t)h[1] << 16 | (size_t)h[2] << 8 | h[3];
        if (len > FRAME_MAX) {
            plain_gone(p, err_new(ERR_UPSTREAM, "it sent an answer of %zu bytes", len));
            return data.len;
        }
        if (data.len - used - HEAD_LEN < len)
            break;
        used += HEAD_LEN + len;
        on_frame(p);
    }
    return used;
}

/* The exit of the process tells the story; it comes with this or just after. */
static void on_stream_error(struct stream *s, struct err *why)
{
    struct plain *p = stream_owner(s);

    err_free(why);
    p->stream = NULL;
    stream_close(s);
    proc_signal(&p->proc, SIGKILL); /* without its socket it is of no use */
}

static const struct stream_events stream_events = {.on_data = on_data, .on_error = on_stream_error};

static void on_text(struct proc *proc, struct str text)
{
    struct plain *p = container_of(proc, struct plain, proc);

    p->events->on_text(p->owner, text);
}

static void on_exit_(struct proc *proc)
{
    struct plain *p = container_of(proc, struct plain, proc);
    struct str words = str_trim(buf_str(&proc->words));
    char how[64];

    proc_describe(proc, how, sizeof how);
    if (p->ready)
        plain_gone(p, err_new(ERR_CLOSED, "%s", how));
    else
        plain_gone(
            p, err_new(ERR_UPSTREAM, "%s%s" STR_FMT, how, words.len ? ": " : "", STR_ARG(words)));
}

static void on_start_deadline(struct loop_timer *t)
{
    struct plain *p = container_of(t, struct plain, start_deadline);

    plain_gone(p, err_new(ERR_TIMEOUT, "not ready after %u ms", p->start_ms));
}

static fallible plain_execute(struct engine *e, struct str code)
{
    struct plain *p = container_of(e, struct plain, engine);
    own_done(buf) frame;
    struct jw w;

    buf_init(&frame, CODE_SIZE);
    if (!p->stream)
        return err_new(ERR_CLOSED, "the Python process is gone");
    buf_add(&frame, STR("\0\0\0\0"));
    jw_init(&w, &frame, JW_ASCII);
    JW_OBJECT(&w, NULL) {
        jw_str(&w, "code", code);
    }
    TRY(buf_check(&frame));
    size_t len = frame.len - HEAD_LEN;
    for (unsigned i = 0; i < HEAD_LEN; i++)
        frame.p[i] = (char)(len >> (24 - 8 * i));
    stream_set_out_limit(p->stream, CODE_SIZE + 4096);
    p->engine.begun = true;
    stream_write(p->stream, buf_str(&frame));
    return NULL;
}

static void plain_interrupt(struct engine *e)
{
    proc_signal(&container_of(e, struct plain, engine)->proc, SIGINT);
}

static void on_freeing(struct loop_later *l)
{
    free(container_of(l, struct plain, freeing));
}

static void plain_free(struct engine *e)
{
    struct plain *p = container_of(e, struct plain, engine);

    if (p->freed)
        return;
    p->freed = p->dead = true;
    stream_close(take(&p->stream));
    loop_timer_stop(&p->start_deadline);
    proc_stop(&p->proc);
    loop_later(net_loop(p->net), &p->freeing, on_freeing);
}

static const struct engine_ops plain_ops = {
    .execute = plain_execute, .interrupt = plain_interrupt, .free = plain_free};

static fallible plain_start(struct plain *p, const struct engine_config *c)
{
    own_done(arena) a;
    own_done(buf) program;
    int ends[2];

    arena_init(&a, ARENA);
    buf_init(&program, ARENA);
    TRY(inflate_all(EMBEDDED(jupyter_plain), &program));
    if (!buf_cstr(&program))
        return err_no_memory();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys("socketpair");
    own_fd theirs = ends[1];
    TRY(stream_new(p->net, ends[0], &stream_events, p, &p->stream));
    char **env = proc_env_with(&a, c->env, (char *[]){(char *)"PYTHONIOENCODING=utf-8", NULL});
    TRY(arena_check(&a));
    char *argv[] = {(char *)c->python, (char *)"-u", (char *)"-c", program.p, NULL};
    struct proc_config config = {.argv = argv,
                                 .env = env,
                                 .cwd = c->cwd,
                                 .user = c->user,
                                 .spawner = c->spawner,
                                 .works = true,
                                 .extra_fd = theirs};
    return proc_start(&p->proc, net_loop(p->net), &config);
}

fallible engine_start_plain(const struct engine_config *c, struct engine **ret_engine)
{
    struct plain *p = mem_new(sizeof *p);

    *p = (struct plain){.engine = {.ops = &plain_ops, .python = true},
                        .net = c->net,
                        .events = c->events,
                        .owner = c->owner,
                        .start_ms = c->start_ms,
                        .proc = {.out = -1, .on_exit = on_exit_, .on_text = on_text}};
    struct err *e = plain_start(p, c);
    if (e) {
        plain_free(&p->engine);
        return e;
    }
    loop_timer_start(net_loop(p->net), &p->start_deadline, p->start_ms, on_start_deadline);
    *ret_engine = &p->engine;
    return NULL;
}
