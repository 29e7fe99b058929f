// SPDX-License-Identifier: Apache-2.0
/* serve_reach_test.c — a sandbox behind one port: by name, by path, and while it is paused. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/own.h"
#include "test/program.h"
#include "test/serve_kit.h"

/* GET of the server's one port by this name, as a proxy in front of it would pass it on. */
static struct str by_host(struct serve *s, const char *host, const char *target)
{
    own_done(buf) got;
    const char *head =
        serve_text(s, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target, host);

    buf_init(&got, 1u << 20);
    wire_exchange(&s->wire, str_of(head), &got);
    return arena_copy(&s->arena, buf_str(&got));
}

TEST_LIMIT(serve_wakes_sandboxes_by_a_setting_that_is_read_anew, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "");
    struct json *r = serve_start(&s, "one", "");
    serve_tell(&s, "/pause", r);
    CHECK_INT(serve_visit(&s, r, "/alive"), 503);
    serve_reload(&s, "[server]\nresume_on_request = true\nregistry_prefix = 'a.example/b'\n");
    CHECK_INT(serve_visit(&s, r, "/alive"), 200);
    CHECK_HAS(serve_get(&s, "/registry_prefix").body, "\"a.example/b\"");
    serve_tell(&s, "/pause", r);
    serve_reload(&s, "");
    CHECK_INT(serve_visit(&s, r, "/alive"), 503);
    serve_close(&s);
}

/* A wake is a start like any other, and may be one too many. */
TEST_LIMIT(serve_wakes_for_the_next_request_what_it_could_not_wake_before, 120)
{
    struct serve s = {.key = NULL};
    int log[2];

    CHECK_INT(pipe2(log, O_CLOEXEC), 0);
    s.log = log[1];
    serve_prepare(&s);
    serve_run_with(&s, "[server]\nresume_on_request = true\n[tenant]\nstarts_per_minute = 1\n");
    struct json *r = serve_start(&s, "one", "");
    const char *id = serve_field(&s, r, "runtime_id");
    serve_want(&s, 200, "POST", serve_text(&s, "/croft/v1/sandboxes/%s/stop", id), NULL);
    pid_t waits = fork();
    if (waits == 0)
        _exit(serve_visit(&s, r, "/alive") == 200 ? 0 : 1);
    serve_read_until(log[0], "starts_per_minute");
    serve_reload(&s, "[server]\nresume_on_request = true\n");
    CHECK_INT(serve_visit(&s, r, "/alive"), 200);
    CHECK_INT(program_wait(waits), 0); /* it was parked, and is not forgotten */
    serve_tell(&s, "/stop", r);
    serve_close(&s);
    close(log[0]);
    close(log[1]);
}

TEST_LIMIT(serve_reaches_sandboxes_by_names_below_a_domain_and_wakes_them, 120)
{
    struct serve s = {.key = NULL};

    serve_prepare(&s);
    serve_run_with(&s, "[server]\ndomain = 'run.example'\nresume_on_request = true\n");
    struct json *r = serve_start(&s, "one", "");
    const char *id = serve_field(&s, r, "runtime_id");
    const char *name = serve_text(&s, "%s.run.example", id);
    const char *authority = serve_text(&s, "%s:%u", name, s.wire.port); /* as clients send Host */
    CHECK_STR(serve_field(&s, r, "url"), serve_text(&s, "http://%s", authority));
    CHECK_HAS(serve_get(&s, "/sessions/one").body,
              str_of(serve_text(&s, "\"http://work-1-%s\":12000", authority)));
    CHECK_HAS(by_host(&s, authority, "/alive"), "200 OK");
    CHECK_HAS(by_host(&s, authority, "/list"), "403");
    CHECK_HAS(by_host(&s, serve_text(&s, "x.%s", authority), "/list"), "404");
    CHECK_HAS(by_host(&s, serve_text(&s, "x.%s", authority), "/alive"), "404");
    CHECK_HAS(by_host(&s, name, "/alive"), "200 OK");
    CHECK_HAS(by_host(&s, name, "/list"), "403"); /* the sandbox's own, not the server's */
    CHECK_HAS(by_host(&s, serve_text(&s, "work-1-%s", name), "/"), "502"); /* nobody listens */
    CHECK_HAS(by_host(&s, "aaaaaaaaaaaaaaaa.run.example", "/alive"), "404");

    serve_tell(&s, "/pause", r);
    CHECK_STR(serve_field(&s, serve_want(&s, 200, "GET", "/sessions/one", NULL), "status"),
              "paused");
    CHECK_HAS(by_host(&s, name, "/alive"), "200 OK"); /* parked, and answered when it runs */
    CHECK_STR(serve_field(&s, serve_want(&s, 200, "GET", "/sessions/one", NULL), "status"),
              "running");

    serve_kill(&s);
    serve_run_with(&s, "[server]\ndomain = '-run.example'\npublic_url = 'https://run.example'\n");
    CHECK_STR(serve_field(&s, serve_want(&s, 200, "GET", "/sessions/one", NULL), "url"),
              serve_text(&s, "https://%s-run.example", id));
    serve_kill(&s);
    serve_run_with(&s, "[server]\npublic_url = 'https://croft.example/box/'\n");
    r = serve_want(&s, 200, "GET", "/sessions/one", NULL);
    CHECK_STR(serve_field(&s, r, "url"), serve_text(&s, "https://croft.example/box/%s", id));
    CHECK_HAS(serve_get(&s, "/sessions/one").body,
              str_of(serve_text(&s, "\"https://croft.example/box/%s/work-1\":12000", id)));
    CHECK_HAS(by_host(&s, "localhost", serve_text(&s, "/sandbox/%s/alive", id)), "200 OK");
    CHECK_HAS(by_host(&s, "localhost", serve_text(&s, "/%s/alive", id)), "200 OK");
    CHECK_HAS(by_host(&s, "localhost", serve_text(&s, "/%s/work-1/", id)), "502");
    CHECK_HAS(by_host(&s, "localhost", serve_text(&s, "/%s/vscode", id)), "502");
    CHECK_HAS(by_host(&s, "localhost", "/aaaaaaaaaaaaaaaa/alive"), "404");
    serve_tell(&s, "/pause", r);
    struct str paused = by_host(&s, "localhost", serve_text(&s, "/sandbox/%s/alive", id));
    CHECK_HAS(paused, "503");
    CHECK_HAS(paused, "retry-after: 1\r\n");
    serve_close(&s);
}

/* As clients compute it from a runtime's url; NULL: they would go by a name that is not there. */
static const char *computed(struct serve *s, const struct json *r, const char *service)
{
    const char *url = serve_field(s, r, "url"), *id = serve_field(s, r, "runtime_id");
    const char *path = strchr(strstr(url, "://") + 3, '/');

    if (!path || strncmp(path + 1, id, strlen(id)) != 0)
        return NULL;
    return serve_text(s, "%.*s/%s/%s", (int)(path - url), url, id, service);
}

static struct str get(struct serve *s, const char *url, const char *rest)
{
    struct wire to = {.pid = 0};
    own_done(buf) got;
    const char *path = strchr(strstr(url, "://") + 3, '/');

    buf_init(&got, 1u << 20);
    wire_at(&to, url);
    wire_exchange(&to,
                  str_of(serve_text(s,
                                    "GET %s%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                                    "Connection: close\r\n\r\n",
                                    path ? path : "", rest, to.port)),
                  &got);
    return arena_copy(&s->arena, buf_str(&got));
}

TEST_LIMIT(serve_leads_clients_to_vscode_and_workers_by_what_they_compute, 120)
{
    static const struct {
        const char *service;
        int port;
    } rows[] = {{"vscode", 60001}, {"work-1", 12000}, {"work-2", 12001}};
    struct serve s = {.key = NULL};

    serve_open(&s);
    struct json *r = serve_start(&s, "one", "");
    const char *id = serve_field(&s, r, "runtime_id"), *url = serve_field(&s, r, "url");
    CHECK_STR(serve_exec(&s, r, "echo $RUNTIME_URL"), str_of(url));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *at = computed(&s, r, rows[i].service);
        CHECK(at != NULL);
        CHECK_HAS(get(&s, at, "/"), "502"); /* nobody listens yet */
        serve_exec(&s, r,
                   serve_text(&s,
                              "cd /etc; (python3 -m http.server --bind 127.0.0.1 %d >/dev/null "
                              "2>&1 &); until (: </dev/tcp/127.0.0.1/%d) 2>/dev/null; do :; done",
                              rows[i].port, rows[i].port));
        CHECK_HAS(get(&s, at, "?tkn=x&folder=%2Fworkspace"), "hostname");
        CHECK_HAS(get(&s, at, "/hostname"), id);
    }
    CHECK_STR(serve_field(&s, r, "vscode_url"), str_of(computed(&s, r, "vscode")));
    CHECK_HAS(get(&s, url, "/alive"), "200 OK");
    const char *bare = serve_text(&s, "%.*s", (int)(strlen(url) - strlen(id) - 1), url);
    CHECK_HAS(get(&s, bare, "/alive"), "200 OK"); /* who joins paths loses the first */
    CHECK_HAS(get(&s, bare, "/aaaaaaaaaaaaaaaa/alive"), "404"); /* of one who had the port before */
    serve_tell(&s, "/stop", r);
    CHECK_HAS(get(&s, url, "/alive"), "404 ");
    CHECK_HAS(get(&s, url, "/alive"), "{\"detail\":\"this sandbox is gone\"}");
    serve_close(&s);
}

/* In the test's own network: one that is not of the loopback's range. */
static void add_address(const char *address)
{
    struct ifreq r = {.ifr_name = "lo:1"};
    struct sockaddr_in at = {.sin_family = AF_INET};
    own_fd any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    CHECK_INT(inet_pton(AF_INET, address, &at.sin_addr), 1);
    memcpy(&r.ifr_addr, &at, sizeof at);
    CHECK_INT(ioctl(any, SIOCSIFADDR, &r), 0);
}

/* Another machine can neither be sent to a loopback listener nor to the address that means all. */
TEST(serve_tells_clients_elsewhere_of_sandboxes_by_paths_of_an_address_they_reach)
{
    struct serve s = {.key = "one-key-that-is-long-enough"};

    setenv("CROFT_API_KEY", s.key, 1);
    serve_prepare(&s);
    add_address("192.0.2.7");
    serve_run(&s, ARGS("--listen", "0.0.0.0:0"));
    struct json *r = serve_start(&s, "a", "");
    const char *url = serve_field(&s, r, "url"), *id = serve_field(&s, r, "runtime_id");
    CHECK_HAS(str_of(url), serve_text(&s, "http://192.0.2.7:%u/%s", s.wire.port, id));
    serve_close(&s);
}
