// SPDX-License-Identifier: Apache-2.0
#include "cli/run_say.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/own.h"
#include "host/changes/changes.h"
#include "host/run/run.h"
#include "test/test.h"

static struct str said(void (*say)(int fd, const struct run_spec *s, const struct run_result *r,
                                   const struct changes *sum),
                       const struct run_result *r)
{
    static char text[4096];
    const struct run_spec s = {.id = "x"};
    own_fd fd = memfd_create("said", MFD_CLOEXEC);

    CHECK(fd >= 0);
    say(fd, &s, r, NULL);
    ssize_t n = pread(fd, text, sizeof text, 0);
    CHECK(n >= 0);
    return str_n(text, (size_t)n);
}

TEST(run_says_the_limit_in_force_though_nobody_asked_for_one)
{
    const struct run_result r = {.oom_kills = 1, .limits.memory_bytes = 3ull << 30};

    CHECK_HAS(said(run_say, &r), "out of memory (limit 3072 MiB); try --memory\n");
    CHECK_HAS(said(run_say_json, &r), "\"limits\": {\"memory_bytes\": 3221225472, ");
}

TEST(run_says_nothing_of_limits_it_did_not_meet_and_null_of_those_there_are_not)
{
    const struct run_result none = {0};

    CHECK_STR(said(run_say, &none), "");
    CHECK_HAS(said(run_say_json, &none),
              "\"limits\": {\"memory_bytes\": null, \"disk_bytes\": null, \"pids\": null, "
              "\"cpu_milli\": null, \"nofile\": null}");
}
