// SPDX-License-Identifier: Apache-2.0
/* confine.h — what a sandboxed process gives up for good: Landlock, seccomp, capabilities.
 *
 * In that order, and before no_new_privs would be needed: seccomp and Landlock want CAP_SYS_ADMIN
 * in the sandbox's own user namespace, which the last step drops. So sudo works inside. */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CONFINE_BPF_MAX 256

struct confine_filter {
    struct sock_filter code[CONFINE_BPF_MAX];
    unsigned short len;
};

/* Built once per launcher; the cost of a start is the kernel's JIT, linear in its length. */
void confine_build(struct confine_filter *f, bool nested);

/* Docker's fourteen capabilities: enough to be root of one's own files and processes. */
#define CONFINE_CAPS 0xa80425fbu

int confine_landlock_abi(void); /* 0: none */
/* Everything below "/" stays allowed; abstract sockets and signals do not leave. exe, which lies
 * outside that root, may be run. */
fallible confine_landlock(int abi, int exe);
/* Nothing but: all below each of works, reading below looks; -1 is passed over. Needs version 2,
 * which lets files move between directories. */
fallible confine_landlock_beneath(int abi, const int *works, size_t work_count, const int *looks,
                                  size_t look_count);
fallible confine_seccomp(const struct confine_filter *f);
fallible confine_caps(uint64_t keep); /* both of these: */
fallible confine_bounding_set(uint64_t keep);
fallible confine_set_caps(uint64_t keep);
fallible confine_no_new_privs(void);
/* setfsuid takes the file capabilities away; this gives them back. */
fallible confine_raise_caps(void);
