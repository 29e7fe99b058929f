// SPDX-License-Identifier: Apache-2.0
/* message.h — Jupyter messages, wire version 5: signed JSON in the parts of a ZMTP message. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "guest/jupyter/zmtp.h"

#define MESSAGE_PARTS 6 /* of one that we send */

struct message_out {
    struct str id, session, type;
    struct str content; /* JSON */
    uint64_t wall_ns;
};

/* Fills parts (they point into store and m); store is for this message alone. */
fallible message_put(const struct message_out *m, struct str key, struct buf *store,
                     struct str parts[MESSAGE_PARTS]);

struct message {
    struct str type;
    struct str parent_id;    /* "" when there is none */
    struct str content_text; /* JSON, not parsed yet: most messages are for other readers */
};

/* Refuses what is not signed with key, and what is no message. A message that lost bytes to the
 * limit cannot be checked: see message_parse_head. */
fallible message_parse(const struct zmtp_message *z, struct str key, struct arena *a,
                       struct message *ret_message);
/* Without the signature and the content, for a message of which only the front arrived. */
fallible message_parse_head(const struct zmtp_message *z, struct arena *a,
                            struct message *ret_message);
