// SPDX-License-Identifier: Apache-2.0
/* main.c — echo-server: what wire tests and bench/http talk to. */
#include <signal.h>
#include <sys/resource.h>

#include "base/cfg.h"
#include "base/fd.h"
#include "base/log.h"
#include "loop/loop.h"
#include "test/echo/echo.h"

static const struct cfg_row rows[] = {
    CFG_STR(echo_config, listen, "listen", "127.0.0.1:0", "Address: HOST:PORT, unix:PATH or fd:N."),
    CFG_STR(echo_config, dir, "dir", NULL,
            "Take uploads into and serve files from this directory."),
    CFG_SECRET(echo_config, key, "key", "Ask for this X-API-Key."),
    CFG_STR(echo_config, tls_cert, "tls-cert", NULL, "Certificate chain, PEM: serve HTTPS."),
    CFG_STR(echo_config, tls_key, "tls-key", NULL, "Its key, PEM."),
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

static fallible echo_main(int argc, char **argv)
{
    struct echo_config config;
    struct cfg_table table = {rows, ARRAY_LEN(rows), &config};
    struct cfg cfg;
    own(loop) loop = NULL;
    own_done(arena) a;

    arena_init(&a, 1u << 20);
    TRY(cfg_init(&cfg, &a, &table, 1));
    TRY(cfg_load_flags(&cfg, &argc, argv));
    log_setup(2, LOG_INFO, LOG_AUTO);
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    TRY(loop_new(&clock_system, &loop));
    return echo_run(loop, &config);
}

int main(int argc, char **argv)
{
    own(err) e = NULL;

    argc--;
    e = echo_main(argc, argv + 1);
    if (e)
        fd_print(2, "echo-server: %s\n", err_text(e));
    return e ? 1 : 0;
}
