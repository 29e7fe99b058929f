// SPDX-License-Identifier: Apache-2.0
/* box_sweep.h — what is left of sandboxes when the program that made them is dead. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct box;
struct box_host;
struct record;

/* Mount i is a directory of the machine's that the sandbox may write. Should its croft be killed,
 * box_sweep() takes set-id bits off what it made there. */
fallible box_note_writable(const struct box_host *h, const char *id, unsigned i, const char *path);

/* Removes what killed programs left, if no other croft uses this state: claims without a living
 * process go, with their groups and directories. gone: state/gone is emptied too, for a program
 * without a deleter.
 *
 * Each box_host holds a shared lock on state/box until it and all its children are gone. */
fallible box_sweep(struct box_host *h, bool gone);

/* For the launcher after a killed one; it holds the lock of launchers. box_adopt() finds a sandbox
 * by its name; ERR_NOT_FOUND: no launcher made it.
 *
 * *ret_alive: its process lives, is the one of the record, and is in its control group. Only then
 * are slot, pid and pidfd set. */
fallible box_adopt(struct box_host *h, const char *id, struct box *ret_box,
                   struct record *ret_record, bool *ret_alive);
/* Ends and forgets what holds a slot and is not in use. */
fallible box_clear_claims(struct box_host *h, bool (*in_use)(void *arg, unsigned slot), void *arg);
/* It does not run: its directory goes, unless it holds changes to files of the host's. */
fallible box_clear_dir(const struct box_host *h, const char *id);
/* Removes a directory whose maker died before it wrote a record; croft run claims its name
 * earlier. */
fallible box_clear_unrecorded(const struct box_host *h, const char *id);
