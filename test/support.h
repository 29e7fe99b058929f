// SPDX-License-Identifier: Apache-2.0
/* support.h — what the runner and the helpers behind test.h share. */
#pragma once

#include <sys/types.h>

enum { EXIT_PASS = 0, EXIT_FAIL = 1, EXIT_SKIP = 77 }; /* of a test */

_Noreturn void support_end_test(int code); /* leak check included under ASan */
void support_remove_dir_of(pid_t pid);
