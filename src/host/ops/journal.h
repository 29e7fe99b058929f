// SPDX-License-Identifier: Apache-2.0
/* journal.h — what happened on this host: every change of a sandbox's state, and every request of a
 * client, with its key.
 *
 * It is kept in event logs, so that it cannot be rewritten unnoticed (croft events verify). The
 * newest are kept, up to a bound (ops/trail.h). Clients follow it as server-sent events.
 *
 * A tenant sees its own records; an administrator sees all. */
#pragma once

#include "base/err.h"
#include "base/own.h"
#include "base/str.h"

struct http_req;
struct journal;
struct loop;

#define JOURNAL_BURST   100
#define JOURNAL_PACE_MS 10000

enum journal_kind { JOURNAL_STATUS, JOURNAL_AUDIT };

struct journal_note { /* what is empty is left out */
    enum journal_kind kind;
    struct str tenant;                 /* the tenant concerned: all its keys see it */
    struct str actor;                  /* which of them did it; empty: the tenant */
    struct str sandbox, session;       /* */
    struct str level, status, message; /* as callbacks have them: info, STATUS$READY, text */
    struct str action, object;         /* done by the tenant, */
    struct str decision, rule;         /* allowed or denied, and by which rule */
    struct str request;                /* its id */
    bool paced; /* any client can cause it: JOURNAL_BURST of them, then one in JOURNAL_PACE_MS,
                 * which says how many were left out */
};

struct journal_config {
    struct loop *loop;
    int dir;             /* borrowed */
    uint64_t keep_bytes; /* of the newest; 0: everything */
    /* After each commit: how many records, and how long the disk took. May be NULL. */
    void (*on_commit)(void *arg, uint64_t records, uint64_t sync_ns);
    void *arg;
};
fallible journal_open(const struct journal_config *config, struct journal **ret_journal);
void journal_free(struct journal *j); /* what was noted is written first */
OWNABLE(journal)

void journal_keep(struct journal *j, uint64_t keep_bytes); /* from now on */

/* Gathers records and writes them within a few milliseconds; the caller does not wait. A failure is
 * logged once, and stops nothing. */
void journal_add(struct journal *j, const struct journal_note *n);

/* GET …/events: from Last-Event-ID (or ?after=N|now) on, then as they happen; 410 when what comes
 * next is not kept any more. tenant: only what concerns it, copied; .p NULL: all.
 * ?kind=status|audit. */
fallible journal_follow(struct journal *j, struct http_req *req, struct str tenant,
                        bool (*welcome)(const struct http_req *req)); /* still; NULL: always */
