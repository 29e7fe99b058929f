// SPDX-License-Identifier: Apache-2.0
/* snapshots.h — files of sandboxes kept under names, each tenant's its own.
 *
 * To the backend a snapshot has an id nobody can guess; the name is a row. */
#pragma once

#include "host/runtime/runtime.h"

#define SNAPSHOT_NAME_MAX 63

struct snapshot {
    char id[RUNTIME_ID_LEN + 1]; /* the backend's name for it */
    char name[SNAPSHOT_NAME_MAX + 1], tenant[KEY_NAME_SIZE];
    char sandbox[RUNTIME_ID_LEN + 1];
    char *image;
    uint64_t created_ms;
    bool taken_now; /* an ask or a runtime points here */
    bool unwanted;  /* removed meanwhile: it ends as soon as it is taken */
    struct list link;
};

/* The name is checked at once. ask->done comes when the files are kept and the row is on disk; the
 * sandbox goes on from where it was. ERR_CONFLICT: the name is taken. */
fallible manager_snapshot(struct runtime *r, struct str name, struct runtime_ask *ask);
/* NULL: no such, or another tenant's. key NULL: of anybody. */
struct snapshot *manager_find_snapshot(const struct manager *m, const struct key *key,
                                       struct str name);
bool manager_has_snapshot(const struct manager *m, struct str id); /* by the backend's name */
void manager_each_snapshot(const struct manager *m, const struct key *key,
                           void (*fn)(void *arg, const struct snapshot *s), void *arg);
/* Not found from now on; who was started from it keeps what it stands on. One that is being taken
 * goes when it is. ERR_BUSY: who has its files has not answered yet, so it stays. */
fallible manager_remove_snapshot(struct manager *m, struct snapshot *s);
