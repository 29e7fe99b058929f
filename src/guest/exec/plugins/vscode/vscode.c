// SPDX-License-Identifier: Apache-2.0
/* vscode.c — an editor in the browser: starts the openvscode-server or code-server that the image
 * has. See README.md for where it is looked for. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cfg.h"
#include "base/mem.h"
#include "base/rng.h"
#include "guest/exec/inner.h"
#include "guest/exec/plugin.h"
#include "guest/proc/env.h"
#include "guest/proc/proc.h"
#include "net/router.h"
#include "net/server.h"
#include "wire/api.h"

#define ARGS_MAX 12

struct vscode {
    struct plugin *plugin;
    struct proc proc;
    struct arena arena; /* of what it is started with */
    char token[RNG_UUID_LEN + 1];
};

static const char settings[] = "{\"workbench.colorTheme\":\"Default Dark Modern\","
                               "\"workbench.startupEditor\":\"none\","
                               "\"chat.commandCenter.enabled\":false}\n";

/* Settings that are there already are the user's own and stay. No link is followed: programs in the
 * sandbox can write to the folder. */
static fallible put_settings(const struct exec *e)
{
    const char *base = cfg_env_get(e->config->envp, "WORKSPACE_BASE");
    own_fd top = open(base && *base ? base : e->working_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (top < 0)
        return err_sys("open the workspace for .vscode");
    bool made = mkdirat(top, ".vscode", 0755) == 0;
    own_fd dir = openat(top, ".vscode", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_sys("open .vscode");
    own_fd file =
        openat(dir, "settings.json", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);

    if (file < 0)
        return errno == EEXIST ? NULL : err_sys("make .vscode/settings.json");
    if (write(file, settings, sizeof settings - 1) != sizeof settings - 1 ||
        fchmod(file, 0666) < 0 ||
        (e->run_as && (fchown(file, e->run_as->uid, e->run_as->gid) < 0 ||
                       (made && fchown(dir, e->run_as->uid, e->run_as->gid) < 0))))
        return err_sys("write .vscode/settings.json");
    return NULL;
}

static fallible check_user(const struct exec *e)
{
    const char *allowed = cfg_env_get(e->config->envp, "RUNTIME_USERNAME");
    struct str name = e->config->username;

    if (!name.len || str_eq(name, STR("root")) || str_eq(name, STR("openhands")) ||
        str_eq(name, str_of(allowed)))
        return NULL;
    return err_new(ERR_FORBIDDEN,
                   "only for root, openhands and RUNTIME_USERNAME, not '" STR_FMT "'",
                   STR_ARG(str_first(name, 80)));
}

static fallible check_port(uint64_t port)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    own_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&any, sizeof any) < 0)
        return err_sys("VSCODE_PORT %u", (unsigned)port);
    return NULL;
}

/* The configured one, the image's own, or one in PATH. */
static fallible find_server(struct vscode *v, char *const *env, const char **ret_path)
{
    const char *const places[] = {cfg_env_get(v->plugin->exec->config->envp, "CROFT_VSCODE"),
                                  "/openhands/.openvscode-server/bin/openvscode-server",
                                  "openvscode-server", "code-server"};

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct err *no = places[i] ? proc_find_program(&v->arena, places[i], env, ret_path)
                                   : err_new(ERR_NOT_FOUND, "not set");
        if (!no)
            return NULL;
        if (i == 0 && places[0])
            return err_wrap(no, "CROFT_VSCODE");
        err_free(no);
    }
    return err_new(ERR_NOT_FOUND, "no openvscode-server and no code-server in this image: install "
                                  "one, or name it in CROFT_VSCODE");
}

/* Behind a proxy by path the server must know its own. */
static const char *base_path(struct vscode *v)
{
    const char *const *envp = v->plugin->exec->config->envp;
    const char *base = cfg_env_get(envp, "OPENVSCODE_SERVER_BASE_PATH");
    const char *id = cfg_env_get(envp, "RUNTIME_ID"), *url = cfg_env_get(envp, "RUNTIME_URL");

    if (base && *base)
        return base;
    struct str rest = str_of(url);
    ptrdiff_t host = str_find(rest, STR("://"));
    if (host < 0 || !id || !*id)
        return NULL;
    rest = str_from(rest, (size_t)host + 3);
    ptrdiff_t path = str_find_char(rest, '/');
    if (path < 0 || !str_starts(str_from(rest, (size_t)path + 1), str_of(id)))
        return NULL;
    return arena_printf(&v->arena, "/%s/vscode", id).p;
}

static fallible start_server(struct vscode *v, uint64_t port)
{
    const struct exec *e = v->plugin->exec;
    struct arena *a = &v->arena;
    const char *argv[ARGS_MAX], *base = base_path(v);
    const char *cwd = cfg_env_get(e->config->envp, "WORKSPACE_MOUNT_PATH_IN_SANDBOX");
    size_t n = 0;

    TRY(find_server(v, (char *const *)e->env, &argv[n++]));
    char *password[] = {NULL, NULL};
    if (str_ends(str_of(argv[0]), STR("code-server")) &&
        !str_ends(str_of(argv[0]), STR("openvscode-server"))) { /* its token is a password */
        password[0] = (char *)arena_printf(a, "PASSWORD=%s", v->token).p;
        argv[n++] = "--auth=password";
        argv[n++] = arena_printf(a, "--bind-addr=0.0.0.0:%u", (unsigned)port).p;
    } else {
        argv[n++] = "--host";
        argv[n++] = "0.0.0.0";
        argv[n++] = "--connection-token";
        argv[n++] = v->token;
        argv[n++] = "--port";
        argv[n++] = arena_printf(a, "%u", (unsigned)port).p;
        argv[n++] = base ? "--server-base-path" : NULL;
        n -= !base;
        argv[n++] = base;
        n -= !base;
    }
    argv[n++] = "--disable-workspace-trust";
    argv[n] = NULL;
    struct proc_config c = {
        .argv = (char *const *)argv,
        .env = proc_env_with(a, (char *const *)e->env, password),
        .cwd = cwd && *cwd ? cwd : e->working_dir,
        .user = e->run_as,
        .spawner = e->spawner,
        .extra_fd = -1,
    };
    TRY(arena_check(a));
    return proc_start(&v->proc, e->loop, &c);
}

static void on_text(struct proc *p, struct str text)
{
    struct vscode *v = container_of(p, struct vscode, proc);

    (void)text;
    if (str_find(buf_str(&p->words), STR("at")) >= 0) /* "Web UI available at …" */
        plugin_ready(v->plugin);
}

static void on_exit_of(struct proc *p)
{
    struct vscode *v = container_of(p, struct vscode, proc);
    char how[80];

    proc_describe(p, how, sizeof how);
    plugin_fail(v->plugin, err_new(ERR_CLOSED, "the server ended with %s: " STR_FMT, how,
                                   STR_ARG(str_trim(buf_str(&p->words)))));
}

static fallible vscode_start(struct plugin *p)
{
    const char *text = cfg_env_get(p->exec->config->envp, "VSCODE_PORT");
    uint64_t port;

    TRY(check_user(p->exec));
    TRY(put_settings(p->exec));
    if (!text || !str_to_u64(str_of(text), &port) || port == 0 || port > 65535)
        return err_new(ERR_INVALID, "VSCODE_PORT is '%.20s': a port is wanted", text ? text : "");
    struct vscode *v = mem_new(sizeof *v);
    p->user = v;
    v->plugin = p;
    v->proc.on_text = on_text;
    v->proc.on_exit = on_exit_of;
    arena_init(&v->arena, 1u << 20);
    rng_uuid(rng_system(), v->token);
    TRY(check_port(port));
    return start_server(v, port);
}

static void vscode_close(struct plugin *p)
{
    struct vscode *v = take(&p->user);

    if (!v)
        return;
    if (v->proc.loop)
        proc_stop(&v->proc);
    arena_done(&v->arena);
    free(v);
}

static fallible handle_token(struct http_req *req)
{
    const struct plugin *p = plugin_find(req->owner, "vscode");
    const struct vscode *v = p ? p->user : NULL;

    wire_put_token(http_reply_writer(req), str_of(v ? v->token : NULL));
    http_reply_written(req, 200);
    return NULL;
}

static void vscode_add_routes(struct exec *e, void *state)
{
    static const struct route routes[] = {{"GET", "/vscode/connection_token", handle_token}};

    (void)state;
    router_add(e->router, routes, ARRAY_LEN(routes), e);
}

EXEC_PART(vscode) = {.add_routes = vscode_add_routes};
PLG_PLUGIN(vscode) = {.name = "vscode", .start = vscode_start, .close = vscode_close};
