// SPDX-License-Identifier: Apache-2.0
/* own.h — ownership that can be seen.
 *
 * own(type) frees at the end of the scope, take() hands over and leaves empty.
 * OWNABLE(type) under a destructor's prototype makes a type ownable. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

void own_close(int fd); /* keeps errno, called once, never retried; -1 is fine */

static inline void own_close_p(int *fd)
{
    if (*fd >= 0)
        own_close(*fd);
}

static inline void own_free_p(void *p)
{
    free(*(void **)p);
}

#define own(type) __attribute__((cleanup(type##_free_p))) struct type *
#define own_fd    __attribute__((cleanup(own_close_p))) int
#define own_free  __attribute__((cleanup(own_free_p)))

#define OWNABLE(type)                                                                              \
    __attribute__((unused)) static inline void type##_free_p(struct type **p)                      \
    {                                                                                              \
        if (*p)                                                                                    \
            type##_free(*p);                                                                       \
    }

/* For embedded objects: `own_done(buf) b;` runs buf_done at the end of the scope. */
#define own_done(type) __attribute__((cleanup(type##_done))) struct type

#define take(pp)                                                                                   \
    ({                                                                                             \
        __typeof__(pp) take_pp_ = (pp);                                                            \
        __typeof__(*take_pp_) take_v_ = *take_pp_;                                                 \
        *take_pp_ = NULL;                                                                          \
        take_v_;                                                                                   \
    })

static inline int take_fd(int *fd)
{
    int v = *fd;

    *fd = -1;
    return v;
}

#define container_of(ptr, type, member)                                                            \
    ({                                                                                             \
        const __typeof__(((type *)0)->member) *co_p_ = (ptr);                                      \
        (type *)((char *)co_p_ - offsetof(type, member));                                          \
    })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
