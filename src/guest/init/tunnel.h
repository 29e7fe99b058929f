// SPDX-License-Identifier: Apache-2.0
/* tunnel.h — the way to the ports that programs open inside: CONNECT 127.0.0.1:PORT, then bytes.
 *
 * No other host is dialled. A slow side slows the other one down; a side that ends its half ends
 * that half only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/str.h"
#include "loop/loop.h"

#define TUNNELS_MAX     256
#define TUNNEL_HEAD_MAX 8192
#define TUNNEL_HEAD_MS  10000 /* for the request, and again for the dialling */

struct tunnels {
    struct loop *loop;
    struct loop_io accept;
    struct loop_timer again; /* after a lack of descriptors */
    struct list open;
    size_t count;
};

void tunnels_init(struct tunnels *all);
fallible tunnels_start(struct tunnels *all, struct loop *loop, int listen_fd); /* borrowed */
void tunnels_stop(struct tunnels *all); /* cuts them all; before the loop is freed */

/* A whole request head: the port it asks for; *ret_any: by name, so either kind of loopback. */
fallible tunnel_parse(struct str head, uint16_t *ret_port, bool *ret_any);
