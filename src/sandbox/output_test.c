// SPDX-License-Identifier: Apache-2.0
#include "sandbox/output.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/test.h"

static int open_ring(void)
{
    own_fd dir = test_dir_fd();
    int fd = openat(dir, "ring", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    return fd;
}

/* Lines of 8 bytes, from..to; gives what a said made on the file before knows in the end. */
static void say(struct loop *loop, unsigned from, unsigned to, struct buf *out)
{
    struct sbx_output o = {.file = 0};
    char line[16];
    int ends[2];

    sbx_output_init(&o);
    sbx_output_keep_in(&o, open_ring());
    for (unsigned i = from; i < to;) {
        CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
        CHECK_OK(sbx_output_start(&o, loop, ends[0]));
        for (unsigned n = 0; n < 1000 && i < to; n++, i++) {
            snprintf(line, sizeof line, "%07u\n", i);
            CHECK_INT(write(ends[1], line, 8), 8);
        }
        close(ends[1]);
        sbx_output_stop(&o);
    }
    sbx_output_copy(&o, out);
    CHECK_INT(o.total, (uint64_t)to * 8);
    sbx_output_done(&o);
}

TEST(said_is_whole_for_the_next_program_however_much_there_was)
{
    static const unsigned counts[] = {0, 3, 8192, 8193, 20001, 20001, 40000};
    own(loop) loop = NULL;

    CHECK_OK(loop_new(&clock_system, &loop));
    for (size_t i = 1; i < ARRAY_LEN(counts); i++) {
        own_done(buf) was, is;
        buf_init(&was, OUTPUT_BYTES);
        buf_init(&is, OUTPUT_BYTES);
        say(loop, counts[i - 1], counts[i], &was);
        say(loop, counts[i], counts[i], &is); /* says nothing */
        CHECK_STR(buf_str(&is), buf_str(&was));
        CHECK_INT(is.len, counts[i] < 8192 ? counts[i] * 8 : OUTPUT_BYTES);
    }
}

TEST(said_begins_anew_where_its_file_is_not_whole)
{
    own(loop) loop = NULL;
    own_done(buf) out;
    int fd = open_ring();

    buf_init(&out, OUTPUT_BYTES);
    CHECK_OK(loop_new(&clock_system, &loop));
    CHECK_INT(write(fd, "\xff\xff\xff\xff\xff\xff\xff\x7fx", 9), 9);
    close(fd);
    say(loop, 0, 2, &out);
    CHECK_STR(buf_str(&out), "0000000\n0000001\n");
}
