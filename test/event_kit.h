// SPDX-License-Identifier: Apache-2.0
/* event_kit.h — a log in the test's directory, driven turn by turn. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "event/log.h"
#include "event/verify.h"
#include "test/test.h"

struct kit_clock { /* the system's, moved on by hand */
    struct clock clock;
    uint64_t ahead_ns;
};

static inline uint64_t kit_mono_ns(const struct clock *c)
{
    return clock_mono_ns(&clock_system) + container_of(c, struct kit_clock, clock)->ahead_ns;
}

static inline uint64_t kit_wall_ns(const struct clock *c)
{
    (void)c;
    return clock_wall_ns(&clock_system);
}

struct kit {
    struct kit_clock clock;
    struct loop *loop;
    int dir;
    struct event_log *log;
    struct event_options options;
};

struct kit_wait {
    struct event_append a;
    unsigned calls;
    enum err_code code;
    bool failed;
    char text[256];
};

static inline void kit_on_done(struct event_append *a, const struct err *why)
{
    struct kit_wait *w = container_of(a, struct kit_wait, a);

    w->calls++;
    w->failed = why != NULL;
    if (why) {
        w->code = err_code(why);
        snprintf(w->text, sizeof w->text, "%s", err_text(why));
    }
}

static inline void kit_init(struct kit *k)
{
    *k = (struct kit){.options = {.inline_sync = true}, .dir = test_dir_fd()};
    k->clock = (struct kit_clock){{kit_mono_ns, kit_wall_ns}, 0};
    CHECK_OK(loop_new(&k->clock.clock, &k->loop));
}

static inline void kit_open(struct kit *k)
{
    CHECK_OK(event_log_open(k->loop, k->dir, STR("log"), &k->options, &k->log));
}

static inline void kit_close(struct kit *k) /* the lock is given back before it returns */
{
    unsigned fds = test_open_fds();

    event_log_free(k->log);
    k->log = NULL;
    while (test_open_fds() > fds - 2)
        CHECK_OK(loop_turn(k->loop, 10));
}

static inline void kit_done(struct kit *k)
{
    event_log_free(k->log);
    loop_free(k->loop);
    close(k->dir);
}

static inline void kit_turns(struct kit *k, unsigned n)
{
    while (n--)
        CHECK_OK(loop_turn(k->loop, 0));
}

static inline struct event_record kit_record(struct str payload)
{
    return (struct event_record){.kind = STR("note"), .wall_ns = 1000, .payload = payload};
}

static inline void kit_push(struct kit *k, struct kit_wait *w, struct str payload)
{
    struct event_record r = kit_record(payload);

    *w = (struct kit_wait){.a.done = kit_on_done};
    CHECK_OK(event_log_append(k->log, &r, &w->a));
}

/* Until it is on disk. */
static inline uint64_t kit_append(struct kit *k, struct str payload)
{
    struct kit_wait w;

    kit_push(k, &w, payload);
    while (!w.calls)
        CHECK_OK(loop_turn(k->loop, 1000));
    if (w.failed)
        FAIL("append: %s", w.text);
    return w.a.seq;
}

static inline void kit_fill(struct kit *k, unsigned n) /* "1", "2", … each in a commit of its own */
{
    char text[32];

    for (unsigned i = 1; i <= n; i++)
        kit_append(k, str_n(text, (size_t)snprintf(text, sizeof text, "%u", i)));
}

static inline bool kit_collect(const struct event_record *r, void *arg)
{
    buf_addf(arg, "%llu:" STR_FMT " ", (unsigned long long)r->seq,
             STR_ARG(str_first(r->payload, 40)));
    return true;
}

/* "1:one 2:two " */
static inline struct str kit_read(struct kit *k, const struct event_query *q, struct buf *into)
{
    buf_reset(into);
    CHECK_OK(event_log_read(k->log, q, kit_collect, into, NULL));
    return buf_str(into);
}

static inline struct event_verdict kit_verify(struct kit *k)
{
    struct event_verdict v;
    int log = openat(k->dir, "log", O_RDONLY | O_CLOEXEC);
    int index = openat(k->dir, "log.idx", O_RDONLY | O_CLOEXEC);

    CHECK_OK(event_verify(log, index, &v));
    close(log);
    if (index >= 0)
        close(index);
    return v;
}

/* The payload of record 2 of those that kit_fill makes, in the open file. */
static inline void kit_damage_second(struct kit *k)
{
    int fd = openat(k->dir, "log", O_RDWR | O_CLOEXEC);

    CHECK_INT(pwrite(fd, "X", 1, 64 + 109 + 72 + 4), 1);
    close(fd);
}

/* The whole of a file, for putting it back damaged. */
static inline struct buf kit_slurp(struct kit *k, const char *name)
{
    struct buf b;
    struct stat st;
    int fd = openat(k->dir, name, O_RDONLY | O_CLOEXEC);

    CHECK(fd >= 0 && fstat(fd, &st) == 0);
    buf_init(&b, 1u << 30);
    CHECK(buf_reserve(&b, (size_t)st.st_size + 1) != NULL);
    CHECK_INT(read(fd, b.p, (size_t)st.st_size), st.st_size);
    buf_commit(&b, (size_t)st.st_size);
    close(fd);
    return b;
}

static inline void kit_put(struct kit *k, const char *name, struct str bytes)
{
    int fd = openat(k->dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_INT(write(fd, bytes.p, bytes.len), bytes.len);
    close(fd);
}
