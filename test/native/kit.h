// SPDX-License-Identifier: Apache-2.0
/* kit.h — sandboxes for tests: the machine's own root as layers, a state directory of the test's
 * own, and a look at everything one could leave behind. */
#pragma once

#include "base/buf.h"
#include "host/launcher/box.h"

struct kit {
    struct box_host h;
    int root;
    unsigned fds, mounts; /* of this process, when it began */
};

/* Skips the test, by name, where there is no root or no idmapped overlay. */
void kit_open(struct kit *k);
/* Checks that nothing is left: descriptors, mounts, children, claims, directories. */
void kit_close(struct kit *k);

struct kit_box {
    struct box_spec spec;
    struct native_request req;
    struct box_root root;
    int out; /* read its output here */
};

/* A specification for `/bin/sh -c SCRIPT`, both outputs into a pipe; change it, then start. */
void kit_prepare(struct kit *k, struct kit_box *b, const char *id, const char *script);
void kit_forget(struct kit_box *b); /* closes what prepare opened */
fallible kit_try(struct kit *k, struct kit_box *b, struct box *ret_box);
void kit_start(struct kit *k, struct kit_box *b, struct box *ret_box);
/* Waits for the end; exit code, 128+n for signals. */
int kit_wait(const struct box *box);
int kit_end(struct kit *k, struct kit_box *b, struct box *box, struct buf *into);

/* croft run with the test's state directory; both outputs into *into, exit code back. */
int kit_run(const char *const *flags, const char *const *command, struct buf *into);
/* Waits until every croft of the test's state is gone, those included that tidy up behind us. */
void kit_settle(void);
void kit_need_root(void);
/* The layers of the machine's system are made once for all tests: a state directory gets the same
 * ones mounted, in a mount namespace of the test's own. */
void kit_share_layers(const char *state);
void kit_share_layers_as(const char *state, const char *cache, unsigned owner);

#define KIT_NOBODY 65534
/* Gives nobody the test's directory, as workspace and state; skips the test, by name, where
 * an ordinary user has no sandboxes. */
void kit_be_nobody(void);
int kit_as_nobody(const char *const *args, struct buf *out); /* croft ARGS */
/* What /etc/subuid and /etc/subgid say from here on to this test and what it starts, in a mount
 * namespace of its own: the machine's are not touched. Skips where there is no newuidmap. */
void kit_sub_ids(const char *lines);
#define KIT_SUB_FIRST 1610612736
#define KIT_SUB_IDS   "nobody:1610612736:65536\n"
/* The same for any file: a copy with these bytes and mode. */
void kit_pretend(const char *path, const char *text, mode_t mode);
/* Names in a directory, joined by spaces; "" when empty. */
void kit_check_empty(const char *relative);
