// SPDX-License-Identifier: Apache-2.0
/* tar_kit.h — archives made by hand, so that they can be wrong in every way. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "test/test.h"

struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[8],
        uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};

struct tar_made { /* what to put into a header; zero is a plain file of root's */
    const char *name, *link;
    char type; /* '0' when not given */
    unsigned mode, uid;
    struct str data;
};

/* digits octal digits; the field has room for a NUL after them. */
static inline void tar_octal(char *to, size_t digits, uint64_t n)
{
    for (size_t i = digits; i--; n >>= 3)
        to[i] = (char)('0' + (n & 7));
    to[digits] = '\0';
}

static inline void tar_sum(struct tar_header *h)
{
    unsigned sum = 0;

    memset(h->sum, ' ', sizeof h->sum);
    for (size_t i = 0; i < sizeof *h; i++)
        sum += ((const unsigned char *)h)[i];
    tar_octal(h->sum, 6, sum);
}

static inline void tar_put(struct buf *to, const struct tar_made *m)
{
    struct tar_header h = {0};
    static const char zeros[512];

    memcpy(h.name, m->name, strnlen(m->name, sizeof h.name));
    if (m->link)
        memcpy(h.link, m->link, strnlen(m->link, sizeof h.link));
    tar_octal(h.mode, 7, m->mode ? m->mode : 0644);
    tar_octal(h.uid, 7, m->uid);
    tar_octal(h.gid, 7, m->uid);
    tar_octal(h.size, 11, m->data.len);
    tar_octal(h.mtime, 11, 1000000000);
    h.type = m->type ? m->type : '0';
    memcpy(h.magic, "ustar\00000", 8);
    tar_sum(&h);
    buf_add(to, str_n(&h, sizeof h));
    buf_add(to, m->data);
    buf_add(to, str_n(zeros, (512 - m->data.len % 512) % 512));
}

#define TAR_PUT(to, ...) tar_put(to, &(struct tar_made){__VA_ARGS__})

static inline void tar_end(struct buf *to)
{
    static const char zeros[1024];

    buf_add(to, str_n(zeros, sizeof zeros));
    CHECK(!buf_failed(to));
}

/* "LENGTH key=value\n" */
static inline void tar_pax(struct buf *to, const char *key, const char *value)
{
    char text[600];
    size_t n = strlen(key) + strlen(value) + 3;
    size_t len = n + 1;

    while (true) {
        size_t digits = (size_t)snprintf(text, sizeof text, "%zu", len);
        if (digits + n == len)
            break;
        len = digits + n;
    }
    snprintf(text, sizeof text, "%zu %s=%s\n", len, key, value);
    TAR_PUT(to, .name = "pax", .type = 'x', .data = str_of(text));
}

static inline int tar_file(const struct buf *b)
{
    int fd = open(test_dir(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, buf_str(b)));
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}
