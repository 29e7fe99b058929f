// SPDX-License-Identifier: Apache-2.0
/* multipart_head.h — what the headers around a form and its parts say; used by multipart.c only. */
#pragma once

#include "net/multipart.h"

#define MULTIPART_MAX_BOUNDARY 70

/* The boundary in the Content-Type of a form. */
fallible multipart_boundary(struct str content_type, struct str *ret_boundary);
/* head is all lines of a part's head, empty line included; the result points into it, decoded in
 * place. */
fallible multipart_parse_head(struct buf *head, struct multipart_part *ret_part);
