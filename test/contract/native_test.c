// SPDX-License-Identifier: Apache-2.0
/* The contract, kept by `native`, as root. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/launcher/launcher.h"
#include "test/contract/contract.h"
#include "test/program.h"

static pid_t launcher;

/* The layers of the host's system are made once for all rows: each row's state directory has the
 * same ones mounted, in a namespace of the test's own. */
static void share_layers(struct contract *c)
{
    char cache[600], here[300];

    snprintf(cache, sizeof cache, "%s", test_program("test-state"));
    snprintf(here, sizeof here, "%s/rootfs", c->state_dir);
    CHECK(mkdir(cache, 0700) == 0 || errno == EEXIST);
    CHECK(mkdir(here, 0700) == 0);
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mount(cache, here, NULL, MS_BIND, NULL) == 0);
}

static void fork_launcher(struct contract *c)
{
    static const char *const images[] = {NULL}; /* the machine's own system */
    static const char *roots[2];

    if (geteuid() != 0)
        SKIP("needs root");
    share_layers(c);
    int fd = open(test_dir(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct launcher_policy policy = {
        .state = c->state_dir,
        .roots = {{test_dir(), fd, 1u << NATIVE_RO | 1u << NATIVE_RW | 1u << NATIVE_OVERLAY}},
        .root_count = 1,
        .images = images,
        .image_count = 1,
        .ceiling = {.memory_bytes = 1u << 30, .pids = 500, .cpu_milli = 2000, .nofile = 4096},
        .most = 8,
        .embryos = 2};

    CHECK(fd >= 0);
    roots[0] = test_dir();
    CHECK_OK(launcher_fork(&policy, &c->host.launcher, &launcher));
    close(fd);
    c->host.roots = roots;
    c->host.native_caps = ~0u;
}

static void end_launcher(struct contract *c)
{
    close(c->host.launcher);
    CHECK_INT(program_wait(launcher), 0);
}

static const struct contract_backend native = {
    .name = "native", .prepare = fork_launcher, .finish = end_launcher};

#define CONTRACT_TEST_native(row, caps) CONTRACT_TEST(native, row, caps)
CONTRACT_TESTS(native, &native)
