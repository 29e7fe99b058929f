// SPDX-License-Identifier: Apache-2.0
/* serve_kit.h — `croft serve` from the outside: the real program, real sandboxes, real HTTP.
 *
 * One server at a time per test, its state in test_dir()/state. serve_close() ends it and wants
 * nothing left: no process, no directory, no claim, no socket. Needs root. */
#pragma once

#include "base/json.h"
#include "test/test.h"
#include "test/wire.h"

struct serve {
    struct wire wire;
    char state[300];
    const char *key;       /* sent as X-API-Key; NULL: none */
    struct arena arena;    /* of all answers */
    bool at_exit;          /* its settings say what its end does; else it deletes all */
    int log;               /* 0: the test's own standard error */
    unsigned reloads;      /* so far */
    struct json *document; /* of the API; every answer of serve_ask() is held against it */
};

struct serve_answer {
    int status;
    struct str head, body;
    struct json *json; /* NULL: it is not JSON */
};

void serve_prepare(struct serve *s);      /* layers, subreaper; once per test */
void serve_prepare_user(struct serve *s); /* the same, and the test is nobody from here on */
void serve_run(struct serve *s, const char *const *args); /* more arguments; NULL: none */
void serve_run_with(struct serve *s, const char *config); /* TOML */
/* Of one that was run so: other settings, which hold when this returns. The pool `default` goes,
 * unless they name it: what is started then is cold, and serve_wait_warm() would wait for ever. */
void serve_reload(struct serve *s, const char *config);
void serve_open(struct serve *s); /* both */
void serve_kill(struct serve *s); /* SIGKILL, and wait for its end */
void serve_close(struct serve *s);
pid_t serve_launcher(const struct serve *s); /* of one that forked it */
/* Another process writes to its rows, until it is ended. */
pid_t serve_lock_rows(struct serve *s);
void serve_unlock_rows(pid_t locker);
void serve_reap(void); /* waits for every child and orphan of the test */

/* quoted: JSON with single quotes for double ones; NULL: no body. */
struct serve_answer serve_ask(struct serve *s, const char *method, const char *target,
                              const char *quoted);
struct serve_answer serve_get(struct serve *s, const char *target);
/* The body, of an answer with this status. */
struct json *serve_want(struct serve *s, int status, const char *method, const char *target,
                        const char *quoted);
/* Must be refused so, with a detail that holds part. */
void serve_refused(struct serve *s, int status, const char *part, const char *method,
                   const char *target, const char *quoted);
/* Such an answer must say when to come back, too. */
void serve_come_back(const struct serve_answer *a, int status, const char *part);
const char *serve_text(struct serve *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

const char *serve_field(struct serve *s, const struct json *o, const char *key); /* "": none */
/* A runtime of image host, running; waits for it. more: further members, quoted, or "". */
struct json *serve_start(struct serve *s, const char *session, const char *more);
/* The same of another image, until it is not "starting" any more; more: ",'name':…" or "". */
struct json *serve_start_image(struct serve *s, const char *image, const char *session,
                               const char *more);
/* Until this was said on a pipe, such as one that is a server's log; what follows stays there. */
void serve_read_until(int fd, const char *part);
/* A new key, of the body of POST /croft/v1/tokens. */
const char *serve_make_key(struct serve *s, const char *quoted);
/* One of its first pool is warm now: the next start of that image is a claim. */
void serve_wait_warm(struct serve *s);
/* {"runtime_id": …} to one of /stop, /pause, /resume. */
struct json *serve_tell(struct serve *s, const char *target, const struct json *runtime);
/* Runs a command in it, by its url and key; what it printed. */
struct str serve_exec(struct serve *s, const struct json *runtime, const char *command);
/* The same; it may still run when this is answered (NO_CHANGE_TIMEOUT_SECONDS), and has printed
 * something. */
struct str serve_exec_soft(struct serve *s, const struct json *runtime, const char *command);
/* A file in it, of a few KB. */
void serve_put(struct serve *s, const struct json *runtime, const char *path, struct str bytes);
/* One request to the runtime's url with its key. */
struct serve_answer serve_ask_inside(struct serve *s, const struct json *runtime,
                                     const char *method, const char *target, const char *quoted);
/* The same, with GET; the status. */
int serve_visit(struct serve *s, const struct json *runtime, const char *target);
