// SPDX-License-Identifier: Apache-2.0
/* info.c — GET /server_info: how long, how busy, how large. */
#include <sys/auxv.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/exec/inner.h"
#include "net/router.h"
#include "net/server.h"
#include "wire/api.h"

#define CPU_WINDOW_NS (100 * NS_PER_MS)

struct info { /* the processor time of this process when it was last looked at */
    struct exec *exec;
    uint64_t sample_ns, used_ns;
    double percent;
};

static uint64_t cpu_used_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Since the last request for it, if that is a while ago; no request waits for a window to pass. */
static double cpu_percent(struct info *i, uint64_t now)
{
    uint64_t used = cpu_used_ns();

    if (now - i->sample_ns >= CPU_WINDOW_NS) {
        i->percent = 100.0 * (double)(used - i->used_ns) / (double)(now - i->sample_ns);
        i->sample_ns = now;
        i->used_ns = used;
    }
    return (double)(int64_t)(i->percent * 10 + 0.5) / 10;
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

static fallible handle_info(struct http_req *req)
{
    struct info *i = req->owner;
    const struct exec *e = i->exec;
    uint64_t now = loop_now_ns(e->loop);
    struct wire_server_info info = {
        .uptime = (double)(now - e->clock.start_ns) / 1e9,
        .idle_time = (double)(now - e->clock.last_action_ns) / 1e9,
        .resources = {cpu_percent(i, now), info_memory(), info_disk(), info_io()},
    };

    wire_put_server_info(http_reply_writer(req), &info);
    http_reply_written(req, 200);
    return NULL;
}

static void info_add_routes(struct exec *e, void *state)
{
    static const struct route routes[] = {{"GET", "/server_info", handle_info, ROUTE_OPEN}};
    struct info *i = state;

    i->exec = e;
    router_add(e->router, routes, ARRAY_LEN(routes), i);
}

static fallible info_start(struct exec *e, void *state)
{
    ((struct info *)state)->sample_ns = loop_now_ns(e->loop);
    return NULL;
}

EXEC_PART(info) = {
    .state_bytes = sizeof(struct info), .add_routes = info_add_routes, .start = info_start};
