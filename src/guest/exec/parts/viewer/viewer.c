// SPDX-License-Identifier: Apache-2.0
/* viewer.c — the page that shows images and PDFs: a server of its own on loopback, for the browser
 * in this sandbox. A file with a fixed name tells its address; the agent's prompt names that file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/rng.h"
#include "guest/exec/inner.h"
#include "guest/held/held.h"
#include "net/router.h"
#include "net/server.h"

#define TRIES 10
#define RANGE 1024

struct viewer {
    struct router *router;
    struct http_server *server;
    char url[64];
};

/* Near the server's own port, as clients expect, or anywhere. */
static fallible find_port(struct str listen, int *ret_fd)
{
    struct str rest = listen, last;
    uint64_t port = 0;
    char address[32];

    while (str_cut(&rest, ':', &last))
        ;
    if (str_starts(listen, STR("unix:")) || str_starts(listen, STR("fd:")) ||
        !str_to_u64(last, &port) || port >= UINT16_MAX)
        port = 0;
    uint64_t room = UINT16_MAX - port < RANGE ? UINT16_MAX - port : RANGE;
    for (int i = 0; port && i < TRIES; i++) {
        uint64_t near = port + 1 + rng_u64(rng_system()) % room;
        snprintf(address, sizeof address, "127.0.0.1:%u", (unsigned)near);
        struct err *e = listen_open(str_of(address), ret_fd);
        if (!e)
            return NULL;
        err_free(e); /* taken: another one */
    }
    return listen_open(STR("127.0.0.1:0"), ret_fd);
}

/* Pid 1 holds that of the server before us, so the address stays. */
static fallible find_socket(struct exec *e, int *ret_fd)
{
    struct held *held = e->config->held;
    own(held_item) old = held ? held_take(held, STR(HELD_VIEWER)) : NULL;

    if (old && old->fds_len) {
        *ret_fd = take_fd(&old->fds[0]);
        return NULL;
    }
    TRY(find_port(e->config->listen, ret_fd));
    if (held)
        err_free(held_put(held, held_new_id(held), STR(HELD_VIEWER), ret_fd, 1, 0));
    return NULL;
}

/* By rename: in /tmp the name may be there already, as a link or a file of another user. */
static fallible viewer_tell(const char *file, const char *url)
{
    char temp[300];

    if (snprintf(temp, sizeof temp, "%s.%d", file, (int)getpid()) >= (int)sizeof temp)
        return err_new(ERR_INVALID, "--viewer-url '%.80s' is too long", file);
    own_fd fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_sys("--viewer-url '%s'", file);
    struct err *e = fd_write_all(fd, str_of(url));
    if (!e && rename(temp, file) < 0)
        e = err_sys("--viewer-url '%s'", file);
    if (e)
        unlink(temp);
    return e;
}

static void viewer_untell(const char *file, const char *url)
{
    own_done(buf) text;

    buf_init(&text, 256);
    err_free(fd_read_file(file, &text)); /* not there, not ours */
    if (str_eq(buf_str(&text), str_of(url)))
        unlink(file);
}

static fallible open_viewer(struct exec *e, struct viewer *v)
{
    struct http_server_config config = {.local_names = true};
    char name[80];
    int fd;

    config.router = v->router = router_new(&(struct router_config){0});
    transfer_add_viewer_routes(v->router, &e->transfer);
    TRY(http_server_new(e->net, &config, &v->server));
    TRY(find_socket(e, &fd));
    struct err *error = listen_name(fd, false, name, sizeof name);
    if (error) {
        listen_close(fd);
        return error;
    }
    TRY(http_server_listen(v->server, fd));
    ptrdiff_t port = str_find(str_of(name), STR("0.1:"));
    snprintf(v->url, sizeof v->url, "http://localhost%s", port < 0 ? "" : name + port + 3);
    return NULL;
}

/* The server works without it: a failure is only logged. */
static fallible viewer_start(struct exec *e, void *state)
{
    const char *file = e->config->viewer_url;
    struct viewer *v = state;

    if (!file || !file[0])
        return NULL;
    struct err *error = open_viewer(e, v);
    if (!error)
        error = viewer_tell(file, v->url);
    if (error)
        log_warn("no file viewer", KV_ERR(error));
    err_free(error);
    return NULL;
}

static bool viewer_is_busy(const void *state)
{
    const struct viewer *v = state;

    return v->server && http_server_connections(v->server);
}

static void viewer_close(struct exec *e, void *state)
{
    const struct viewer *v = state;

    if (v->url[0])
        viewer_untell(e->config->viewer_url, v->url);
    http_server_free(v->server);
    router_free(v->router);
}

EXEC_PART(viewer) = {.state_bytes = sizeof(struct viewer),
                     .start = viewer_start,
                     .close = viewer_close,
                     .is_busy = viewer_is_busy};
