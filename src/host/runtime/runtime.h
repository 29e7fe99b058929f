// SPDX-License-Identifier: Apache-2.0
/* runtime.h — runtimes: sandboxes that somebody asked for, by session, with rows that outlive us.
 *
 * A runtime has one operation under way and a queue of what is asked of it next. It is visible from
 * the moment it is asked for; an answer acknowledges it only when its row is on disk. Its id is the
 * sandbox's too, so that rows and the launcher's list can be joined after we were killed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/sm.h"
#include "host/keys/keys.h"
#include "host/proxy/proxy.h"
#include "loop/loop.h"
#include "sandbox/sandbox.h"
#include "wire/runtime.h"
#include "wire/wants.h"

struct await;
struct builds;
struct manager;
struct pool;
struct runtime;
struct settings_mount;
struct snapshot;
struct tenant;

#define RUNTIME_ID_LEN  16
#define RUNTIME_KEY_LEN 43
#define RUNTIME_PORT    60000 /* of a command that does not say which */
#define RUNTIME_VSCODE  60001
#define RUNTIME_WORKER  12000 /* and the one after it */

enum runtime_status {
    RUNTIME_STARTING,
    RUNTIME_RUNNING,
    RUNTIME_PAUSED,
    RUNTIME_STOPPED,
    RUNTIME_ERROR
};

/* RUNTIME_HALT: its processes end, its files stay; it is paused then, and a resume starts it again.
 */
enum runtime_op {
    RUNTIME_NO_OP,
    RUNTIME_START,
    RUNTIME_PAUSE,
    RUNTIME_RESUME,
    RUNTIME_HALT,
    RUNTIME_SNAPSHOT, /* by manager_snapshot() */
    RUNTIME_MEASURE,  /* then r->sbx->usage is of now */
    RUNTIME_LOOK,     /* of one elsewhere: what it is now */
    RUNTIME_FILES,    /* ask->files and ask->text; then r->sbx->said is the answer */
    RUNTIME_REMOVE
};

/* How it came to run. */
enum runtime_launch { RUNTIME_COLD, RUNTIME_WARM, RUNTIME_FORK, RUNTIME_AGAIN, RUNTIME_LAUNCHES };
extern const char *const runtime_launch_names[]; /* as metrics and the wire have them */

/* Where the time of a start went; nanoseconds. The sandbox's own phases follow in this order. */
enum runtime_phase {
    RUNTIME_PHASE_QUEUE, /* until the launcher was asked */
    RUNTIME_PHASE_CLAIM, /* of a warm one; 0: it was not warm */
    RUNTIME_PHASE_NAMESPACES,
    RUNTIME_PHASE_MOUNTS,
    RUNTIME_PHASE_EXEC,
    RUNTIME_PHASE_READY,
    RUNTIME_PHASE_ROW,           /* until its row was on disk, beside all of the above */
    RUNTIME_PHASE_FIRST_COMMAND, /* its first command, from request to answer */
    RUNTIME_PHASES
};
extern const char *const runtime_phase_names[RUNTIME_PHASES];

/* e is the callee's; r is NULL when there is none. */
struct runtime_ask {
    void (*done)(struct runtime_ask *ask, struct runtime *r, struct err *e);
    enum runtime_op op;
    struct list link;
    struct loop_later now; /* a callback never comes from inside the call */
    struct runtime *runtime;
    struct sbx_waiter waiter;
    struct err *error;
    struct snapshot *snapshot; /* of RUNTIME_SNAPSHOT, until it is begun */
    struct str request;        /* its id, for who reads the log; .p NULL: nobody's */
    enum sbx_files files;      /* of RUNTIME_FILES */
    struct str text;           /* the same; borrowed */
};

struct runtime {
    char id[RUNTIME_ID_LEN + 1];
    struct manager *manager;
    struct tenant *tenant;
    struct list link, order; /* among the tenant's; among those that are stopped, oldest first */
    struct sm status;
    char *session_id, *image;
    char *detail, *pool; /* NULL: none; not from one */
    char *wants;         /* limits, host name, mounts it was started with, JSON; NULL: none */
    char session_key[RUNTIME_KEY_LEN + 1]; /* that clients show */
    char inner_key[RUNTIME_KEY_LEN + 1];   /* that the sandbox knows, and wants to be shown */
    bool forgets;                          /* old_keys, though some are on their way to the row */
    char old_keys[2][RUNTIME_KEY_LEN + 1]; /* from before session_key, which nobody showed yet */
    char *far_key;                         /* the same, of another machine's making; NULL: none */
    char *next_key; /* for session_key, as soon as it is on disk; NULL: none */
    uint64_t created_ms, changed_ms;
    uint16_t factor;
    uint16_t port;      /* of its listener, also when that is closed */
    uint16_t published; /* port inside of a command run as given; 0: our own server answers */
    bool keep, warm;    /* warm: being claimed */
    bool counted;       /* the pool waits for that */
    bool durable;       /* its row is on disk */
    bool unsaid;        /* though not that it was stopped */
    uint8_t restarts;
    bool server_died;     /* the last of them: pid 1 started only that again */
    uint64_t died_ns;     /* when that was seen, on the loop's clock; 0: never */
    uint8_t launch, miss; /* enum runtime_launch; enum pool_miss: why it is not warm */
    uint32_t phase_us[RUNTIME_PHASES];
    uint32_t ready_us; /* from the request to a server that listens, of a start or a resume */
    struct sbx *sbx;   /* NULL: none any more */
    struct proxy_target target;
    struct proxy_far *far; /* ports of one elsewhere; NULL: none */

    /* the manager's own */
    int64_t row;               /* its number among all that were started */
    enum runtime_op op;        /* under way */
    struct runtime_ask *asked; /* for it; NULL: nobody waits any more */
    char *request;             /* the id of who asked for it, or for the last one; NULL: none */
    struct list asks;          /* what comes next */
    struct list watchers;      /* starts that wait for the row, and a little for the server */
    struct list queued;        /* for the launcher */
    void (*pass)(struct runtime *r);
    unsigned pending; /* halves of the operation: row, sandbox; and a new key */
    struct err *failed;
    struct spec *spec;           /* of a start under way */
    struct await *await;         /* for its image, which is being built; NULL: not */
    struct snapshot *snapshot;   /* being taken */
    struct snapshot *from;       /* being started from it */
    uint64_t begun_ns, since_ns; /* the start; its status */
    uint64_t looked_ns;          /* the last RUNTIME_LOOK */
    bool retried, answered;      /* cold after all; whom it was started for knows of it */
    bool removing, hidden;
    bool looks; /* its changes are being looked at */
    struct {    /* see probe.c */
        struct loop_io io;
        struct loop_timer again;
        uint8_t tries;
    } probe;
    bool listens;    /* somebody, on the published port */
    bool lived;      /* its server listened once: what failed has files to go on with */
    bool looked_for; /* another machine is asked whether it has it, and has not answered yet */
    struct loop_timer grace, note, idle, age;
    struct http_call *looking; /* inside, whether it is idle; NULL: not */
    bool ran;                  /* something did, at the last look */
    uint8_t idle_tries;        /* of idle.c, since its status changed */
    struct buf *seen;
    int seen_status;
    struct runtime_ask own;   /* what the idle policy asks, a shutdown, a request that waits */
    enum runtime_op own_next; /* and then this */
};

struct manager_config {
    struct loop *loop;
    struct store *store;
    struct keys *keys;
    struct proxy *proxy;
    struct sbx_driver *driver;
    struct http_client *client;          /* to ask inside; NULL: nobody is asked */
    struct str base_url;                 /* of this server, as clients reach it; no last slash */
    bool by_path;                        /* urls are below base_url instead of a listener each */
    struct str domain;                   /* urls are http://ID.domain instead; with a port */
    struct sbx_limits limits;            /* of factor 1 */
    const struct settings_mount *mounts; /* what may be asked for; borrowed */
    size_t mount_count;
    unsigned most, queue; /* sandboxes at once; starts that may wait */
    unsigned recent;      /* kept warm of an image that no pool has */
    uint64_t recent_ms;   /* if it is started again within this */
    unsigned snapshots;   /* of one tenant; 0: no limit */
    uint64_t pause_after_ms, stop_after_ms, delete_after_ms; /* 0: never */
    uint64_t failed_after_ms; /* one that never ran, and so has nothing to keep, is stopped */
    uint64_t max_age_ms;      /* since it runs, in use or not: it is paused then; 0: never */
    bool keep, park;
    bool per_sandbox;       /* metrics of each */
    bool rotate;            /* a client that resumes a runtime gets a new session key */
    uint64_t build_wait_ms; /* that a start waits for an image which is being built; 0: 503 */
    struct str registry_prefix;
};

fallible manager_new(const struct manager_config *config, struct manager **ret_manager);
/* Joins the rows with what lives; done when it is known which runtimes there are, or after a few
 * seconds: a machine elsewhere that does not answer holds up only what it has. */
fallible manager_adopt(struct manager *m, void (*done)(void *arg, struct err *e), void *arg);
/* Bounds and times of config, from now on; the rest of it does not change. */
void manager_reconfigure(struct manager *m, const struct manager_config *config);
/* Stops what is not to be kept, ends what is warm; done when all of that is gone. */
void manager_shutdown(struct manager *m, void (*done)(void *arg), void *arg);
/* Before the loop's end, and after the store's: who waits for a start is told how far it came. */
void manager_answer_starts(struct manager *m);
void manager_free(struct manager *m); /* forgets what is left: it lives on */
OWNABLE(manager)

/* An error returned: nothing was begun. Otherwise ask->done comes, once, later; the ask is the
 * caller's and must live so long. A start of a session that has a runtime gives that one. */
fallible manager_start(struct manager *m, const struct key *key, const struct wire_start *start,
                       struct runtime_ask *ask);
/* The same of an image that is being built: it is there, and starts when that is done. */
fallible manager_start_when_built(struct manager *m, const struct key *key,
                                  const struct wire_start *start, struct builds *builds,
                                  struct runtime_ask *ask);
uint64_t manager_build_wait_ms(const struct manager *m);
/* Any but RUNTIME_START: done when it is so, and on disk. */
void manager_ask(struct runtime *r, enum runtime_op op, struct runtime_ask *ask);

/* NULL: no such, or another tenant's. key NULL: of anybody. */
struct runtime *manager_find_id(const struct manager *m, const struct key *key, struct str id);
struct runtime *manager_find_session(const struct manager *m, const struct key *key,
                                     struct str session_id);
/* Those of a key, oldest first; key NULL: of all. Stopped ones are left out unless asked for. */
void manager_each(struct manager *m, const struct key *key, bool stopped,
                  void (*fn)(void *arg, struct runtime *r), void *arg);

bool manager_counts_each(const struct manager *m); /* for metrics */
/* Soon r->sbx->usage is of now, if it runs and nothing else is done to it. */
void runtime_measure(struct runtime *r);

struct str manager_registry_prefix(const struct manager *m);
struct sbx_driver *manager_driver(const struct manager *m);
struct proxy *manager_proxy(const struct manager *m);
/* Without asking the driver: the machine's own, and what the policy lists. */
bool manager_has_image(const struct manager *m, struct str image);
/* May the key have this in a sandbox here? ERR_UNPROCESSABLE and ERR_FORBIDDEN name the field. */
fallible manager_check_wants(const struct manager *m, const struct key *key,
                             const struct wire_wants *wants);
/* May the key have the changes of this runtime put into the directories it works on? Its own scopes
 * and the settings of now count, whoever started it. */
fallible manager_check_apply(const struct runtime *r, const struct key *key,
                             const struct json *paths); /* plain ones; NULL: everything */
/* What it has: limits of its own or of its factor; 0: none. */
fallible runtime_wants(const struct runtime *r, struct arena *a, struct wire_wants *ret);
/* The object of the wire; its text is in the arena or in r. */
fallible runtime_describe(const struct runtime *r, struct arena *a, struct wire_runtime *ret);
/* For its pod_logs where one is asked for, and not a list: the end of its log, if it failed. */
struct str runtime_last_words(const struct runtime *r, struct arena *a);
const char *runtime_key_name(const struct runtime *r);
/* Paused, and without a process: a resume starts it again. */
bool runtime_is_halted(const struct runtime *r);
/* What it was started with, read from its row: rare. */
fallible runtime_read_spec(const struct runtime *r, struct arena *a, struct wire_start *ret);
