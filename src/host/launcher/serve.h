// SPDX-License-Identifier: Apache-2.0
/* serve.h — shared by the files of the launcher's process: launcher.c and serve_ops.c. */
#pragma once

#include "base/list.h"
#include "host/launcher/box.h"
#include "host/launcher/launcher.h"
#include "host/rootfs/rootfs.h"
#include "loop/loop.h"

struct serve_box {
    struct box box;
    struct loop_child child;
    struct list link; /* in the order of ids */
    struct serve *serve;
    enum native_state state;
    int exit_code, signal;
    bool remove_when_dead, tell_when_dead; /* somebody waits for it */
    uint64_t remove_tag, kill_tag;
};

struct serve {
    struct loop *loop;
    const struct launcher_policy *policy;
    struct box_host host;
    struct loop_io io;
    int sock;
    struct list boxes;
    unsigned box_count;
    struct box_embryo spare[64];
    unsigned spare_count;
    struct loop_later refill;
    bool ending;
};

/* What came with a request; whatever is still here afterwards is closed. */
struct serve_fds {
    int fds[32];
    size_t count;
};

/* Fills *reply; its descriptors go to *out. *ret_later: the answer comes when the box is dead. */
fallible serve_do(struct serve *s, const struct native_request *r, struct serve_fds *in,
                  struct native_reply *reply, struct serve_fds *out, bool *ret_later);
struct serve_box *serve_find(struct serve *s, const char *id);
void serve_answer(struct serve *s, struct native_reply *reply, struct err *e,
                  struct serve_fds *fds);
void serve_remove(struct serve *s, struct serve_box *b, struct native_reply *reply);
