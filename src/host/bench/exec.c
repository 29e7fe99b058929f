// SPDX-License-Identifier: Apache-2.0
/* exec.c — a command in a sandbox that runs: through the server's proxy and straight to the
 * sandbox's socket, in turns. */
#include <stdio.h>

#include "host/bench/bars_inner.h"

fallible bars_exec(struct served *s, const struct bars_plan *plan, struct bars *b)
{
    static const char command[] = LIVES_ACTION("true");
    struct lives_plan one = {s, LIVES_COMMAND_OUT, 1, 1, 0};
    unsigned n = plan->runs * 5;
    struct bench_row *by[4] = {bars_add_row(b, "a command through the proxy", n),
                               bars_add_row(b, "  straight to its socket", n),
                               bars_add_row(b, "GET /alive through the proxy", n),
                               bars_add_row(b, "  straight to its socket", n)};
    struct bench_row *bytes[2];
    struct talk talks[2] = {{.fd = -1}, {.fd = -1}};
    char path[sizeof s->state + 64];
    struct life l;
    double begin;

    lives_init(&l, 1);
    TRY(served_set_pool(s, 1));
    TRY(lives_run(&one, &l, &begin));
    if (l.error)
        return l.error;
    snprintf(path, sizeof path, "%s/sock/%s.s", s->state, l.id);
    struct err *e = talk_tcp(&talks[0], l.port);
    if (!e)
        e = talk_unix(&talks[1], path);
    bars_say(plan, "commands, through the proxy and straight, in turns");
    double first = lives_now_ms();
    for (unsigned i = 0; !e && (i % 4 || bars_go_on(first, i, 4 * BARS_LEAST, 4 * n)); i++) {
        begin = lives_now_ms();
        struct err *wrong = i % 4 < 2
                                ? talk_ask(&talks[i % 2], "POST", "/execute_action", l.key, command)
                                : talk_ask(&talks[i % 2], "GET", "/alive", l.key, NULL);
        bars_count_err(b, by[i % 4], lives_now_ms() - begin, wrong);
    }
    if (!e)
        e = bars_bytes(&l, &talks[1], path, plan, b, bytes);
    for (size_t i = 0; i < 2; i++)
        if (talks[i].fd >= 0)
            talk_close(&talks[i]);
    if (e)
        return e;
    bars_sort(b);
    bars_set(bars_add_bar(b, "the proxy adds to a command, p50", 0.1, "ms"),
             bars_median(by[0]) - bars_median(by[1]), by[0]->count && by[1]->count);
    bars_set(bars_add_bar(b, "the proxy adds to GET /alive, p50", 0.1, "ms"),
             bars_median(by[2]) - bars_median(by[3]), by[2]->count && by[3]->count);
    struct bar *passed = bars_add_bar(b, "bytes by the proxy over a bare relay's", 0.8, "x");
    passed->at_least = true;
    bars_set(passed, bars_median(bytes[1]) / bars_median(bytes[0]),
             bytes[0]->count && bytes[1]->count);
    return bars_stop_all(s, &l, 1);
}
