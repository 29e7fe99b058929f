// SPDX-License-Identifier: Apache-2.0
/* backing.c — see backing.h. */
#include "host/server/backing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "host/config/settings.h"
#include "host/part/part.h"
#include "host/server/grants.h"
#include "host/server/launch.h"
#include "host/server/layout.h"
#include "host/server/server.h"
#include "host/tree/tree.h"
#include "sandbox/backend.h"
#include "sandbox/sandbox.h"

#define FIRST_BACKEND "native" /* of states from before there was a choice, and the default */

struct backing_settings {
    struct str name;
    uint64_t most_waiting;  /* requests that wait for it */
    uint64_t launcher_wait; /* ms, for a launcher that does not answer */
};

static const struct cfg_row rows[] = {
    CFG_STR(backing_settings, name, "server.backend", FIRST_BACKEND,
            "What makes the sandboxes; 'croft backends' tells what each is and can do.",
            .flag = "backend", .put_choices = sbx_backend_put_names),
    CFG_UINT(backing_settings, most_waiting, "server.most_waiting", 4096,
             "Requests that may wait for a change of a sandbox, or for the record of an image; "
             "further ones get 503 with Retry-After.",
             .flag = "", .min = 1, .max = 100000),
    CFG_MS(backing_settings, launcher_wait, "server.launcher_wait", "20s",
           "Longest silence of the launcher. After it, requests that wait for the launcher get "
           "503, and new ones get it at once, until it answers. The launcher may still do what it "
           "was asked. Work known to take longer is waited for.",
           .flag = "", .min = 100, .max = 600000),
};
CFG_TABLE(backing) = {rows, ARRAY_LEN(rows), .size = sizeof(struct backing_settings)};

static const struct backing_settings *own_settings(const struct settings *s)
{
    return settings_of(s, CFG_TABLE_OF(backing));
}

const struct sbx_backend *backing_row(const struct settings *s)
{
    return sbx_backend_find(own_settings(s)->name); /* it is one of the choices */
}

/* The flags of a backend's settings are for that backend. */
fallible backing_check(const struct settings *s)
{
    const struct sbx_backend *ours = backing_row(s), *b;

    for (size_t i = 0; (b = sbx_backend_at(i)); i++)
        for (size_t k = 0; b != ours && b->settings && k < b->settings->count; k++) {
            const char *source = cfg_source(&s->cfg, b->settings->rows[k].key);
            if (source && str_starts(str_of(source), STR("flag:")))
                return err_new(ERR_INVALID, "%s is for --backend %s", source + 5, b->name);
        }
    return NULL;
}

/* Another backend would take all sandboxes of these rows for gone. A state directory without the
 * file 'backend' is of native. */
fallible backing_claim(const struct layout *l, struct str backend)
{
    own_done(buf) was;
    char path[sizeof l->own + 10];

    buf_init(&was, 64);
    snprintf(path, sizeof path, "%s/backend", l->own);
    struct err *e = fd_read_file(path, &was);
    bool missing = e && err_code(e) == ERR_NOT_FOUND;
    if (e && !missing)
        return e;
    err_free(e);
    if (missing)
        buf_add(&was, access(l->rows, F_OK) == 0 ? STR(FIRST_BACKEND) : backend);
    struct str name = str_trim(buf_str(&was));
    if (!str_eq(name, backend))
        return err_new(ERR_CONFLICT,
                       "the sandboxes of state directory '%s' are of backend '" STR_FMT
                       "': say --backend " STR_FMT ", or name another directory with --state",
                       l->state, STR_ARG(name), STR_ARG(name));
    own_fd dir = open(l->own, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys("open '%s'", l->own);
    return missing ? fd_replace_file(dir, "backend", backend, 0600) : NULL;
}

/* --- the part --- */

struct backing {
    struct sbx_host host; /* what the driver is lent */
    struct sbx_launcher launcher;
    struct sbx_driver *driver;
    const struct sbx_backend *backend;
    const char *roots[LAUNCHER_ROOTS + 1];
};

struct sbx_driver *backend_of(const struct host *h)
{
    const struct backing *b = host_part(h, "backend");

    return b->driver;
}

static void set_wait_bounds(struct backing *b, const struct settings *s)
{
    b->host.silence_ms = (uint32_t)own_settings(s)->launcher_wait;
    b->host.most_waiting = (uint32_t)own_settings(s)->most_waiting;
}

/* croft-guest as a file without a name. */
static fallible lend_guest(struct backing *b, struct str guest)
{
    own_fd fd = memfd_create("croft-guest", MFD_CLOEXEC);

    if (fd < 0)
        return err_sys("make a file for croft-guest");
    TRY(fd_write_all(fd, guest));
    b->host.guest_fd = take_fd(&fd);
    return NULL;
}

static void lend_launcher(struct backing *b, const struct host *h)
{
    for (size_t i = 0; i < h->launch->root_count; i++)
        b->roots[i] = h->launch->roots[i][0] ? h->launch->roots[i] : "(none)";
    b->launcher = (struct sbx_launcher){.sock = h->launch->sock,
                                        .sockets = h->layout->sockets,
                                        .outputs = h->layout->outputs,
                                        .caps = h->launch->caps,
                                        .lacks = h->launch->lacks,
                                        .roots = b->roots};
    b->host.launcher = &b->launcher;
    b->host.state_dir = h->layout->state; /* which is the launcher's, all but our own */
}

static void lend_all(struct backing *b, const struct host *h)
{
    b->host = (struct sbx_host){.loop = h->loop,
                                .dialer = h->dialer,
                                .state_dir = h->layout->own,
                                .guest_fd = -1,
                                .envp = h->config->envp,
                                .on_lost = h->on_lost,
                                .lost_arg = (void *)h,
                                .remove_tree = tree_remove};
    set_wait_bounds(b, h->settings);
}

static void backing_close(void *backing)
{
    struct backing *b = backing;

    if (b->driver)
        sbx_driver_close(b->driver);
    own_close_p(&b->host.guest_fd);
    free(b);
}

static fallible backing_try_open(struct backing *b, struct host *h)
{
    size_t count;
    const struct grant *grants = grants_of(h->settings, &count);

    const struct sbx_backend *backend = backing_row(h->settings);
    b->backend = backend;
    if (count && !(backend->needs & SBX_NEEDS_LAUNCHER)) /* which alone may mount them */
        return err_new(ERR_INVALID, "[mount." STR_FMT "] needs backend '" FIRST_BACKEND "'",
                       STR_ARG(grants[0].name));
    TRY(backing_claim(h->layout, str_of(backend->name)));
    lend_all(b, h);
    if (backend->settings)
        b->host.settings = settings_of(h->settings, backend->settings);
    if (backend->needs & SBX_NEEDS_LAUNCHER)
        lend_launcher(b, h);
    if (backend->needs & SBX_NEEDS_GUEST)
        TRY(lend_guest(b, h->config->guest));
    return sbx_driver_open(backend, &b->host, &b->driver);
}

static fallible backing_open(struct host *h, void **ret_state)
{
    struct backing *b = mem_new(sizeof *b);

    *b = (struct backing){.host = {.guest_fd = -1}};
    struct err *e = backing_try_open(b, h);
    if (e)
        backing_close(b);
    else
        *ret_state = b;
    return e;
}

static fallible backing_may_reload(void *backing, const struct host *h)
{
    const struct backing *b = backing;

    if (backing_row(h->settings) == b->backend)
        return NULL;
    return err_new(ERR_INVALID, "server.backend is another: that needs a new server");
}

static void backing_reload(void *backing, const struct host *h)
{
    set_wait_bounds(backing, h->settings);
}

static void backing_settle(void *backing)
{
    struct backing *b = backing;

    sbx_wait_end(b->driver);
}

HOST_PART(backend) = {
    .name = "backend",
    .open = backing_open,
    .may_reload = backing_may_reload,
    .reload = backing_reload,
    .settle = backing_settle,
    .close = backing_close,
};
