// SPDX-License-Identifier: Apache-2.0
/* below.h — what is mounted in a directory that a sandbox gets a copy of. The copy has none of it:
 * there are empty directories in its place. */
#pragma once

struct run_spec;

/* A line for people that names them, or nothing. What croft mounts in its state is not told. */
void below_tell(int fd, const struct run_spec *s);
