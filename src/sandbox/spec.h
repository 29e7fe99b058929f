// SPDX-License-Identifier: Apache-2.0
/* spec.h — what a sandbox is to be, in words that hold for every backend. What a backend lacks it
 * refuses by name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sbx;

/* The program that answers: our action server, or a command that is run as given and listens
 * itself. */
enum sbx_face { SBX_FACE_ACTION, SBX_FACE_COMMAND };

enum sbx_mount_mode { SBX_MOUNT_RO, SBX_MOUNT_RW, SBX_MOUNT_OVERLAY };

struct sbx_mount {
    const char *source, *target; /* absolute: of the host, in the sandbox */
    enum sbx_mount_mode mode;
    const char *image; /* instead of source, with MOUNT_OVERLAY: an image of the store */
};

struct sbx_limits { /* 0: the backend's default */
    uint64_t memory_bytes, disk_bytes;
    uint32_t pids, cpu_permille, open_files;
};

struct sbx_spec {            /* copied as far as needed */
    const char *id;          /* letters, digits, "-_."; NULL: one is made */
    const char *image;       /* NULL or "host": the machine's own, or the backend's default */
    const char *workspace;   /* a directory of the host; NULL: an empty one that goes with it */
    const char *session_key; /* NULL: none */
    const char *const *env;  /* NULL: none; of everything inside */
    struct sbx_limits limits;
    uint16_t factor;            /* for servers elsewhere, which have limits of their own; 0: 1 */
    const char *hostname;       /* NULL: its id */
    enum sbx_face face;         /* FACE_COMMAND: command as it is, its port reached by sbx_expose */
    const char *const *command; /* argv; NULL: our action server. With FACE_ACTION its line, or one
                                 * of a foreign client for theirs */
    uint16_t port;              /* of FACE_COMMAND, for the address; 0: none */
    const char *working_dir;    /* where command runs, made if missing; of our own server: where
                                 * shells start; NULL: "/" for a command, else the workspace */
    bool has_user;              /* all of it runs as that user, not as root inside */
    bool has_group; /* without has_user, of a backend elsewhere: the user is the image's */
    uint32_t uid, gid;
    bool has_fs_group; /* one more group of that user; the workspace becomes that group's */
    uint32_t fs_group;
    const char *user; /* without has_user: USER[:GROUP] in the words of its image, looked up inside.
                       * A backend whose images are elsewhere leaves it to them. NULL: root */
    const struct sbx_mount *mounts; /* beside the workspace */
    size_t mount_count;
    int output;  /* FACE_COMMAND: a pipe for what it says, borrowed; 0: kept, for sbx_logs */
    bool nested; /* it may make namespaces and mounts of its own: to build images, native only */
    bool warm;   /* only image and limits count: the rest comes with sbx_claim() */
    /* Of a claim: what it must stand on, ERR_GONE otherwise. NULL: whatever it stands on. */
    const char *image_id;
    /* The sandbox ended without being asked to; its state is SBX_STOPPED. May be NULL. */
    void (*on_gone)(void *arg, struct sbx *s);
    /* After a claim that was done while s->binding: its server listens now. May be NULL. */
    void (*on_listens)(void *arg, struct sbx *s);
    void *arg;
};
