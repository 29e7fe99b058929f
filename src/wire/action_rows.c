// SPDX-License-Identifier: Apache-2.0
/* action_rows.c — the fields of every action; see action_rows.h. */
#include "wire/action_rows.h"

#include "wire/row.h"

#define OF wire_run
static const struct wire_field run_rows[] = {
    NEED_STR(command),     FLAG(is_input, false),  TEXT(thought, ""),
    FLAG(blocking, false), FLAG(is_static, false), NULL_STR(cwd),
    FLAG(hidden, false),   CONFIRMATION,           RISK,
};
#undef OF
#define OF wire_run_ipython
static const struct wire_field run_ipython_rows[] = {
    NEED_STR(code), TEXT(thought, ""),          FLAG(include_extra, true), CONFIRMATION,
    RISK,           TEXT(kernel_init_code, ""),
};
#undef OF
#define OF wire_read
static const struct wire_field read_rows[] = {
    NEED_STR(path),
    INT(start, 0),
    INT(end, -1),
    TEXT(thought, ""),
    RISK,
    TEXT(impl_source, "default"),
    LIST(view_range, WIRE_NULLABLE),
};
#undef OF
#define OF wire_write
static const struct wire_field write_rows[] = {
    NEED_STR(path), NEED_STR(content), INT(start, 0), INT(end, -1), TEXT(thought, ""), RISK,
};
#undef OF
#define OF wire_edit
static const struct wire_field edit_rows[] = {
    NEED_STR(path),
    TEXT(command, ""),
    NULL_STR(file_text),
    NULL_STR(old_str),
    NULL_STR(new_str),
    NULL_LINE(insert_line),
    TEXT(content, ""),
    INT(start, 1),
    INT(end, -1),
    TEXT(thought, ""),
    RISK,
    TEXT(impl_source, "oh_aci"),
};
#undef OF
#define OF wire_browse
static const struct wire_field browse_rows[] = {
    NEED_STR(url),
    TEXT(thought, ""),
    RISK,
    FLAG(return_axtree, false),
};
#undef OF
#define OF wire_browse_interactive
static const struct wire_field browse_interactive_rows[] = {
    NEED_STR(browser_actions),  TEXT(thought, ""), TEXT(browsergym_send_msg_to_user, ""), RISK,
    FLAG(return_axtree, false),
};
#undef OF

/* --- kept as a tree: no offsets --- */

#undef AT
#define AT(member) .name = #member
static const struct wire_field think_rows[] = {TEXT(thought, "")};
static const struct wire_field finish_rows[] = {
    TEXT(final_thought, ""),
    OBJECT(outputs, 0),
    TEXT(thought, ""),
};
static const struct wire_field reject_rows[] = {OBJECT(outputs, 0), TEXT(thought, "")};
static const struct wire_field delegate_rows[] = {
    NEED_STR(agent),
    OBJECT(inputs, WIRE_REQUIRED),
    TEXT(thought, ""),
};
static const struct wire_field recall_rows[] = {
    NEED_STR(recall_type),
    TEXT(query, ""),
    TEXT(thought, ""),
};
static const struct wire_field state_rows[] = {NEED_STR(agent_state), TEXT(thought, "")};
static const struct wire_field message_rows[] = {
    NEED_STR(content),
    STRS(file_urls, WIRE_NULLABLE),
    {AT(image_urls), .old_name = "images_urls", .kind = WIRE_LIST, .of = WIRE_STR,
     .flags = WIRE_NULLABLE},
    FLAG(wait_for_response, false),
    RISK,
};
static const struct wire_field system_rows[] = {
    NEED_STR(content),
    LIST(tools, WIRE_NULLABLE),
    NULL_STR(openhands_version),
    NULL_STR(agent_class),
};
static const struct wire_field condensation_rows[] = {
    INTS(forgotten_event_ids, WIRE_NULLABLE),
    NULL_INT(forgotten_events_start_id),
    NULL_INT(forgotten_events_end_id),
    NULL_STR(summary),
    NULL_INT(summary_offset),
};
static const struct wire_field mcp_rows[] = {
    NEED_STR(name),
    OBJECT(arguments, 0),
    TEXT(thought, ""),
    RISK,
};
static const struct wire_field task_rows[] = {
    TEXT(command, "view"),
    OBJECTS(task_list),
    TEXT(thought, ""),
};
static const struct wire_field loop_rows[] = {INT(option, 1)};

/* --- one row each --- */

static const struct wire_action_row rows[WIRE_ACT_COUNT] = {
    [WIRE_ACT_NULL] = {"null", "NullAction", .message = "No action"},
    [WIRE_ACT_RUN] = {"run", "CmdRunAction", .is_runnable = true, .fields = WIRE_FIELDS(run_rows),
                      .message = "Running command: {command}"},
    [WIRE_ACT_RUN_IPYTHON] = {"run_ipython", "IPythonRunCellAction", .is_runnable = true,
                              .fields = WIRE_FIELDS(run_ipython_rows),
                              .message = "Running Python code interactively: {code}"},
    [WIRE_ACT_BROWSE] = {"browse", "BrowseURLAction", .is_runnable = true,
                         .fields = WIRE_FIELDS(browse_rows),
                         .message = "I am browsing the URL: {url}"},
    [WIRE_ACT_BROWSE_INTERACTIVE] =
        {"browse_interactive", "BrowseInteractiveAction", .is_runnable = true,
         .fields = WIRE_FIELDS(browse_interactive_rows),
         .message = "I am interacting with the browser:\n```\n{browser_actions}\n```"},
    [WIRE_ACT_READ] = {"read", "FileReadAction", .is_runnable = true,
                       .fields = WIRE_FIELDS(read_rows), .message = "Reading file: {path}"},
    [WIRE_ACT_WRITE] = {"write", "FileWriteAction", .is_runnable = true,
                        .fields = WIRE_FIELDS(write_rows), .message = "Writing file: {path}"},
    [WIRE_ACT_EDIT] = {"edit", "FileEditAction", .is_runnable = true,
                       .fields = WIRE_FIELDS(edit_rows), .message = ""},
    [WIRE_ACT_THINK] = {"think", "AgentThinkAction", .fields = WIRE_FIELDS(think_rows),
                        .message = "I am thinking...: {thought}"},
    [WIRE_ACT_FINISH] = {"finish", "AgentFinishAction", .fields = WIRE_FIELDS(finish_rows),
                         .add_message = wire_add_finish_message},
    [WIRE_ACT_REJECT] = {"reject", "AgentRejectAction", .fields = WIRE_FIELDS(reject_rows),
                         .add_message = wire_add_reject_message},
    [WIRE_ACT_DELEGATE] = {"delegate", "AgentDelegateAction", .fields = WIRE_FIELDS(delegate_rows),
                           .message = "I'm asking {agent} for help with this task."},
    [WIRE_ACT_RECALL] = {"recall", "RecallAction", .fields = WIRE_FIELDS(recall_rows),
                         .add_message = wire_add_recall_message},
    [WIRE_ACT_CHANGE_AGENT_STATE] = {"change_agent_state", "ChangeAgentStateAction",
                                     .fields = WIRE_FIELDS(state_rows),
                                     .message = "Agent state changed to {agent_state}"},
    [WIRE_ACT_MESSAGE] = {"message", "MessageAction", .fields = WIRE_FIELDS(message_rows),
                          .message = "{content}"},
    [WIRE_ACT_SYSTEM] = {"system", "SystemMessageAction", .fields = WIRE_FIELDS(system_rows),
                         .message = "{content}"},
    [WIRE_ACT_CONDENSATION] = {"condensation", "CondensationAction",
                               .fields = WIRE_FIELDS(condensation_rows),
                               .add_message = wire_add_condensation_message,
                               .check = wire_check_condensation},
    [WIRE_ACT_CONDENSATION_REQUEST] =
        {"condensation_request", "CondensationRequestAction",
         .message = "Requesting a condensation of the conversation history."},
    [WIRE_ACT_CALL_TOOL_MCP] = {"call_tool_mcp", "MCPAction", .fields = WIRE_FIELDS(mcp_rows),
                                .message = "I am interacting with the MCP server with name:\n"
                                           "```\n{name}\n```\nand arguments:\n"
                                           "```\n{arguments}\n```"},
    [WIRE_ACT_TASK_TRACKING] = {"task_tracking", "TaskTrackingAction",
                                .fields = WIRE_FIELDS(task_rows),
                                .add_message = wire_add_task_message},
    [WIRE_ACT_LOOP_RECOVERY] = {"loop_recovery", "LoopRecoveryAction",
                                .fields = WIRE_FIELDS(loop_rows), .message = ""},
};

const struct wire_action_row *wire_action_row(enum wire_action_type type)
{
    return &rows[type];
}
