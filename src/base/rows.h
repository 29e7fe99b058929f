// SPDX-License-Identifier: Apache-2.0
/* rows.h — tables collected by the linker, so that growing is adding a file.
 *
 *   #define CLI_COMMAND(id) ROW(cli_commands, struct cli_command, id)
 *   CLI_COMMAND(version) = {.name = "version", …};
 *   ROWS_OF(cli_commands, struct cli_command)   in the one file that walks the table
 *   for (size_t i = 0; i < ROWS_LEN(cli_commands); i++) use(ROWS_AT(cli_commands, i));
 *
 * The section holds pointers: structs of their own would get holes between them from ASan. */
#pragma once

#define ROW(table, type, id)                                                                       \
    static const type table##_##id;                                                                \
    static const type *const table##_##id##_row __attribute__((used, section("croft_" #table))) =  \
        &table##_##id;                                                                             \
    static const type table##_##id

#define ROWS_OF(table, type)                                                                       \
    extern const type *const __start_croft_##table[] __attribute__((weak, visibility("hidden")));  \
    extern const type *const __stop_croft_##table[] __attribute__((weak, visibility("hidden")));

#define ROWS_LEN(table)   ((size_t)(__stop_croft_##table - __start_croft_##table))
#define ROWS_AT(table, i) (__start_croft_##table[i])
