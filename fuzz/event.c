// SPDX-License-Identifier: Apache-2.0
/* event.c — verify, open, read and append on a log of arbitrary bytes.
 *
 * The first byte chooses options and how much of the input is the index. With bit 0 set, header and
 * hashes are made right first, so that the walk gets past them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "event/format.h"
#include "event/log.h"
#include "event/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    struct loop *loop;
    int dir;
    char path[40];
} fuzz = {.path = "/dev/shm/croft-fuzz-event-XXXXXX"}; /* memory: no disk is tested here */

static void remove_dir(void)
{
    unlinkat(fuzz.dir, "log", 0);
    unlinkat(fuzz.dir, "log.idx", 0);
    rmdir(fuzz.path);
}

static void make_dir(void)
{
    log_setup(2, LOG_OFF, LOG_TEXT);
    if (!mkdtemp(fuzz.path) || loop_new(&clock_system, &fuzz.loop))
        abort();
    fuzz.dir = open(fuzz.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fuzz.dir < 0 || atexit(remove_dir))
        abort();
}

static int put(const char *name, const uint8_t *p, size_t n)
{
    int fd = openat(fuzz.dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, p, n) != (ssize_t)n)
        abort();
    return fd;
}

/* Keeps lengths and everything else as they are, corrects header, marker, ids and hashes. */
static void make_plausible(uint8_t *p, size_t n)
{
    struct event_header h = {.created_ns = 1, .marker = 0x1122334455667788};
    const uint8_t *prev = p + 32;
    uint64_t seq = 1;

    if (n < EVENT_HEADER_LEN)
        return;
    event_header_put(p, &h);
    for (size_t at = EVENT_HEADER_LEN; n - at > EVENT_RECORD_EXTRA; seq++) {
        uint8_t *r = p + at;
        size_t len = EVENT_RECORD_EXTRA + 1 + (r[8] | r[9] << 8);
        if (r[15] & 128 || len > n - at)
            return; /* a broken record, and whatever follows it */
        memcpy(r, &h.marker, 8);
        r[8] = (uint8_t)len;
        r[9] = (uint8_t)(len >> 8);
        r[10] = r[11] = 0;
        memcpy(r + 16, &seq, 8);
        memcpy(r + 40, prev, SHA256_LEN);
        sha256(str_n(r, len - SHA256_LEN), r + len - SHA256_LEN);
        prev = r + len - SHA256_LEN;
        at += len;
    }
}

static bool touch(const struct event_record *r, void *arg)
{
    *(uint64_t *)arg += r->seq + r->kind.len + (r->payload.len ? (uint8_t)r->payload.p[0] : 0);
    return true;
}

static void use(struct event_log *log)
{
    struct event_record r = {.kind = STR("k"), .payload = STR("p")};
    uint64_t sum = 0;

    for (int down = 0; down < 2; down++) {
        struct event_query q = {.descending = down};
        err_free(event_log_read(log, &q, touch, &sum, NULL));
    }
    err_free(event_log_append(log, &r, NULL));
    event_log_free(log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event_verdict v;
    struct event_log *log = NULL;

    if (!fuzz.loop)
        make_dir();
    if (size < 2)
        return 0;
    uint8_t flags = data[0];
    size_t index_len = (size_t)data[1] * 4 < size - 2 ? (size_t)data[1] * 4 : 0;
    size_t n = size - 2 - index_len;
    uint8_t *bytes = malloc(n + 1);
    memcpy(bytes, data + 2 + index_len, n);
    if (flags & 1)
        make_plausible(bytes, n);
    own_fd log_fd = put("log", bytes, n);
    own_fd index_fd = put("log.idx", data + 2, index_len);
    if (flags & 2 && n >= EVENT_HEADER_LEN && index_len >= EVENT_HEADER_LEN) {
        struct event_header h;
        uint8_t head[EVENT_HEADER_LEN];
        if (!event_header_get(bytes, &h)) {
            event_index_header_put(head, &h);
            err_free(event_pwrite(index_fd, head, sizeof head, 0));
        }
    }
    free(bytes);
    err_free(event_verify(log_fd, flags & 8 ? -1 : index_fd, &v));
    struct event_options o = {.inline_sync = true, .check_all = flags & 4};
    struct err *e = event_log_open(fuzz.loop, fuzz.dir, STR("log"), &o, &log);
    if (!e)
        use(log);
    err_free(e);
    for (int i = 0; i < 3; i++)
        err_free(loop_turn(fuzz.loop, 0));
    return 0;
}
