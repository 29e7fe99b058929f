// SPDX-License-Identifier: Apache-2.0
/* stream.h — bytes in, bytes out, over any socket, plain or through a filter such as TLS.
 *
 * An idle stream owns no buffer: reads land in a page shared by all streams of a net, and only what
 * its owner did not take is kept. Output is queued and goes out in one call at the end of the turn.
 * Every stream has an idle deadline. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"

struct stream;

/* Shared by all streams of a loop. */
struct net;
fallible net_new(struct loop *loop, struct net **ret_net);
/* Closes what is still there, also what is only being sent; before the loop. */
void net_free(struct net *net);
OWNABLE(net)
struct loop *net_loop(const struct net *net);

#define STREAM_READ_SIZE (256u << 10) /* large: a system call per piece, and less to switch */
/* A producer stops above HIGH and is called back (on_drain) below LOW. */
#define STREAM_HIGH (256u << 10)
#define STREAM_LOW  (64u << 10)

struct stream_events {
    /* data is all that is not yet consumed; gives how much of it was taken (0 … data.len). Called
     * again only when more arrives or after stream_resume. */
    size_t (*on_data)(struct stream *s, struct str data);
    void (*on_drain)(struct stream *s); /* output fell below STREAM_LOW; may be NULL */
    /* The peer sent its last byte; on_data has seen all. NULL: the stream fails. Closing nothing:
     * stays open for writing until closed, and is told again after each stream_resume. */
    void (*on_eof)(struct stream *s);
    /* The peer closed its half while we were paused; unread input may remain. May be NULL. */
    void (*on_hangup)(struct stream *s);
    /* The stream failed (why) or its deadline passed (ERR_TIMEOUT). Call stream_close here. why is
     * the callee's to free. */
    void (*on_error)(struct stream *s, struct err *why);
    /* After stream_close_when_sent: all is out, or given up; the stream is freed now. May be NULL.
     */
    void (*on_closed)(struct stream *s);
};

/* A byte filter between stream and socket: TLS. Results as read(2)/write(2); with errno EAGAIN
 * *ret_want says which readiness it waits for. write may take less than n, never nothing, and sees
 * the same bytes first when it is called again. Only read may take input that is not its own: after
 * it gave bytes it is asked again until EAGAIN. */
struct stream_filter {
    ssize_t (*read)(void *state, int fd, void *p, size_t n, uint32_t *ret_want);
    ssize_t (*write)(void *state, int fd, const void *p, size_t n, uint32_t *ret_want);
    /* Tells the peer that no more comes; 0: told, or no use; -1 with EAGAIN: again when ready. */
    int (*shutdown)(void *state, int fd, uint32_t *ret_want);
    /* The story behind a call that failed with errno EPROTO; NULL: errno is all there is. */
    fallible (*why)(void *state);
    void (*free)(void *state);
};

/* Takes fd over (also on failure); it is made non-blocking. The stream frees itself after the turn
 * in which it was closed; no callback comes after stream_close. */
fallible stream_new(struct net *net, int fd, const struct stream_events *events, void *owner,
                    struct stream **ret_stream);
/* Closes at once; queued output is dropped. May be called from any callback. NULL is fine. */
void stream_close(struct stream *s);
/* Closes once queued output is out, or when its deadline passes; no callback but on_closed comes
 * any more. */
void stream_close_when_sent(struct stream *s);

/* Says to the peer, once queued output is out, that no more comes; reading goes on. */
void stream_shutdown(struct stream *s);

void *stream_owner(const struct stream *s);
struct net *stream_net(const struct stream *s);
int stream_fd(const struct stream *s); /* borrowed: for addresses and credentials */
/* Hands the stream, queue and unread input included, to another owner: an upgrade. Input that is
 * there already is delivered after the turn. */
void stream_set_events(struct stream *s, const struct stream_events *events, void *owner);
/* Before any byte was read or written; state is taken over. */
void stream_set_filter(struct stream *s, const struct stream_filter *filter, void *state);

void stream_write(struct stream *s, struct str data);
/* The same for what is passed on: of a large piece as much as the socket takes leaves at once, from
 * where it is. Look at stream_pending after it: on_drain comes only if that was over STREAM_HIGH.
 */
void stream_pass(struct stream *s, struct str data);
/* Room for n bytes directly in the queue; NULL when over the limit. Then stream_commit. */
char *stream_reserve(struct stream *s, size_t n);
void stream_commit(struct stream *s, size_t n);
/* Sends queued output now and not after the turn: the peer waits, and the owner has more to do. */
void stream_push(struct stream *s);
size_t stream_pending(const struct stream *s);
bool stream_failed(const struct stream *s); /* writes go nowhere; on_error is about to come */
/* More output than this makes the stream fail (default 16 MB). An owner that can wait watches
 * STREAM_HIGH. */
void stream_set_out_limit(struct stream *s, size_t limit_bytes);

void stream_pause(struct stream *s);  /* no more on_data */
void stream_resume(struct stream *s); /* and again, also for what is already there */
/* Fails with ERR_TIMEOUT after so long without a byte in either direction; 0: never. */
void stream_set_idle(struct stream *s, uint32_t idle_ms);
