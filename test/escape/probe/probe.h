// SPDX-License-Identifier: Apache-2.0
/* probe.h — attempts to leave a sandbox, as rows of one static program.
 *
 * `escape-probe` tries all of them and prints a line each; `escape-probe control` does the same
 * outside, where every door must be found open: a row whose control fails tests nothing. No attempt
 * does harm when it succeeds: calls are reached with arguments they refuse, settings are opened and
 * not written, what is changed is there to be changed. A row does not know whether it succeeded:
 * its trace says by what the host sees that (test/escape/trace.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/rows.h"
#include "test/escape/trace.h"

struct probe {
    const char *family, *name;
    enum trace trace;
    void (*try)(const void *data);
    const void *data;
};
#define PROBE(id) ROW(probes, struct probe, id)

/* What the host tells about itself, for attempts on things it made: "NAME=value" arguments. */
const char *probe_word(const char *name); /* NULL: not told */
bool probe_is_control(void);
const char *probe_row(void); /* family/name of this one, to be left where it gets to */

/* The very next system call of this process is the deed, or a step without which there is none.
 * errno stays. */
void probe_deed(void);
void probe_step(void);
/* Nobody need look at the calls of this process from here on. */
void probe_calm(void);

/* For the row's line, one after the other; without any it is errno. */
void probe_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Says the first bytes of a file; false: there is none. */
bool probe_say_file(const char *path);
