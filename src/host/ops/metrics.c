// SPDX-License-Identifier: Apache-2.0
/* metrics.c — see metrics.h. */
#include "host/ops/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

#define LABELS_MAX  4
#define VALUE_MAX   63 /* of a label; longer ones are cut */
#define PAGE_DIGITS 17

/* Seconds: a warm claim and a cold image are five orders apart. */
static const double bounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                0.25,   0.5,   1,      2.5,   5,    10,    30,   60};
/* Bytes: from one file to all of a disk. */
static const double sizes[] = {0,      4096,   16384,  65536,  262144, 1048576, 4194304, 16777216,
                               0x1p26, 0x1p28, 0x1p30, 0x1p32, 0x1p34, 0x1p36,  0x1p38,  0x1p40};
_Static_assert(ARRAY_LEN(sizes) == ARRAY_LEN(bounds), "a series has room for either");

struct series {
    struct series *next;
    char values[LABELS_MAX][VALUE_MAX + 1];
    double value;                           /* of a histogram: the sum */
    uint64_t counts[ARRAY_LEN(bounds) + 1]; /* the last: all that is larger */
};

struct metrics {
    struct family {
        struct series *first;
        unsigned count;
    } families[METRIC_COUNT];
};

struct metrics *metrics_new(void)
{
    return mem_new(sizeof(struct metrics));
}

void metrics_free(struct metrics *m)
{
    for (int i = 0; m && i < METRIC_COUNT; i++)
        for (struct series *s = m->families[i].first, *next; s; s = next) {
            next = s->next;
            free(s);
        }
    free(m);
}

static bool is_series(const struct series *s, const char *const *labels)
{
    for (int i = 0; labels && labels[i]; i++)
        if (strncmp(s->values[i], labels[i], VALUE_MAX) != 0)
            return false;
    return true;
}

static const char *const *metrics_others(const struct metric_row *row, const char **space)
{
    int n = 0;

    for (; row->labels && row->labels[n]; n++)
        space[n] = "other";
    space[n] = NULL;
    return space;
}

/* Found ones move to the front: a few series get nearly all of the counting. */
static struct series *metrics_find(struct metrics *m, enum metric id, const char *const *labels)
{
    struct family *f = &m->families[id];
    const char *space[LABELS_MAX + 1];

    for (struct series **at = &f->first, *s; (s = *at); at = &s->next)
        if (is_series(s, labels)) {
            *at = s->next;
            s->next = f->first;
            return f->first = s;
        }
    if (f->count == METRICS_SERIES)
        return metrics_find(m, id, metrics_others(&metric_rows[id], space));
    if (f->count == METRICS_SERIES - 1) /* the last place is theirs */
        labels = metrics_others(&metric_rows[id], space);
    struct series *s = mem_new(sizeof *s);
    for (int i = 0; labels && labels[i]; i++)
        snprintf(s->values[i], sizeof s->values[i], "%s", labels[i]);
    s->next = f->first;
    f->count++;
    return f->first = s;
}

void metrics_add(struct metrics *m, enum metric id, double n, const char *const *labels)
{
    metrics_find(m, id, labels)->value += n;
}

void metrics_set(struct metrics *m, enum metric id, double value, const char *const *labels)
{
    metrics_find(m, id, labels)->value = value;
}

static const double *bounds_of(const struct metric_row *row)
{
    return row->type == METRIC_SIZES ? sizes : bounds;
}

static void metrics_observe(struct metrics *m, enum metric id, double value,
                            const char *const *labels)
{
    struct series *s = metrics_find(m, id, labels);
    const double *up_to = bounds_of(&metric_rows[id]);
    size_t i = 0;

    while (i < ARRAY_LEN(bounds) && value > up_to[i])
        i++;
    s->counts[i]++;
    s->value += value;
}

void metrics_observe_ns(struct metrics *m, enum metric id, uint64_t ns, const char *const *labels)
{
    metrics_observe(m, id, (double)ns / 1e9, labels);
}

void metrics_observe_bytes(struct metrics *m, enum metric id, uint64_t bytes,
                           const char *const *labels)
{
    metrics_observe(m, id, (double)bytes, labels);
}

/* --- the page --- */

static void put_value(struct buf *out, const char *value)
{
    for (; *value; value++) {
        if (*value == '\n') {
            buf_add(out, STR("\\n"));
            continue;
        }
        if (*value == '"' || *value == '\\')
            buf_add_char(out, '\\');
        buf_add_char(out, *value);
    }
}

/* le: the upper bound of a histogram's bucket; NULL: none. */
static void put_labels(struct buf *out, const struct metric_row *row, const struct series *s,
                       const char *le)
{
    const char *before = "{";

    for (int i = 0; row->labels && row->labels[i]; i++, before = ",") {
        buf_addf(out, "%s%s=\"", before, row->labels[i]);
        put_value(out, s->values[i]);
        buf_add_char(out, '"');
    }
    if (le) {
        buf_addf(out, "%sle=\"%s\"", before, le);
        before = ",";
    }
    if (*before == ',')
        buf_add_char(out, '}');
}

static void put_histogram(struct buf *out, const struct metric_row *row, const struct series *s)
{
    uint64_t total = 0;

    for (size_t i = 0; i <= ARRAY_LEN(bounds); i++) {
        char le[32] = "+Inf";
        if (i < ARRAY_LEN(bounds))
            snprintf(le, sizeof le, "%.*g", PAGE_DIGITS - 2, bounds_of(row)[i]);
        total += s->counts[i];
        buf_addf(out, "%s_bucket", row->name);
        put_labels(out, row, s, le);
        buf_addf(out, " %llu\n", (unsigned long long)total);
    }
    buf_addf(out, "%s_sum", row->name);
    put_labels(out, row, s, NULL);
    buf_addf(out, " %.*g\n%s_count", PAGE_DIGITS, s->value, row->name);
    put_labels(out, row, s, NULL);
    buf_addf(out, " %llu\n", (unsigned long long)total);
}

static void put_head(struct buf *out, const char *name, const char *help, const char *type)
{
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static unsigned count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n > 3 ? n - 3 : 0; /* ".", ".." and the directory itself */
}

static void put_process(struct buf *out)
{
    unsigned long pages = 0, resident = 0;
    struct timespec cpu;
    struct rlimit most = {0};
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%lu %lu", &pages, &resident) != 2)
        pages = resident = 0;
    if (f)
        fclose(f);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    put_head(out, "process_cpu_seconds_total", "Processor time used.", "counter");
    buf_addf(out, "process_cpu_seconds_total %.6f\n",
             (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
    put_head(out, "process_resident_memory_bytes", "Memory in use.", "gauge");
    buf_addf(out, "process_resident_memory_bytes %lu\n", resident * (unsigned long)getpagesize());
    put_head(out, "process_virtual_memory_bytes", "Address space in use.", "gauge");
    buf_addf(out, "process_virtual_memory_bytes %lu\n", pages * (unsigned long)getpagesize());
    put_head(out, "process_open_fds", "Descriptors in use.", "gauge");
    buf_addf(out, "process_open_fds %u\n", count_fds());
    getrlimit(RLIMIT_NOFILE, &most);
    put_head(out, "process_max_fds", "Descriptors it may have.", "gauge");
    buf_addf(out, "process_max_fds %llu\n", (unsigned long long)most.rlim_cur);
}

void metrics_put(const struct metrics *m, struct buf *out)
{
    static const char *const types[] = {"counter", "gauge", "histogram", "histogram"};

    for (int i = 0; i < METRIC_COUNT; i++) {
        const struct metric_row *row = &metric_rows[i];
        if (!m->families[i].first)
            continue;
        put_head(out, row->name, row->help, types[row->type]);
        for (const struct series *s = m->families[i].first; s; s = s->next) {
            if (row->type >= METRIC_HISTOGRAM) {
                put_histogram(out, row, s);
                continue;
            }
            buf_add_cstr(out, row->name);
            put_labels(out, row, s, NULL);
            buf_addf(out, " %.*g\n", PAGE_DIGITS, s->value);
        }
    }
    put_process(out);
}
