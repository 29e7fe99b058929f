// SPDX-License-Identifier: Apache-2.0
/* known.c — see known.h. */
#include "wire/known.h"

#include <string.h>

static fallible known_unknown(struct str key, const char *before, const char *const *names)
{
    unsigned least = (unsigned)(key.len < 9 ? 3 : key.len / 3) + 1; /* more is another word */
    const char *best = NULL;

    for (size_t i = 0; names[i]; i++) {
        unsigned d = str_distance(key, str_of(names[i]));
        if (d >= least)
            continue;
        least = d;
        best = names[i];
    }
    key = str_first(key, 80);
    if (best)
        return err_new(ERR_UNPROCESSABLE, "%s" STR_FMT ": no such field; did you mean '%s'?",
                       before, STR_ARG(key), best);
    return err_new(ERR_UNPROCESSABLE, "%s" STR_FMT ": no such field", before, STR_ARG(key));
}

fallible wire_check_known(const struct json *body, const char *before, const char *const *names)
{
    if (body->type != JSON_OBJECT)
        return err_new(ERR_UNPROCESSABLE, "the body: wanted an object");
    for (const struct json *m = body->first; m; m = m->next) {
        size_t i = 0;
        while (names[i] && !str_eq(m->key, str_of(names[i])))
            i++;
        if (!names[i])
            return known_unknown(m->key, before, names);
    }
    return NULL;
}
