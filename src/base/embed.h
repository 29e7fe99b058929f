// SPDX-License-Identifier: Apache-2.0
/* embed.h — files of the source tree carried inside the program, packed by tools/pack at build.
 *
 *   EMBED(skills, "src/guest/jupyter/skills.py");     at file scope, in one file
 *   TRY(inflate_all(EMBEDDED(skills), &text));        where it is needed
 *
 * Anything that ends in .py, .js, .sh, .html or .json below src can be named; make does the rest.
 */
#pragma once

#include "base/inflate.h"

#ifndef EMBED_DIR
#define EMBED_DIR "build/pack/"
#endif

#define EMBED(id, path)                                                                            \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global embed_" #id ", embed_" #id "_end\n"                                           \
            ".hidden embed_" #id "\n"                                                              \
            ".hidden embed_" #id "_end\n"                                                          \
            "embed_" #id ": .incbin \"" EMBED_DIR path ".z\"\n"                                    \
            "embed_" #id "_end: .byte 0\n"                                                         \
            ".popsection\n");                                                                      \
    EMBED_ELSEWHERE(id)

#define EMBED_ELSEWHERE(id) extern const char embed_##id[], embed_##id##_end[]

#define EMBEDDED(id)        str_n(embed_##id, (size_t)(embed_##id##_end - embed_##id))
