// SPDX-License-Identifier: Apache-2.0
/* memory.c — RUNTIME_MEMORY_MONITOR: what the sandbox uses, ten times a second for an hour at most,
 * in the log. It only tells; limits are the sandbox's.
 *
 * Reading smaps_rollup of a process that dies holds its memory. At the limit the kernel then kills
 * another one. So usage is the control group's; processes are measured seldom, and not after a
 * kill. */
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cfg.h"
#include "base/fd.h"
#include "base/log.h"
#include "guest/exec/inner.h"
#include "guest/held/held.h"

#define TICK_MS   100
#define TICKS_MAX (3600 * 1000 / TICK_MS)
#define DEPTH_MAX 64
#define SELDOM    100 /* ticks, with a control group; every tenth without */

struct memory_watch {
    struct loop *loop;
    struct loop_timer timer;
    unsigned ticks;
    pid_t top;               /* of the tree */
    const struct held *held; /* NULL: nothing counts */
    uint64_t kills;          /* by the last tick */
};

struct sum {
    uint64_t kb;
    unsigned processes;
};

static void memory_load(struct buf *b, const char *path)
{
    buf_init(b, 1u << 20);
    err_free(fd_read_file(path, b)); /* it may be gone by now */
}

static void add_tree(struct sum *sum, pid_t pid, unsigned depth);

/* Every thread has children of its own. */
static void add_children(struct sum *sum, const char *task, unsigned depth)
{
    DIR *threads = opendir(task);
    char path[320];

    for (const struct dirent *d; threads && (d = readdir(threads));) {
        own_done(buf) list;
        struct str rest, word;
        uint64_t pid;
        snprintf(path, sizeof path, "%s/%.16s/children", task, d->d_name);
        buf_init(&list, 0);
        if (d->d_name[0] != '.')
            memory_load(&list, path);
        for (rest = buf_str(&list); rest.len;) {
            str_cut(&rest, ' ', &word);
            if (str_to_u64(word, &pid))
                add_tree(sum, (pid_t)pid, depth + 1);
        }
    }
    if (threads)
        closedir(threads);
}

static void add_tree(struct sum *sum, pid_t pid, unsigned depth)
{
    char path[64];
    own_done(buf) maps = {0};
    struct str word;
    uint64_t kb;

    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    memory_load(&maps, path);
    ptrdiff_t at = str_find(buf_str(&maps), STR("\nPss:"));
    struct str rest = at < 0 ? STR("") : str_trim(str_from(buf_str(&maps), (size_t)at + 5));
    str_cut(&rest, ' ', &word);
    sum->kb += str_to_u64(word, &kb) ? kb : 0;
    sum->processes++;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    if (depth < DEPTH_MAX)
        add_children(sum, path, depth);
}

static void on_tick(struct loop_timer *t)
{
    struct memory_watch *m = container_of(t, struct memory_watch, timer);
    uint64_t bytes = 0, kills = m->held ? held_oom_kills(m->held) : 0;
    bool counted = m->held && held_memory(m->held, &bytes);
    struct sum sum = {0};

    if (kills == m->kills && m->ticks % (counted ? SELDOM : SELDOM / 10) == 0) {
        add_tree(&sum, m->top, 0);
        log_info("[Memory usage]", KV("kb", counted ? bytes >> 10 : sum.kb),
                 KV("processes", sum.processes), KV("processes_kb", sum.kb));
    } else if (counted) {
        log_info("[Memory usage]", KV("kb", bytes >> 10));
    }
    m->kills = kills;
    if (++m->ticks < TICKS_MAX)
        loop_timer_start(m->loop, t, TICK_MS, on_tick);
}

static fallible memory_start(struct exec *e, void *state)
{
    struct memory_watch *m = state;
    const char *limit = cfg_env_get(e->config->envp, "RUNTIME_MAX_MEMORY_GB");
    uint64_t gb;

    if (limit && limit[0] && !str_to_u64(str_of(limit), &gb))
        return err_new(ERR_INVALID, "RUNTIME_MAX_MEMORY_GB is '%.40s': a whole number is wanted",
                       limit);
    if (limit && limit[0])
        log_info("memory limit, told but not set here", KV("gb", gb));
    if (!start_flag(e->config->envp, "RUNTIME_MEMORY_MONITOR", false))
        return NULL;
    *m = (struct memory_watch){
        .loop = e->loop, .top = e->spawner ? 1 : getpid(), .held = e->config->held};
    loop_timer_start(e->loop, &m->timer, TICK_MS, on_tick);
    return NULL;
}

static void memory_close(struct exec *e, void *state)
{
    (void)e;
    loop_timer_stop(&((struct memory_watch *)state)->timer);
}

static bool memory_is_busy(const void *state)
{
    return ((const struct memory_watch *)state)->loop;
}

EXEC_PART(memory) = {.state_bytes = sizeof(struct memory_watch),
                     .start = memory_start,
                     .close = memory_close,
                     .is_busy = memory_is_busy};
