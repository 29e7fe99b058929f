// SPDX-License-Identifier: Apache-2.0
/* disk_inner.h — between the files of disk.h. */
#pragma once

#include "host/launcher/disk.h"

bool disk_has_projects(int state);
fallible disk_project_make(const struct box_host *h, int box, uint64_t bytes);

const char *disk_lacks_loop(void); /* what; NULL: nothing */
/* The size of a limit's image: the file system's own needs come on top. */
uint64_t disk_image_bytes(uint64_t bytes);
/* The image's file system, made at the first time; bytes 0: as it is. */
fallible disk_loop_open(int state, int box, uint64_t bytes, int *ret_mount);
