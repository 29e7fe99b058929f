// SPDX-License-Identifier: Apache-2.0
/* snapshots.h — files of sandboxes kept under names, each tenant's its own.
 *
 * To the backend a snapshot has an id that cannot be guessed; the name is a row. The row is on disk
 * before the files, under a hidden name (":…"). Should the server be killed meanwhile, the next one
 * removes the files of hidden rows. */
#pragma once

#include "host/keys/keys.h"
#include "host/runtime/runtime.h"
#include "host/store/store.h"

#define SNAPSHOT_NAME_MAX 63

struct snapshot {
    char id[RUNTIME_ID_LEN + 1]; /* the backend's name for it */
    char name[SNAPSHOT_NAME_MAX + 1], tenant[KEY_NAME_SIZE];
    char sandbox[RUNTIME_ID_LEN + 1];
    char *image;
    uint64_t created_ms;
    bool taken_now; /* an ask or a runtime points here */
    bool unwanted;  /* hidden; it goes when it is taken and no runtime is started from it */
    bool removing;
    unsigned starting; /* runtimes, from it */
    struct manager *manager;
    store_done *done; /* of its removal */
    void *arg;
    struct list link;
};

/* The name is checked at once. ask->done comes when the files are kept and the row is on disk; the
 * sandbox goes on from where it was. ERR_CONFLICT: the name is taken. */
fallible manager_snapshot(struct runtime *r, struct str name, struct runtime_ask *ask);
/* The same for starts from it that follow at once. It is hidden, and counts in no quota. The name
 * begins with SNAPSHOT_HIDDEN, and is used once. */
#define SNAPSHOT_HIDDEN ":"
void manager_freeze(struct runtime *r, struct str name, struct runtime_ask *ask);
void manager_drop_frozen(struct snapshot *s); /* when they have been asked for */
/* NULL: no such, or another tenant's. key NULL: of any tenant. */
struct snapshot *manager_find_snapshot(const struct manager *m, const struct key *key,
                                       struct str name);
bool manager_has_snapshot(const struct manager *m, struct str id); /* by the backend's name */
void manager_each_snapshot(const struct manager *m, const struct key *key,
                           void (*fn)(void *arg, const struct snapshot *s), void *arg);
/* Not found from now on; runtimes that were started from it keep their files. done when that is on
 * disk; the files go later. ERR_BUSY: the backend that has its files has not answered yet. */
fallible manager_remove_snapshot(struct manager *m, struct snapshot *s, store_done *done,
                                 void *arg);

/* --- for runtime/ alone --- */

void snapshots_load(struct manager *m, store_done *done); /* whose arg is m */
void snapshots_free(struct manager *m);
void snapshots_sweep(struct manager *m); /* once, when all are adopted: those that are unwanted */
/* It is being started from the snapshot of this id, if there is one: that stays so long. */
void runtime_hold(struct runtime *r, struct str id);
void snapshot_let_go(struct snapshot *s);            /* NULL is fine */
void runtime_drop_snapshot(struct runtime_ask *ask); /* of one that is not begun after all */
