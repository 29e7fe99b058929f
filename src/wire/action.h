// SPDX-License-Identifier: Apache-2.0
/* action.h — actions: what an agent asks a sandbox (or its controller) to do.
 *
 * Actions that a sandbox runs have a struct. The others keep their arguments as a tree that holds
 * every field, defaults filled in, in the order of the wire. Unknown arguments are dropped.
 *
 * Strings and trees point into the decoded document: keep it and its arena. */
#pragma once

#include "wire/event.h"

enum wire_action_type {
    WIRE_ACT_NULL,
    WIRE_ACT_RUN,
    WIRE_ACT_RUN_IPYTHON,
    WIRE_ACT_BROWSE,
    WIRE_ACT_BROWSE_INTERACTIVE,
    WIRE_ACT_READ,
    WIRE_ACT_WRITE,
    WIRE_ACT_EDIT,
    WIRE_ACT_THINK,
    WIRE_ACT_FINISH,
    WIRE_ACT_REJECT,
    WIRE_ACT_DELEGATE,
    WIRE_ACT_RECALL,
    WIRE_ACT_CHANGE_AGENT_STATE,
    WIRE_ACT_MESSAGE,
    WIRE_ACT_SYSTEM,
    WIRE_ACT_CONDENSATION,
    WIRE_ACT_CONDENSATION_REQUEST,
    WIRE_ACT_CALL_TOOL_MCP,
    WIRE_ACT_TASK_TRACKING,
    WIRE_ACT_LOOP_RECOVERY,
    WIRE_ACT_COUNT
};

struct wire_run {
    struct str command, thought, cwd, confirmation_state; /* cwd.p NULL: null */
    bool is_input, blocking, is_static, hidden;
    int64_t security_risk;
};

struct wire_run_ipython {
    struct str code, thought, confirmation_state, kernel_init_code;
    bool include_extra;
    int64_t security_risk;
};

struct wire_read {
    struct str path, thought, impl_source;
    int64_t start, end, security_risk;
    const struct json *view_range; /* any list, the editor judges it; NULL: null */
};

struct wire_write {
    struct str path, content, thought;
    int64_t start, end, security_risk;
};

struct wire_edit {
    struct str path, command, content, thought, impl_source;
    struct str file_text, old_str, new_str; /* .p NULL: null */
    const struct json *insert_line;         /* an integer or a string; NULL: null */
    int64_t start, end, security_risk;
};

struct wire_browse {
    struct str url, thought;
    int64_t security_risk;
    bool return_axtree;
};

struct wire_browse_interactive {
    struct str browser_actions, thought, browsergym_send_msg_to_user;
    int64_t security_risk;
    bool return_axtree;
};

struct wire_action {
    struct wire_envelope envelope;
    enum wire_action_type type;
    bool has_timeout; /* a hard timeout, seconds */
    double timeout_s;
    union {
        struct wire_run run;
        struct wire_run_ipython run_ipython;
        struct wire_read read;
        struct wire_write write;
        struct wire_edit edit;
        struct wire_browse browse;
        struct wire_browse_interactive browse_interactive;
        struct json *args; /* of the types a sandbox does not run */
    };
};

const char *wire_action_name(enum wire_action_type type);
bool wire_action_is_runnable(enum wire_action_type type); /* in a sandbox */
/* False: no action has this name. */
bool wire_action_find(struct str name, enum wire_action_type *ret_type);

/* The defaults of a type a sandbox runs; required strings are empty. */
void wire_action_init(struct wire_action *action, enum wire_action_type type);
/* ERR_INVALID names the field. `action` is written only on success. */
fallible wire_decode_action(struct arena *a, const struct json *event,
                            struct wire_action *ret_action);
void wire_put_action(struct jw *w, const char *key, const struct wire_action *action);
void wire_add_action_message(struct buf *out, const struct wire_action *action);
/* One line about the arguments, read from the rows: "command: str; is_input: bool=false; …". */
void wire_add_action_doc(struct buf *out, enum wire_action_type type);
