// SPDX-License-Identifier: Apache-2.0
/* echo_server.c — croft echo-server: what wire tests and benches talk to; not for people. */
#include <signal.h>
#include <sys/resource.h>

#include "base/log.h"
#include "cli/cli.h"
#include "host/echo/echo.h"
#include "loop/loop.h"

struct echo_options {
    struct str listen, dir, key, tls_cert, tls_key, log_level;
    bool access_log;
};

static const struct cfg_row rows[] = {
    CFG_STR(echo_options, listen, "listen", "127.0.0.1:0",
            "Address: HOST:PORT, unix:PATH or fd:N."),
    CFG_STR(echo_options, dir, "dir", NULL,
            "Take uploads into and serve files from this directory."),
    CFG_SECRET(echo_options, key, "key", "Ask for this X-API-Key."),
    CFG_STR(echo_options, tls_cert, "tls-cert", NULL, "Certificate chain, PEM: serve HTTPS."),
    CFG_STR(echo_options, tls_key, "tls-key", NULL, "Its key, PEM."),
    CFG_STR(echo_options, log_level, "log-level", "warn", "What to log.",
            .choices = "debug|info|warn|error|off"),
    CFG_BOOL(echo_options, access_log, "access-log", false, "Log every request (level info)."),
};

/* Ten thousand connections need more than the usual 1024 descriptors. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static fallible echo_server_serve(const struct echo_options *o)
{
    own(loop) loop = NULL;
    enum log_level level = LOG_WARN;
    struct echo_config config = {
        .listen = o->listen,
        .dir = o->dir,
        .key = o->key,
        .tls_cert = o->tls_cert,
        .tls_key = o->tls_key,
        .access_log = o->access_log,
    };

    log_level_parse(o->log_level, &level);
    log_setup(2, level, LOG_AUTO);
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    TRY(loop_new(&clock_system, &loop));
    return echo_run(loop, &config);
}

static int echo_server_run(struct cli *cli, int argc, char **argv)
{
    own_done(arena) a;
    struct echo_options o;

    arena_init(&a, 1u << 20);
    struct err *e = cli_flags(cli, &a, &o, &argc, argv);
    if (!e)
        e = cli_no_more(argc, argv);
    if (e)
        return cli_misuse(cli, e);
    return cli_fail(cli, echo_server_serve(&o));
}

CLI_COMMAND(echo_server) = {
    .name = "echo-server",
    .group = CLI_HIDDEN,
    .summary = "serve what wire tests and benches ask for",
    .usage = "[--listen ADDRESS] [--dir DIR]",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = echo_server_run,
};
