// SPDX-License-Identifier: Apache-2.0
/* remote_kit.h — the driver of remote sandboxes against a server that answers as scripted; time
 * stands still. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/remote/inner.h"
#include "sandbox/sandbox.h"
#include "test/web.h"

#define WORLD_AGAIN_MS 100

enum { SAY, CUT, CUT_LATER }; /* what is done with a request: answered, cut before, cut amid */

struct answer {
    const char *to; /* "POST /start"; NULL: the end of the script */
    int status;
    const char
        *state; /* of the runtime object; or the detail of an error; or a body: "{…", "event: …" */
    const char *headers; /* "Retry-After: 7"; NULL: none */
    int how;
};

struct world {
    struct web web;
    struct remote_settings settings;
    struct sbx_host host;
    struct sbx_driver *driver;
    struct sbx *s;
    char url[100];
    const struct answer *script; /* what is not in it fails the test */
    char sent[2000];             /* the last body */
    unsigned asked, alive;
    bool croft, plain_alive;
    int commands; /* status of /execute_action; 0: 200 */

    unsigned answers, gone;
    enum err_code code;
    bool failed;
    char error[600];
};

/* The script is the answers in order; what is not in it fails the test. */
void world_open(struct world *w, const struct answer *script);
void world_listen(struct world *w);
void world_close(struct world *w); /* all of the script was asked for */
typedef fallible world_operation(struct sbx *s, sbx_done *done, void *arg);
void world_on_done(void *arg, struct sbx *s, const struct err *e);
/* Time goes by in small steps until there is an answer; gives how much, ms. */
uint64_t world_until_answered(struct world *w, uint64_t most_ms);
uint64_t world_operate(struct world *w, world_operation *op);
uint64_t world_must(struct world *w, world_operation *op);
void world_must_fail(struct world *w, world_operation *op, enum err_code code, const char *part);

#define END                                                                                        \
    {                                                                                              \
        0                                                                                          \
    }
#define STOPPED_AND_GONE                                                                           \
    {                                                                                              \
        "POST /stop", 200, "stopped"                                                               \
    }
