// SPDX-License-Identifier: Apache-2.0
/* retry.c — see retry.h. */
#include "out/retry.h"

#include "base/own.h"
#include "base/rng.h"
#include "net/http.h"

#define AFTER_MAX_S (UINT32_MAX / 1000)

void attempts_begin(struct attempts *a, const struct loop *loop)
{
    attempts_stop(a);
    a->begun_ns = loop_now_ns(loop);
    a->count = 1;
}

static uint64_t wait_ms(const struct retry *policy, unsigned attempt)
{
    uint64_t ms = policy->first_ms, most = policy->most_ms ? policy->most_ms : UINT32_MAX;

    while (--attempt && ms < most)
        ms *= 2;
    if (ms > most)
        ms = most;
    if (ms < policy->least_ms)
        ms = policy->least_ms;
    return policy->jitter ? ms - rng_below(rng_system(), ms / 2 + 1) : ms;
}

static void on_wait_over(struct loop_timer *t)
{
    struct attempts *a = container_of(t, struct attempts, timer);

    a->again(a);
}

bool attempts_again(struct attempts *a, struct loop *loop, const struct retry *policy,
                    uint64_t after_ms, void (*again)(struct attempts *a))
{
    uint64_t spent_ms = (loop_now_ns(loop) - a->begun_ns) / NS_PER_MS;

    if (policy->attempts && a->count >= policy->attempts)
        return false;
    if (policy->after_most_ms && after_ms > policy->after_most_ms)
        return false;
    a->wait_ms = wait_ms(policy, a->count);
    if (a->wait_ms < after_ms)
        a->wait_ms = after_ms;
    if (policy->within_ms && spent_ms + a->wait_ms > policy->within_ms)
        return false;
    a->count++;
    a->again = again;
    loop_timer_start(loop, &a->timer, a->wait_ms, on_wait_over);
    return true;
}

void attempts_stop(struct attempts *a)
{
    loop_timer_stop(&a->timer);
}

uint64_t retry_after_ms(const struct http_head *head)
{
    uint64_t s;

    if (!str_to_u64(http_header_get(head, STR("retry-after")), &s))
        return 0;
    return (s < AFTER_MAX_S ? s : AFTER_MAX_S) * 1000;
}
