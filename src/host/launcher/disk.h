// SPDX-License-Identifier: Apache-2.0
/* disk.h — a limit on what one sandbox writes to disk, by one of three mechanisms.
 *
 * project: the state directory's file system counts what belongs to a sandbox (ext4, xfs). tmpfs:
 * its files are in memory, counted there, and go with it. loop: its files are in an ext4 image of
 * their own, box/<ID>/disk, which lasts as long as they would. A limit that was not asked for costs
 * nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/launcher/box.h"

#define DISK_IMAGE      "disk"
#define DISK_NOTE       "project" /* a link; its text is the project's number */
#define DISK_LEAST_LOOP (16u << 20)
#define DISK_LEAST      (1u << 20)

/* Which of them limits sandboxes here; NATIVE_DISK_NONE: none. lasts: the files outlive the process
 * that started it. A ceiling for tmpfs: memory it would be taken from, 0: none known. */
enum native_disk disk_mechanism(const struct box_host *h, bool lasts);
/* The one for this limit; an error names what is missing. box: its directory, -1: not made yet;
 * one with files keeps the limit it was made with. */
fallible disk_choose(const struct box_host *h, const struct native_limits *limits, bool lasts,
                     int box, enum native_disk *ret_disk);
enum native_disk disk_of(int box); /* what the files of a sandbox that is there are limited by */
/* The text that doctor prints: every mechanism of this machine. */
const char *disk_describe(const struct box_host *h);

/* A mount that takes the place of box/<ID> for upper layers, its ids shifted (userns -1: not); -1
 * where they are in that directory. */
fallible disk_open(const struct box_host *h, enum native_disk disk, int box, uint64_t bytes,
                   int userns, int *ret_mount);
/* For a sandbox that runs, and is paused meanwhile: mounts its image once more, as its processes
 * see it, to be read. */
fallible disk_look(int box, int *ret_mount);
/* No room is left for this layer; that of a project is the project's. */
bool disk_is_full(int parent, const char *layer);
/* For layers that have just been made: from now on they count. Nothing but for projects. */
fallible disk_count(enum native_disk disk, int box, int layer);
void disk_forget(int box); /* before the directory goes; nothing but for projects */
