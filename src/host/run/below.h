// SPDX-License-Identifier: Apache-2.0
/* below.h — what is mounted in a directory that a sandbox gets a copy of. The copy has none of it:
 * there are empty directories in its place. */
#pragma once

struct run_spec;

/* Prints a line that names the mounts below it, or nothing. Croft's own mounts are left out. */
void below_tell(int fd, const struct run_spec *s);
