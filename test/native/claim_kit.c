// SPDX-License-Identifier: Apache-2.0
/* claim_kit.c — see claim_kit.h. */
#include "test/native/claim_kit.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/test.h"
#include "wire/bind.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

struct native_request claim_ask(enum native_op op, const char *id, unsigned flags)
{
    struct native_request req = rig_request(op, id);

    req.argc = 0;
    req.flags = flags;
    return req;
}

pid_t claim_warm(struct rig *r, const char *id, unsigned flags)
{
    struct native_request req = claim_ask(NATIVE_START, id, NATIVE_WARM | flags);
    struct native_reply reply;
    int fds[2];
    char byte = 0;

    own_close_p(&r->ready);
    rig_ask(r, &req, NULL, 0, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    CHECK_INT(fds[1], -1);
    r->ready = fds[0];
    CHECK_OK(fd_wait(r->ready, POLLIN, CLAIM_WAIT_MS));
    CHECK_INT(read(r->ready, &byte, 1), 1);
    CHECK_INT(byte, 'w');
    return reply.pid;
}

int claim_block(void)
{
    static const char strings[] =
        "\0\0action-server\0--working-dir\0/workspace\0PATH=/usr/bin:/bin\0HOME=/tmp";
    const struct bind_head head = {BIND_MAGIC, 0, 3, 2};
    int fd = memfd_create("bind", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    CHECK_OK(fd_write_all(fd, str_n(&head, sizeof head)));
    CHECK_OK(fd_write_all(fd, str_n(strings, sizeof strings)));
    CHECK_INT(fcntl(fd, F_ADD_SEALS, SEALS), 0);
    return fd;
}

static void wait_listening(struct rig *r)
{
    char byte = 0;

    CHECK_OK(fd_wait(r->ready, POLLIN, CLAIM_WAIT_MS));
    CHECK_INT(read(r->ready, &byte, 1), 1);
    CHECK_INT(byte, '1');
}

void claim_bind(struct rig *r, const char *id)
{
    struct native_request req = claim_ask(NATIVE_CLAIM, id, 0);
    struct native_reply reply;
    own_fd block = claim_block();
    int fds[2];

    rig_ask(r, &req, &block, 1, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    CHECK_INT(reply.state, NATIVE_RUNNING);
    wait_listening(r);
}

void claim_now(struct rig *r, const char *id)
{
    claim_bind(r, id);
    rig_check_answers(r, id);
}
