// SPDX-License-Identifier: Apache-2.0
/* backend.h — one interface to every way of running a sandbox.
 *
 * A backend is a row and a folder beside this file: nine calls that each has, and groups of calls
 * for further features. A missing feature is refused by name before the backend is asked.
 *
 * A sandbox does one operation at a time. Each ends in its callback; readiness and death are
 * events. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/rows.h"
#include "base/sm.h"
#include "base/str.h"
#include "loop/loop.h"
#include "sandbox/spec.h"

struct cfg_table;
struct dialer;
struct sbx;
struct sbx_follower;
struct sbx_log_from;
struct sbx_place;
struct sbx_query;
struct sbx_driver; /* a backend at work; its own struct begins with this */

enum sbx_cap { /* bits */
               SBX_CAN_PAUSE = 1 << 0,
               SBX_CAN_SNAPSHOT = 1 << 1, /* and fork from one */
               SBX_CAN_EXPOSE = 1 << 2,   /* ports that programs open inside */
               SBX_CAN_BIND = 1 << 3,     /* what is bound at claim, see sbx_bind */
               SBX_CAN_LOG = 1 << 4,
               SBX_LIMITS_MEMORY = 1 << 5,
               SBX_LIMITS_PIDS = 1 << 6,
               SBX_LIMITS_CPU = 1 << 7,
               SBX_LIMITS_DISK = 1 << 8,
               SBX_HIDES_FILES = 1 << 9, /* the host's files, processes, network are out of reach */
               SBX_HIDES_PROCESSES = 1 << 10,
               SBX_HIDES_NETWORK = 1 << 11,
               SBX_CAN_ADOPT = 1 << 12, /* sandboxes that outlived the program that started them */
               SBX_CAN_CLAIM = 1 << 13, /* warm ones, see sbx_claim */
               SBX_CAN_LIST = 1 << 14,  /* the sandboxes that exist, whichever program started
                                         * them */
               SBX_CAN_MOUNT = 1 << 15, /* directories of this machine: workspace, mounts */
               SBX_IS_HERE = 1 << 16,   /* its processes and files are this machine's */
               SBX_CAN_USER = 1 << 17,  /* run as any user, see sbx_spec.has_user */
               SBX_LIMITS_FILES = 1 << 18, /* open ones, of each process */
};
const char *sbx_cap_name(unsigned bit); /* "pause"; NULL: no such bit */

/* SBX_WARM: finished, and bound to no client; its server waits for sbx_claim(). */
enum sbx_state { SBX_CREATED, SBX_STARTING, SBX_RUNNING, SBX_PAUSED, SBX_STOPPED, SBX_WARM };

/* The phases of a start. Phases that a backend cannot tell apart are 0. */
enum sbx_phase {
    SBX_PHASE_QUEUE, /* before work on it began */
    SBX_PHASE_NAMESPACES,
    SBX_PHASE_MOUNTS,
    SBX_PHASE_EXEC,
    SBX_PHASE_READY, /* from there until the server listened */
    SBX_PHASES
};

#define SBX_LACKS_MAX 16
struct sbx_lack {              /* a layer of isolation, or a limit, that is not there */
    const char *name, *remedy; /* name NULL: the last one was before; remedy NULL: none */
    char why[160];
};

/* The process that makes sandboxes of this machine, for a backend that needs one. */
struct sbx_launcher {
    int sock;
    const char *sockets; /* its directory of sockets; NULL: state_dir/run */
    /* Its own directory, for what commands write: then they can go on writing without a reader, and
     * the next program reads on. NULL: a pipe each, which ends with us. */
    const char *outputs;
    unsigned caps;                /* of its sandboxes, on this machine */
    const struct sbx_lack *lacks; /* the layers that are not there; NULL: not known */
    const char *const *roots;     /* directories it may mount from, absolute, in the order of its
                                   * policy,     ended by NULL */
};

struct sbx_host { /* what the program lends every driver; borrowed */
    struct loop *loop;
    struct dialer *dialer;
    const void *settings;  /* the struct of its row's settings; NULL: it has none */
    const char *state_dir; /* absolute; drivers keep their files in a directory of their name */
    const char *const *envp;
    fallible (*remove_tree)(int dir, const char *name);
    const struct sbx_launcher *launcher; /* for SBX_NEEDS_LAUNCHER; NULL: there is none */
    int guest_fd;                        /* croft-guest, readable, for SBX_NEEDS_GUEST */
    /* The maker of sandboxes has ended, and they live on: it cannot be asked any more. May be
     * NULL. */
    void (*on_lost)(void *arg);
    void *lost_arg;
    uint32_t silence_ms;   /* see waiters.h; 0: waiters wait for ever */
    uint32_t most_waiting; /* the same; 0: no bound */
};

struct sbx_address {      /* of the action server, or of a port inside */
    char unix_path[108];  /* empty: url's host */
    char url[192];        /* "http://127.0.0.1:41000" */
    uint16_t tunnel_port; /* not 0: ask for CONNECT 127.0.0.1:port first */
};

struct sbx_info {
    enum sbx_state state;
    pid_t pid;                     /* 0: none, or not on this machine */
    struct sbx_address address;    /* while it runs */
    const char *workspace;         /* on the host; NULL: not there */
    const char *session_key;       /* of its server's making; NULL: that of the spec, if any */
    const char *disk;              /* what limits its disk space: "loop", …; NULL: nothing */
    const char *failure;           /* why it ended; NULL: it was asked to, or has not */
    uint64_t phase_ns[SBX_PHASES]; /* of its last start; a claim is a start: QUEUE, EXEC and READY
                                    * are then the claim's own */
};

#define SBX_LOOKS_AT_ONCE 4 /* diffs and applies that this machine does at a time */

/* Operations on the changes of a sandbox. */
enum sbx_files {
    SBX_FILES_DIFF,     /* text: JSON, wire/files.h; s->report is the list, JSON */
    SBX_FILES_APPLY,    /* the same; s->report is what was done */
    SBX_FILES_ROLLBACK, /* text: the snapshot to go back to; empty: to the beginning */
};

struct sbx_usage { /* 0: not counted */
    uint64_t memory_bytes, cpu_ns, pids, oom_kills;
};

typedef void sbx_done(void *arg, struct sbx *s, const struct err *e); /* e borrowed; NULL: done */

struct sbx_listed { /* a sandbox the backend has, known to this program or not */
    char id[64];
    enum sbx_state state;
};
typedef void sbx_list_done(void *arg, const struct sbx_listed *all, size_t count,
                           const struct err *e); /* all borrowed */

/* Further features come in groups of calls; a row names the groups it has. */

struct sbx_pause_calls {
    fallible (*pause)(struct sbx *s);
    fallible (*resume)(struct sbx *s);
};

struct sbx_claim_calls {
    fallible (*bind)(struct sbx *s, const struct sbx_spec *spec);
    fallible (*claim)(struct sbx *s, const struct sbx_spec *spec); /* NULL: none are kept warm */
};

/* Sandboxes that outlive the program which started them. */
struct sbx_survivor_calls {
    fallible (*adopt)(struct sbx *s); /* sets s->found first */
    fallible (*look)(struct sbx *s);  /* the same; NULL: it is what we made it */
    /* All that are there; names are struct sbx_listed. NULL: it cannot tell. */
    fallible (*list)(struct sbx_query *q);
    /* At once: what a program before us left of sandboxes that are not known, beyond what list()
     * shows. NULL: nothing is left. */
    void (*sweep)(struct sbx_driver *d, bool (*known)(const void *arg, const char *id),
                  const void *arg);
};

struct sbx_log_calls {
    void (*newest)(struct sbx *s, struct buf *out);
    /* See follow.h. Watching twice is fine; from then on sbx_log_grew() comes when there is more.
     * read: how many bytes are the file's, the first. */
    size_t (*read)(struct sbx *s, struct sbx_place *at, struct buf *out);
    void (*end)(struct sbx *s, struct sbx_place *ret_end);
    fallible (*watch)(struct sbx *s, bool on);
    /* Instead of these three, where each reader has a connection of its own to another machine; the
     * driver then calls on_begin, on_more and sbx_follower_end(). Close: without that. */
    fallible (*open)(struct sbx_follower *f, const struct sbx_log_from *from);
    void (*next)(struct sbx_follower *f, struct buf *out);
    void (*close)(struct sbx_follower *f);
    void (*moved)(struct sbx *s); /* its state is another; NULL: that is no matter */
};

struct sbx_snapshot_calls {
    fallible (*make)(struct sbx *s, struct str name);
    fallible (*fork)(struct sbx_driver *d, struct str snapshot, const struct sbx_spec *spec,
                     struct sbx *s);
    fallible (*list)(struct sbx_query *q);
    fallible (*remove)(struct sbx_query *q);
};

struct sbx_image_calls { /* of a store */
    fallible (*find)(struct sbx_query *q);
    fallible (*import)(struct sbx_query *q);
};

struct sbx_file_calls { /* its changes; see sbx_files() */
    fallible (*diff)(struct sbx *s, struct str text);
    fallible (*apply)(struct sbx *s, struct str text);
    fallible (*rollback)(struct sbx *s, struct str to);
};

struct sbx_port_calls {
    fallible (*expose)(struct sbx *s, uint16_t port, struct sbx_address *ret_address);
};

enum { /* of the program; bits */
       SBX_NEEDS_LAUNCHER = 1 << 0,
       SBX_NEEDS_GUEST = 1 << 1, /* croft-guest as a file */
};

/* A backend's row. Calls on a sandbox end in sbx_finish, those on a query in
 * sbx_query_finish, at once or later; an error returned is that. */
struct sbx_backend {
    const char *name, *summary;
    const char *warning; /* printed wherever a person looks; NULL: none */
    const char *remedy;  /* for what it lacks here: "a croft at the other side"; NULL: none */
    unsigned needs;      /* SBX_NEEDS_… */
    const struct cfg_table *settings; /* its own, a CFG_TABLE; NULL: none */
    unsigned caps;                    /* at most, beside those of its groups of calls */
    unsigned depends; /* of all of these: the driver says in its own caps which hold here */
    size_t size;      /* of its sandbox's struct, which begins with struct sbx */

    fallible (*open)(const struct sbx_host *host, struct sbx_driver **ret_driver);
    void (*close)(struct sbx_driver *d); /* no sandbox is left */
    fallible (*create)(struct sbx_driver *d, const struct sbx_spec *spec, struct sbx *s);
    /* The driver's part of one that is left when its driver closes; what it stands for may live on.
     * Also after remove: twice is fine. */
    void (*let_go)(struct sbx *s);
    fallible (*start)(struct sbx *s);
    fallible (*stop)(struct sbx *s);
    /* For a sandbox that does not run: removes all it left, and the driver's part of s. Errors are
     * for the log: for its caller the sandbox is gone. */
    fallible (*remove)(struct sbx *s);
    void (*inspect)(struct sbx *s, struct sbx_info *info); /* fills what the driver knows */
    fallible (*measure)(struct sbx *s); /* fills s->usage; NULL: it does not count */

    const struct sbx_pause_calls *pauses; /* NULL: not offered, of this and the following */
    const struct sbx_claim_calls *claims;
    const struct sbx_survivor_calls *survivors;
    const struct sbx_log_calls *logs;
    const struct sbx_snapshot_calls *snapshots;
    const struct sbx_image_calls *images;
    const struct sbx_file_calls *files;
    const struct sbx_port_calls *ports;
};
#define SBX_BACKEND(id) ROW(sbx_backends, struct sbx_backend, id)

/* NULL after the last, NULL when there is none of this name. */
const struct sbx_backend *sbx_backend_at(size_t index);
const struct sbx_backend *sbx_backend_find(struct str name);
void sbx_backend_put_names(struct buf *out);            /* "local|native|remote" */
unsigned sbx_backend_caps(const struct sbx_backend *b); /* at most; a driver's are what holds */

struct sbx_driver {
    const struct sbx_backend *backend;
    const struct sbx_host *host;
    unsigned caps;
    bool lost;             /* see sbx_host.on_lost */
    bool forgets;          /* the files of what is stopped are gone: no start again */
    bool unsure;           /* caps may become more: the other server has not answered yet */
    struct list all;       /* its sandboxes */
    struct map by_id;      /* the same */
    struct list queries;   /* without an answer so far, oldest first */
    unsigned queries_sent; /* of those: the backend has them */
    struct list waiters;   /* see waiters.h */
    unsigned waiting;      /* so many */
    bool silent;           /* its launcher answers nothing */
    bool ending;           /* it is about to be closed */
    unsigned sandboxes;
};
