// SPDX-License-Identifier: Apache-2.0
/* settings.h — every setting of the host program, and where it may come from.
 *
 * Later wins: built-in, /etc/croft/croft.toml, $XDG_CONFIG_HOME/croft/croft.toml, the file named by
 * --config, environment, flags. A config.toml in the working directory is read only when --config
 * names it: a cloned repository must not configure the program that is to contain it.
 *
 * The rows stand with the modules that read them: see base/cfg_table.h. */
#pragma once

#include "base/cfg_table.h"

struct settings_array {
    void *at;
    size_t count;
};

struct settings {       /* as they were read, once */
    struct arena arena; /* owns everything below */
    struct cfg cfg;
    struct json *files;              /* array: the names of the files read, in order */
    void **tables;                   /* a struct for each CFG_TABLE */
    struct settings_array *families; /* one for each CFG_FAMILY */
};

/* Reads defaults and flags; an error here is one of the command line. options, which may be NULL,
 * are the flags of the calling command and are filled too. Arguments stay in argv.
 *
 * settings_done() ends it, also after an error. */
fallible settings_begin(struct settings *s, const struct cfg_table *options, int *argc,
                        char **argv);
/* Everything else; config_file is what --config named, or not set. The error has all mistakes. */
fallible settings_load(struct settings *s, struct str config_file, const char *const *envp);
void settings_done(struct settings *s);

/* The struct that the table's rows filled. */
const void *settings_of(const struct settings *s, const struct cfg_table *table);
/* An array of the family's structs, in the order they were met. */
const void *settings_named(const struct settings *s, const struct cfg_family *family,
                           size_t *ret_count);

/* One file by its name: .yaml and .yml are YAML, .json is JSON, anything else TOML. */
fallible settings_load_file(struct settings *s, const char *path);
/* server.state_dir, or $XDG_STATE_HOME/croft, ~/.local/state/croft, /var/lib/croft for root. */
fallible settings_state_dir(const struct settings *s, struct arena *a, const char *const *envp,
                            bool root, struct str *ret_path);

/* For --help, completion and the man page: all rows in one table, and the families, as they are
 * printed. The arena is checked by the caller. */
struct cfg_table settings_rows(struct arena *a);
const struct cfg_family *const *settings_families(struct arena *a, size_t *ret_count);
extern const struct cfg_foreign settings_foreign[];
extern const size_t settings_foreign_count;
