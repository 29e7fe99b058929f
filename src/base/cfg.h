// SPDX-License-Identifier: Apache-2.0
/* cfg.h — settings are rows: one row feeds loading, validation, --help, `croft config` and the man
 * page.
 *
 *   static const struct cfg_row rows[] = {
 *       CFG_UINT(serve_config, port, "server.port", 3000, "TCP port to listen on.", .max = 65535),
 *       CFG_STR(serve_config, host, "server.host", "127.0.0.1", "Address to listen on."),
 *   };
 *
 * Key "server.port" is [server] port in a file, CROFT_SERVER_PORT in the environment (or .env) and
 * --port (or .flag) on the command line. A key without a section is an option of one command: a
 * flag only.
 *
 * Later wins: built-in, files in order, environment, flags. The order of the calls below does not
 * matter, only that of files among themselves. An empty variable counts as unset.
 *
 * Rows marked foreign follow OpenHands: SECTION_NAME, or NAME for [core], in the environment. There
 * a value of the wrong type is noted and skipped, and only "true" and "1" are true. Any other fault
 * is an error. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

enum cfg_type {
    CFG_TYPE_BOOL,   /* bool */
    CFG_TYPE_INT,    /* int64_t */
    CFG_TYPE_UINT,   /* uint64_t */
    CFG_TYPE_DOUBLE, /* double */
    CFG_TYPE_STR,    /* struct str; .p is NULL when unset */
    CFG_TYPE_SECRET, /* struct str that is never printed */
    CFG_TYPE_SIZE,   /* uint64_t bytes: 512M, 2GiB */
    CFG_TYPE_MS,     /* uint64_t milliseconds: 500ms, 30s, 5m, 1h; a bare number is seconds */
    CFG_TYPE_LIST,   /* struct json * array of strings, or NULL */
    CFG_TYPE_DICT,   /* struct json * object, or NULL */
};

struct cfg_row {
    const char *key; /* "section.name" */
    enum cfg_type type;
    size_t offset;         /* of the member in the settings struct */
    const char *otherwise; /* the default, as one would write it in the environment; NULL: unset */
    const char *help;
    const char *flag; /* command line name without dashes; NULL: last part of the key, '-' for '_',
                         none for foreign rows; "": none */
    char letter;      /* "-f" on the command line of the command that reads it so; 0: none */
    const char *env;  /* NULL: CROFT_SECTION_NAME, as above for foreign rows */
    const char *choices;                  /* "a|b|c" for strings; NULL: anything */
    void (*put_choices)(struct buf *out); /* instead: where they are rows of another table */
    int64_t min, max;                     /* for numbers; both 0: no bound beyond the type's */
    bool foreign;                         /* a key of OpenHands', with that project's rules */
    bool at_start;                        /* a change waits until the program starts again */
};

#define CFG_ROW_(type_, struct_, member_, key_, otherwise_, help_, ...)                            \
    {                                                                                              \
        .key = key_, .type = type_, .offset = offsetof(struct struct_, member_),                   \
        .otherwise = otherwise_, .help = help_, __VA_ARGS__                                        \
    }
#define CFG_TEXT_(x)  CFG_TEXT__(x)
#define CFG_TEXT__(x) #x
#define CFG_BOOL(s, m, key, otherwise, help, ...)                                                  \
    CFG_ROW_(CFG_TYPE_BOOL, s, m, key, (otherwise) ? "true" : "false", help, __VA_ARGS__)
#define CFG_INT(s, m, key, otherwise, help, ...)                                                   \
    CFG_ROW_(CFG_TYPE_INT, s, m, key, CFG_TEXT_(otherwise), help, __VA_ARGS__)
#define CFG_UINT(s, m, key, otherwise, help, ...)                                                  \
    CFG_ROW_(CFG_TYPE_UINT, s, m, key, CFG_TEXT_(otherwise), help, __VA_ARGS__)
#define CFG_DOUBLE(s, m, key, otherwise, help, ...)                                                \
    CFG_ROW_(CFG_TYPE_DOUBLE, s, m, key, CFG_TEXT_(otherwise), help, __VA_ARGS__)
#define CFG_STR(s, m, key, otherwise, help, ...)                                                   \
    CFG_ROW_(CFG_TYPE_STR, s, m, key, otherwise, help, __VA_ARGS__)
#define CFG_SECRET(s, m, key, help, ...)                                                           \
    CFG_ROW_(CFG_TYPE_SECRET, s, m, key, NULL, help, __VA_ARGS__)
#define CFG_SIZE(s, m, key, otherwise, help, ...)                                                  \
    CFG_ROW_(CFG_TYPE_SIZE, s, m, key, otherwise, help, __VA_ARGS__)
#define CFG_MS(s, m, key, otherwise, help, ...)                                                    \
    CFG_ROW_(CFG_TYPE_MS, s, m, key, otherwise, help, __VA_ARGS__)
#define CFG_LIST(s, m, key, otherwise, help, ...)                                                  \
    CFG_ROW_(CFG_TYPE_LIST, s, m, key, otherwise, help, __VA_ARGS__)
#define CFG_DICT(s, m, key, otherwise, help, ...)                                                  \
    CFG_ROW_(CFG_TYPE_DICT, s, m, key, otherwise, help, __VA_ARGS__)

/* One table of rows with the struct it fills; a program loads several. See cfg_table.h. */
struct cfg;
struct cfg_table {
    const struct cfg_row *rows;
    size_t count;
    void *into;
    size_t size; /* of that struct, where the loader makes it */
    bool first;  /* printed before what other tables have of the same section */
    /* Checks across rows, when all is read; may correct values. NULL: none. */
    fallible (*check)(const struct cfg *c, void *into);
};

struct cfg_foreign {
    const char *section;     /* "llm"; also matches "llm.*" tables */
    const char *const *keys; /* known upstream keys of a shared section; NULL: every key */
};

/* Where each value came from, and which foreign settings were accepted. */
struct cfg {
    struct arena *arena; /* values live here */
    const struct cfg_table *tables;
    size_t table_count;
    struct str text;      /* of the file being loaded, in which its keys lie: for their lines */
    struct json *notes;   /* array of {"key","source","note"}: accepted but not ours, or skipped */
    const char **sources; /* one per row over all tables: "default", "file:croft.toml",
                             "env:CROFT_SERVER_PORT", "flag:--port"; of a file with a text:
                             "file:croft.toml line 3" */
    /* Set after cfg_init, before anything is loaded: see cfg_family.h, and the names of settings
     * that are not ours and are accepted, in files and variables. */
    const struct cfg_family *const *families;
    size_t family_count;
    const struct cfg_foreign *foreign;
    size_t foreign_count;
    struct cfg_named *named;
};

fallible cfg_init(struct cfg *c, struct arena *a, const struct cfg_table *tables, size_t count);

/* A tree from TOML, YAML or JSON; it must live as long as the arena. source is "file:NAME". Unknown
 * keys: an error that names the nearest; sections and keys listed as foreign: accepted and noted.
 * The error has all mistakes, and what is right is loaded.
 */
fallible cfg_load_tree(struct cfg *c, const struct json *tree, const char *source);
/* NULL when envp, which may be NULL too, has no such variable. */
const char *cfg_env_get(const char *const *envp, const char *name);
/* envp as for execve; values in Python literal syntax for lists and dicts, JSON too; our own lists
 * also as a,b,c. */
fallible cfg_load_env(struct cfg *c, const char *const *envp);
/* Takes --flag value, --flag=value, --flag/--no-flag out of argv; what is left moves to the front
 * and *argc shrinks. Stops at "--" (which stays). Unknown flags: an error that names the nearest.
 */
fallible cfg_load_flags(struct cfg *c, int *argc, char **argv);
/* The variable of a foreign key, in CFG_NAME_MAX bytes: SECTION_KEY, or KEY for [core]. */
void cfg_foreign_env(const struct cfg_foreign *f, const char *key, char *out);
/* The source of a key's value, NULL when no row has it. */
const char *cfg_source(const struct cfg *c, const char *key);

/* Options block of --help: columns aligned, defaults shown, no line over 80 columns. */
void cfg_put_help(const struct cfg_table *t, struct buf *out);
/* The same rows as troff for the man page. */
void cfg_put_man(const struct cfg_table *t, struct buf *out);
/* Every value with its source, secrets as ***: lines of TOML, or an object by key with "value" and
 * "source" when json is true. Options of the command are left out. */
void cfg_put_values(const struct cfg *c, struct buf *out, bool json);

/* Calls fn for each key that both do not have with the same value; of another module's rows too. */
void cfg_each_change(const struct cfg *before, const struct cfg *after,
                     void (*fn)(void *arg, const struct cfg_row *row), void *arg);

/* Values as users write them. */
fallible cfg_parse_size(struct str text, uint64_t *ret_bytes);
fallible cfg_parse_ms(struct str text, uint64_t *ret_ms);
/* A Python literal: None True False numbers strings lists tuples dicts; JSON's null/true/false too.
 */
fallible cfg_parse_literal(struct arena *a, struct str text, struct json **ret_value);
