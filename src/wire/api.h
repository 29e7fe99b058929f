// SPDX-License-Identifier: Apache-2.0
/* api.h — bodies of the Action Execution Server other than events. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "wire/problem.h"

void wire_put_detail(struct jw *w, struct str detail); /* {"detail":…}: every error but 422 */
struct str wire_find_detail(const struct json *body);  /* of such a body; empty: it has none */

/* {"action":{…}} of /execute_action. False: *ret_problem says what the 422 must say. */
bool wire_find_action(const struct json *body, const struct json **ret_event,
                      struct wire_problem *ret_problem);
struct wire_action;
void wire_put_execute_action(struct jw *w, const struct wire_action *action);

/* --- GET /server_info --- */
struct wire_memory {
    int64_t rss, vms; /* bytes */
    double percent;
};
struct wire_disk {
    int64_t total, used, free; /* bytes */
    double percent;
};
struct wire_io {
    int64_t read_bytes, write_bytes;
};
struct wire_resources {
    double cpu_percent;
    struct wire_memory memory;
    struct wire_disk disk;
    struct wire_io io;
};
struct wire_server_info {
    double uptime, idle_time; /* seconds */
    struct wire_resources resources;
};
void wire_put_server_info(struct jw *w, const struct wire_server_info *info);
fallible wire_decode_server_info(struct arena *a, const struct json *body,
                                 struct wire_server_info *ret_info);

/* --- POST /upload_file --- */
struct wire_upload {
    struct str filename, destination;
    bool recursive;
};
void wire_put_upload(struct jw *w, const struct wire_upload *upload);
/* true/false in a query as pydantic reads it: 1 0 true false on off yes no t f y n. */
bool wire_parse_bool(struct str text, bool *ret_value);

/* --- GET /croft/v1/plugins: one of them; error NULL: none --- */
void wire_put_state(struct jw *w, struct str name, const char *status, const char *error);

/* --- GET /vscode/connection_token --- */
void wire_put_token(struct jw *w, struct str token); /* .p NULL: null */

/* --- what the scripts of the git panel print: one changed file, and the two texts of one --- */
void wire_put_git_change(struct jw *w, struct str status, struct str path);
void wire_put_git_diff(struct jw *w, struct str modified, struct str original);
