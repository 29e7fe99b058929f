// SPDX-License-Identifier: Apache-2.0
/* manager.h — all runtimes of a server: starting one, finding one, taking over those of the server
 * before. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "sandbox/spec.h"

struct builds;
struct http_client;
struct json;
struct key;
struct keys;
struct journal;
struct loop;
struct manager;
struct metrics;
struct proxy;
struct runtime;
struct runtime_ask;
struct sbx_driver;
struct grant;
struct store;
struct wire_start;
struct wire_wants;

/* What happens to running runtimes when the server ends. */
enum manager_at_exit { AT_EXIT_HALT, AT_EXIT_KEEP, AT_EXIT_DELETE };

struct manager_left { /* what the end of a server leaves */
    unsigned live, halted, deleted;
    const char *one; /* session of one that is halted; NULL: none */
};

struct manager_config {
    struct loop *loop;
    struct store *store;
    struct keys *keys;
    struct proxy *proxy;
    struct journal *journal; /* NULL: none */
    struct metrics *metrics; /* the same */
    struct sbx_driver *driver;
    struct http_client *client; /* to ask inside; NULL: it is not asked */
    struct str base_url;        /* of this server, as clients reach it; no last slash */
    bool by_path;               /* urls are below base_url instead of a listener each */
    struct str domain;          /* urls are http://ID.domain instead; with a port */
    struct sbx_limits limits;   /* of factor 1 */
    const struct grant *mounts; /* what may be asked for; borrowed */
    size_t mount_count;
    unsigned most;        /* sandboxes at once */
    unsigned most_starts; /* in line */
    unsigned recent;      /* kept warm of an image that no pool has */
    uint64_t recent_ms;   /* if it is started again within this */
    unsigned snapshots;   /* of one tenant; 0: no limit */
    uint64_t pause_after_ms, stop_after_ms, delete_after_ms; /* 0: never */
    uint64_t failed_after_ms; /* one that never ran, and so has nothing to keep, is stopped */
    uint64_t max_age_ms;      /* since it runs, in use or not: it is paused then; 0: never */
    enum manager_at_exit at_exit;
    bool park;
    bool per_sandbox;       /* metrics of each */
    bool rotate;            /* a client that resumes a runtime gets a new session key */
    uint64_t build_wait_ms; /* that a start waits for an image which is being built; 0: 503 */
    struct str registry_prefix;
};

fallible manager_new(const struct manager_config *config, struct manager **ret_manager);
/* Joins the rows with what lives; done when it is known which runtimes there are, or after a few
 * seconds: a machine elsewhere that does not answer holds up only what it has. */
void manager_adopt(struct manager *m, void (*done)(void *arg, struct err *e), void *arg);
/* Bounds and times of config, from now on; the rest of it does not change. */
void manager_reconfigure(struct manager *m, const struct manager_config *config);
/* Does with what runs as at_exit says, and ends what is warm. */
void manager_shutdown(struct manager *m, void (*done)(void *arg), void *arg);
/* The runtimes that are left after that, or without that wait. */
void manager_count_left(const struct manager *m, struct manager_left *ret);
/* Before the loop's end, and after the store's: starts that wait are answered. */
void manager_answer_starts(struct manager *m);
void manager_free(struct manager *m); /* forgets what is left: it lives on */
OWNABLE(manager)

struct start_place { /* of a start, in line if it must wait; the caller's until ask->done */
    struct runtime_ask *ask;
    const struct key *key;
    const struct wire_start *start;
    struct builds *builds; /* its image is being built, it starts when that is done; NULL: not */
    struct list link;
};

/* An error returned: nothing was begun, the line or the machine is full. Otherwise ask->done comes,
 * once, later. A start of a session that has a runtime gives that one. */
fallible manager_start(struct manager *m, struct start_place *p);
/* The caller stops waiting. A start still in line loses its place, and ask->done comes. Its link
 * was made by list_init(). */
void manager_start_give_up(struct manager *m, struct start_place *p);
/* NULL: no such, or another tenant's. key NULL: of any tenant. */
struct runtime *manager_find_id(const struct manager *m, const struct key *key, struct str id);
struct runtime *manager_find_session(const struct manager *m, const struct key *key,
                                     struct str session_id);
/* By id or session name, and KEY/NAME when key is NULL. A session with a slash in its name is found
 * by its id alone: it would take the place of another key's. */
struct runtime *manager_find(const struct manager *m, const struct key *key, struct str name);
/* Those of a key, oldest first; key NULL: of all. Stopped ones are left out unless asked for. */
void manager_each(struct manager *m, const struct key *key, bool stopped,
                  void (*fn)(void *arg, struct runtime *r), void *arg);

bool manager_keeps(const struct manager *m);       /* what runs, at its end */
bool manager_counts_each(const struct manager *m); /* for metrics */
struct str manager_registry_prefix(const struct manager *m);
struct sbx_driver *manager_driver(const struct manager *m);
struct proxy *manager_proxy(const struct manager *m);
/* The machine's own system: no store has to be asked for it. */
bool spec_image_is_host(struct str image);
/* May the key have this in a sandbox here? ERR_UNPROCESSABLE and ERR_FORBIDDEN name the field. */
fallible manager_check_wants(const struct manager *m, const struct key *key,
                             const struct wire_wants *wants);
/* May the key have this runtime's changes put into the host's directories? Its own scopes and the
 * settings of now count, whichever key started it. */
fallible manager_check_apply(const struct runtime *r, const struct key *key,
                             const struct json *paths); /* plain ones; NULL: everything */
