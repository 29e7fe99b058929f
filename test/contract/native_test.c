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

#define MONITORED_KILLS 10

/* Whoever looks at a dying process holds its memory. Others that want some then, as the loops here,
 * make the kernel kill the next one. */
static void kill_while_monitored(struct contract *c)
{
    const char *const env[] = {"RUNTIME_MEMORY_MONITOR=true", NULL};
    struct sbx_spec spec = {.limits.memory_bytes = 512u << 20, .env = env};
    struct sbx *s = contract_started(c, &spec);
    struct wire_action cell;

    wire_action_init(&cell, WIRE_ACT_RUN_IPYTHON);
    cell.run_ipython.code = STR("import os; print('kernel', os.getpid())");
    struct answer kernel = contract_action(c, s, &cell);
    CHECK_HAS(str_of(kernel.text), "kernel ");
    struct answer shell = contract_command(c, s, NULL, "echo $$");
    for (unsigned i = 0; i < MONITORED_KILLS; i++) {
        struct answer a =
            contract_command(c, s, NULL,
                             "for i in 1 2 3; do while :; do ( : ); done & done; head -c 700000000 "
                             "/dev/zero | tail -c 699999999 | wc -c; kill %1 %2 %3; wait");
        CHECK_HAS(str_of(a.suffix), "a process was killed");
        CHECK_STR(contract_command(c, s, NULL, "echo $$").text, shell.text);
        CHECK_STR(contract_action(c, s, &cell).text, kernel.text);
    }
    contract_end(c, s);
}

TEST_LIMIT(a_monitored_sandbox_at_its_limit_kills_the_command_and_neither_shell_nor_kernel, 240)
{
    contract_run(&contract_native, SBX_LIMITS_MEMORY, kill_while_monitored);
}
