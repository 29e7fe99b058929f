// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of the launcher's process: launcher.c has its sockets, ops.c
 * what it is asked, life.c its sandboxes, those of a launcher before it included. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "host/launcher/box.h"
#include "host/launcher/launcher.h"
#include "host/rootfs/rootfs.h"
#include "host/snaps/snaps.h"
#include "loop/loop.h"

struct launcher_start; /* see start.c */
struct launcher_job;   /* a child that works on files, see job.h */
struct sockaddr_un;

#define LAUNCHER_KILLERS 4 /* who may wait for one end: a stop beside a deadline, and some room */

struct launcher_box {
    struct box box; /* slot and pid mean nothing once it has ended and !holds_slot */
    struct loop_child child;
    struct loop_io orphan; /* instead, for one that another launcher made */
    bool adopted;
    bool holds_slot;              /* groups and ids, given back when it ends */
    bool told;                    /* of its end, by NATIVE_DIED */
    int control;                  /* to pid 1, of one that waits for its claim; else -1 */
    struct native_request *waits; /* what it was started with, until it is claimed */
    struct list link;
    struct launcher *launcher;
    enum native_state state;
    int exit_code, signal;
    bool code_unknown;
    uint64_t oom_kills; /* once it has ended */
    off_t log_left;     /* bytes of its log after it was cut last, or fewer if it lost some since */
    enum native_disk disk;
    bool remove_when_dead, tell_when_dead; /* somebody waits for it */
    bool remove_unasked;                   /* nobody does: who asked is gone */
    uint64_t remove_tag, kill_tags[LAUNCHER_KILLERS];
    uint8_t killers;              /* that wait for its death; tell_when_dead: there is one */
    struct launcher_job *job;     /* its files are being copied; NULL: not */
    struct launcher_start *start; /* pid 1 has not been exec'd yet; NULL: it has */
};

#define LAUNCHER_IMAGES 16

struct launcher_image { /* what a name meant when it was last looked for */
    char name[NATIVE_IMAGE_MAX], id[72];
};

struct deleter {              /* see deleter.c */
    int dir;                  /* state/gone, -1: none */
    struct launcher_job *job; /* the process that deletes what is there; NULL: none */
    int tell;                 /* the pipe to it */
    uint64_t next;            /* name */
    struct deleter_count {    /* directories put there, and deleted; shared with it */
        uint64_t put, done;
    } * count;
    struct loop_timer again; /* it could not be started, or died */
    uint8_t told;            /* logged: 1: that; 2: and that there is no room for more */
    bool hurries;            /* it has so much to do that it is no longer nice */
};

struct launcher {
    struct loop *loop;
    struct launcher_policy own;           /* with roots as we see them */
    const struct launcher_policy *policy; /* that */
    struct box_host host;
    struct loop_io io, knock;
    struct launcher_inbox
        *inbox;        /* requests; not on the stack, which every fork makes dear to touch */
    int sock;          /* the server's, -1: none */
    int listener;      /* where the next server comes, -1: nowhere */
    int sockets;       /* directory of those of the sandboxes */
    bool sockets_near; /* in the mount the sandboxes are in */
    int lock;          /* one launcher for one state directory */
    struct loop_signal term;
    struct list boxes;
    struct map by_id; /* the same */
    unsigned box_count;
    struct list jobs;
    struct box_spare spares[64];
    unsigned spare_count;
    struct loop_later refill;
    struct launcher_fresh {
        struct loop_io changed; /* inotify; stopped: nobody looks */
        struct loop_timer quiet, deep;
        bool under_way, again;
        bool swept; /* a sandbox has gone since this look began */
        bool used;  /* a sandbox was made of the layers since they were looked at deeply */
        bool old;   /* there are layers of before, kept for who stands on them */
        bool deaf;  /* something was replaced, and what is there now is not watched yet */
        struct rootfs layers; /* as long as nothing changes; none: mount_count is 0 */
        uint64_t looked_ns;
    } fresh;
    struct loop_io written; /* inotify: logs of sandboxes; stopped: nobody looks */
    struct deleter deleter;
    struct launcher_image images[LAUNCHER_IMAGES]; /* as long as the store does not change */
    unsigned image_next;
    struct timespec images_changed;
    bool no_spares; /* no spare could be made: not again before the next start */
    bool ending;
};

/* What came with a request; whatever is still here afterwards is closed. */
struct launcher_fds {
    int fds[32];
    size_t count;
};

/* Fills *reply; its descriptors go to *out. *ret_later: the answer comes when
 * it can, or has gone already. */
fallible launcher_do(struct launcher *l, const struct native_request *r, struct launcher_fds *in,
                     struct native_reply *reply, struct launcher_fds *out, bool *ret_later);
/* Claimed in the launcher's name, for its slot may be used again by another sandbox. */
fallible launcher_prepare_spare(struct launcher *l, struct box_spare *ret_spare);
struct launcher_box *launcher_find(struct launcher *l, const char *id);
void launcher_answer(struct launcher *l, struct native_reply *reply, struct err *e,
                     struct launcher_fds *fds);

/* State, and how it ended. */
void launcher_describe(const struct launcher_box *b, struct native_reply *reply);

/* --- start.c: between the order and the exec, of which nobody waits --- */

struct launcher_begun { /* taken over, on failure too */
    struct box_spare spare;
    unsigned flags;           /* of its box_spec */
    uint64_t tag;             /* of the request */
    int ready, control;       /* our ends */
    bool made;                /* its directory is new */
    struct launcher_box *old; /* its life before; NULL: none. Then nobody sees the new one yet */
};
/* The answer comes when it has been exec'd, or cannot be. */
void launcher_start_watch(struct launcher *l, struct launcher_box *b,
                          const struct launcher_begun *begun);
/* Waits for it; b may be gone then. For who wants something of a sandbox that is starting. */
void launcher_start_settle(struct launcher_box *b);
void launcher_settle_all(struct launcher *l);

/* --- names.c --- */

#define LAUNCHER_SOCKET_NAME (NATIVE_ID_MAX + 8)
/* "ID.s", "ID.c", "ID.l" */
enum launcher_name {
    LAUNCHER_NAME_SERVER = 's',
    LAUNCHER_NAME_CONNECT = 'c',
    LAUNCHER_NAME_LOG = 'l'
};

fallible launcher_address(const struct launcher *l, const char *id, enum launcher_name kind,
                          struct sockaddr_un *ret);
/* A socket in the directory of sockets, the server's to connect to. */
fallible launcher_listen(const struct launcher *l, int type, const char *name, int *ret_fd);
/* The same, and the log, of the sandbox whose directory is dir; again: it had a life before. */
fallible launcher_listen_at(const struct launcher *l, int dir, const char *id,
                            enum launcher_name kind, int *ret_fd);
fallible launcher_open_log(const struct launcher *l, int dir, bool again, const char *id,
                           int *ret_fd);

/* --- life.c --- */

void launcher_insert(struct launcher *l, struct launcher_box *b);
void launcher_forget(struct launcher *l, struct launcher_box *b); /* and frees it */
/* On failure the sandbox is dead: what nobody would see dying may not live. keep: its files stay,
 * it had a life before. */
fallible launcher_watch(struct launcher *l, struct launcher_box *b, bool keep);
/* Of one that has ended: its directory and sockets; frees b. */
fallible launcher_delete(struct launcher *l, struct launcher_box *b);
/* The same, but leaves its directory to its next life. */
void launcher_replace(struct launcher *l, struct launcher_box *b);
/* And answers; reply NULL: nobody waits for that. */
void launcher_remove(struct launcher *l, struct launcher_box *b, struct native_reply *reply);
void launcher_socket_name(const char *id, enum launcher_name kind, char out[LAUNCHER_SOCKET_NAME]);
void launcher_drop_sockets(const struct launcher *l, const char *id); /* not its log */
void launcher_drop_log(const struct launcher *l, const char *id);
bool launcher_any_alive(const struct launcher *l);
/* Takes over what a launcher before us left alive, forgets what is dead. */
fallible launcher_adopt_all(struct launcher *l);
void launcher_kill_all(struct launcher *l);
/* At the end: those that live are waited for, or left alone if they are to be kept. */
void launcher_drop_all(struct launcher *l);

/* --- claim.c --- */

/* Limits, mounts, network: what the policy forbids. Fills in the limits nobody asked for. */
fallible launcher_apply_policy(const struct launcher *l, struct native_request *r);
fallible launcher_check_block(const struct launcher_fds *in, size_t block, bool log);
fallible launcher_open_sources(const struct launcher *l, const struct native_request *r,
                               int sources[NATIVE_MOUNTS]);
fallible launcher_claim(struct launcher *l, struct launcher_box *b, const struct native_request *r,
                        struct launcher_fds *in, struct native_reply *reply, bool *ret_later);

/* --- snap.c --- */

#define LAUNCHER_THAW "thaw" /* in box/<ID>: frozen for a snapshot alone */

fallible launcher_snapshot(struct launcher *l, struct launcher_box *b,
                           const struct native_request *r, bool *ret_later);
fallible launcher_snapshot_remove(struct launcher *l, const struct native_request *r,
                                  bool *ret_later);
fallible launcher_snapshot_list(struct launcher *l, const char *after, struct native_reply *reply);
/* Makes the directory of a sandbox that goes on from a snapshot. */
fallible launcher_stand(const struct launcher *l, const struct native_request *r);
/* The layers a sandbox stands on, above its root file system's and its mounts' own. */
fallible launcher_add_layers(const struct launcher *l, const struct native_request *r,
                             struct rootfs *fs, struct snaps_stack below[NATIVE_MOUNTS]);
bool launcher_stands(const struct launcher *l, const char *id);
void launcher_sweep_layers(struct launcher *l); /* those nobody stands on, behind our back */
void launcher_end_jobs(struct launcher *l);
void launcher_jobs_unasked(struct launcher *l); /* who asked for them is gone */

/* Of one that has ended: its files are as when it began, or the snapshot's. */
fallible launcher_rollback(struct launcher *l, struct launcher_box *b,
                           const struct native_request *r, bool *ret_later);

bool launcher_is_half_back(const struct launcher *l, const char *id); /* it was cut short */

/* --- changes.c --- */

/* NATIVE_DIFF and NATIVE_APPLY. */
fallible launcher_changes(struct launcher *l, struct launcher_box *b,
                          const struct native_request *r, struct launcher_fds *in, bool *ret_later);

/* --- image.c --- */

fallible launcher_image_find(struct launcher *l, const struct native_request *r,
                             struct launcher_fds *out);
fallible launcher_image_import(struct launcher *l, const struct native_request *r,
                               struct launcher_fds *in, bool *ret_later);
/* Puts the id in the place of the name; a sandbox that lived before has the image it had. */
fallible launcher_image_resolve(struct launcher *l, struct native_request *r, bool again);
/* The layers of the stored image a request names by id. */
fallible launcher_image_open(const struct launcher *l, const struct native_request *r,
                             struct rootfs *ret);
/* Those of its mounts that are images: the lowest layer is the source, the others stand on it. */
fallible launcher_image_mounts(const struct launcher *l, const struct native_request *r,
                               bool before, int sources[NATIVE_MOUNTS],
                               struct snaps_stack below[NATIVE_MOUNTS]);
/* In box/ID, so that it is not removed while the sandbox, or what it left, is there. */
fallible launcher_image_note(const struct launcher *l, const struct native_request *r);

/* --- fresh.c: the layers of the host's own system, as it changes --- */

void launcher_fresh_start(struct launcher *l);
fallible launcher_fresh_open(struct launcher *l,
                             struct rootfs *ret); /* for a sandbox made of them */
void launcher_fresh_swept(struct launcher *l);    /* a sandbox's directory went */
void launcher_fresh_end(struct launcher *l);

/* --- log.c: what sandboxes write into their logs, up to a limit --- */

void launcher_log_start(struct launcher *l);
void launcher_log_end(struct launcher *l);

/* --- deleter.c: the files of removed sandboxes --- */

void deleter_open(struct launcher *l);
fallible deleter_discard(struct launcher *l, const char *id); /* box/<ID> is nobody's from now on */
void deleter_drain(struct launcher *l);                       /* at the end; ends it */

/* --- strip.c --- */

/* Of one that has ended: set-id files in the host's own directories, by a child. */
void launcher_strip(struct launcher *l, const char *id);
