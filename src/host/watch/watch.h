// SPDX-License-Identifier: Apache-2.0
/* watch.h — metrics and the journal of a server, and the audit of requests by key. The part
 * "watch". */
#pragma once

struct host;
struct journal;
struct keys;
struct metrics;
struct proxy;

struct watch {
    struct metrics *metrics;
    struct journal *journal;
    struct keys *keys;
    struct proxy *proxy;
};

struct watch *watch_of(const struct host *h);
