// SPDX-License-Identifier: Apache-2.0
/* probe.h — attempts to leave a sandbox, as rows of one static program.
 *
 * `escape-probe` tries all of them and prints a line each; `escape-probe control` does the same
 * outside, where every door must be found open: a row whose control fails tests nothing. No attempt
 * does harm when it succeeds: calls are reached with arguments they refuse, files are opened and
 * not written. The host reads the lines and decides; a row that prints none has failed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/rows.h"

enum probe_result {
    PROBE_REFUSED, /* the door is shut */
    PROBE_OPEN,    /* it is open */
    PROBE_ABSENT,  /* this machine has no such door, in or out: what for, in the note */
};

struct probe {
    const char *family, *name;
    enum probe_result (*try)(const void *data, char *note, size_t size);
    const void *data;
};
#define PROBE(id) ROW(probes, struct probe, id)

/* What the host tells about itself, for attempts on things it made: "NAME=value" arguments. */
const char *probe_word(const char *name); /* NULL: not told */
bool probe_is_control(void);

/* REFUSED with the name of errno in the note. */
enum probe_result probe_refused(char *note, size_t size);
