// SPDX-License-Identifier: Apache-2.0
/* file.h — files as answers: Range, HEAD, If-None-Match, any size in constant memory. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct http_req;

/* Answers with the file behind fd (taken over): 200, 206, 304 or 416. content_type .p NULL: guessed
 * from name. attachment: Content-Disposition with that name. */
fallible file_reply(struct http_req *req, int fd, struct str name, struct str content_type,
                    bool attachment);
struct str file_type_of(struct str name); /* "text/html; charset=utf-8" by extension */
