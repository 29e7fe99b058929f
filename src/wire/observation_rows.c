// SPDX-License-Identifier: Apache-2.0
/* observation_rows.c — the fields of every observation, in the order of the wire. */
#include "wire/observation_rows.h"

#include "wire/row.h"

#define OF wire_metadata
static const struct wire_field metadata_rows[] = {
    INT(exit_code, -1), INT(pid, -1),          NULL_STR(username),
    NULL_STR(hostname), NULL_STR(working_dir), NULL_STR(py_interpreter_path),
    TEXT(prefix, ""),   TEXT(suffix, ""),
};
static const struct wire_fields metadata_fields = WIRE_FIELDS(metadata_rows);
#undef OF
#define OF wire_run_output
static const struct wire_field run_rows[] = {
    NEED_STR(command),
    GROUP(metadata),
    FLAG(hidden, false),
};
#undef OF
#define OF wire_run_ipython_output
static const struct wire_field run_ipython_rows[] = {
    NEED_STR(code),
    STRS(image_urls, WIRE_NULLABLE),
};
#undef OF
#define OF wire_browse_output
static const struct wire_field browse_rows[] = {
    NEED_STR(url),
    NEED_STR(trigger_by_action),
    TEXT(screenshot, ""),
    NULL_STR(screenshot_path),
    TEXT(set_of_marks, ""),
    FLAG(error, false),
    STRS(goal_image_urls, 0),
    STRS(open_pages_urls, 0),
    INT(active_page_index, -1),
    OBJECT(dom_object, 0),
    OBJECT(axtree_object, 0),
    OBJECT(extra_element_properties, 0),
    TEXT(last_browser_action, ""),
    TEXT(last_browser_action_error, ""),
    TEXT(focused_element_bid, ""),
    FLAG(filter_visible_only, false),
};
#undef OF
#define OF wire_read_output
static const struct wire_field read_rows[] = {NEED_STR(path), TEXT(impl_source, "default")};
#undef OF
#define OF wire_write_output
static const struct wire_field write_rows[] = {NEED_STR(path)};
#undef OF
#define OF wire_edit_output
static const struct wire_field edit_rows[] = {
    TEXT(path, ""),
    FLAG(prev_exist, false),
    NULL_STR(old_content),
    NULL_STR(new_content),
    TEXT(impl_source, "llm_based_edit"),
    NULL_STR(diff),
    {.name = "_diff_cache",
     .offset = offsetof(struct wire_edit_output, diff_cache),
     .kind = WIRE_STR,
     .flags = WIRE_NULLABLE},
};
#undef OF
#define OF wire_error_output
static const struct wire_field error_rows[] = {TEXT(error_id, "")};
#undef OF
#define OF wire_download_output
static const struct wire_field download_rows[] = {NEED_STR(file_path)};
#undef OF

/* --- kept as a tree --- */

#undef AT
#define AT(member) .name = #member
static const struct wire_field delegate_rows[] = {OBJECT(outputs, WIRE_REQUIRED)};
static const struct wire_field state_rows[] = {NEED_STR(agent_state), TEXT(reason, "")};
static const struct wire_field knowledge_rows[] = {
    NEED_STR(name),
    NEED_STR(trigger),
    NEED_STR(content),
};
static const struct wire_fields knowledge_fields = WIRE_FIELDS(knowledge_rows);
static const struct wire_field recall_rows[] = {
    NEED_STR(recall_type),
    TEXT(repo_name, ""),
    TEXT(repo_directory, ""),
    TEXT(repo_branch, ""),
    TEXT(repo_instructions, ""),
    MAP(runtime_hosts, WIRE_INT),
    TEXT(additional_agent_instructions, ""),
    TEXT(date, ""),
    MAP(custom_secrets_descriptions, WIRE_STR),
    TEXT(conversation_instructions, ""),
    TEXT(working_dir, ""),
    GROUPS(microagent_knowledge, &knowledge_fields),
};
static const struct wire_field mcp_rows[] = {TEXT(name, ""), OBJECT(arguments, 0)};
static const struct wire_field task_rows[] = {TEXT(command, ""), OBJECTS(task_list)};

/* --- one row each --- */

static const struct wire_observation_row rows[WIRE_OBS_COUNT] = {
    [WIRE_OBS_NULL] = {"null", "NullObservation", .message = "No observation"},
    [WIRE_OBS_RUN] = {"run", "CmdOutputObservation", .is_sandbox = true, .has_success = true,
                      .fields = WIRE_FIELDS(run_rows), .add_message = wire_add_run_message,
                      .adapt = wire_adapt_run},
    [WIRE_OBS_RUN_IPYTHON] = {"run_ipython", "IPythonRunCellObservation", .is_sandbox = true,
                              .has_success = true, .fields = WIRE_FIELDS(run_ipython_rows),
                              .message = "Code executed in IPython cell."},
    [WIRE_OBS_BROWSE] = {"browse", "BrowserOutputObservation", .is_sandbox = true,
                         .fields = WIRE_FIELDS(browse_rows), .message = "Visited {url}"},
    [WIRE_OBS_READ] = {"read", "FileReadObservation", .is_sandbox = true,
                       .fields = WIRE_FIELDS(read_rows), .message = "I read the file {path}."},
    [WIRE_OBS_WRITE] = {"write", "FileWriteObservation", .is_sandbox = true,
                        .fields = WIRE_FIELDS(write_rows),
                        .message = "I wrote to the file {path}."},
    [WIRE_OBS_EDIT] = {"edit", "FileEditObservation", .is_sandbox = true,
                       .fields = WIRE_FIELDS(edit_rows), .message = "I edited the file {path}."},
    [WIRE_OBS_DELEGATE] = {"delegate", "AgentDelegateObservation",
                           .fields = WIRE_FIELDS(delegate_rows), .message = ""},
    [WIRE_OBS_SUCCESS] = {"success", "SuccessObservation", .message = "{content}"},
    [WIRE_OBS_ERROR] = {"error", "ErrorObservation", .is_sandbox = true,
                        .fields = WIRE_FIELDS(error_rows), .message = "{content}"},
    [WIRE_OBS_AGENT_STATE_CHANGED] = {"agent_state_changed", "AgentStateChangedObservation",
                                      .fields = WIRE_FIELDS(state_rows), .message = ""},
    [WIRE_OBS_USER_REJECTED] = {"user_rejected", "UserRejectObservation", .message = "{content}"},
    [WIRE_OBS_CONDENSE] = {"condense", "AgentCondensationObservation", .message = "{content}"},
    [WIRE_OBS_THINK] = {"think", "AgentThinkObservation", .message = "{content}"},
    [WIRE_OBS_RECALL] = {"recall", "RecallObservation", .fields = WIRE_FIELDS(recall_rows),
                         .add_message = wire_add_recalled_message, .adapt = wire_check_recall},
    [WIRE_OBS_MCP] = {"mcp", "MCPObservation", .fields = WIRE_FIELDS(mcp_rows),
                      .message = "{content}"},
    [WIRE_OBS_DOWNLOAD] = {"download", "FileDownloadObservation", .is_sandbox = true,
                           .fields = WIRE_FIELDS(download_rows),
                           .message = "Downloaded the file at location: {file_path}"},
    [WIRE_OBS_TASK_TRACKING] = {"task_tracking", "TaskTrackingObservation",
                                .fields = WIRE_FIELDS(task_rows), .message = "{content}"},
    [WIRE_OBS_LOOP_DETECTION] = {"loop_detection", "LoopDetectionObservation", .message = ""},
};

const struct wire_observation_row *wire_observation_row(enum wire_observation_type type)
{
    return &rows[type];
}
