// SPDX-License-Identifier: Apache-2.0
/* run_say.h — what 'croft run' says at the end, in words or as an object. */
#pragma once

struct changes;
struct run_result;
struct run_spec;

/* sum: the changes kept. NULL: they were dropped unseen, or are too many to list. */
void run_say(int fd, const struct run_spec *s, const struct run_result *r,
             const struct changes *sum);
void run_say_json(int fd, const struct run_spec *s, const struct run_result *r,
                  const struct changes *sum);
