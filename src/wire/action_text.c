// SPDX-License-Identifier: Apache-2.0
/* action_text.c — messages and checks of actions that a pattern cannot say. */
#include "base/utf8.h"
#include "wire/action_rows.h"
#include "wire/pyrepr.h"

static bool is_given(const struct json *args, const char *key)
{
    const struct json *v = json_get(args, str_of(key));

    return v && v->type != JSON_NULL;
}

/* Events by a list or by both ends, not both; a summary and its place, or neither. */
fallible wire_check_condensation(const struct json *args)
{
    bool by_ids = is_given(args, "forgotten_event_ids");
    bool by_range =
        is_given(args, "forgotten_events_start_id") && is_given(args, "forgotten_events_end_id");
    int64_t start = json_get_int(args, "forgotten_events_start_id", 0);
    int64_t end = json_get_int(args, "forgotten_events_end_id", 0);
    int64_t count;

    if (by_ids == by_range || is_given(args, "summary") != is_given(args, "summary_offset"))
        return err_new(ERR_INVALID, "Invalid configuration of the optional fields.");
    if (by_range && start <= end &&
        (__builtin_sub_overflow(end, start, &count) || count >= WIRE_FORGOTTEN_MAX))
        return err_new(ERR_INVALID,
                       "field 'args.forgotten_events_end_id' is more than %d events after "
                       "'forgotten_events_start_id'",
                       WIRE_FORGOTTEN_MAX);
    return NULL;
}

void wire_add_condensation_message(struct buf *out, const struct json *args)
{
    struct str summary = json_get_str(args, "summary", STR(""));
    const struct json *ids = json_get(args, STR("forgotten_event_ids"));

    if (summary.len) {
        buf_add(out, STR("Summary: "));
        return buf_add(out, summary);
    }
    buf_add(out, STR("Condenser is dropping the events: "));
    if (ids && ids->type == JSON_ARRAY) {
        pyrepr_add(out, ids);
        return buf_add(out, STR("."));
    }
    int64_t start = json_get_int(args, "forgotten_events_start_id", 0);
    int64_t end = json_get_int(args, "forgotten_events_end_id", -1);
    buf_add_char(out, '[');
    for (int64_t i = start, n = 0; i <= end && n < WIRE_FORGOTTEN_MAX; i++, n++) {
        buf_addf(out, n ? ", %lld" : "%lld", (long long)i);
        if (i == INT64_MAX)
            break;
    }
    buf_add(out, STR("]."));
}

void wire_add_finish_message(struct buf *out, const struct json *args)
{
    struct str thought = json_get_str(args, "thought", STR(""));

    buf_add(out, thought.len ? thought : STR("All done! What's next on the agenda?"));
}

void wire_add_reject_message(struct buf *out, const struct json *args)
{
    const struct json *reason = json_get(json_get(args, STR("outputs")), STR("reason"));

    buf_add(out, STR("Task is rejected by the agent."));
    if (!reason)
        return;
    buf_add(out, STR(" Reason: "));
    if (reason->type == JSON_STR)
        buf_add(out, reason->s);
    else
        pyrepr_add(out, reason);
}

#define QUERY_SHOWN 50 /* characters */

void wire_add_recall_message(struct buf *out, const struct json *args)
{
    struct str query = json_get_str(args, "query", STR(""));

    buf_add(out, STR("Retrieving content for: "));
    buf_add(out, str_first(query, utf8_offset(query, QUERY_SHOWN)));
}

void wire_add_task_message(struct buf *out, const struct json *args)
{
    const struct json *list = json_get(args, STR("task_list"));
    unsigned n = list && list->type == JSON_ARRAY ? list->count : 0;

    if (n == 0)
        buf_add(out, STR("Clearing the task list."));
    else
        buf_addf(out, "Managing %u task item%s.", n, n == 1 ? "" : "s");
}
