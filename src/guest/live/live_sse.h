// SPDX-License-Identifier: Apache-2.0
/* live_sse.h — live output as server-sent events.
 *
 *   id: 1042            the number of the byte that comes next: Last-Event-ID continues there
 *   event: output
 *   data: aGVsbG8=      base64; with ?encoding=text a JSON string of whole characters
 *
 * A reader that asks for what is no longer kept gets `event: gap` with the bytes missed first. At
 * the end comes `event: end` with the reason. */
#pragma once

#include "base/err.h"

struct http_req;
struct live;
struct loop;

/* Answers req, now and for as long as the peer stays. Begins at Last-Event-ID, or ?after=, or with
 * the oldest byte kept. */
fallible live_sse(struct live *l, struct loop *loop, struct http_req *req);
void live_sse_gone(
    struct http_req *req); /* its on_gone and on_hangup, for a handler with its own */
