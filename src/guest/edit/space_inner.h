// SPDX-License-Identifier: Apache-2.0
/* space_inner.h — shared by space.c and save.c only. */
#pragma once

#include "guest/edit/space.h"

fallible space_open_mode(const struct edit_space *s, struct str path, int flags, mode_t mode,
                         int *ret_fd);
