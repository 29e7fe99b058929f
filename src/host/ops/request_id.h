// SPDX-License-Identifier: Apache-2.0
/* request_id.h — an id for every request. It finds the request's lines in the log, its records in
 * the journal, and its traces inside a sandbox. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

struct http_req;

#define REQUEST_ID_MAX 128

/* 1 to 128 letters, digits and -_.:+/=@: what goes into logs and headers as it is. */
bool request_id_ok(struct str id);
/* req->id is the client's X-Request-ID if that is one, a new one otherwise; the answer will have
 * it. Twice is fine. */
void request_id_set(struct http_req *req);
