// SPDX-License-Identifier: Apache-2.0
/* client.h — what an agent does in a sandbox, asked from outside: actions over HTTP, to any
 * backend.
 *
 * One action at a time, the others wait their turn. When a connection breaks, the same bytes are
 * sent again: a server of ours attaches them to the action that runs instead of running it twice.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "wire/action.h"
#include "wire/observation.h"

struct action_client;
struct dialer;

struct action_client_config { /* zero: the default; strings are copied */
    struct dialer *dialer;
    struct str url;         /* "http://127.0.0.1:60000" */
    struct str unix_path;   /* connect here instead of to the url's host */
    struct str session_key; /* X-Session-API-Key; empty: none */
    uint32_t timeout_s;     /* of an action that has none of its own: 120 */
    uint32_t again_ms;      /* the shortest wait between attempts: 4000 */
    /* An answer of 503 means paused, for one that is kept: it is to be resumed, and
     * action_client_resumed() called when that is done or cannot be, from inside if it likes. The
     * action is then sent once more. NULL: 503 is a failure. */
    void (*resume)(void *arg, struct action_client *c);
    void *resume_arg;
};

enum action_failure {
    ACTION_NO_FAILURE,
    ACTION_BAD,          /* refused before it was sent, or by the server: see http_status */
    ACTION_TIMEOUT,      /* it may still run */
    ACTION_NOT_READY,    /* the server did not come up in time */
    ACTION_DISCONNECTED, /* the server cannot be reached any more, or not now */
};

struct action_result { /* borrowed, valid during the callback */
    enum action_failure failure;
    int http_status;                            /* 0: there was no answer */
    const struct err *error;                    /* NULL only without failure */
    const struct wire_observation *observation; /* NULL with a failure, and for connect */
};

typedef void action_done(void *arg, const struct action_result *result);

fallible action_client_new(const struct action_client_config *config,
                           struct action_client **ret_client);
/* Actions that wait or run are forgotten here, unanswered; in the sandbox they run on. */
void action_client_free(struct action_client *c);
OWNABLE(action_client)

/* Ends action_client_config.resume; takes e over. e is NULL, or the reason why not. */
void action_client_resumed(struct action_client *c, struct err *e);

/* done is called once, never from inside these. An action that cannot be sent at all is an error of
 * the call: a blocking command without a timeout, say. The action is copied as far as needed. */
fallible action_send(struct action_client *c, const struct wire_action *action, action_done *done,
                     void *arg);
fallible action_run(struct action_client *c, struct str command, action_done *done, void *arg);
fallible action_read(struct action_client *c, struct str path, action_done *done, void *arg);
fallible action_write(struct action_client *c, struct str path, struct str content,
                      action_done *done, void *arg);
fallible action_edit(struct action_client *c, const struct wire_edit *edit, action_done *done,
                     void *arg);
fallible action_browse(struct action_client *c, struct str url, action_done *done, void *arg);
/* Until the server says that it is alive, at most within_ms. For servers that cannot tell by
 * themselves: ours write a byte when they listen. */
fallible action_connect(struct action_client *c, uint32_t within_ms, action_done *done, void *arg);
