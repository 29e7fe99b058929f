// SPDX-License-Identifier: Apache-2.0
/* info.c — GET /server_info: how long, how busy, how large. */
#include <sys/auxv.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/exec/inner.h"
#include "net/server.h"
#include "wire/api.h"

#define CPU_WINDOW_NS (100 * NS_PER_MS)

static uint64_t cpu_used_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Since the last time somebody asked, if that is a while ago; nobody waits for a window to pass. */
static double cpu_percent(struct exec *e)
{
    uint64_t now = loop_now_ns(e->loop), used = cpu_used_ns();

    if (now - e->cpu_sample_ns >= CPU_WINDOW_NS) {
        e->cpu_percent = 100.0 * (double)(used - e->cpu_used_ns) / (double)(now - e->cpu_sample_ns);
        e->cpu_sample_ns = now;
        e->cpu_used_ns = used;
    }
    return (double)(int64_t)(e->cpu_percent * 10 + 0.5) / 10;
}

static int64_t number_off(struct str *s)
{
    int64_t n = 0;

    for (; s->len && str_is_digit(s->p[0]) && n < INT64_MAX / 100; *s = str_from(*s, 1))
        n = n * 10 + (s->p[0] - '0');
    return n;
}

static int64_t number_after(struct str s, struct str name)
{
    ptrdiff_t at = str_find(s, name);

    s = str_from(s, at < 0 ? s.len : (size_t)at + name.len);
    return number_off(&s);
}

static struct wire_memory info_memory(void)
{
    struct wire_memory m = {0};
    struct sysinfo si;
    long page = (long)getauxval(AT_PAGESZ);
    own_done(buf) text;

    buf_init(&text, 4096);
    err_free(fd_read_file("/proc/self/statm", &text)); /* all zero without it */
    struct str s = buf_str(&text);
    m.vms = number_off(&s) * page;
    s = str_from(s, 1);
    m.rss = number_off(&s) * page;
    if (sysinfo(&si) == 0 && si.totalram)
        m.percent = 100.0 * (double)m.rss / ((double)si.totalram * si.mem_unit);
    return m;
}

static struct wire_disk info_disk(void)
{
    struct wire_disk d = {0};
    struct statfs st;

    if (statfs("/", &st) < 0)
        return d;
    uint64_t unit = (uint64_t)st.f_frsize;
    d.total = (int64_t)(st.f_blocks * unit);
    d.used = (int64_t)((st.f_blocks - st.f_bfree) * unit);
    d.free = (int64_t)(st.f_bavail * unit);
    if (d.used + d.free > 0)
        d.percent =
            (double)(int64_t)(1000.0 * (double)d.used / (double)(d.used + d.free) + 0.5) / 10;
    return d;
}

static struct wire_io info_io(void)
{
    struct wire_io io = {0};
    own_done(buf) text;

    buf_init(&text, 4096);
    err_free(fd_read_file("/proc/self/io", &text)); /* not everywhere */
    io.read_bytes = number_after(buf_str(&text), STR("\nread_bytes: "));
    io.write_bytes = number_after(buf_str(&text), STR("\nwrite_bytes: "));
    return io;
}

static fallible put_info(struct http_req *req, struct jw *w, const void *info)
{
    (void)req;
    wire_put_server_info(w, info);
    return NULL;
}

fallible exec_handle_info(struct http_req *req)
{
    struct exec *e = req->owner;
    uint64_t now = loop_now_ns(e->loop);
    struct wire_server_info info = {
        .uptime = (double)(now - e->clock.start_ns) / 1e9,
        .idle_time = (double)(now - e->clock.last_action_ns) / 1e9,
        .resources = {cpu_percent(e), info_memory(), info_disk(), info_io()},
    };

    http_reply_with(req, 200, put_info, &info);
    return NULL;
}
