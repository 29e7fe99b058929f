// SPDX-License-Identifier: Apache-2.0
/* box_net.c — the network namespace of a sandbox that never used it serves the next one.
 *
 * It belongs to the host, so nobody inside can configure it, and has no interface but lo. What its
 * users can leave in it are counters, connections on their way out and labels of flows. A packet is
 * counted by lo, a failed attempt in snmp, a socket in sockstat: where all of these read as in a
 * new one, nobody has used it. The next spare looks, from inside, and makes its own otherwise. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "host/launcher/box_inner.h"

#define TEXT_MAX 16384

static uint64_t net_mix(uint64_t sum, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, text + i, n - i < sizeof word ? n - i : sizeof word);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 32;
    }
    return sum;
}

/* Of some the first lines are this namespace's, the rest the machine's; lines 0: all are. */
static const struct {
    const char *name;
    unsigned lines;
} marks[] = {{"dev", 0}, {"snmp", 0}, {"snmp6", 0}, {"sockstat", 1}, {"ip6_flowlabel", 0}};

/* False: not to be known. What this kernel does not have has the same sum in every namespace. */
static bool add_file(int dir, const char *name, unsigned lines, uint64_t *sum)
{
    char text[TEXT_MAX];
    own_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    size_t n = 0;

    if (fd < 0)
        return errno == ENOENT;
    for (ssize_t got = 1; got > 0; n += (size_t)got)
        if (n == sizeof text || (got = read(fd, text + n, sizeof text - n)) < 0)
            return false;
    for (size_t i = 0; lines && i < n; i++)
        if (text[i] == '\n' && !--lines)
            n = i;
    *sum = net_mix(*sum, text, n);
    return true;
}

/* 0: not to be known. */
static uint64_t net_look(void)
{
    uint64_t sum = 0xcbf29ce484222325u;
    own_fd dir = open("/proc/net", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (!add_file(dir, marks[i].name, marks[i].lines, &sum))
            return 0;
    return sum;
}

void box_net_note_new(const struct box_host *h)
{
    if (h->net_new && !__atomic_load_n(h->net_new, __ATOMIC_RELAXED))
        __atomic_store_n(h->net_new, net_look(), __ATOMIC_RELAXED);
}

bool box_net_is_new(const struct box_host *h)
{
    uint64_t want = h->net_new ? __atomic_load_n(h->net_new, __ATOMIC_RELAXED) : 0;

    return want && net_look() == want;
}

void box_net_hold(const struct box_host *h, struct box *b)
{
    char path[40];
    struct ids_owner o;

    if (!h->many || b->net >= 0)
        return;
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)b->pid);
    struct err *e = ids_own(&o, box_ids(h, b->slot).uid);
    if (!e) {
        b->net = open(path, O_RDONLY | O_CLOEXEC); /* not there: it goes by itself */
        ids_disown(&o);
    }
    err_free(e);
}

void box_net_drop(struct box_host *h, int *net)
{
    if (*net < 0)
        return;
    if (!h->many) {
        own_close(take_fd(net));
        return;
    }
    if (h->net_count == ARRAY_LEN(h->nets))
        box_net_let_go(h);
    h->nets[h->net_count++] = take_fd(net);
}

void box_net_let_go(struct box_host *h)
{
    while (h->net_count)
        own_close(h->nets[--h->net_count]);
}
