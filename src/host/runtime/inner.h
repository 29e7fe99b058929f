// SPDX-License-Identifier: Apache-2.0
/* inner.h — what the files of runtime/ share; nobody else includes it. */
#pragma once

#include "base/buf.h"
#include "host/runtime/events.h"
#include "host/runtime/pool.h"
#include "host/runtime/runtime.h"
#include "host/store/store.h"

/* Requests the launcher has at once. Its socket holds 26; a few more come past the queue: questions
 * (4), builds (4), the ends of what does not listen. */
#define LAUNCHER_MOST     16
#define LAUNCHER_FAR_MOST 1024 /* of sandboxes elsewhere: calls under way */
#define GRACE_MS          25   /* a start that is ready so soon is told as running */
#define CLAIM_MS                                                                                   \
    1000 /* the same of a claim: among a hundred its turn comes, and nobody asks meanwhile */
#define NOTE_MS 1000 /* until it is written down that it runs */

enum { PENDING_ROW = 1, PENDING_SANDBOX = 2, PENDING_KEY = 4 };

struct tenant {
    char name[KEY_NAME_SIZE];
    struct map sessions; /* of struct runtime; stopped ones too until they are replaced */
    struct list runtimes;
    unsigned live;    /* not stopped */
    unsigned looking; /* of its runtimes whose changes are being looked at */
    uint32_t parked;  /* requests that wait for one of them; the proxy counts */
};

struct pool {
    struct manager *manager;
    struct list link;
    char name[POOL_NAME_MAX + 1];
    char *image, *wire; /* wire NULL: nobody asked for it */
    unsigned target, ceiling, ready, making;
    bool closed;           /* goes when its last sandbox is gone */
    struct list sandboxes; /* ready ones, oldest first */
    uint64_t used_ns;      /* when one of its image was started last */
    uint64_t hits, misses[POOL_MISSES], made, failed;
};

#define RECENT_SEEN 16

/* Pools that come and go by themselves, and images that may get one. */
struct recent {
    struct {
        char *image;
        uint64_t seen_ns; /* started without a pool */
    } seen[RECENT_SEEN];
    struct loop_timer timer;            /* one was not used for too long */
    uint64_t hits, misses[POOL_MISSES]; /* of all of them, those that are gone too */
};

struct manager {
    struct manager_config config;
    struct map ids, tenants;
    struct list stopped; /* oldest first */
    unsigned stopped_count, live, starting, claiming, looking;
    unsigned awaiting; /* starts whose image is being built */
    struct list awaits;
    int64_t last_row;

    unsigned at_launcher; /* requests the launcher has now */
    uint64_t crowd_ns;    /* when as many claims as came had been at a quiet pace */
    struct list urgent, waiting;
    struct loop_later queue_next;

    struct list snapshots;

    struct list pools;
    struct list warm_ends;  /* of pools, waiting for the launcher */
    struct list warm_asked; /* that the launcher makes or ends now */
    struct loop_later refill;
    struct loop_timer refill_again, calm;
    uint64_t busy_ns;                 /* since when claims come without a pause; 0: none does */
    unsigned refill_fails, refilling; /* refilling: that are being started */
    struct recent recent;
    bool swept; /* snapshots that nobody wants, of a server before us */

    struct list subscribers;
    struct runtime_counters counters;
    uint64_t misses[POOL_MISSES]; /* of no pool */

    struct list unknowns; /* sandboxes nobody knows, being ended */
    unsigned unknown_count;
    struct adopting *adopting;
    bool ending;
    void (*ended)(void *arg);
    void *ended_arg;
    struct loop_later check_end;
};

/* --- manager.c --- */
struct tenant *tenant_get(struct manager *m, const char *name); /* made when it is new */
/* Known from now on; the session's old one, if any, is not found by it any more. */
void manager_add(struct manager *m, struct runtime *r);
void manager_drop(struct runtime *r);  /* forgets it and frees it */
void manager_prune(struct manager *m); /* forgets the oldest of those that were stopped */
/* Not found any more, though not gone: to be dropped. */
void manager_hide(struct runtime *r);
struct runtime *runtime_new(struct manager *m, struct tenant *t, const char *id);
void runtime_set_text(char **to, const char *text);
void runtime_set_request(struct runtime *r, struct str id);
void runtime_set_detail(struct runtime *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void runtime_make_id(char id[RUNTIME_ID_LEN + 1]);
void manager_check_end(struct manager *m);
void manager_end_one(struct runtime *r); /* of a manager that is ending: unless it is to stay */
uint64_t manager_now_ms(const struct manager *m);

/* --- life.c --- */
void runtime_move(struct runtime *r, enum runtime_status to);
void runtime_free(struct runtime *r); /* of one that was never added */
/* The first operation of a new one; r->sbx is new, or warm, and r->spec made. */
void runtime_begin(struct runtime *r, const struct wire_start *start, struct runtime_ask *ask);
/* To be answered when its row is on disk and, if that takes a moment only, it can be reached. */
void runtime_watch(struct runtime *r, struct runtime_ask *ask);
/* What was claimed has what it needs, or never will: the pool need not wait for it. */
void runtime_claim_over(struct runtime *r);
void runtime_on_listens(void *arg, struct sbx *s);

/* The same from its row, after a restart of the server; made is r->spec. */
void runtime_begin_from_row(struct runtime *r);
void runtime_drop_spec(struct runtime *r);
/* The operation under way is over: who asked is told, what comes next begins. Takes e over. */
void runtime_finish(struct runtime *r, struct err *e);
/* Is that all of it? The first error of both halves is the story. */
bool runtime_half_done(struct runtime *r, unsigned half, struct err *e);
void runtime_heard(struct runtime *r);                     /* the launcher has done its part */
void runtime_fail(struct runtime *r, const struct err *e); /* it is in error, and why */
void runtime_remove_sandbox(struct runtime *r);            /* its files too, behind everybody */
void runtime_begin_again(struct runtime *r);               /* after it ended by itself */
void runtime_answer(struct runtime_ask *ask, struct runtime *r, struct err *e);
void runtime_answer_later(struct runtime_ask *ask, struct runtime *r, struct err *e);

/* --- session_key.c --- */
/* If its resume is to; PENDING_KEY until done, which passes on what became of it: what is not on
 * disk is not its key. */
bool runtime_rotate_key(struct runtime *r, store_done *done);
void runtime_rotated(struct runtime *r, const struct err *e);
void runtime_set_keys(struct runtime *r); /* what the proxy makes of them */

/* --- change.c --- */
void runtime_ask_own(struct runtime *r, enum runtime_op op); /* nobody waits for it */
void runtime_refuse_all(struct runtime *r);
void runtime_next(struct runtime *r); /* what is asked next, if nothing is under way */

/* --- hooks.c --- */
fallible runtime_set_addresses(struct runtime *r); /* where the proxy finds it */
void runtime_on_gone(void *arg, struct sbx *s);
void runtime_on_wake(struct proxy_target *t);
void runtime_on_trouble(struct proxy_target *t);
void runtime_set_hooks(struct runtime *r); /* what the proxy asks of it */

/* --- queue.c --- */
/* Calls pass as soon as the launcher may be asked, at once if possible. */
void queue_wait(struct runtime *r, bool urgent, void (*pass)(struct runtime *r));
/* For what can wait: only when nobody else does. */
bool queue_try(struct manager *m);
void queue_leave(struct manager *m);
/* How long the shell of one that is claimed now is to wait for all the others, ms. Counts it. */
uint32_t gate_shell_later(struct manager *m, uint64_t now_ns);
bool gate_is_crowded(const struct manager *m, uint64_t now_ns); /* there is no processor free */

/* --- row.c --- */
void row_insert(struct runtime *r, const struct wire_start *start, store_done *done);
void row_update(struct runtime *r, store_done *done); /* status, detail, restarts; done NULL */
void row_set_port(struct runtime *r);
/* That clients show, and those from before. */
void row_set_key(struct runtime *r, const char *key, const char old[2][RUNTIME_KEY_LEN + 1],
                 store_done *done);
void row_forget_old_keys(struct runtime *r);
void row_delete(const struct runtime *r);
fallible row_load(struct manager *m, fallible (*fn)(struct manager *m, struct runtime *r));

/* --- describe.c --- */
struct str runtime_url(const struct runtime *r, struct arena *a);

/* --- spec.c --- */
struct spec {
    struct sbx_spec sbx;
    struct arena arena;
    const char *note; /* for status_detail; NULL: none */
};
void spec_done(struct spec *s);
/* What the sandbox is told. */
fallible spec_make(const struct runtime *r, const struct wire_start *start, const char *image,
                   struct spec *ret);

/* --- wants.c --- */
/* From a row's text; what it holds was checked when it was written. */
fallible wants_read(struct arena *a, struct str text, const struct wire_wants **ret_wants);
char *wants_text(const struct wire_wants *wants); /* the caller's; NULL stays NULL */
/* Limits, host name and mounts into a spec made without. */
fallible wants_apply(const struct wire_wants *wants, struct spec *s);
/* May its key still have its mounts? By the settings of now. */
fallible runtime_check_mounts(const struct runtime *r);
/* No warm sandbox has, or can still get, this. */
/* More than the machine has is refused by the name of the field. */
fallible wants_check_factor(const struct manager *m, const struct wire_start *start);
bool wants_need_a_new_one(const struct manager *m, const struct wire_start *start);

/* --- await.c --- */
/* Of a new one, without a sandbox and a spec: await_begin() when its row is on disk. */
void await_new(struct runtime *r, struct builds *builds);
void await_begin(struct runtime *r); /* looks for the image, and waits if it has to */
void await_drop(struct runtime *r);  /* it is not waited for any more, if it was */
void await_free_all(struct manager *m);

/* --- adopt.c --- */
/* r->spec, of its row and of the record of its image; NULL: what the row has of that. */
fallible runtime_make_spec(struct runtime *r, struct arena *a, const struct json *record,
                           struct wire_start *ret_start);
void adopting_free(struct manager *m); /* of one that ends amid it */

/* --- start.c --- */
fallible start_check_queue(const struct manager *m); /* ERR_BUSY: not one more now */
#define START_IMAGE 256
/* The backend's name of an image; ERR_UNPROCESSABLE: there is none. */
fallible start_known_image(const struct manager *m, struct str image, char ret_known[START_IMAGE]);

/* r->sbx, of r->spec. */
fallible start_new_sandbox(struct runtime *r, const struct wire_start *start);

/* --- snapshots.c --- */
fallible snapshots_load(struct manager *m);
void snapshots_free(struct manager *m);
void snapshots_sweep(struct manager *m); /* when all are adopted: what nobody wants, once */
/* It is being started from the snapshot of this id, if there is one: that stays so long. */
void runtime_hold(struct runtime *r, struct str id);
void snapshot_let_go(struct snapshot *s); /* NULL is fine */
void runtime_begin_snapshot(struct runtime *r, struct snapshot *s);
void runtime_drop_snapshot(struct runtime_ask *ask); /* of one that is not begun after all */

/* --- pool.c --- */
/* The oldest warm one of this image, NULL and why; pool_give() when it is to be had for good. */
struct sbx *pool_look(struct manager *m, const char *image, const char **ret_pool,
                      enum pool_miss *ret_miss);
void pool_give(struct manager *m, struct sbx *warm);
void pool_count_hit(struct manager *m, const char *name); /* one that was given away is bound */
void pool_missed(struct manager *m, const char *image, enum pool_miss miss);
void pool_end_stale(struct manager *m, const char *name); /* what it has ready is of an old image */
void pool_refill(struct manager *m);                      /* soon, behind what is under way */
void pool_trim(struct manager *m); /* ends what is too many, as far as the launcher may be asked */
/* How many may be being made now for a pool that has so many ready. */
unsigned pool_pace(const struct manager *m, unsigned ready, unsigned want, uint64_t now_ns);
void pool_claims_over(struct manager *m); /* nobody waits for one now: it is filled up again */
void pool_end_next(struct manager *m);    /* of those that are to end, what may be asked for now */
void pool_drain(struct manager *m);
void pool_free_all(struct manager *m);
unsigned pool_count(const struct manager *m); /* sandboxes in all pools, in the making too */

bool pool_can_be(const struct manager *m); /* this backend has warm sandboxes */
struct pool *pool_new(struct manager *m, struct str name, const char *image);
void pool_close(struct pool *p); /* frees it now or when its last sandbox is gone */
void pool_set_size(struct pool *p, unsigned target, unsigned ceiling);

/* --- pool_recent.c --- */
static inline bool pool_is_recent(const struct pool *p)
{
    return !p->wire;
}
/* An image that no pool has is started: the second time soon behind the first makes one. */
void recent_saw(struct manager *m, const char *image);
void recent_close(struct manager *m, const char *image); /* of this image, if any; NULL: all */
void recent_reconfigure(struct manager *m);
void recent_stop(struct manager *m);

/* Its sandbox is another machine's: what was known of it may have changed there. */
static inline bool runtime_is_far(const struct runtime *r)
{
    return !(r->manager->config.driver->caps & SBX_IS_HERE);
}

/* It could not be asked for when this server started: it may well live, as it was. */
static inline bool runtime_is_out_of_reach(const struct runtime *r)
{
    return runtime_is_far(r) && r->status.now == RUNTIME_ERROR && r->lived && r->sbx &&
           r->sbx->state.now == SBX_CREATED;
}

/* Our own end is no reason to end it. */
static inline bool runtime_stays_there(const struct runtime *r)
{
    return r->looked_for || (runtime_is_far(r) && r->status.now == RUNTIME_PAUSED) ||
           runtime_is_out_of_reach(r);
}

/* --- probe.c --- */
/* Whether a command that is run as given listens; told as ready when it does. */
void probe_start(struct runtime *r);
void probe_look(struct runtime *r); /* once more, if it did not so far */
void probe_stop(struct runtime *r);
void runtime_is_ready(struct runtime *r); /* life.c */

/* It runs a command as given, and nobody listens on the port of that. */
static inline bool runtime_is_silent(const struct runtime *r)
{
    return r->published && !r->listens && !runtime_is_far(r) && r->status.now == RUNTIME_RUNNING;
}

/* --- idle.c --- */
void idle_watch(struct runtime *r); /* after each change of its status */
void idle_stop(struct runtime *r);
