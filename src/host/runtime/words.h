// SPDX-License-Identifier: Apache-2.0
/* words.h — the command of a start: its words, and which server is meant by it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

#define WORDS_MOST 1024

enum words_face {
    WORDS_ACTION, /* an action server's line, of ours or a foreign client's for theirs */
    WORDS_AGENT,  /* an agent server's, or none at all */
    WORDS_OTHER   /* anything else: run as given */
};

/* A list as it is; a string is split as a shell would, without expanding anything. NULL gives an
 * empty list. The result ends in NULL. */
fallible words_of(struct arena *a, const struct json *command, const char *const **ret_words,
                  size_t *ret_count);
enum words_face words_face(const char *const *words);
bool words_have(const char *const *words, const char *flag); /* "--flag" or "--flag=…" */
/* --port N or --port=N, else PORT of the environment, else otherwise. */
uint16_t words_port(const char *const *words, const struct json *environment, uint16_t otherwise);
