// SPDX-License-Identifier: Apache-2.0
/* shell_inner.h — the parts of a shell: files, process, terminal, requests. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/sm.h"
#include "guest/shell/shell.h"
#include "guest/spawn/spawn.h"
#include "guest/term/term.h"
#include "loop/loop.h"

#define SHELL_NAME_MAX   64
#define SHELL_SIDS_MAX   64
#define SHELL_REPORT_MAX (1u << 20)
#define SHELL_INPUT_MAX  (16u << 20)
#define SHELL_ENV_MAX    4096

enum shell_state {              /* of bash */
                   SH_STARTING, /* it runs its start-up files */
                   SH_READY,
                   SH_DEAD, /* it does not start; the next request tries again */
                   SH_CLOSED,
};

enum command_state { /* of the command it was given */
                     CMD_NONE,
                     CMD_QUEUED,  /* for a bash that is starting */
                     CMD_RUNNING, /* perhaps without a request that waits for it */
                     CMD_ENDED,   /* without a request: its result waits */
                     CMD_HELD,    /* incomplete: bash has not seen it yet */
};

struct shell_page; /* see shell_held.c */

struct shell_files { /* a private directory; names inside cannot be guessed or listed by others */
    char dir[256], token[17];
    char report[320], command[320], env[320], cwd[320], jobs[320], hook[320];
    int report_fd;  /* FIFO, open for reading and writing: it never reports end of file */
    int command_fd; /* regular */
    size_t command_len;
    ino_t report_inode; /* 0: not known yet */
};

struct shell_owned_meta { /* storage behind struct shell_meta */
    int exit_code, pid;
    uid_t uid;
    char username[SHELL_NAME_MAX], hostname[SHELL_NAME_MAX];
    struct buf working_dir, python;
};

struct shell {
    struct loop *loop;
    struct shell_config config;
    char *owned_strings[7];
    char **env;
    struct proc_user user;
    struct sm sm, command;
    char id[24];

    struct shell_files files;
    struct loop_io report_io;
    struct buf report;

    int master, slave; /* the slave is held so that we may flush it */
    struct loop_io master_io;
    struct spawn_child child;
    pid_t pid, report_pid;      /* bash; the shell that reported last, perhaps one inside it */
    pid_t sids[SHELL_SIDS_MAX]; /* sessions of shells that died: background jobs live on in them */
    size_t sids_len;
    unsigned start_failures;
    bool had_env; /* a dump of exported variables exists */

    struct buf out; /* typed but not yet taken by the terminal */
    struct buf pre; /* read but before the START mark */
    struct buf typed;
    struct buf early; /* input for a command that has not begun */
    bool early_interrupt;
    char sequence[48], first[48]; /* of the command; of the start of bash */
    uint64_t number;
    bool awaiting_mark, echo_known, lost_report, last_newline, retried;
    bool stuck;      /* it did not begin the line in time, and was killed for that */
    bool owes_start; /* its mark was seen, the report of its start was not */
    bool fresh;      /* bash is new: what was read belongs to its start, up to the first mark */
    bool plain;      /* the last report had status 0 and no option that concerns us */
    bool stray;      /* more than lines for bash was typed: some of it may not have been read */
    char tail[96];   /* of what was read */
    size_t unasked;  /* bytes read since no request waits */
    bool behind;     /* the taker of the output says so */
    struct term *term;
    uint64_t term_seen;

    struct buf held;        /* command text: held back, queued or running */
    struct buf text, since; /* rendered now; as last reported */
    size_t since_dropped;
    bool reported; /* something of the running command was */
    struct buf previous;
    struct shell_owned_meta meta;
    unsigned happened;
    uint64_t oom_before;

    struct shell_request request;
    struct buf request_command;
    char request_key;
    bool waiting;
    struct loop_timer soft, hard, start, interrupt, quiet;
    pid_t interrupted;         /* process group in the foreground when C-c was typed */
    char interrupted_name[24]; /* how its leader's status began: with its name */
    unsigned interrupts;
    bool keys_typed; /* into the running command: their echo belongs to it */
    bool probed;     /* asked for a report, since the last C-c */
    struct loop_later answer, gone;
    struct shell_result result; /* so far; of a command that ended, for the next request */
    struct shell_result due;    /* the answer once it is decided: it goes out after this turn */
    struct buf due_text;        /* its text, if the command ended meanwhile */
    struct arena arena;         /* parts and the like of that answer */
    struct err *error;

    struct shell_page *page; /* what the next server needs to know; NULL: it is not held */
    int page_fd;
    uint32_t held_id;
    uint64_t adopted_until_ns; /* so long the command we found may be asked for again */
};

/* shell_files.c */
void shell_files_name(struct shell_files *f, const char *dir, const char *token);
fallible shell_files_pick(struct shell_files *f, const char *base, struct rng *rng); /* names */
fallible shell_files_make(struct shell_files *f, uid_t uid);
/* False: they were removed. The command's matters if bash is to read it. */
bool shell_files_whole(struct shell_files *f, bool command);
fallible shell_files_mend(struct shell_files *f); /* report_fd must not be watched */
fallible shell_files_command(struct shell_files *f, struct str text);
void shell_files_close(struct shell_files *f);

/* shell_script.c */
enum shell_line {                    /* typed at a prompt, to run a command: */
                  SHELL_LINE_FILE,   /* the text is in the file */
                  SHELL_LINE_INLINE, /* ... in the line */
                  SHELL_LINE_PLAIN,  /* ... and the last command left nothing to be restored */
};
void shell_script_hook(struct buf *b, const struct shell_files *f);      /* the file of that name */
void shell_script_find_hook(struct buf *b, const struct shell_files *f); /* CROFT_A */
extern const char shell_script_prompt_command[];
void shell_script_init(struct buf *b, const struct shell_files *f, bool restore);
bool shell_script_fits(struct str text); /* in the line */
/* Typed first: what follows finds the functions. */
void shell_script_sure(struct buf *b, const struct shell_files *f);
void shell_script_line(struct buf *b, enum shell_line line, const char *sequence, struct str text);
void shell_script_mark(struct buf *b, const char *sequence);
extern const struct str shell_script_probe; /* typed at a prompt: report */

/* shell_process.c */
fallible shell_spawn(struct shell *s); /* leaves the shell in SH_STARTING */
void shell_end_process(struct shell *s);
void shell_on_bash_end(struct spawn_child *c);

/* shell_held.c; all of them nothing without config.held */
void shell_held_put(struct shell *s);  /* there is another bash, terminal or file */
void shell_held_save(struct shell *s); /* after every step of a command */
void shell_held_drop(struct shell *s);
fallible shell_held_restore(struct shell *s, struct held_item *t); /* up to shell_io_resume */

/* shell_life.c */
fallible shell_open_term(struct shell *s);

/* shell_io.c */
fallible shell_watch_files(struct shell *s, bool command); /* mends them; see shell_files_whole */
fallible shell_io_start(struct shell *s);
fallible shell_io_resume(struct shell *s); /* of a bash that was there before us */
void shell_io_stop(struct shell *s);
void shell_type(struct shell *s, struct str bytes);
bool shell_takes_line(const struct shell *s); /* now, or as soon as it has started */
void shell_number(struct shell *s, char out[48]);
fallible shell_begin(struct shell *s, struct str command); /* types the one line */
void shell_input(struct shell *s, struct str bytes);
void shell_drain(struct shell *s);
void shell_read_reports(struct shell *s);
bool shell_dump_is_of_line(const struct shell *s);
void shell_give_up_mark(struct shell *s);

/* shell_interrupt.c */
void shell_interrupt_now(struct shell *s);
pid_t shell_foreground(const struct shell *s); /* the process group that has the terminal, or -1 */
void shell_await_echo(struct shell *s);        /* of keys that were typed */

/* shell_meta.c */
struct shell_report {
    struct str sequence, path, working_dir, options;
    int exit_code, background, pid;
    uid_t uid;
};
/* Length of the first report in bytes, 0 if it is not complete; fields only if it is well-formed.
 */
size_t shell_report_parse(struct str bytes, struct shell_report *ret, bool *ret_ok);
void shell_meta_take(struct shell_owned_meta *m, const struct shell_report *r);
void shell_meta_init(struct shell_owned_meta *m);
void shell_meta_done(struct shell_owned_meta *m);
struct shell_meta shell_meta_view(const struct shell_owned_meta *m);

/* shell.c: what process and terminal tell the shell */
void shell_on_output(struct shell *s);
bool shell_is_start(const struct shell *s, const struct shell_report *r);
void shell_on_started(struct shell *s, const struct shell_report *r);
void shell_on_report(struct shell *s, const struct shell_report *r); /* NULL: a lost one */
void shell_on_death(struct shell *s, int exit_code);
