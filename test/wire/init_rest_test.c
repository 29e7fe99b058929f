// SPDX-License-Identifier: Apache-2.0
/* init_rest_test.c — pid 1 while its server rests, or goes to. */
#include <errno.h>
#include <poll.h>

#include "test/init_kit.h"

#define OURS 200 /* descriptors from there on are of the program that runs tests */

static void await_rest(const struct kit *k)
{
    uint64_t end = clock_mono_ns(&clock_system) + KIT_HANG_NS;

    while (kit_find_child(k->pid, KIT_SERVER)) {
        CHECK(clock_mono_ns(&clock_system) < end);
        poll(NULL, 0, 1);
    }
}

/* Asking whether it lives is no use of it. */
TEST(init_lets_a_server_rest_that_nobody_used_and_starts_it_for_the_next_who_comes)
{
    struct kit k = {.unused = true};

    kit_open_with(&k, ARGS());
    CHECK_HAS(kit_get(&k, "/alive"), "{\"status\":\"ok\"}");
    await_rest(&k);
    CHECK_STR(kit_run(&k, "echo one; cd /usr; here=1"), "one");
    kit_kill_server(&k); /* a death after that is one like any other */
    CHECK_STR(kit_run(&k, "echo $PWD $here"), "/usr 1");
    CHECK_HAS(kit_log(&k), "\"status\":137,\"deaths\":1");
    kit_close(&k);
}

TEST(init_has_a_server_that_opens_its_viewer_for_who_has_the_key)
{
    struct kit k = {.unused = true};
    char path[300];

    kit_open_with(&k, ARGS());
    snprintf(path, sizeof path, "%s/view", k.dir);
    CHECK_HAS(kit_get(&k, "/alive"), "{\"status\":\"ok\"}");
    CHECK_INT(access(path, F_OK), -1);
    CHECK_HAS(kit_get(&k, "/croft/v1/shells"), " 200 ");
    CHECK_INT(access(path, F_OK), 0);
    kit_close(&k);
}

static unsigned count_links(const struct kit *k, const char *prefix)
{
    char dir[64], path[64 + 256], to[64];
    unsigned count = 0;

    snprintf(dir, sizeof dir, "/proc/%d/fd", (int)k->pid);
    DIR *d = opendir(dir);
    if (!d && errno == EACCES)
        SKIP("only root may look at what pid 1 holds");
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        ssize_t n = readlink(path, to, sizeof to - 1);
        to[n < 0 ? 0 : n] = '\0';
        count += atoi(e->d_name) < OURS && strncmp(to, prefix, strlen(prefix)) == 0;
    }
    closedir(d);
    return count;
}

/* Each costs the kernel some kilobytes: what it was given to listen at, and who controls it. */
TEST(init_holds_no_socket_and_no_pipe_for_a_server_that_rests)
{
    struct kit k = {.unused = true};
    uint64_t end = clock_mono_ns(&clock_system) + KIT_HANG_NS;

    kit_open_with(&k, ARGS());
    await_rest(&k);
    while (count_links(&k, "socket:") != 3 || count_links(&k, "pipe:") != 0) {
        CHECK(clock_mono_ns(&clock_system) < end); /* it has heard of the end soon */
        poll(NULL, 0, 1);
    }
    CHECK_STR(kit_run(&k, "echo one"), "one");
    kit_close(&k);
}

TEST(init_ends_while_its_server_rests)
{
    struct kit k = {.unused = true};

    kit_open_with(&k, ARGS());
    await_rest(&k);
    kit_close(&k);
}

/* Its time may be over before we come: then whoever asks next starts another. */
static pid_t stop_server(struct kit *k)
{
    uint64_t end = clock_mono_ns(&clock_system) + KIT_HANG_NS;

    while (clock_mono_ns(&clock_system) < end) {
        pid_t server = kit_find_child(k->pid, KIT_SERVER);
        if (server && kill(server, SIGSTOP) == 0)
            return server;
        CHECK_HAS(kit_get(k, "/alive"), "{\"status\":\"ok\"}");
    }
    FAIL("no server stands still");
}

/* It stands still when its time comes, and finds the client and the end of its time together. */
TEST(init_loses_no_client_that_comes_when_its_server_goes_to_rest)
{
    struct kit k = {.unused = true};
    own_done(buf) got;

    kit_open_with(&k, ARGS());
    pid_t server = stop_server(&k);
    own_fd client = wire_connect(&k.wire);
    wire_send(client, STR("GET /alive HTTP/1.0\r\nHost: x\r\n\r\n"));
    poll(NULL, 0, 1100);
    kill(server, SIGCONT); /* it may have been on its way out when it was stopped */
    buf_init(&got, 1u << 20);
    wire_read_to_end(client, &got);
    CHECK_HAS(buf_str(&got), "{\"status\":\"ok\"}");
    kit_close(&k);
}
