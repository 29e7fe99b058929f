// SPDX-License-Identifier: Apache-2.0
/* embed.c — see embed.h. make does not see that this file depends on them: embed_test.c does. */
#include "guest/jupyter/embed.h"

#define EMBED(name, file)                                                                          \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global jupyter_" name "_start, jupyter_" name "_end\n"                               \
            ".hidden jupyter_" name "_start\n"                                                     \
            ".hidden jupyter_" name "_end\n"                                                       \
            "jupyter_" name "_start: .incbin \"src/guest/jupyter/" file "\"\n"                     \
            "jupyter_" name "_end: .byte 0\n"                                                      \
            ".popsection\n")

EMBED("plain", "plain.py");
EMBED("skills", "skills.py");
EMBED("setup", "setup.py");

extern const char jupyter_plain_start[], jupyter_plain_end[];
extern const char jupyter_skills_start[], jupyter_skills_end[];
extern const char jupyter_setup_start[], jupyter_setup_end[];

struct str embed_plain(void)
{
    return str_n(jupyter_plain_start, (size_t)(jupyter_plain_end - jupyter_plain_start));
}

struct str embed_skills(void)
{
    return str_n(jupyter_skills_start, (size_t)(jupyter_skills_end - jupyter_skills_start));
}

struct str embed_setup(void)
{
    return str_n(jupyter_setup_start, (size_t)(jupyter_setup_end - jupyter_setup_start));
}
