// SPDX-License-Identifier: Apache-2.0
/* serve.h — shared by the files of the launcher's process: launcher.c has its sockets, serve_ops.c
 * what it is asked, serve_life.c its sandboxes, those of a launcher before it included. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "host/launcher/box.h"
#include "host/launcher/launcher.h"
#include "host/rootfs/rootfs.h"
#include "host/snaps/snaps.h"
#include "loop/loop.h"

struct serve_start; /* see serve_start.c */
struct serve_job;   /* a child that works on files, see serve_job.h */
struct sockaddr_un;

#define SERVE_KILLERS 4 /* who may wait for one end: a stop beside a deadline, and some room */

struct serve_box {
    struct box box; /* slot and pid mean nothing once it has ended and !holds_slot */
    struct loop_child child;
    struct loop_io orphan; /* instead, for one that another launcher made */
    bool adopted;
    bool holds_slot;              /* groups and ids, given back when it ends */
    bool told;                    /* of its end, by NATIVE_DIED */
    int control;                  /* to pid 1, of one that waits for its claim; else -1 */
    struct native_request *waits; /* what it was started with, until it is claimed */
    struct list link;
    struct serve *serve;
    enum native_state state;
    int exit_code, signal;
    bool code_unknown;
    uint64_t oom_kills; /* once it has ended */
    off_t log_left;     /* bytes of its log after it was cut last, or fewer if it lost some since */
    enum native_disk disk;
    bool plain;                            /* its directory holds what every box has, and nobody
                                              else has looked into it */
    unsigned lives;                        /* its directory had before */
    bool remove_when_dead, tell_when_dead; /* somebody waits for it */
    bool remove_unasked;                   /* nobody does: who asked is gone */
    uint64_t remove_tag, kill_tags[SERVE_KILLERS];
    uint8_t killers;           /* that wait for its death; tell_when_dead: there is one */
    struct serve_job *job;     /* its files are being copied; NULL: not */
    struct serve_start *start; /* pid 1 has not been exec'd yet; NULL: it has */
};

#define SERVE_IMAGES 16

struct serve_image { /* what a name meant when it was last looked for */
    char name[NATIVE_IMAGE_MAX], id[72];
};

#define SERVE_HULLS 128

struct serve_hull_ring { /* of those in gone/hull, by number; shared with who empties them */
    uint32_t put, done;
    bool good[SERVE_HULLS]; /* is as new now; else it is gone */
};

struct serve {
    struct loop *loop;
    struct launcher_policy own;           /* with roots as we see them */
    const struct launcher_policy *policy; /* that */
    struct box_host host;
    struct loop_io io, knock;
    struct serve_post *post; /* requests; not on the stack, which every fork makes dear to touch */
    int sock;                /* the server's, -1: none */
    int listener;            /* where the next server comes, -1: nowhere */
    int sockets;             /* directory of those of the sandboxes */
    bool sockets_near;       /* in the mount the sandboxes are in */
    int lock;                /* one launcher for one state directory */
    struct loop_signal term;
    struct list boxes;
    struct map by_id; /* the same */
    unsigned box_count;
    struct list jobs;
    struct box_embryo spare[64];
    unsigned spare_count;
    struct loop_later refill;
    struct loop_timer rest; /* husks nobody needed for a while go */
    struct serve_fresh {
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
    struct loop_io written;   /* inotify: logs of sandboxes; stopped: nobody looks */
    struct loop_timer linger; /* of network namespaces */
    bool lingers;
    struct loop_timer kept; /* of copies of layers */
    struct serve_gone {
        int dir;                 /* state/gone, -1: none */
        struct serve_job *broom; /* who deletes what is there; NULL: nobody yet */
        int tell;                /* the pipe to it */
        uint64_t next;           /* name */
        struct serve_swept {     /* how many were put there, and are deleted */
            uint64_t put, done;
            struct serve_hull_ring hulls;
        } * swept;               /* shared with it */
        struct loop_timer again; /* it could not be started, or died */
        uint8_t told;            /* 1: of that; 2: and that there is no room for more */
        bool hurries;            /* it has so much to do that it is no longer nice */
    } gone;
    struct serve_hulls {
        int dir;                      /* state/gone/hull, -1: none */
        struct serve_hull_ring *ring; /* NULL: none is kept */
        uint32_t put, taken;
        uint8_t lives[SERVE_HULLS]; /* it has had */
    } hulls;
    struct serve_image images[SERVE_IMAGES]; /* as long as the store does not change */
    unsigned image_next;
    struct timespec images_changed;
    bool barren; /* no embryo could be made: not again before the next start */
    bool ending;
};

/* What came with a request; whatever is still here afterwards is closed. */
struct serve_fds {
    int fds[32];
    size_t count;
};

/* Fills *reply; its descriptors go to *out. *ret_later: the answer comes when
 * it can, or has gone already. */
fallible serve_do(struct serve *s, const struct native_request *r, struct serve_fds *in,
                  struct native_reply *reply, struct serve_fds *out, bool *ret_later);
/* Claimed in our name, for it may become a husk and then another sandbox. */
fallible serve_conceive(struct serve *s, struct box_embryo *ret_embryo);
struct serve_box *serve_find(struct serve *s, const char *id);
void serve_answer(struct serve *s, struct native_reply *reply, struct err *e,
                  struct serve_fds *fds);

/* State, and how it ended. */
void serve_describe(const struct serve_box *b, struct native_reply *reply);

/* --- serve_start.c: between the order and the exec, of which nobody waits --- */

struct serve_begun { /* taken over, on failure too */
    struct box_embryo embryo;
    unsigned flags;        /* of its box_spec */
    uint64_t tag;          /* of the request */
    int ready, control;    /* our ends */
    bool made;             /* its directory is new */
    struct serve_box *old; /* its life before; NULL: none. Then nobody sees the new one yet */
};
/* The answer comes when it has been exec'd, or cannot be. */
void serve_start_watch(struct serve *s, struct serve_box *b, const struct serve_begun *begun);
/* Waits for it; b may be gone then. For who wants something of a sandbox that is starting. */
void serve_start_settle(struct serve_box *b);
void serve_settle_all(struct serve *s);

/* --- serve_names.c --- */

#define SERVE_SOCKET_NAME (NATIVE_ID_MAX + 8)
/* "ID.s", "ID.c", "ID.l" */
enum serve_name { SERVE_NAME_SERVER = 's', SERVE_NAME_CONNECT = 'c', SERVE_NAME_LOG = 'l' };

fallible serve_address(const struct serve *s, const char *id, enum serve_name kind,
                       struct sockaddr_un *ret);
/* A socket in the directory of sockets, the server's to connect to. */
fallible serve_listen(const struct serve *s, int type, const char *name, int *ret_fd);
/* The same, and the log, of the sandbox whose directory is dir; again: it had a life before. */
fallible serve_listen_at(const struct serve *s, int dir, const char *id, enum serve_name kind,
                         int *ret_fd);
fallible serve_open_log(const struct serve *s, int dir, bool again, const char *id, int *ret_fd);

/* --- serve_life.c --- */

void serve_rest_later(struct serve *s); /* what is kept of the dead goes, unless somebody dies */
void serve_insert(struct serve *s, struct serve_box *b);
void serve_forget(struct serve *s, struct serve_box *b); /* and frees it */
/* On failure the sandbox is dead: what nobody would see dying may not live. keep: its files stay,
 * it had a life before. */
fallible serve_watch(struct serve *s, struct serve_box *b, bool keep);
/* Of one that has ended: its directory and sockets; frees b. */
fallible serve_bury(struct serve *s, struct serve_box *b);
/* The same, but leaves its directory to its next life. */
void serve_replace(struct serve *s, struct serve_box *b);
/* And answers; reply NULL: nobody waits for that. */
void serve_remove(struct serve *s, struct serve_box *b, struct native_reply *reply);
void serve_socket_name(const char *id, enum serve_name kind, char out[SERVE_SOCKET_NAME]);
void serve_drop_sockets(const struct serve *s, const char *id); /* not its log */
void serve_drop_log(const struct serve *s, const char *id);
bool serve_any_alive(const struct serve *s);
/* Takes over what a launcher before us left alive, forgets what is dead. */
fallible serve_adopt_all(struct serve *s);
void serve_kill_all(struct serve *s);
/* At the end: those that live are waited for, or left alone if they are to be kept. */
void serve_drop_all(struct serve *s);

/* --- serve_claim.c --- */

/* Limits, mounts, network: what the policy forbids. Fills in the limits nobody asked for. */
fallible serve_apply_policy(const struct serve *s, struct native_request *r);
fallible serve_check_block(const struct serve_fds *in, size_t block, bool log);
fallible serve_open_sources(const struct serve *s, const struct native_request *r,
                            int sources[NATIVE_MOUNTS]);
fallible serve_claim(struct serve *s, struct serve_box *b, const struct native_request *r,
                     struct serve_fds *in, struct native_reply *reply, bool *ret_later);

/* --- serve_snap.c --- */

#define SERVE_THAW "thaw" /* in box/<ID>: frozen for a snapshot alone */

fallible serve_snapshot(struct serve *s, struct serve_box *b, const struct native_request *r,
                        bool *ret_later);
fallible serve_snapshot_remove(struct serve *s, const struct native_request *r, bool *ret_later);
fallible serve_snapshot_list(struct serve *s, const char *after, struct native_reply *reply);
/* Makes the directory of a sandbox that goes on from a snapshot. */
fallible serve_stand(const struct serve *s, const struct native_request *r);
/* The layers a sandbox stands on, above its root file system's and its mounts' own. */
fallible serve_add_layers(const struct serve *s, const struct native_request *r, struct rootfs *fs,
                          struct snaps_stack below[NATIVE_MOUNTS]);
bool serve_stands(const struct serve *s, const char *id);
void serve_sweep_layers(struct serve *s); /* those nobody stands on, behind our back */
void serve_end_jobs(struct serve *s);
void serve_jobs_unasked(struct serve *s); /* who asked for them is gone */

/* Of one that has ended: its files are as when it began, or the snapshot's. */
fallible serve_rollback(struct serve *s, struct serve_box *b, const struct native_request *r,
                        bool *ret_later);

bool serve_is_half_back(const struct serve *s, const char *id); /* it was cut short */

/* --- serve_changes.c --- */

/* NATIVE_DIFF and NATIVE_APPLY. */
fallible serve_changes(struct serve *s, struct serve_box *b, const struct native_request *r,
                       struct serve_fds *in, bool *ret_later);

/* --- serve_image.c --- */

fallible serve_image_find(struct serve *s, const struct native_request *r, struct serve_fds *out);
fallible serve_image_import(struct serve *s, const struct native_request *r, struct serve_fds *in,
                            bool *ret_later);
/* Puts the id in the place of the name; a sandbox that lived before has the image it had. */
fallible serve_image_resolve(struct serve *s, struct native_request *r, bool again);
/* The layers of the stored image a request names by id. */
fallible serve_image_open(const struct serve *s, const struct native_request *r,
                          struct rootfs *ret);
/* Those of its mounts that are images: the lowest layer is the source, the others stand on it. */
fallible serve_image_mounts(const struct serve *s, const struct native_request *r, bool before,
                            int sources[NATIVE_MOUNTS], struct snaps_stack below[NATIVE_MOUNTS]);
/* In box/ID, so that it is not removed while the sandbox, or what it left, is there. */
fallible serve_image_note(const struct serve *s, const struct native_request *r);

/* --- serve_fresh.c: the layers of the host's own system, as it changes --- */

void serve_fresh_start(struct serve *s);
fallible serve_fresh_open(struct serve *s, struct rootfs *ret); /* for a sandbox made of them */
void serve_fresh_swept(struct serve *s);                        /* a sandbox's directory went */
void serve_fresh_end(struct serve *s);

/* --- serve_log.c: what sandboxes write into their logs, up to a limit --- */

void serve_log_start(struct serve *s);
void serve_log_end(struct serve *s);

/* --- serve_gone.c: the files of those that are removed --- */

void serve_gone_open(struct serve *s);
/* box/<ID> is nobody's from now on. */
fallible serve_discard(struct serve *s, const char *id);
/* The same of one that is plain; false: it is there still. */
bool serve_reuse(struct serve *s, const char *id, unsigned lives);
void serve_gone_drain(struct serve *s);                          /* at the end; ends who deletes */
void serve_gone_put(struct serve *s, int dir, const char *name); /* any other directory */

/* --- serve_hull.c: directories of those that are removed, for the next --- */

void serve_hulls_open(struct serve *s, struct serve_hull_ring *ring); /* gone is open */
void serve_hulls_close(struct serve *s);
void serve_hulls_rest(struct serve *s); /* nobody needed them for a while */
uint32_t serve_hulls_undone(const struct serve *s);
void serve_hull_hollow(int dir, struct serve_hull_ring *r); /* in who deletes: all that were put */
bool serve_hull_put(struct serve *s, const char *id, unsigned lives);
bool serve_hull_take(struct serve *s, const char *id, unsigned *ret_lives);

/* --- serve_net.c --- */

void serve_net_hold(struct serve_box *b); /* before it is killed */
void serve_net_linger(struct serve *s);   /* some may have to go */
void serve_kept_linger(struct serve *s);  /* the same of copies of layers */

/* --- serve_strip.c --- */

/* Of one that has ended: set-id files in the host's own directories, by a child. */
void serve_strip(struct serve *s, const char *id);
