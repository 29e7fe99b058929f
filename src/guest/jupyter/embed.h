// SPDX-License-Identifier: Apache-2.0
/* embed.h — the Python that we bring along, as it is in the .py files of this folder; all ASCII. */
#pragma once

#include "base/str.h"

struct str embed_plain(void);  /* the program of the plain engine */
struct str embed_setup(void);  /* prepares a new kernel */
struct str embed_skills(void); /* the module with the functions for cells */
