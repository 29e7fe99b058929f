// SPDX-License-Identifier: Apache-2.0
/* notify.h — what a service manager passes in and wants to hear: sockets it listens on for us
 * (LISTEN_FDS), and lines such as READY=1 (NOTIFY_SOCKET). Without one, nothing happens. */
#pragma once

#include "base/err.h"

#define NOTIFY_FDS_MAX 16

/* Descriptors passed to this process, close-on-exec and non-blocking; *ret_count is 0 when there
 * are none. A variable that makes no sense is an error: a service without its sockets is not what
 * was meant. */
fallible notify_listen_fds(const char *const *envp, int fds[NOTIFY_FDS_MAX], size_t *ret_count);

/* "READY=1", "STOPPING=1", "STATUS=serving 12 sandboxes"; several lines may be sent at once. The
 * address is that of the environment: a path, or "@name" in the abstract space. */
fallible notify_send(const char *const *envp, const char *lines);
/* Half of WATCHDOG_USEC in milliseconds: how often WATCHDOG=1 is due; 0: never. */
unsigned notify_watchdog_ms(const char *const *envp);
