// SPDX-License-Identifier: Apache-2.0
/* event.h — what actions and observations have in common. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"

/* security_risk; NULL was null on the wire and is left out when written. */
enum {
    WIRE_RISK_NULL = -2,
    WIRE_RISK_UNKNOWN = -1,
    WIRE_RISK_LOW = 0,
    WIRE_RISK_MEDIUM = 1,
    WIRE_RISK_HIGH = 2,
};

struct wire_opt_int {
    bool is_set;
    int64_t value;
};

/* Everything may be absent; what is absent is not written. A value of a wrong type counts as
 * absent too, for servers must not stumble over what they ignore; only `source` is checked. */
struct wire_envelope {
    struct wire_opt_int id, cause;
    struct str timestamp, source;                        /* .p NULL: absent */
    const struct json *tool_call_metadata, *llm_metrics; /* as they came; NULL: absent */
};

enum wire_event_kind { WIRE_NO_EVENT, WIRE_ACTION, WIRE_OBSERVATION };

/* By the key it has: "action" decides, whatever else is there. NULL is no event. */
enum wire_event_kind wire_event_kind(const struct json *event);

fallible wire_decode_envelope(const struct json *event, struct wire_envelope *ret_envelope);
/* The members of an event up to its own: id, timestamp, source, message, cause, the type's name
 * under key ("action" or "observation"), tool_call_metadata, llm_metrics. */
void wire_put_envelope(struct jw *w, const struct wire_envelope *e, struct str message,
                       const char *key, const char *type);
