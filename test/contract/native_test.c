// SPDX-License-Identifier: Apache-2.0
/* The contract, kept by `native`, as root. */
#include <fcntl.h>
#include <unistd.h>

#include "host/launcher/launcher.h"
#include "test/contract/contract.h"
#include "test/native/kit.h"
#include "test/program.h"

static pid_t launcher;

void contract_native_fork(struct contract *c)
{
    static const char *const images[] = {NULL}; /* the machine's own system */
    static const char *roots[2];
    int fd = open(test_dir(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct launcher_policy policy = {
        .state = c->state_dir,
        .roots = {{test_dir(), fd, 1u << NATIVE_RO | 1u << NATIVE_RW | 1u << NATIVE_OVERLAY}},
        .root_count = 1,
        .images = images,
        .image_count = 1,
        .most = 8,
        .nested = true,
        .spares = 2};

    if (geteuid() == 0)
        policy.ceiling = (struct native_limits){
            .memory_bytes = 1u << 30, .pids = 500, .cpu_milli = 2000, .nofile = 4096};
    CHECK(fd >= 0);
    roots[0] = test_dir();
    CHECK_OK(launcher_fork(&policy, &c->launcher.sock, &launcher));
    close(fd);
    c->launcher.roots = roots;
    c->launcher.caps = ~0u;
    c->host.launcher = &c->launcher;
}

void contract_native_end(struct contract *c)
{
    close(c->launcher.sock);
    CHECK_INT(program_wait(launcher), 0);
}

static void as_root(struct contract *c)
{
    if (geteuid() != 0)
        SKIP("needs root");
    kit_share_layers(c->state_dir);
    contract_native_fork(c);
}

const struct contract_backend contract_native = {
    .name = "native", .prepare = as_root, .finish = contract_native_end};

#define CONTRACT_TEST_native(row, caps) CONTRACT_TEST(native, row, caps)
CONTRACT_TESTS(native, &contract_native)
