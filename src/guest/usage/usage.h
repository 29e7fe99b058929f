// SPDX-License-Identifier: Apache-2.0
/* usage.h — the help of croft-guest: one text for all it does, written by tools/usage.c. */
#pragma once

void usage_print(int fd);
