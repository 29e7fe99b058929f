// SPDX-License-Identifier: Apache-2.0
/* python.h — a batch of documents sent through one Python, to compare with what we make of them.
 *
 * Documents and answers travel in files in the test's directory, each behind its length. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

struct python_batch {
    struct buf sent, answers;
    unsigned count;
};

void python_begin(struct python_batch *b);
void python_done(struct python_batch *b);
void python_add(struct python_batch *b, struct str document);
void python_run(struct python_batch *b); /* skips the test where there is no Python */
/* Each document read and written in every mode must give Python's bytes, and be refused only when
 * Python refuses it. */
void python_compare(struct python_batch *b);
/* Runs a script with input on its standard input; what it prints goes to answers. */
void python_script(const char *script, struct str input, struct buf *answers);
