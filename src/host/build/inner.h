// SPDX-License-Identifier: Apache-2.0
/* inner.h — shared by the files of build/, included by no other. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "host/build/build.h"
#include "host/keys/keys.h"
#include "host/ops/request_id.h"
#include "loop/loop.h"
#include "sandbox/sandbox.h"

#define BUILD_ID_LEN  32
#define BUILD_BASES   6 /* images that the FROMs of one Dockerfile may name */
#define BUILD_TAGS    8
#define BUILD_AGAIN_S 30 /* seconds until a refused client asks again: a build takes minutes */
#define BUILD_NAME    256
#define BUILD_LOG     (16u << 10) /* of its words, in the error */

enum build_status {
    BUILD_QUEUED,
    BUILD_WORKING,
    BUILD_SUCCESS,
    BUILD_FAILURE,
    BUILD_INTERNAL_ERROR,
    BUILD_TIMEOUT,
};
const char *build_status_word(enum build_status s);

struct build {
    char id[BUILD_ID_LEN + 1];
    char key_name[KEY_NAME_SIZE];
    char request[REQUEST_ID_MAX + 1]; /* the id of its request */
    struct builds *builds;
    struct list link; /* posted, waiting or working */
    enum build_status status;
    char tags[BUILD_TAGS][BUILD_NAME]; /* the first is the image's name, the others too */
    unsigned tag_count, tags_done;
    bool admin; /* may replace what others built */
    char *error;

    int dir;        /* dir/ID: the context */
    uint64_t bytes; /* of it */
    /* while it works */
    struct sbx *sandbox;
    bool scanning; /* for its FROMs; the build comes after */
    char bases[BUILD_BASES][BUILD_NAME];
    unsigned base_count, base_at;
    struct loop_io out;   /* what the sandbox says */
    struct buf said;      /* words, up to a mark */
    int archive;          /* -1: not yet */
    uint64_t left;        /* of the archive */
    bool taking;          /* the archive's bytes come */
    bool failed, scanned; /* it said so */
    struct loop_timer deadline;
};

struct builds {
    struct builds_config config;
    void (*on_news)(void *arg, const struct build_news *news); /* NULL: they are dropped */
    void *news_arg;
    char *path;
    int dir;
    struct map owners;  /* of struct owner, by the name of an image */
    struct list posted; /* their contexts come, or their names are looked up */
    struct list waiting, working;
    struct list waiters; /* for the end of any */
    uint64_t bytes;      /* of all contexts */
    unsigned waiting_count, working_count;
    struct loop_later next;
};

/* --- build.c --- */
/* The next one: the first of the key that has the fewest at work; NULL: none waits. */
struct build *build_next(struct builds *all);
/* For one more of this key, which build_new() then has. */
fallible build_check_room(const struct builds *b, const char *key_name);
/* A directory of its own; QUEUED is on disk when done says so. */
fallible build_new(struct builds *b, const char *key_name, struct build **ret_build);
void build_drop(struct build *b); /* of one that was never queued */
/* The last build of this image was this key's, at that time. */
void build_set_owner(struct builds *all, struct str image, struct str key_name, int64_t made_ms);
/* A name that is taken belongs to the key that built the image: another key must not replace it.
 * missing: what looking for the image said. */
fallible build_check_owner(struct build *b, unsigned tag, const struct err *missing);
/* ERR_CONFLICT: a build of another key, which waits or works, has one of its names. */
fallible build_check_others(const struct build *b);
void build_queue(struct build *b, store_done *done, void *arg);
void build_end(struct build *b, enum build_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* --- run.c --- */
void build_run(struct build *b);
void build_stop(struct build *b); /* nothing of it goes on */
extern const char build_scan_script[], build_script[];

/* --- hear.c --- */
/* A piece of what its sandbox says, into bases, said and archive; errors name what is wrong. */
fallible build_hear(struct build *b, struct str piece);

/* --- rows.c --- */
struct build_row {
    char status[32], image[BUILD_NAME];
    char *error; /* NULL: none */
};
void build_row_insert(struct build *b, store_done *done, void *arg);
void build_row_update(struct build *b); /* status and error */
/* A row of this key's, or of any; ERR_NOT_FOUND. The row is lent for the call. */
void build_row_read(struct builds *b, struct str id, const struct key *key,
                    void (*done)(void *arg, const struct build_row *row, struct err *e), void *arg);
