// SPDX-License-Identifier: Apache-2.0
/* observation.h — observations: what an action led to.
 *
 * Observations that a sandbox makes have a struct. The others keep their extras as a tree that
 * holds every field, defaults filled in, in the order of the wire. Unknown extras are dropped: a
 * stock client crashes on them.
 *
 * Strings and trees point into the decoded document: keep it and its arena. */
#pragma once

#include "wire/event.h"

enum wire_observation_type {
    WIRE_OBS_NULL,
    WIRE_OBS_RUN,
    WIRE_OBS_RUN_IPYTHON,
    WIRE_OBS_BROWSE,
    WIRE_OBS_READ,
    WIRE_OBS_WRITE,
    WIRE_OBS_EDIT,
    WIRE_OBS_DELEGATE,
    WIRE_OBS_SUCCESS,
    WIRE_OBS_ERROR,
    WIRE_OBS_AGENT_STATE_CHANGED,
    WIRE_OBS_USER_REJECTED,
    WIRE_OBS_CONDENSE,
    WIRE_OBS_THINK,
    WIRE_OBS_RECALL,
    WIRE_OBS_MCP,
    WIRE_OBS_DOWNLOAD,
    WIRE_OBS_TASK_TRACKING,
    WIRE_OBS_LOOP_DETECTION,
    WIRE_OBS_COUNT
};

struct wire_metadata {
    int64_t exit_code, pid;                                          /* -1: not known */
    struct str username, hostname, working_dir, py_interpreter_path; /* .p NULL: null */
    struct str prefix, suffix;
};

struct wire_run_output {
    struct str command;
    struct wire_metadata metadata;
    bool hidden;
};

struct wire_run_ipython_output {
    struct str code;
    const struct json *image_urls; /* NULL: null */
};

struct wire_browse_output {
    struct str url, trigger_by_action, screenshot, set_of_marks;
    struct str screenshot_path; /* .p NULL: null */
    bool error, filter_visible_only;
    int64_t active_page_index;
    const struct json *goal_image_urls, *open_pages_urls;                     /* NULL: [] */
    const struct json *dom_object, *axtree_object, *extra_element_properties; /* NULL: {} */
    struct str last_browser_action, last_browser_action_error, focused_element_bid;
};

struct wire_read_output {
    struct str path, impl_source;
};

struct wire_write_output {
    struct str path;
};

struct wire_edit_output {
    struct str path, impl_source;
    bool prev_exist;
    struct str old_content, new_content, diff, diff_cache; /* .p NULL: null */
};

struct wire_error_output {
    struct str error_id;
};

struct wire_download_output {
    struct str file_path;
};

struct wire_observation {
    struct wire_envelope envelope;
    enum wire_observation_type type;
    struct str content;
    union {
        struct wire_run_output run;
        struct wire_run_ipython_output run_ipython;
        struct wire_browse_output browse;
        struct wire_read_output read;
        struct wire_write_output write;
        struct wire_edit_output edit;
        struct wire_error_output error;
        struct wire_download_output download;
        struct json *extras; /* of the types a sandbox does not make */
    };
};

const char *wire_observation_name(enum wire_observation_type type);
bool wire_observation_find(struct str name, enum wire_observation_type *ret_type);
bool wire_observation_is_sandbox(enum wire_observation_type type); /* it has a struct */

/* The defaults of a type a sandbox makes; required strings are empty. */
void wire_observation_init(struct wire_observation *o, enum wire_observation_type type);
/* ERR_INVALID names the field. */
fallible wire_decode_observation(struct arena *a, const struct json *event,
                                 struct wire_observation *ret_observation);
void wire_put_observation(struct jw *w, const char *key, const struct wire_observation *o);
void wire_add_observation_message(struct buf *out, const struct wire_observation *o);
/* One line about the extras, read from the rows: "command: str; is_input: bool=false; …". */
void wire_add_observation_doc(struct buf *out, enum wire_observation_type type);
