// SPDX-License-Identifier: Apache-2.0
/* cli.h — the command line: one file per sub-command, each ending in its row.
 *
 *   CLI_COMMAND(version) = {.name = "version", .summary = "print the version", .run = run};
 *
 * Data goes to out, talk to err. Exit codes: 0 done, 1 failed, 2 used wrongly. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/cfg.h"
#include "base/err.h"
#include "base/rows.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

struct cli_command;

struct cli {
    int out, err; /* descriptors */
    const char *const *envp;
    bool json;                         /* --json was given: errors are objects too */
    bool misused;                      /* what failed is how we were called */
    bool color;                        /* err is a terminal and NO_COLOR is not set */
    const struct cli_command *command; /* the one that runs */
};

enum cli_group { /* where --help lists a command */
                 CLI_HERE = 1,
                 CLI_SANDBOXES,
                 CLI_SERVER,
                 CLI_PROGRAMS,
                 CLI_HIDDEN, /* nowhere, nor in the manual page and completions */
};

struct cli_command {
    const char *name;
    enum cli_group group;
    const char *summary; /* one line in the list of commands, no full stop */
    const char *usage;   /* what follows "croft NAME"; NULL: nothing */
    const char *help;    /* more; NULL: none. Prose is wrapped; indented lines stay. */
    /* Flags of its own, for --help and the man page; options.into is not used. */
    struct cfg_table options;
    /* For a command that runs another command: the arguments after this many words are that
     * one's. */
    unsigned own_words;
    bool takes_settings; /* --help shows the flags of the settings too */
    /* argv without the name of the command; gives the exit code. */
    int (*run)(struct cli *cli, int argc, char **argv);
};

#define CLI_COMMAND(id) ROW(cli_commands, struct cli_command, id)

int cli_main(int argc, char **argv, const char *const *envp);

/* Commands in the order of their names; NULL after the last. */
const struct cli_command *cli_command_at(size_t index);
/* NULL when there is none of this name. */
const struct cli_command *cli_command_find(const char *name);

/* Writes data to out; a reader that has gone away is not an error. Gives the exit code. If out is
 * a terminal, it gets nothing that it would act on: names and answers are a stranger's. */
int cli_put(struct cli *cli, const struct buf *data);
/* Says "croft NAME: <error>" on err, frees e and gives the exit code; NULL gives CLI_OK. */
int cli_fail(struct cli *cli, struct err *e);
/* The same for wrong usage, with a pointer to --help. */
int cli_misuse(struct cli *cli, struct err *e);
/* Takes the command's own flags out of argv into its options. Their text then lives in a. */
fallible cli_flags(struct cli *cli, struct arena *a, void *options, int *argc, char **argv);
/* An error of the caller's: cli_fail says it as cli_misuse does. */
fallible cli_wrong(struct cli *cli, const char *what);
fallible cli_no_more(int argc, char **argv); /* refuses arguments that are left */
void cli_put_list(struct buf *out);          /* of the commands, by group */
void cli_put_help(const struct cli_command *command, struct buf *out);
/* "unknown command 'x'; did you mean 'y'?" */
fallible cli_unknown_command(const char *name);
