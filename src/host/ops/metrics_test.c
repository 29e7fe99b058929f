// SPDX-License-Identifier: Apache-2.0
#include "host/ops/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/test.h"

static struct str page(const struct metrics *m, struct buf *b)
{
    buf_init(b, 1 << 20);
    metrics_put(m, b);
    CHECK_OK(buf_check(b));
    return buf_str(b);
}

TEST(a_counter_counts_by_labels)
{
    own(metrics) m = metrics_new();
    own_done(buf) b;

    metrics_add(m, METRIC_CLAIMS, 1, METRIC_LABELS("default", "hit"));
    metrics_add(m, METRIC_CLAIMS, 2, METRIC_LABELS("default", "hit"));
    metrics_add(m, METRIC_CLAIMS, 1, METRIC_LABELS("default", "miss"));
    struct str text = page(m, &b);
    CHECK_HAS(text, "# TYPE croft_claims_total counter\n");
    CHECK_HAS(text, "croft_claims_total{pool=\"default\",result=\"hit\"} 3\n");
    CHECK_HAS(text, "croft_claims_total{pool=\"default\",result=\"miss\"} 1\n");
}

TEST(a_histogram_counts_what_is_at_most_each_bound)
{
    own(metrics) m = metrics_new();
    own_done(buf) b;

    metrics_observe_ns(m, METRIC_HTTP_SECONDS, 500000, METRIC_LABELS("runtime", "GET"));
    metrics_observe_ns(m, METRIC_HTTP_SECONDS, 2000000, METRIC_LABELS("runtime", "GET"));
    metrics_observe_ns(m, METRIC_HTTP_SECONDS, 61ull * 1000000000, METRIC_LABELS("runtime", "GET"));
    struct str text = page(m, &b);
    CHECK_HAS(text, "_bucket{face=\"runtime\",method=\"GET\",le=\"0.0005\"} 1\n");
    CHECK_HAS(text, "_bucket{face=\"runtime\",method=\"GET\",le=\"0.0025\"} 2\n");
    CHECK_HAS(text, "_bucket{face=\"runtime\",method=\"GET\",le=\"60\"} 2\n");
    CHECK_HAS(text, "_bucket{face=\"runtime\",method=\"GET\",le=\"+Inf\"} 3\n");
    CHECK_HAS(text, "_count{face=\"runtime\",method=\"GET\"} 3\n");
}

TEST(a_histogram_of_bytes_has_bounds_of_its_own)
{
    own(metrics) m = metrics_new();
    own_done(buf) b;

    metrics_observe_bytes(m, METRIC_SNAPSHOT_BYTES, 0, METRIC_LABELS("stopped", "create"));
    metrics_observe_bytes(m, METRIC_SNAPSHOT_BYTES, 5000, METRIC_LABELS("running", "create"));
    struct str text = page(m, &b);
    CHECK_HAS(text, "_bucket{kind=\"stopped\",op=\"create\",le=\"0\"} 1\n");
    CHECK_HAS(text, "_bucket{kind=\"running\",op=\"create\",le=\"4096\"} 0\n");
    CHECK_HAS(text, "_bucket{kind=\"running\",op=\"create\",le=\"16384\"} 1\n");
    CHECK_HAS(text, "_bucket{kind=\"running\",op=\"create\",le=\"1099511627776\"} 1\n");
    CHECK_HAS(text, "_sum{kind=\"running\",op=\"create\"} 5000\n");
}

TEST(a_label_from_a_peer_is_quoted)
{
    own(metrics) m = metrics_new();
    own_done(buf) b;

    metrics_set(m, METRIC_POOL_READY, 4, METRIC_LABELS("a\"b\\c\nd"));
    CHECK_HAS(page(m, &b), "croft_pool_ready{pool=\"a\\\"b\\\\c\\nd\"} 4\n");
}

TEST(labels_beyond_the_bound_are_counted_together)
{
    own(metrics) m = metrics_new();
    own_done(buf) b;
    char name[32];

    for (int i = 0; i < 2 * METRICS_SERIES; i++) {
        snprintf(name, sizeof name, "m%d", i);
        metrics_add(m, METRIC_DENIALS, 1, METRIC_LABELS(name));
    }
    struct str text = page(m, &b);
    CHECK_HAS(text, "{kind=\"m0\"} 1\n");
    CHECK_HAS(text, "{kind=\"other\"} 257\n");
}

TEST(promtool_accepts_every_metric)
{
    own(metrics) m = metrics_new();
    own_done(buf) b;
    static const char *const values[] = {"a", "b", "c", "d"};

    if (system("command -v promtool >/dev/null") != 0)
        SKIP("no promtool here (package prometheus)");
    for (int i = 0; i < METRIC_COUNT; i++) {
        const char *labels[5] = {NULL};
        for (int k = 0; metric_rows[i].labels && metric_rows[i].labels[k]; k++)
            labels[k] = values[k];
        if (metric_rows[i].type >= METRIC_HISTOGRAM)
            metrics_observe_ns(m, i, 1000, labels);
        else
            metrics_add(m, i, 1, labels);
    }
    struct str text = page(m, &b);
    char path[4096], command[2 * sizeof path + 64];
    snprintf(path, sizeof path, "%s/page", test_dir());
    FILE *f = fopen(path, "we");
    CHECK(f && fwrite(text.p, 1, text.len, f) == text.len && fclose(f) == 0);
    snprintf(command, sizeof command, "promtool check metrics <%s >%s.out 2>&1", path, path);
    if (system(command) != 0) {
        snprintf(command, sizeof command, "cat %s.out >&2", path);
        FAIL("promtool: %d", system(command));
    }
}
