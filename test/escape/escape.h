// SPDX-License-Identifier: Apache-2.0
/* escape.h — the corpus of attempts, run outside as a control and inside as a test. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* A file of the host with a secret in it, and the words that tell the probe of it. */
struct escape_secret {
    char path[300], file_word[320], secret_word[64];
};
void escape_secret_make(struct escape_secret *s);

struct escape_line {
    struct str name, verdict, note; /* "4-calls/mount", "refused", … */
};
/* Takes the next line off *text; false at "end". Fails the test when the probe broke off. */
bool escape_next(struct str *text, struct escape_line *ret_line);

/* What the control printed, run once per process. */
struct str escape_control(const struct escape_secret *s);
/* Holds what a probe printed inside against the control; fails the test with all that is open.
 * Gives how many attempts had an open door outside. */
unsigned escape_judge(struct str control, struct str inside);
