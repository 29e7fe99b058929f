// SPDX-License-Identifier: Apache-2.0
/* run_say.h — what 'croft run' says at the end, in words or as an object. */
#pragma once

struct changes;
struct run_result;
struct run_spec;

/* sum: what is kept; NULL: thrown away unseen, or more than can be listed. */
void run_say(int fd, const struct run_spec *s, const struct run_result *r,
             const struct changes *sum);
void run_say_json(int fd, const struct run_spec *s, const struct run_result *r,
                  const struct changes *sum);
