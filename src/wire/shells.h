// SPDX-License-Identifier: Apache-2.0
/* shells.h — bodies of /croft/v1/shells. Errors are ERR_UNPROCESSABLE and name the field. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"

struct wire_shell {
    struct str name, cwd, command; /* command: the one that runs */
    int64_t pid, columns, rows;
    uint64_t output_bytes; /* written so far: the id of the event that comes next */
    bool running;
};
void wire_put_shell(struct jw *w, const char *key, const struct wire_shell *shell);
void wire_begin_shells(struct jw *w); /* {"shells":[, then each, then the end */
/* processes: that run, beyond those of shells that wait and of the server itself */
void wire_end_shells(struct jw *w, unsigned processes);
bool wire_anything_runs(const struct json *body); /* says that answer */

struct wire_new_shell { /* .p NULL and 0: not given */
    struct str name, cwd;
    struct str
        pipe;     /* absolute: a fifo is made there, and input goes into it, not to the terminal */
    bool watched; /* it ends with the client that watches its output */
    const struct json *env; /* an object of strings, its names fit for variables; may be NULL */
    int64_t columns, rows;
};
#define WIRE_SIDE_MAX 4096
#define WIRE_ENV_MAX  256
fallible wire_decode_new_shell(const struct json *body, struct wire_new_shell *ret_new);
void wire_put_new_shell(struct jw *w, const struct wire_new_shell *n);

/* Input to type: "text", or "base64" decoded into the arena; "end": nothing comes after it. */
fallible wire_decode_input(struct arena *a, const struct json *body, struct str *ret_bytes,
                           bool *ret_end);
void wire_put_input(struct jw *w, struct str base64, bool end);
fallible wire_decode_keys(const struct json *body, const struct json **ret_keys); /* of strings */
fallible wire_decode_size(const struct json *body, int64_t *ret_columns, int64_t *ret_rows);
void wire_put_size(struct jw *w, int64_t columns, int64_t rows);
/* The arguments of a run, with "timeout" among them, as the event an action server decodes. */
fallible wire_run_of(struct arena *a, const struct json *body, const struct json **ret_event);
void wire_put_shell_run(struct jw *w, struct str command, int64_t timeout_s); /* a blocking one */
