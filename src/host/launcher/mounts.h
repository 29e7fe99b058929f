// SPDX-License-Identifier: Apache-2.0
/* mounts.h — the mounts a sandbox is made of, each built detached. None is ever attached to the
 * host's tree, so none can be left there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A detached copy of dir's mount, its ids shifted into the namespace (-1: left alone), without
 * nodiratime then. */
fallible mounts_clone(int dir, int userns, bool read_only, int *ret_mount);

struct mounts_overlay {
    const int *lowers; /* mounts or directories, topmost first */
    size_t lower_count;
    int upper, work; /* directories, reached through a mount idmapped like the lowers; -1: none */
    bool throw_away; /* no syncs: the upper is worth nothing after a crash */
    bool user;       /* made inside a user namespace */
    bool no_set_id;
    bool redirects; /* layers of ours have some: follow them; it makes none itself */
    const char *at; /* with mounts_by_path(): a directory to mount it on for a moment */
};
/* Mounted with nodiratime, which a copy for a sandbox never is: so those inside know what is theirs
 * and what is a directory of the host (guest/account: tree_is_ours). */
fallible mounts_overlay(const struct mounts_overlay *o, int *ret_mount);

/* Before Linux 6.13 an overlay takes its layers by path, and only layers mounted in the caller's
 * mount namespace. That must be a private one: layers are attached in it (mounts_lend) while
 * overlays are made of them. */
bool mounts_by_path(int dir);
/* Lent mounts are detached once `at`, the lowest of them, is taken back. */
fallible mounts_lend(int mount, const char *at);
void mounts_take_back(const char *at);

/* A sandbox's files in memory, as four mounts of one file system: each further file system would
 * cost every memory group of the machine (see cg.h). */
struct mounts_memory {
    int dev;  /* null zero full random urandom tty, links, empty pts and shm; read-only */
    int shm;  /* 64 MB, for every user */
    int none; /* an empty directory: dev's pts, before anything is mounted there; read-only */
    int null; /* dev's null once more: a shared one could be locked, or watched to see which program
               * opens it */
};
/* It stays mounted at `at`, below whatever comes there next. An ordinary user may make no nodes:
 * dev is then sealed by mounts_user_dev(), which binds the host's, and null is the host's. */
fallible mounts_memory(const char *at, bool user, struct mounts_memory *ret_memory);
fallible mounts_user_dev(int dev, int root);

/* A new file system of a kind, with options "key=value" or "key" in a NULL-ended list. */
fallible mounts_new(const char *type, const char *const *options, unsigned attr, int *ret_mount);

/* Attaches the mount at path in root, a directory or a file that is made when missing. Links on the
 * way are refused: an image cannot send a mount elsewhere. */
fallible mounts_attach(int mount, int root, const char *path, bool file);
