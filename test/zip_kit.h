// SPDX-License-Identifier: Apache-2.0
/* zip_kit.h — for the tests of zip and transfer: trees on disk, archives made and read, and the
 * real programs as judges. Included by tests only. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/zip/zip.h"
#include "test/test.h"
#include "test/program.h"

#define KIT_PYTHON "/usr/bin/python3"

/* The test's directory, opened once. */
static int kit_dir(void)
{
    static int fd = -1;

    if (fd < 0)
        fd = test_dir_fd();
    return fd;
}

/* Runs a program to its end, which must be well, and gives what it printed until the next call. */
__attribute__((unused)) static const char *kit_run(const char *const *argv)
{
    static struct buf out;

    buf_done(&out);
    buf_init(&out, 64u << 20);
    int code = program_run(argv, &out);
    if (code)
        FAIL("%s ended with %d: " STR_FMT, argv[0], code, STR_ARG(buf_str(&out)));
    CHECK(buf_cstr(&out));
    return out.p;
}

/* In the test's directory. */
__attribute__((unused)) static const char *kit_python(const char *code)
{
    CHECK(fchdir(kit_dir()) == 0);
    return kit_run((const char *const[]){KIT_PYTHON, "-c", code, NULL});
}

__attribute__((unused)) static const char *kit_sh(const char *code)
{
    CHECK(fchdir(kit_dir()) == 0);
    return kit_run((const char *const[]){"/bin/sh", "-c", code, NULL});
}

__attribute__((unused)) static int kit_open(const char *path, int flags)
{
    int fd = openat(kit_dir(), path, flags | O_CLOEXEC, 0644);

    if (fd < 0)
        FAIL("open %s: %m", path);
    return fd;
}

/* Pulls a whole archive into a file, size bytes at a time. */
__attribute__((unused)) static void kit_pull(struct zip_out *z, const char *to, size_t size)
{
    static char piece[256u << 10];
    own_fd fd = kit_open(to, O_WRONLY | O_CREAT | O_TRUNC);
    size_t n;

    CHECK(size <= sizeof piece);
    do {
        CHECK_OK(zip_out_next(z, piece, size, &n));
        CHECK_OK(fd_write_all(fd, str_n(piece, n)));
    } while (n);
}

__attribute__((unused)) static void kit_zip(const char *tree, const char *to,
                                            const struct zip_out_config *config, size_t piece)
{
    own(zip_out) z = NULL;

    CHECK_OK(zip_out_tree(kit_open(tree, O_RDONLY | O_DIRECTORY), config, &z));
    kit_pull(z, to, piece);
}

/* Unpacks archive into the directory "out" with staging "staging", both made when missing; staging
 * must be empty afterwards, whatever happened. */
__attribute__((unused)) static struct err *kit_unpack(const char *archive,
                                                      const struct zip_in_config *config)
{
    struct zip_in_config c = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    struct zip_in *z = NULL;
    bool done = false;

    if (config)
        c = *config;
    mkdirat(kit_dir(), "out", 0755);
    mkdirat(kit_dir(), "staging", 0755);
    own_fd fd = kit_open(archive, O_RDONLY), dir = kit_open("out", O_RDONLY | O_DIRECTORY),
           staging = kit_open("staging", O_RDONLY | O_DIRECTORY);
    c.dir = dir;
    c.staging = staging;
    struct err *e = zip_in_new(fd, &c, &z);
    while (!e && !done)
        e = zip_in_step(z, &done);
    zip_in_free(z);
    fault_at(0);
    if (unlinkat(kit_dir(), "staging", AT_REMOVEDIR) < 0)
        FAIL("staging was left with something in it");
    return e;
}
