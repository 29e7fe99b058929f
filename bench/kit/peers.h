// SPDX-License-Identifier: Apache-2.0
/* peers.h — other ways to run a program apart from the rest, to measure croft beside them.
 *
 * All do the same job: start croft-guest, a static program, in a root file system that holds
 * nothing else, and give its answer. What is missing or does not start says why; a peer is never
 * left out in silence. Everything they write is in a scratch directory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "host/bench/scratch.h"

enum { PEER_BWRAP, PEER_CRUN, PEER_RUNC, PEER_DOCKER, PEERS };

#define PEERS_ARGS     24
#define PEERS_PATH     256
#define PEERS_WAIT_MS  60000 /* for one answer, on a machine that is on its knees */
#define PEERS_SPAN_MS  6000  /* a slow peer takes part in as many turns as this holds */
#define PEERS_LEAST    10
#define PEERS_WHY_SIZE 240

struct peer {
    const char *name;    /* "crun" */
    const char *what;    /* how it is called, for a table */
    const char *package; /* Debian's, which brings it */
    bool there;
    char why[PEERS_WHY_SIZE]; /* it does not take part */
    double trial_ms;          /* of its first answer */
    char program[PEERS_PATH];
    int mounts; /* a mount namespace to call it in, -1: ours */
};

struct peers {
    struct scratch scratch;
    struct peer at[PEERS];
    char group[SCRATCH_DIR];    /* control groups of this name, in any hierarchy, are ours */
    char root[SCRATCH_DIR + 8]; /* the root file system: croft-guest and empty directories */
    unsigned next;              /* containers get new names */
    int own_mounts, cwd;
};

/* Makes the root file system, tries every peer once. Fails only if there can be no scratch. */
fallible peers_open(struct peers *p, const char *tmp);
fallible peers_close(struct peers *p); /* an error says what is left behind */

/* From exec to the answer; its end is waited for, but not counted. */
fallible peers_answer(struct peers *p, size_t i, double *ret_ms);
/* The same for any program that gives that answer, such as croft itself. */
fallible peers_ask(const struct peers *p, const char *const *argv, double *ret_ms);
/* From exec to exit, which must be 0. */
fallible peers_call(const struct peers *p, const char *const *argv, double *ret_ms);
/* Whether a peer takes part in this turn of so many: slow ones do so less often. */
bool peers_turn(const struct peer *peer, unsigned turn, unsigned turns);

/* Finds a program in PATH and where administrators' programs are. */
bool peers_find(const char *name, char out[PEERS_PATH]);
/* Of a file in the scratch; false: it says nothing. */
bool peers_last_line(const struct peers *p, const char *name, char out[PEERS_WHY_SIZE]);

/* groups.c: ends the processes in them and removes them. False: some are left. */
bool peers_remove_groups(const char *name);

/* --- docker.c: a dockerd of our own, and nothing of it in the machine's namespaces --- */
fallible docker_open(struct peers *p);
fallible docker_answer(const struct peers *p, double *ret_ms);
/* A container in which a server waits; pause it and let it go on, each a whole command. */
fallible docker_start_idle(const struct peers *p);
fallible docker_pause(const struct peers *p, bool pause, double *ret_ms);
