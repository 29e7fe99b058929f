// SPDX-License-Identifier: Apache-2.0
/* bind_test.c — what a claim says, and every way in which it can say it badly. */
#include "wire/bind.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/test.h"

static char *block(struct bind_head h, const char *strings, size_t len)
{
    char *bytes = malloc(sizeof h + len);

    memcpy(bytes, &h, sizeof h);
    memcpy(bytes + sizeof h, strings, len);
    return bytes;
}

#define STRINGS                                                                                    \
    "/w\0"                                                                                         \
    "7:8\0"                                                                                        \
    "ls\0"                                                                                         \
    "-l\0"                                                                                         \
    "A=b\0"
#define HEAD ((struct bind_head){BIND_MAGIC, BIND_COMMAND, 2, 1})

TEST(bind_gives_what_was_written)
{
    struct wire_bind b;
    int fd = memfd_create("block", MFD_CLOEXEC);
    own_free char *bytes = block(HEAD, STRINGS, sizeof STRINGS - 1);

    CHECK_INT(write(fd, bytes, sizeof(struct bind_head) + sizeof STRINGS - 1),
              (int)(sizeof(struct bind_head) + sizeof STRINGS - 1));
    CHECK_OK(wire_bind_read(fd, &b));
    CHECK(b.command);
    CHECK_INT(b.argc, 2);
    CHECK_STR(b.cwd, "/w");
    CHECK_STR(b.user, "7:8");
    CHECK_STR(b.argv[0], "ls");
    CHECK_STR(b.argv[1], "-l");
    CHECK(!b.argv[2] && !b.env[1]);
    CHECK_STR(b.env[0], "A=b");
    wire_bind_done(&b);
    close(fd);
}

TEST(bind_refuses_what_is_not_whole)
{
    const struct {
        struct bind_head head;
        const char *strings;
        size_t len;
    } cases[] = {
        {{BIND_MAGIC + 1, 0, 2, 1}, STRINGS, sizeof STRINGS - 1}, /* not ours */
        {{BIND_MAGIC, 2, 2, 1}, STRINGS, sizeof STRINGS - 1},     /* unknown flags */
        {{BIND_MAGIC, 0, 0, 3}, STRINGS, sizeof STRINGS - 1},     /* nothing to run */
        {{BIND_MAGIC, 0, 2, 2}, STRINGS, sizeof STRINGS - 1},     /* too few strings */
        {{BIND_MAGIC, 0, 2, 0}, STRINGS, sizeof STRINGS - 1},     /* too many */
        {{BIND_MAGIC, 0, 2, 1}, STRINGS, sizeof STRINGS - 2},     /* the last one not ended */
        {{BIND_MAGIC, 0, BIND_LIST_MAX + 1, 1}, STRINGS, sizeof STRINGS - 1},
        {{BIND_MAGIC, 0, 1, UINT32_MAX}, STRINGS, sizeof STRINGS - 1},
        {{BIND_MAGIC, 0, 2, 1}, "w\0\0ls\0-l\0A=b\0", 13}, /* a relative directory */
        {{BIND_MAGIC, 0, 2, 1}, "", 0},
    };
    struct wire_bind b;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *bytes = block(cases[i].head, cases[i].strings, cases[i].len);
        CHECK_ERR(wire_bind_parse(bytes, sizeof(struct bind_head) + cases[i].len, &b), ERR_CORRUPT,
                  "bound to");
    }
    CHECK_ERR(wire_bind_parse(calloc(1, 3), 3, &b), ERR_CORRUPT, "bound to");
}

TEST(bind_refuses_an_empty_and_an_endless_file)
{
    struct wire_bind b;
    int fd = memfd_create("block", MFD_CLOEXEC);

    CHECK_ERR(wire_bind_read(fd, &b), ERR_CORRUPT, "bound to");
    CHECK_INT(ftruncate(fd, BIND_BYTES_MAX + 1), 0);
    CHECK_ERR(wire_bind_read(fd, &b), ERR_CORRUPT, "bound to");
    close(fd);
}
