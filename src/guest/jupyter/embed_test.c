// SPDX-License-Identifier: Apache-2.0
/* embed_test.c — what is embedded is what the .py files hold now, and Python accepts it. */
#include "guest/jupyter/embed.h"

#include "base/buf.h"
#include "base/fd.h"
#include "test/test.h"

static void check(struct str embedded, const char *file)
{
    own_done(buf) now;

    buf_init(&now, 1u << 20);
    CHECK_OK(fd_read_file(test_source(file), &now));
    CHECK_STR(embedded, buf_str(&now));
    for (size_t i = 0; i < embedded.len; i++)
        CHECK((unsigned char)embedded.p[i] < 0x80 && embedded.p[i]);
}

TEST(embedded_python_is_that_of_the_files)
{
    check(embed_plain(), "src/guest/jupyter/plain.py");
    check(embed_setup(), "src/guest/jupyter/setup.py");
    check(embed_skills(), "src/guest/jupyter/skills.py");
}
