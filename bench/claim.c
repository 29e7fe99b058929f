// SPDX-License-Identifier: Apache-2.0
/* bench/claim.c — a warm sandbox from claim to the output of its first command, each time a new
 * one.
 *
 * Hand-off is the launcher's part: the answer to the claim. The first command is sent then, over
 * HTTP on a new connection, which waits until the server listens. Beside it, in turns: a bare
 * interactive bash on a pty with the same start-up files, from fork to the output of a command
 * typed at once. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "bench/kit/kit.h"
#include "host/launcher/launcher.h"
#include "host/tree/tree.h"
#include "net/stream.h"
#include "out/dial.h"
#include "sandbox/client/client.h"
#include "sandbox/sandbox.h"

#define RUNS     100
#define HAND_OFF 0.1 /* ms */
#define MORE     1.0 /* ms over a bare bash */

extern char **environ;

struct bench {
    char dir[64], state[80];
    struct loop *loop;
    struct net *net;
    struct dialer dialer;
    struct sbx_launcher lent;
    struct sbx_host host;
    struct sbx_driver *driver;
    pid_t launcher;
    bool done;
    uint64_t began;
    struct kit_series hand_off, listens, first, bare;
};

static void turn_until(struct bench *b)
{
    while (!b->done)
        kit_must(loop_turn(b->loop, -1));
    b->done = false;
}

static void on_done(void *arg, struct sbx *s, const struct err *e)
{
    (void)s;
    if (e)
        kit_must(err_copy(e));
    ((struct bench *)arg)->done = true;
}

static void on_listens(void *arg, struct sbx *s)
{
    struct bench *b = arg;

    (void)s;
    kit_add(&b->listens, kit_ms_since(b->began));
}

static void on_result(void *arg, const struct action_result *r)
{
    kit_check(!r->failure && str_eq(r->observation->content, STR("first")), "the first command");
    ((struct bench *)arg)->done = true;
}

static void bench_open(struct bench *b)
{
    static const char *const images[] = {NULL};
    struct launcher_policy policy = {.state = b->state,
                                     .images = images,
                                     .image_count = 1,
                                     .most = 64,
                                     .spares = 2,
                                     .otherwise = {.memory_bytes = 1u << 30, .pids = 1000}};

    strcpy(b->dir, "/var/tmp/bench-claim-XXXXXX");
    kit_check(mkdtemp(b->dir) != NULL, "mkdtemp");
    snprintf(b->state, sizeof b->state, "%s/state", b->dir);
    b->host = (struct sbx_host){.state_dir = b->state,
                                .remove_tree = tree_remove,
                                .launcher = &b->lent,
                                .envp = (const char *const *)environ};
    b->lent.caps = ~0u;
    kit_must(launcher_fork(&policy, &b->lent.sock, &b->launcher));
    kit_must(loop_new(&clock_system, &b->loop));
    kit_must(net_new(b->loop, &b->net));
    b->host.loop = b->loop;
    b->dialer.net = b->net;
    b->host.dialer = &b->dialer;
    kit_must(sbx_driver_open(sbx_backend_find(STR("native")), &b->host, &b->driver));
}

static void bench_close(struct bench *b)
{
    sbx_driver_close(b->driver);
    net_free(b->net);
    loop_free(b->loop);
    close(b->lent.sock);
    waitpid(b->launcher, NULL, 0);
    kit_must(tree_remove(AT_FDCWD, b->dir));
}

static void claim_once(struct bench *b)
{
    static const char *const env[] = {"BOUND=1", NULL};
    struct action_client *client;
    struct sbx_info info;
    struct sbx *s;

    kit_must(sbx_create(b->driver, &(struct sbx_spec){.warm = true}, &s));
    kit_must(sbx_start(s, on_done, b));
    turn_until(b);
    const struct sbx_spec spec = {
        .env = env, .session_key = "key", .on_listens = on_listens, .arg = b};
    b->began = clock_mono_ns(&clock_system);
    kit_must(sbx_claim(s, &spec, on_done, b));
    turn_until(b);
    if (!s->binding)
        on_listens(b, s);
    sbx_inspect(s, &info);
    kit_add(&b->hand_off, (double)info.phase_ns[SBX_PHASE_EXEC] / 1e6);
    kit_must(action_client_new(
        &(struct action_client_config){.dialer = &b->dialer,
                                       .url = str_of(info.address.url),
                                       .unix_path = str_of(info.address.unix_path),
                                       .session_key = STR("key")},
        &client));
    kit_must(action_run(client, STR("echo first"), on_result, b));
    turn_until(b);
    kit_add(&b->first, kit_ms_since(b->began));
    action_client_free(client);
    kit_must(sbx_stop(s, on_done, b));
    turn_until(b);
    kit_must(sbx_remove(s, on_done, b));
    turn_until(b);
}

static void bare_once(struct bench *b)
{
    static const char *const bash[] = {"/bin/bash", "--noediting", "-i", "+H", NULL};
    pid_t pid;
    uint64_t began = clock_mono_ns(&clock_system);
    int master = kit_pty(bash, &pid);

    kit_type(master, "echo first");
    kit_add(&b->bare, kit_ms_since(began));
    kit_end(pid);
    close(master);
}

int main(void)
{
    static struct bench b;

    if (geteuid() != 0) {
        printf("bench/claim: needs root\n");
        return 0;
    }
    bench_open(&b);
    setenv("HOME", "/etc/skel", 1); /* what the sandbox's root has */
    for (unsigned i = 0; i < RUNS + 5; i++) {
        claim_once(&b);
        bare_once(&b);
        if (i == 4) /* everything is in memory now */
            b.hand_off.count = b.listens.count = b.first.count = b.bare.count = 0;
    }
    double hand_off = kit_print("claim: hand-off", &b.hand_off);
    kit_print("claim: until the server listens", &b.listens);
    double first = kit_print("claim: until the first command's output", &b.first);
    double bare = kit_print("a bare interactive bash, until its output", &b.bare);
    kit_at_most("hand-off", hand_off, HAND_OFF, "ms");
    kit_at_most("first output", first, bare + MORE, "ms");
    bench_close(&b);
    printf("bench/claim: hand-off %.3f ms, first output %.2f ms, bare bash %.2f ms\n", hand_off,
           first, bare);
    return 0;
}
