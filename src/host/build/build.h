// SPDX-License-Identifier: Apache-2.0
/* build.h — images from a Dockerfile and its context, as a client of the Runtime API sends them.
 *
 * A build is a sandbox: the context is unpacked and `buildah` runs inside one that may make
 * namespaces of its own and has no network; its result is an archive like any other, which the
 * launcher imports. Base images are those of the store, mounted into it. Rows survive the server; a
 * build does not. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "host/store/store.h"
#include "net/router.h"
#include "sandbox/spec.h"

struct builds;
struct keys;
struct loop;
struct sbx_driver;

#define BUILDS_AT_ONCE 2
#define BUILDS_CONTEXT (2ull << 30) /* bytes of a context, decoded */

struct build_news { /* it was queued, or failed */
    const char *key_name, *request, *message;
    bool failed;
};

struct builds_config {
    struct loop *loop;
    struct store *store;
    struct keys *keys;
    struct sbx_driver *driver;
    const char *dir; /* absolute, ours: contexts; sandboxes may mount it for reading */
    struct sbx_limits limits;
    struct str registry_prefix; /* names below it are for all keys, others for admins; "": all */
    uint64_t timeout_ms;        /* of one; 0: half an hour */
    uint64_t image_bytes;       /* of a result's archive; 0: 16 GiB */
    uint64_t context_bytes;     /* of all contexts that are there at a time; 0: 8 GiB */
    unsigned most;              /* builds that wait, or whose context is being sent */
    unsigned most_of_key;       /* of these one key's: the others find a place */
    unsigned most_sent;         /* contexts that one key may be sending */
};

/* Is buildah installed? Without it the launcher lets no sandbox nest others. */
bool builds_possible(void);
fallible builds_open(const struct builds_config *config, struct builds **ret_builds);
/* First: loads the owners of images. Builds that the server before did not finish are
 * INTERNAL_ERROR when it is done. */
void builds_load(struct builds *b, store_done *done, void *arg);
/* Bounds and prefix of config, for what comes from now on; the rest of it does not change. */
void builds_reconfigure(struct builds *b, const struct builds_config *config);
void builds_free(struct builds *b); /* those under way are given up; before the driver is closed */
OWNABLE(builds)
/* Each news from now on. */
void builds_tell(struct builds *b, void (*on_news)(void *arg, const struct build_news *news),
                 void *arg);
struct str builds_prefix(const struct builds *b); /* of now, see builds_config */
/* Is an image of this name, or "x" of "x:latest", waiting or worked on? */
bool builds_under_way(const struct builds *b, struct str image);
/* Until one has ended, whichever: done once, unless it is dropped before. */
struct builds_waiter {
    void (*done)(struct builds_waiter *w);
    struct list link;
};
void builds_wait(struct builds *b, struct builds_waiter *w);
void builds_wait_drop(struct builds_waiter *w); /* twice is fine */

/* GET /image_exists, POST /build, GET /build_status; owned by builds. */
#define BUILD_ROUTES 3
extern const struct route build_routes[BUILD_ROUTES];

/* The part "build". */
struct host;
struct builds *builds_of(const struct host *h);
