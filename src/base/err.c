// SPDX-License-Identifier: Apache-2.0
/* err.c — one allocation per error, text included; see err.h. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct err {
    enum err_code code;
    int errnum;
    unsigned again_s;
    char text[];
};

static const struct {
    enum err_code code;
    int errnum;
    unsigned again_s;
    char text[16];
} no_memory = {ERR_NO_MEMORY, ENOMEM, 0, "out of memory"};

static const struct {
    int status;
    const char *word;
} codes[] = {
#define ERR_ROW(code, status, word) [code] = {status, word},
    ERR_CODES(ERR_ROW)
#undef ERR_ROW
};

void own_close(int fd)
{
    int saved = errno;

    if (fd >= 0)
        close(fd);
    errno = saved;
}

fallible err_no_memory(void)
{
    return (struct err *)&no_memory;
}

/* "<fmt…><tail>" in one block; the shared constant when there is no memory for it. */
__attribute__((format(printf, 3, 0))) static struct err *
make(enum err_code code, int errnum, const char *fmt, va_list ap, const char *tail)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    size_t head = n > 0 ? (size_t)n : 0, size = head + strlen(tail) + 1;
    struct err *e = malloc(sizeof *e + size);

    if (!e)
        return err_no_memory();
    e->code = code;
    e->errnum = errnum;
    e->again_s = 0;
    vsnprintf(e->text, head + 1, fmt, ap);
    memcpy(e->text + head, tail, size - head);
    return e;
}

fallible err_new(enum err_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct err *e = make(code, 0, fmt, ap, "");
    va_end(ap);
    return e;
}

static enum err_code code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
        return ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
    case EXDEV:
    case ELOOP:
        return ERR_FORBIDDEN;
    case EEXIST:
    case ENOTEMPTY:
    case EADDRINUSE:
        return ERR_CONFLICT;
    case ENOMEM:
        return ERR_NO_MEMORY;
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case EBUSY:
        return ERR_BUSY;
    case ENOSPC:
    case EDQUOT:
        return ERR_NO_SPACE;
    case EINVAL:
    case ENAMETOOLONG:
    case EISDIR:
        return ERR_INVALID;
    case EPIPE:
    case ECONNRESET:
        return ERR_CLOSED;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return ERR_UPSTREAM;
    case ETIMEDOUT:
        return ERR_TIMEOUT;
    case ENOSYS:
    case EOPNOTSUPP:
        return ERR_UNSUPPORTED;
    default:
        return ERR_IO;
    }
}

__attribute__((format(printf, 2, 0))) static struct err *make_sys(int errnum, const char *fmt,
                                                                  va_list ap)
{
    char tail[160];
    snprintf(tail, sizeof tail, ": %s", strerror(errnum));
    return make(code_of_errno(errnum), errnum, fmt, ap, tail);
}

fallible err_sys(const char *fmt, ...)
{
    int errnum = errno;
    va_list ap;
    va_start(ap, fmt);
    struct err *e = make_sys(errnum, fmt, ap);
    va_end(ap);
    return e;
}

fallible err_sysno(int errnum, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct err *e = make_sys(errnum, fmt, ap);
    va_end(ap);
    return e;
}

fallible err_wrap(struct err *e, const char *fmt, ...)
{
    if (!e)
        return NULL;
    size_t inner = strlen(e->text);
    char *tail = malloc(inner + 3);
    if (!tail)
        return e; /* the story is shorter, the fact is kept; so below */
    memcpy(tail, ": ", 2);
    memcpy(tail + 2, e->text, inner + 1);
    va_list ap;
    va_start(ap, fmt);
    struct err *outer = make(e->code, e->errnum, fmt, ap, tail);
    va_end(ap);
    free(tail);
    if (outer == (const struct err *)&no_memory)
        return e;
    outer->again_s = e->again_s;
    err_free(e);
    return outer;
}

fallible err_join(struct err *first, struct err *second)
{
    if (!first || !second)
        return first ? first : second;
    struct err *both = err_new(first->code, "%s; %s", first->text, second->text);
    err_free(first);
    err_free(second);
    return both;
}

fallible err_recode(struct err *e, enum err_code code)
{
    if (e && e != (const struct err *)&no_memory)
        e->code = code;
    return e;
}

fallible err_again(struct err *e, unsigned seconds)
{
    if (e && e != (const struct err *)&no_memory)
        e->again_s = seconds;
    return e;
}

fallible err_copy(const struct err *e)
{
    if (!e)
        return NULL;
    struct err *copy = err_new(e->code, "%s", e->text);
    if (copy != (const struct err *)&no_memory) {
        copy->errnum = e->errnum;
        copy->again_s = e->again_s;
    }
    return copy;
}

void err_free(struct err *e)
{
    if (e != (const struct err *)&no_memory)
        free(e);
}

enum err_code err_code(const struct err *e)
{
    return e->code;
}

unsigned err_again_s(const struct err *e)
{
    return e->again_s;
}

int err_errno(const struct err *e)
{
    return e->errnum;
}

const char *err_text(const struct err *e)
{
    return e->text;
}

int err_http_status(enum err_code code)
{
    return codes[code].status;
}

const char *err_code_word(enum err_code code)
{
    return codes[code].word;
}
