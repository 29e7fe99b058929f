// SPDX-License-Identifier: Apache-2.0
/* changes_list.h — 'croft diff --list': every sandbox that has left changes. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct cli;
struct jw;
struct overlay_run;

fallible changes_list(struct cli *cli, int state, bool json, struct buf *out);
/* Members of an open object: which run it was. */
void changes_put_run(struct jw *w, const struct overlay_run *run);
