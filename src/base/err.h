// SPDX-License-Identifier: Apache-2.0
/* err.h — errors as values with a story.
 *
 * NULL is success. An error owns one line of text, most general context first:
 * "open conversation '7f3a': pull 'python:3.12': upstream answered 429".
 * Making one never fails: out of memory gives a shared constant error. */
#pragma once

#include <stdbool.h>

#include "base/own.h"

/* code, HTTP status, word in logs */
#define ERR_CODES(X)                                                                               \
    X(ERR_INTERNAL, 500, "internal")                                                               \
    X(ERR_INVALID, 400, "invalid")                                                                 \
    X(ERR_UNAUTHORIZED, 401, "unauthorized")                                                       \
    X(ERR_FORBIDDEN, 403, "forbidden")                                                             \
    X(ERR_NOT_FOUND, 404, "not_found")                                                             \
    X(ERR_METHOD, 405, "method_not_allowed")                                                       \
    X(ERR_REQUEST_TIMEOUT, 408, "request_timeout")                                                 \
    X(ERR_CONFLICT, 409, "conflict")                                                               \
    X(ERR_TOO_LARGE, 413, "too_large")                                                             \
    X(ERR_RANGE, 416, "range")                                                                     \
    X(ERR_EXPECTATION, 417, "expectation")                                                         \
    X(ERR_UNPROCESSABLE, 422, "unprocessable")                                                     \
    X(ERR_UPGRADE, 426, "upgrade_required")                                                        \
    X(ERR_LIMIT, 429, "limit")                                                                     \
    X(ERR_HEADERS_TOO_LARGE, 431, "headers_too_large")                                             \
    X(ERR_IO, 500, "io")                                                                           \
    X(ERR_CORRUPT, 500, "corrupt")                                                                 \
    X(ERR_UNSUPPORTED, 501, "unsupported")                                                         \
    X(ERR_UPSTREAM, 502, "upstream")                                                               \
    X(ERR_BUSY, 503, "busy")                                                                       \
    X(ERR_CLOSED, 503, "closed")                                                                   \
    X(ERR_NO_MEMORY, 503, "no_memory")                                                             \
    X(ERR_TIMEOUT, 504, "timeout")                                                                 \
    X(ERR_HTTP_VERSION, 505, "http_version")                                                       \
    X(ERR_GONE, 410, "gone")                                                                       \
    X(ERR_NO_SPACE, 507, "no_space") /* last: a launcher that lives knows them by their places */

enum err_code {
#define ERR_ENUM(code, status, word) code,
    ERR_CODES(ERR_ENUM)
#undef ERR_ENUM
};

struct err;

/* Ignoring the result of a fallible function does not compile. */
#define fallible __attribute__((warn_unused_result)) struct err *

fallible err_new(enum err_code code, const char *fmt, ...)
    __attribute__((returns_nonnull, format(printf, 2, 3)));
/* Adds ": <text of errno>" and picks the code from errno. */
fallible err_sys(const char *fmt, ...) __attribute__((returns_nonnull, format(printf, 1, 2)));
fallible err_sysno(int errnum, const char *fmt, ...)
    __attribute__((returns_nonnull, format(printf, 2, 3)));
fallible err_no_memory(void) __attribute__((returns_nonnull));
/* Puts "<context>: " in front; takes e over and gives it back. NULL stays NULL. */
fallible err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Both in one, "first; second", by the first's code; takes both over. Either may be NULL. */
fallible err_join(struct err *first, struct err *second);
/* The same error under another code, for a caller that knows better what it means. */
fallible err_recode(struct err *e, enum err_code code);
/* It may succeed after so many seconds; 0: unknown. */
fallible err_again(struct err *e, unsigned seconds);
/* An independent copy, for one failure that several waiters must hear of. */
fallible err_copy(const struct err *e);
void err_free(struct err *e);
OWNABLE(err)

enum err_code err_code(const struct err *e);
int err_errno(const struct err *e); /* 0 unless a system call failed */
unsigned err_again_s(const struct err *e);
const char *err_text(const struct err *e);
int err_http_status(enum err_code code);
const char *err_code_word(enum err_code code);

#define TRY(call)                                                                                  \
    do {                                                                                           \
        struct err *try_err_ = (call);                                                             \
        if (__builtin_expect(try_err_ != NULL, 0))                                                 \
            return try_err_;                                                                       \
    } while (0)

#define TRY_WRAP(call, ...)                                                                        \
    do {                                                                                           \
        struct err *try_err_ = (call);                                                             \
        if (__builtin_expect(try_err_ != NULL, 0))                                                 \
            return err_wrap(try_err_, __VA_ARGS__);                                                \
    } while (0)
