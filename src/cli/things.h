// SPDX-License-Identifier: Apache-2.0
/* things.h — commands about named objects, such as images: make one, list them, remove some. */
#pragma once

#include "base/err.h"

struct cli_things {
    const char *make, *of; /* "import", "FILE": the word and what follows it */
    const char *thing;     /* "IMAGE": what rm wants */
    fallible (*list)(void *job);
    fallible (*create)(void *job, const char *name);
    fallible (*remove)(void *job, const char *name);
};

/* "MAKE OF", "ls" or "rm THING ..."; an error says what is wanted. */
fallible cli_things_check(const struct cli_things *t, int argc, char **argv);
fallible cli_things_do(const struct cli_things *t, void *job, int argc, char **argv);
