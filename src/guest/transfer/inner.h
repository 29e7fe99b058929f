// SPDX-License-Identifier: Apache-2.0
/* inner.h — what the handlers of transfer share: paths of clients, and refusals. */
#pragma once

#include "guest/transfer/transfer.h"
#include "net/server.h"
#include "wire/problem.h"

/* Opens an absolute path of a client's, within the boundary if there is one. Never waits for a
 * peer, as opening a FIFO would. */
fallible transfer_open(const struct transfer *t, struct str path, int flags, int *ret_fd);
/* Opens the deepest directory of path that exists; *ret_rest, a slice of path, is what is missing.
 */
fallible transfer_open_above(const struct transfer *t, struct str path, int *ret_fd,
                             struct str *ret_rest);
bool transfer_is_missing(const struct err *e);  /* what os.path.exists calls no file */
struct str transfer_base_name(struct str path); /* slashes at the end do not count */

void transfer_reply_problem(struct http_req *req, struct wire_problem problem);
