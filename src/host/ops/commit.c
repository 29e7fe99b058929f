// SPDX-License-Identifier: Apache-2.0
/* commit.c — built anew when the commit changes, and alone. */
#include "host/ops/metrics.h"

const char metrics_commit[] = CROFT_COMMIT;
