// SPDX-License-Identifier: Apache-2.0
/* contract.c — a driver, a loop, and answers that are waited for. */
#include "test/contract/contract.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/tree/tree.h"
#include "net/listen.h"
#include "net/stream.h"

#define WAIT_NS (60 * NS_PER_S)

extern char **environ;

void contract_turns_until(struct contract *c, const bool *flag)
{
    uint64_t end = loop_now_ns(c->loop) + test_slow() * WAIT_NS;

    while (!*flag) {
        CHECK_OK(loop_turn(c->loop, 1000));
        if (loop_now_ns(c->loop) > end)
            FAIL("nothing came for a minute");
    }
}

/* The open directory and all above it may be entered by the user a driver becomes. */
static void make_state_dir(struct contract *c)
{
    snprintf(c->state_dir, sizeof c->state_dir, "%s/state", test_dir());
    CHECK(mkdir(c->state_dir, 0755) == 0);
}

void contract_run(const struct contract_backend *b, unsigned caps, void (*row)(struct contract *c))
{
    struct contract c = {0};
    const struct sbx_backend *backend = sbx_backend_find(str_of(b->name));

    CHECK(backend != NULL);
    if ((sbx_backend_caps(backend) & caps) != caps)
        SKIP("backend '%s' does not claim it", b->name);
    setenv("CROFT_TEST_SECRET", "host-only", 1);
    make_state_dir(&c);
    c.host = (struct sbx_host){.state_dir = c.state_dir, .remove_tree = tree_remove};
    c.host.guest_fd = open(test_program("croft-guest"), O_RDONLY | O_CLOEXEC);
    CHECK(c.host.guest_fd >= 0);
    if (b->prepare)
        b->prepare(&c);
    c.host.envp = (const char *const *)environ; /* which it may have changed */
    CHECK_OK(loop_new(&clock_system, &c.loop));
    CHECK_OK(net_new(c.loop, &c.net));
    c.host.loop = c.loop;
    c.dialer.net = c.net;
    c.host.dialer = &c.dialer;
    CHECK_OK(sbx_driver_open(backend, &c.host, &c.driver));
    while (c.driver->unsure)
        CHECK_OK(loop_turn(c.loop, 1000));
    if ((c.driver->caps & caps) != caps)
        SKIP("backend '%s' cannot do it on this machine", b->name);
    row(&c);
    CHECK_INT(c.driver->sandboxes, 0);
    sbx_driver_close(c.driver);
    if (b->finish)
        b->finish(&c);
    net_free(c.net);
    loop_free(c.loop);
    close(c.host.guest_fd);
}

/* --- sandboxes --- */

static void on_gone(void *arg, struct sbx *s)
{
    struct contract *c = arg;

    (void)s;
    c->gone++;
}

struct sbx *contract_create(struct contract *c, const struct sbx_spec *spec)
{
    struct sbx_spec own = spec ? *spec : (struct sbx_spec){0};
    struct sbx *s;

    own.on_gone = on_gone;
    own.arg = c;
    CHECK_OK(sbx_create(c->driver, &own, &s));
    return s;
}

struct waited {
    bool done;
    struct err *e;
};

static void on_done(void *arg, struct sbx *s, const struct err *e)
{
    struct waited *w = arg;

    (void)s;
    w->done = true;
    w->e = e ? err_copy(e) : NULL;
}

static struct err *wait_for(struct contract *c, struct waited *w, struct err *refused)
{
    if (refused)
        return refused;
    CHECK(!w->done); /* never from inside the call */
    contract_turns_until(c, &w->done);
    return w->e;
}

struct err *contract_start(struct contract *c, struct sbx *s)
{
    struct waited w = {0};

    return wait_for(c, &w, sbx_start(s, on_done, &w));
}

struct err *contract_claim(struct contract *c, struct sbx *s, const struct sbx_spec *spec)
{
    struct sbx_spec own = *spec;
    struct waited w = {0};

    own.on_gone = on_gone;
    own.arg = c;
    return wait_for(c, &w, sbx_claim(s, &own, on_done, &w));
}

struct err *contract_stop(struct contract *c, struct sbx *s)
{
    struct waited w = {0};

    return wait_for(c, &w, sbx_stop(s, on_done, &w));
}

struct err *contract_pause(struct contract *c, struct sbx *s)
{
    struct waited w = {0};

    return wait_for(c, &w, sbx_pause(s, on_done, &w));
}

struct err *contract_resume(struct contract *c, struct sbx *s)
{
    struct waited w = {0};

    return wait_for(c, &w, sbx_resume(s, on_done, &w));
}

struct err *contract_measure(struct contract *c, struct sbx *s)
{
    struct waited w = {0};

    return wait_for(c, &w, sbx_measure(s, on_done, &w));
}

struct err *contract_files(struct contract *c, struct sbx *s, enum sbx_files what, const char *text)
{
    struct waited w = {0};

    return wait_for(c, &w, sbx_files(s, what, str_of(text), on_done, &w));
}

struct err *contract_snapshot(struct contract *c, struct sbx *s, const char *name)
{
    struct waited w = {0};

    return wait_for(c, &w, sbx_snapshot(s, str_of(name), on_done, &w));
}

struct named {
    struct waited w;
    char *out;
    size_t size;
};

static void on_named(void *arg, const char *names, size_t count, const struct err *e)
{
    struct named *n = arg;

    n->out[0] = '\0';
    for (; count--; names += strlen(names) + 1)
        snprintf(n->out + strlen(n->out), n->size - strlen(n->out), "%s%s", n->out[0] ? " " : "",
                 names);
    on_done(&n->w, NULL, e);
}

struct err *contract_snapshots(struct contract *c, const char *remove, char *out, size_t size)
{
    struct named n = {.out = out, .size = size};

    return wait_for(c, &n.w,
                    remove ? sbx_snapshot_remove(c->driver, str_of(remove), on_named, &n)
                           : sbx_snapshot_list(c->driver, on_named, &n));
}

struct err *contract_remove(struct contract *c, struct sbx *s)
{
    struct waited w = {0};

    return wait_for(c, &w, sbx_remove(s, on_done, &w));
}

struct sbx *contract_started(struct contract *c, const struct sbx_spec *spec)
{
    struct sbx *s = contract_create(c, spec);

    CHECK_OK(contract_start(c, s));
    return s;
}

void contract_end(struct contract *c, struct sbx *s)
{
    struct sbx_info info;

    sbx_inspect(s, &info);
    if (info.state == SBX_RUNNING || info.state == SBX_PAUSED || info.state == SBX_WARM)
        CHECK_OK(contract_stop(c, s));
    CHECK_OK(contract_remove(c, s));
}

/* --- actions --- */

struct asked {
    struct answer answer;
    bool done;
};

static void on_result(void *arg, const struct action_result *r)
{
    struct asked *a = arg;

    a->done = true;
    a->answer.failure = r->failure;
    a->answer.http_status = r->http_status;
    snprintf(a->answer.error, sizeof a->answer.error, "%s", r->error ? err_text(r->error) : "");
    if (!r->observation)
        return;
    a->answer.type = r->observation->type;
    a->answer.exit_code =
        r->observation->type == WIRE_OBS_RUN ? (int)r->observation->run.metadata.exit_code : -1;
    snprintf(a->answer.text, sizeof a->answer.text, "%.*s", STR_ARG(r->observation->content));
    if (r->observation->type == WIRE_OBS_RUN)
        snprintf(a->answer.suffix, sizeof a->answer.suffix, "%.*s",
                 STR_ARG(r->observation->run.metadata.suffix));
}

/* A sandbox that somebody else has paused is resumed, as its clients do. */
static void on_resumed(void *arg, struct sbx *s, const struct err *e)
{
    (void)s;
    action_client_resumed(arg, e ? err_copy(e) : NULL);
}

static void resume(void *arg, struct action_client *client)
{
    sbx_found_paused(arg);
    struct err *e = sbx_resume(arg, on_resumed, client);
    if (e)
        action_client_resumed(client, e);
}

static struct answer ask(struct contract *c, struct sbx *s, const char *key,
                         const struct wire_action *action)
{
    struct sbx_info info;
    struct asked a = {0};
    struct action_client *client;

    sbx_inspect(s, &info);
    if (info.session_key && !(key && strcmp(key, CONTRACT_WRONG_KEY) == 0))
        key = info.session_key;
    struct action_client_config config = {.dialer = &c->dialer,
                                          .url = str_of(info.address.url),
                                          .unix_path = str_of(info.address.unix_path),
                                          .session_key = str_of(key ? key : ""),
                                          .again_ms = 50,
                                          .resume = resume,
                                          .resume_arg = s};
    CHECK_OK(action_client_new(&config, &client));
    CHECK_OK(action_send(client, action, on_result, &a));
    contract_turns_until(c, &a.done);
    action_client_free(client);
    if (a.answer.error[0]) /* shown if the test fails */
        printf("answer: %s\n", a.answer.error);
    return a.answer;
}

struct answer contract_action(struct contract *c, struct sbx *s, const struct wire_action *a)
{
    return ask(c, s, NULL, a);
}

struct answer contract_command(struct contract *c, struct sbx *s, const char *key,
                               const char *command)
{
    struct wire_action a;

    wire_action_init(&a, WIRE_ACT_RUN);
    a.run.command = str_of(command);
    a.run.blocking = true; /* on an emulated machine ten silent seconds are nothing */
    a.has_timeout = true;
    a.timeout_s = 50 * test_slow();
    return ask(c, s, key, &a);
}

/* --- ports inside --- */

static int dial(const struct sbx_address *address)
{
    struct sockaddr_storage to;
    socklen_t len;
    unsigned port = 0;

    if (address->unix_path[0]) {
        CHECK_OK(addr_unix(str_of(address->unix_path), &to, &len));
    } else {
        CHECK(sscanf(address->url, "http://127.0.0.1:%u", &port) == 1);
        CHECK(addr_numeric(STR("127.0.0.1"), (uint16_t)port, &to, &len));
    }
    int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (connect(fd, (struct sockaddr *)&to, len) == 0)
        return fd;
    close(fd);
    return -1;
}

static size_t read_until(int fd, const char *end, char *out, size_t size)
{
    size_t n = 0;

    while (n + 1 < size && (!end || !strstr(out, end))) {
        ssize_t got = read(fd, out + n, size - n - 1);
        if (got <= 0)
            break;
        n += (size_t)got;
        out[n] = '\0';
    }
    return n;
}

/* The loop need not turn meanwhile: who answers is another process. */
/* Of an url; empty: that of its server. */
static const char *path_of(const struct sbx_address *address)
{
    const char *host = strstr(address->url, "://"), *path = host ? strchr(host + 3, '/') : NULL;

    return path ? path : "";
}

void contract_get(struct contract *c, const struct sbx_address *address, char *out, size_t size)
{
    char head[300];
    int fd = dial(address);

    (void)c;
    out[0] = '\0';
    if (fd < 0)
        return;
    if (address->tunnel_port) {
        int n = snprintf(head, sizeof head, "CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: x\r\n\r\n",
                         address->tunnel_port);
        CHECK(write(fd, head, (size_t)n) == n);
        char one[300] = "";
        read_until(fd, "\r\n\r\n", one, sizeof one);
        if (!strstr(one, " 200 ")) {
            close(fd);
            return;
        }
    }
    int n = snprintf(head, sizeof head, "GET %s/ HTTP/1.0\r\n\r\n", path_of(address));
    CHECK(write(fd, head, (size_t)n) == n);
    read_until(fd, NULL, out, size);
    close(fd);
}
