// SPDX-License-Identifier: Apache-2.0
#include "out/retry.h"

#include "net/http.h"
#include "test/test.h"
#include "test/web.h"

struct work {
    struct web web; /* its loop, on a clock that stands still */
    struct attempts tries;
    unsigned again;
};

static void on_again(struct attempts *a)
{
    container_of(a, struct work, tries)->again++;
}

static bool fail(struct work *w, const struct retry *policy, uint64_t after_ms)
{
    bool again = attempts_again(&w->tries, w->web.loop, policy, after_ms, on_again);

    if (again)
        web_pass(&w->web, w->tries.wait_ms);
    return again;
}

static void work_begin(struct work *w)
{
    *w = (struct work){.again = 0};
    web_open(&w->web, NULL, 0, NULL, NULL);
    attempts_begin(&w->tries, w->web.loop);
}

TEST(retry_waits_twice_as_long_each_time_within_its_bounds)
{
    static const struct retry policy = {.first_ms = 100, .least_ms = 150, .most_ms = 700};
    static const unsigned waits[] = {150, 200, 400, 700, 700};
    struct work w;

    work_begin(&w);
    for (unsigned i = 0; i < ARRAY_LEN(waits); i++) {
        CHECK(fail(&w, &policy, 0));
        CHECK_INT(w.tries.wait_ms, waits[i]);
        CHECK_INT(w.again, i + 1);
        CHECK_INT(w.tries.count, i + 2);
    }
    for (unsigned i = 0; i < 100; i++) /* no wait overflows */
        CHECK(fail(&w, &(struct retry){.first_ms = 1, .most_ms = 2}, 0));
    attempts_begin(&w.tries, w.web.loop);
    CHECK(fail(&w, &policy, 0));
    CHECK_INT(w.tries.wait_ms, 150);
    web_close(&w.web);
}

TEST(retry_ends_after_so_many_attempts_or_so_long)
{
    static const struct retry thrice = {.attempts = 3, .first_ms = 10};
    static const struct retry shortly = {.within_ms = 50, .first_ms = 20, .most_ms = 20};
    struct work w;

    work_begin(&w);
    CHECK(fail(&w, &thrice, 0) && fail(&w, &thrice, 0) && !fail(&w, &thrice, 0));
    CHECK_INT(w.again, 2);
    attempts_begin(&w.tries, w.web.loop);
    CHECK(fail(&w, &shortly, 0) && fail(&w, &shortly, 0) && !fail(&w, &shortly, 0));
    web_close(&w.web);
}

TEST(retry_waits_as_long_as_a_server_asks_up_to_a_bound)
{
    static const struct retry policy = {.first_ms = 10, .after_most_ms = 60000};
    struct work w;

    work_begin(&w);
    CHECK(fail(&w, &policy, 60000));
    CHECK_INT(w.tries.wait_ms, 60000);
    CHECK(!fail(&w, &policy, 60001));
    web_close(&w.web);
}

TEST(retry_leaves_out_up_to_half_of_a_wait_by_chance)
{
    static const struct retry policy = {.first_ms = 1000, .most_ms = 1000, .jitter = true};
    bool differ = false;
    struct work w;

    work_begin(&w);
    for (unsigned i = 0; i < 60; i++) {
        uint64_t before = w.tries.wait_ms;
        CHECK(fail(&w, &policy, 0));
        CHECK(w.tries.wait_ms >= 500 && w.tries.wait_ms <= 1000);
        differ |= i && w.tries.wait_ms != before;
    }
    CHECK(differ);
    web_close(&w.web);
}

TEST(retry_does_nothing_after_it_was_stopped)
{
    static const struct retry policy = {.first_ms = 10};
    struct work w;

    work_begin(&w);
    CHECK(attempts_again(&w.tries, w.web.loop, &policy, 0, on_again));
    attempts_stop(&w.tries);
    attempts_stop(&w.tries);
    web_pass(&w.web, 1000);
    CHECK_INT(w.again, 0);
    web_close(&w.web);
}

TEST(retry_after_is_a_number_of_seconds)
{
    static const struct {
        const char *value;
        uint64_t ms;
    } rows[] = {{"7", 7000}, {"0", 0}, {"Fri, 31 Dec 1999 23:59:59 GMT", 0}, {"-1", 0}, {"", 0}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct http_header h = {STR("Retry-After"), str_of(rows[i].value)};
        const struct http_head head = {.headers = &h, .header_count = 1};
        CHECK_INT(retry_after_ms(&head), rows[i].ms);
    }
    struct http_header h = {STR("Retry-After"), STR("18446744073709551615")};
    const struct http_head head = {.headers = &h, .header_count = 1};
    CHECK(retry_after_ms(&head) > 1000000000);
}
