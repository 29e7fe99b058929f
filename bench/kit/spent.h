// SPDX-License-Identifier: Apache-2.0
/* spent.h — the processor time of a server, its launcher, the bench and the whole machine. It
 * explains a rate on a machine whose processors are all busy. */
#pragma once

#include <sys/types.h>

struct spent { /* ms, since each of them began */
    double server, launcher, bench, machine;
};

/* What cannot be read is 0. */
void spent_look(pid_t server, struct spent *ret);
/* What was spent since before, on each of count. */
struct spent spent_since(pid_t server, const struct spent *before, double count);
/* In words: the processor time of a start and stop, by process. */
void spent_say(const struct spent *each, char *text, size_t size);
