// SPDX-License-Identifier: Apache-2.0
/* cfg_table.h — settings stand beside the code that reads them: each module has rows and a struct
 * of its own, and the linker collects the tables.
 *
 *   struct journal_settings { uint64_t keep; };
 *   static const struct cfg_row rows[] = {CFG_SIZE(journal_settings, keep, "journal.keep", ...)};
 *   CFG_TABLE(journal) = {rows, ARRAY_LEN(rows), .size = sizeof(struct journal_settings)};
 *
 * The loader (host/config/settings.h) gives the struct back for CFG_TABLE_OF(journal). */
#pragma once

#include "base/cfg_family.h"
#include "base/rows.h"

#define CFG_TABLE(id)     ROW(cfg_tables, struct cfg_table, id)
#define CFG_TABLE_OF(id)  (&cfg_tables_##id)
#define CFG_FAMILY(id)    ROW(cfg_families, struct cfg_family, id)
#define CFG_FAMILY_OF(id) (&cfg_families_##id)
