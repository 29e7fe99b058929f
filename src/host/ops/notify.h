// SPDX-License-Identifier: Apache-2.0
/* notify.h — the service manager's protocol: sockets that it passes (LISTEN_FDS), and lines such as
 * READY=1 that it is sent (NOTIFY_SOCKET). Without a service manager nothing happens. */
#pragma once

#include "base/err.h"

#define NOTIFY_FDS_MAX 16

/* Descriptors passed to this process, close-on-exec and non-blocking; *ret_count is 0 when there
 * are none. A variable that makes no sense is an error. */
fallible notify_listen_fds(const char *const *envp, int fds[NOTIFY_FDS_MAX], size_t *ret_count);

/* "READY=1", "STOPPING=1", "STATUS=serving 12 sandboxes"; several lines may be sent at once. The
 * address is that of the environment: a path, or "@name" in the abstract space. */
fallible notify_send(const char *const *envp, const char *lines);
/* Half of WATCHDOG_USEC in milliseconds: how often WATCHDOG=1 is due; 0: never. */
unsigned notify_watchdog_ms(const char *const *envp);
