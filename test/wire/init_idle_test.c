// SPDX-License-Identifier: Apache-2.0
/* init_idle_test.c — pid 1 without a server: before the first client, and when none comes. */
#include <errno.h>
#include <poll.h>

#include "test/init_kit.h"

#define OURS 200 /* descriptors from there on are of the program that runs tests */

/* Hang guard only. */
static void await_end_of(const struct kit *k, const char *word)
{
    uint64_t end = clock_mono_ns(&clock_system) + KIT_HANG_NS;

    while (kit_find_child(kit_init(k), word)) {
        CHECK(clock_mono_ns(&clock_system) < end);
        poll(NULL, 0, 1);
    }
}

static void await_end(const struct kit *k)
{
    await_end_of(k, KIT_SERVER);
}

TEST(init_is_alone_until_the_first_client_and_again_when_nobody_uses_its_server)
{
    struct kit k = {.unused = true};

    kit_open_with(&k, ARGS());
    CHECK_INT(kit_find_child(k.pid, ""), 0);
    CHECK_HAS(kit_get(&k, "/alive"), "{\"status\":\"ok\"}");
    kit_observe(&k, "\"command\":\"true\",\"is_static\":true,\"blocking\":true");
    CHECK(kit_server(&k) > 0);
    CHECK(kit_find_child(k.pid, "forker") > 0);
    await_end(&k);
    await_end_of(&k, "forker");
    CHECK_INT(kit_find_child(k.pid, ""), 0);
    CHECK_STR(kit_run(&k, "echo one; cd /usr; here=1"), "one");
    kit_kill_server(&k); /* a death after that is one like any other */
    CHECK_STR(kit_run(&k, "echo $PWD $here"), "/usr 1");
    CHECK_HAS(kit_log(&k), "\"status\":137,\"deaths\":1");
    kit_close(&k);
}

static struct str idle_edit(struct kit *k, const char *command, const char *more)
{
    char text[1000];

    snprintf(text, sizeof text,
             "{\"action\":{\"action\":\"edit\",\"args\":{\"command\":\"%s\",\"path\":\"%s/f\"%s}}}",
             command, k->dir, more);
    return kit_post(k, "/execute_action", text);
}

static double uptime_of(struct kit *k)
{
    struct str info = kit_get(k, "/server_info");
    ptrdiff_t at = str_find(info, STR("\"uptime\":"));

    CHECK(at > 0);
    return strtod(info.p + at + 9, NULL);
}

static void read_view(const struct kit *k, char *text, size_t size)
{
    char path[300];

    snprintf(path, sizeof path, "%s/view", k->dir);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    CHECK(n > 0);
    text[n] = '\0';
}

TEST(init_keeps_undo_clock_and_viewer_of_a_server_that_nobody_used)
{
    struct kit k = {.unused = true};
    char before[200], after[200], file[300];

    kit_open_with(&k, ARGS());
    idle_edit(&k, "create", ",\"file_text\":\"old\\n\"");
    idle_edit(&k, "str_replace", ",\"old_str\":\"old\",\"new_str\":\"new\"");
    read_view(&k, before, sizeof before);
    double uptime = uptime_of(&k);
    await_end(&k);
    read_view(&k, after, sizeof after);
    CHECK_STR(str_of(after), before);
    CHECK(uptime_of(&k) > uptime + 1);
    CHECK_HAS(idle_edit(&k, "undo_edit", ""), "undone");
    read_view(&k, after, sizeof after);
    CHECK_STR(str_of(after), before);
    snprintf(file, sizeof file, "%s/f", k.dir);
    CHECK_INT(access(file, F_OK), 0);
    kit_close(&k);
}

/* The address of the page was told before: it is good while there is no server, too. */
TEST(init_makes_a_server_for_who_opens_the_file_viewer)
{
    struct kit k = {.unused = true};
    struct wire page;
    char url[200], address[200];
    own_done(buf) got;

    kit_open_with(&k, ARGS());
    CHECK_HAS(kit_get(&k, "/alive"), "{\"status\":\"ok\"}");
    read_view(&k, url, sizeof url);
    await_end(&k);
    const char *port = strrchr(url, ':');
    CHECK(port);
    snprintf(address, sizeof address, "127.0.0.1%.10s", port);
    address[strcspn(address, "/\n")] = '\0';
    wire_at(&page, address);
    buf_init(&got, 1u << 20);
    wire_exchange(&page, STR("GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"), &got);
    CHECK_HAS(buf_str(&got), "HTTP/1.");
    kit_close(&k);
}

static void open_used(struct kit *k, const char *sub)
{
    *k = (struct kit){.unused = true, .sub = sub};
    kit_open_with(k, ARGS());
}

static void use_stream(struct kit *k, int *ret_fd)
{
    *ret_fd = wire_connect(&k->wire);
    wire_send(*ret_fd, STR("GET /mcp/sse HTTP/1.1\r\nHost: x\r\n"
                           "X-Session-API-Key: hunter2\r\n\r\n"));
}

static void use_background(struct kit *k)
{
    kit_observe(k, "\"command\":\"setsid sh -c 'touch up; sleep 1000' > /dev/null 2>&1 & "
                   "until [ -e up ]; do sleep 0.01; done\",\"is_static\":true,\"blocking\":true");
}

/* The client leaves before the end of its command. */
static void use_answer(struct kit *k)
{
    static const char body[] = "{\"action\":{\"action\":\"run\",\"args\":{\"command\":"
                               "\"touch began; until [ -e go ]; do sleep 0.01; done\","
                               "\"is_static\":true,\"blocking\":true}}}";
    uint64_t end = clock_mono_ns(&clock_system) + KIT_HANG_NS;
    char request[500], began[300], go[300];
    own_fd client = wire_connect(&k->wire);

    snprintf(request, sizeof request,
             "POST /execute_action HTTP/1.1\r\nHost: x\r\nX-Session-API-Key: hunter2\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             sizeof body - 1, body);
    snprintf(began, sizeof began, "%s/began", k->dir);
    snprintf(go, sizeof go, "%s/go", k->dir);
    wire_send(client, str_of(request));
    while (access(began, F_OK) < 0 && clock_mono_ns(&clock_system) < end)
        poll(NULL, 0, 1);
    own_close(take_fd(&client));
    own_close(open(go, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static void use_python(struct kit *k)
{
    CHECK_HAS(kit_post(k, "/execute_action",
                       "{\"action\":{\"action\":\"run_ipython\",\"args\":{\"code\":\"6*7\"}}}"),
              "42");
}

/* One that is not used tells that as much time has passed. */
TEST(init_lets_no_server_end_that_has_something_to_lose)
{
    enum { SHELL, STREAM, BACKGROUND, ANSWER, PYTHON, USED };
    static const char *const subs[USED] = {"a", "b", "c", "d", "e"};
    struct kit used[USED], unused;
    pid_t server[USED];
    int stream;

    for (int i = 0; i < USED; i++)
        open_used(&used[i], subs[i]);
    kit_run(&used[SHELL], "true");
    use_stream(&used[STREAM], &stream);
    use_background(&used[BACKGROUND]);
    use_answer(&used[ANSWER]);
    use_python(&used[PYTHON]);
    for (int i = 0; i < USED; i++)
        server[i] = kit_server(&used[i]);
    open_used(&unused, "unused");
    CHECK_HAS(kit_get(&unused, "/alive"), "{\"status\":\"ok\"}");
    await_end(&unused);
    for (int i = 0; i < USED; i++)
        if (kit_find_child(used[i].pid, KIT_SERVER) != server[i])
            FAIL("server %s has ended", subs[i]);
    for (int i = 0; i < USED; i++)
        kit_close(&used[i]);
    kit_close(&unused);
    close(stream);
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
TEST(init_holds_no_socket_and_no_pipe_for_a_server_that_is_not_there)
{
    struct kit k = {.unused = true};
    uint64_t end = clock_mono_ns(&clock_system) + KIT_HANG_NS;

    kit_open_with(&k, ARGS());
    while (count_links(&k, "socket:") != 3 || count_links(&k, "pipe:") != 0) {
        CHECK(clock_mono_ns(&clock_system) < end); /* it has heard of the end soon */
        poll(NULL, 0, 1);
    }
    CHECK_STR(kit_run(&k, "echo one"), "one");
    kit_close(&k);
}

TEST(init_ends_while_it_has_no_server)
{
    struct kit k = {.unused = true};

    kit_open_with(&k, ARGS());
    CHECK_HAS(kit_get(&k, "/alive"), "{\"status\":\"ok\"}");
    await_end(&k);
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
TEST(init_loses_no_client_that_comes_when_its_server_ends)
{
    struct kit k = {.unused = true};
    own_done(buf) got;

    kit_open_with(&k, ARGS());
    pid_t server = stop_server(&k);
    own_fd client = wire_connect(&k.wire);
    wire_send(client, STR("GET /alive HTTP/1.0\r\nHost: x\r\n\r\n"));
    poll(NULL, 0, 4100);
    kill(server, SIGCONT); /* it may have been on its way out when it was stopped */
    buf_init(&got, 1u << 20);
    wire_read_to_end(client, &got);
    CHECK_HAS(buf_str(&got), "{\"status\":\"ok\"}");
    kit_close(&k);
}
