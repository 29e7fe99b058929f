// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of keys/, included by no other. */
#pragma once

#include "base/hash.h"
#include "base/list.h"
#include "base/map.h"
#include "host/keys/keys.h"
#include "host/part/part.h"

struct key_entry {
    struct key key;
    uint8_t hash[SHA256_LEN];
    bool ready;        /* its row is on disk */
    uint64_t paced_ns; /* when the starts made so far would have been made at an even pace */
    struct keys *keys;
    struct list link; /* oldest first */
    store_done *done; /* of what is being written */
    void *arg;
};

unsigned keys_grants(unsigned has); /* check.c: what the scopes of a key let it do */

struct keys {
    struct store *store;
    struct map by_name, by_hash; /* by_hash: ready and not revoked */
    struct list all;
    size_t count;
    bool any;
    uint32_t most_runtimes, starts_per_minute; /* of keys that have no quota of their own */
    struct key_entry open;                     /* of a peer that needs no key */
    store_done *load_done;
    void *load_arg;
    const struct host *host; /* of the part; else NULL */
    struct part_answer begun;
};
