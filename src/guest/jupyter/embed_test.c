// SPDX-License-Identifier: Apache-2.0
/* embed_test.c — what is embedded is what the files hold now; Python is plain ASCII. */
#include "base/embed.h"

#include "base/fd.h"
#include "test/test.h"

EMBED_ELSEWHERE(jupyter_plain);
EMBED_ELSEWHERE(jupyter_setup);
EMBED_ELSEWHERE(jupyter_skills);
EMBED_ELSEWHERE(transfer_pdf);

static void check(struct str packed, const char *file)
{
    own_done(buf) now, text;

    buf_init(&now, 1u << 20);
    buf_init(&text, 1u << 20);
    CHECK_OK(fd_read_file(test_source(file), &now));
    CHECK_OK(inflate_all(packed, &text));
    CHECK_STR(buf_str(&text), buf_str(&now));
    for (size_t i = 0; i < text.len && str_ends(str_of(file), STR(".py")); i++)
        CHECK((unsigned char)text.p[i] < 0x80 && text.p[i]);
}

TEST(embedded_texts_are_those_of_the_files)
{
    check(EMBEDDED(jupyter_plain), "src/guest/jupyter/plain.py");
    check(EMBEDDED(jupyter_setup), "src/guest/jupyter/setup.py");
    check(EMBEDDED(jupyter_skills), "src/guest/jupyter/skills.py");
    check(EMBEDDED(transfer_pdf), "src/guest/transfer/pdf.js");
}
