// SPDX-License-Identifier: Apache-2.0
/* aes.h — the action server from the outside: the real programs, real HTTP, parsed answers.
 *
 * One server at a time per test, in test_dir(): its workspace is ws/, its home home/, its programs
 * bin/ (where python is python3). aes_close() ends it and wants exit code 0. */
#pragma once

#include "base/json.h"
#include "test/test.h"
#include "test/wire.h"

/* A test that runs once in each program. */
#define AES_TEST(id)                                                                               \
    static void aes_run_##id(const char *program);                                                 \
    TEST(id##_by_croft)                                                                            \
    {                                                                                              \
        aes_run_##id("croft");                                                                     \
    }                                                                                              \
    TEST(id##_by_the_guest)                                                                        \
    {                                                                                              \
        aes_run_##id("croft-guest");                                                               \
    }                                                                                              \
    static void aes_run_##id(const char *program)

struct aes {
    struct wire wire;
    const char *program;
    char dir[200]; /* the workspace */
    char user[64];
    unsigned soft_s;
    struct arena arena; /* of all answers */
};

struct aes_config {
    const char *program;                  /* "croft", "croft-guest" */
    const char *key;                      /* X-Session-API-Key; NULL: none */
    unsigned soft_s;                      /* NO_CHANGE_TIMEOUT_SECONDS; 0: 1 */
    bool tcp;                             /* on a free port of loopback instead of a unix socket */
    int log;                              /* its standard error; 0: the test's */
    const char *dir;                      /* the workspace, when not ws/ */
    const char *const *wrap;              /* a command line that starts it; NULL: none */
    const char *const *args, *const *env; /* more of both; NULL: none */
};

struct aes_answer {
    int status;
    struct str head, body; /* in the server's arena */
};

void aes_open(struct aes *a, const struct aes_config *config);
void aes_open_plain(struct aes *a, const char *program);
/* Ends the test unless the shell's home is the test's: before anything is written to ~. */
void aes_want_own_home(struct aes *a);
void aes_close(struct aes *a);

/* printf into the arena; {D} is written as %s by whoever needs it. */
const char *aes_text(struct aes *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A file of the workspace. */
const char *aes_path(struct aes *a, const char *name);
void aes_put(struct aes *a, const char *name, struct str content);
struct str aes_get(struct aes *a, const char *name);
bool aes_exists(struct aes *a, const char *name);

/* headers: complete lines or "". Sends on a connection of its own. */
int aes_send(struct aes *a, const char *method, const char *target, const char *headers,
             struct str body);
struct aes_answer aes_take(struct aes *a, int fd); /* closes fd */
struct aes_answer aes_ask(struct aes *a, const char *method, const char *target,
                          const char *headers, struct str body);
struct aes_answer aes_ask_get(struct aes *a, const char *target);
/* JSON with single quotes for double ones. */
struct aes_answer aes_ask_post(struct aes *a, const char *target, const char *quoted);
struct json *aes_json(struct aes *a, struct str text);
struct str aes_quoted(struct aes *a, const char *text);

/* A form with one file to /upload_file?query. */
struct aes_answer aes_upload(struct aes *a, const char *query, const char *name,
                             struct str content);
/* The text with a value in place of each mark. */
const char *aes_fill(struct aes *a, const char *text, const char *mark, const char *value);

/* {"action":{"action":NAME,"args":{…}}} for quoted args; the answer must be 200. */
struct json *aes_act(struct aes *a, const char *name, const char *quoted_args);
struct aes_answer aes_try_act(struct aes *a, const char *name, const char *quoted_args);
/* The value as JSON text: for exact comparisons. */
struct str aes_print(struct aes *a, const struct json *v);
