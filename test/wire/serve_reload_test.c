// SPDX-License-Identifier: Apache-2.0
/* serve_reload_test.c — SIGHUP: what changed, what waits for a restart, and files that are wrong.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/program.h"
#include "test/serve_kit.h"

static void begin(struct serve *s, int log[2], const char *config)
{
    CHECK_INT(pipe2(log, O_CLOEXEC), 0);
    serve_prepare(s);
    s->log = log[1];
    own_fd dir = test_dir_fd();
    CHECK_OK(fd_replace_file(dir, "croft.toml", str_of(config), 0644));
    serve_run(s, ARGS("--log-level", "info", "--log-format", "text", "--config",
                      serve_text(s, "%s/croft.toml", test_dir())));
}

static void hang_up(struct serve *s, const char *config, int mode)
{
    own_fd dir = test_dir_fd();

    CHECK_OK(fd_replace_file(dir, "croft.toml", str_of(config), (mode_t)mode));
    CHECK_INT(kill(s->wire.pid, SIGHUP), 0);
}

TEST_LIMIT(serve_says_at_sighup_what_changed_and_what_waits_for_a_restart, 120)
{
    struct serve s = {.key = NULL};
    int log[2];

    begin(&s, log, "[pool.p]\ntarget = 0\n");
    hang_up(&s, "[pool.p]\ntarget = 1\n[idle]\nmax_age = '1h'\n", 0644);
    serve_read_until(log[0], "settings were read anew changed=\"idle.max_age, pool.p.target, "
                             "pool.p.ceiling\"\n");
    hang_up(&s, "[pool.p]\ntarget = 0\n[limits]\npids = 7\n", 0644);
    serve_read_until(log[0], "some wait for a restart changed=\"");
    serve_read_until(log[0], "wait=limits.pids\n");
    hang_up(&s, "[pool.p]\ntarget = 0\n[limits]\npids = 7\n", 0644);
    serve_read_until(log[0], "changed=\"\" wait=limits.pids\n"); /* it waits still */
    hang_up(&s, "[pool.p]\ntarget = 0\n", 0644);
    serve_read_until(log[0], "settings were read anew changed=limits.pids\n");
    hang_up(&s, "[pool.p]\ntarget = 0\n", 0644);
    serve_read_until(log[0], "settings were read anew changed=nothing\n");
    serve_close(&s);
}

TEST_LIMIT(serve_that_may_not_read_its_settings_at_sighup_says_so_and_keeps_those_of_before, 120)
{
    struct serve s = {.key = NULL};
    int log[2];

    begin(&s, log, "[pool.p]\ntarget = 0\n");
    hang_up(&s, "[pool.q]\ntarget = 0\n", 0600); /* the server is not root any more */
    serve_read_until(log[0], "those of before count");
    serve_read_until(log[0], "croft.toml");
    CHECK_HAS(serve_get(&s, "/croft/v1/pool").body, "\"name\":\"p\"");
    serve_close(&s);
}

/* The pools are of the last part that reads its settings, the quota of an earlier one. */
TEST_LIMIT(serve_takes_nothing_of_settings_of_which_one_part_refuses_some, 120)
{
    struct serve s = {.key = NULL};
    int log[2];

    begin(&s, log, "[pool.p]\ntarget = 0\n");
    hang_up(&s, "[tenant]\nstarts_per_minute = 1\n[pool.p]\nimage = ''\n", 0644);
    serve_read_until(log[0], "those of before count");
    serve_read_until(log[0], "pool.p");
    serve_start(&s, "one", "");
    serve_start(&s, "two", ""); /* a second one in a minute */
    serve_close(&s);
}
