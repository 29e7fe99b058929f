// SPDX-License-Identifier: Apache-2.0
/* user_test.c — croft run and croft doctor as an ordinary user, and croft doctor as root. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

TEST_LIMIT(an_ordinary_user_has_sandboxes_too_and_hears_what_they_lack, 120)
{
    static const char script[] = "id -u; pwd; echo x >made; ls; mount -t tmpfs x /mnt 2>/dev/null;"
                                 "hostname y 2>/dev/null; unshare -U true 2>/dev/null;"
                                 "cat /etc/shadow >/dev/null; exit 5";
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    kit_be_nobody();
    CHECK_INT(kit_as_nobody(ARGS("run", "--discard", "--", "sh", "-c", script), &out), 5);
    CHECK_HAS(buf_str(&out), "0\n/workspace\nmade\n");
    CHECK_HAS(buf_str(&out), "no limits on memory and processes");
    kit_check_empty("state/box");
    kit_check_empty("state/ids");
    buf_reset(&out);
    CHECK_INT(kit_as_nobody(ARGS("run", "--name", "n1", "--", "touch", "made"), &out), 0);
    CHECK_HAS(buf_str(&out), "1 added in the copy");
    CHECK(str_find(buf_str(&out), STR("no limits")) < 0); /* once a day */
    CHECK_INT(kit_as_nobody(ARGS("rollback", "n1"), &out), 0);
    buf_reset(&out);
    CHECK_INT(kit_as_nobody(ARGS("run", "--memory", "100M", "--bare", "--", "true"), &out), 125);
    CHECK_HAS(buf_str(&out), "a memory limit needs");
    buf_reset(&out);
    CHECK_INT(kit_as_nobody(ARGS("run", "--require", "files,ids", "--bare", "--", "true"), &out),
              125);
    CHECK_HAS(buf_str(&out), "layer 'ids'");
    buf_reset(&out);
    CHECK_INT(kit_as_nobody(ARGS("doctor"), &out), 0);
    CHECK_HAS(buf_str(&out), "none: root inside is you");
    CHECK_HAS(buf_str(&out), "refused   connect to a server on this machine\n");
    kit_check_empty("state/box");
}

TEST_LIMIT(an_ordinary_user_hears_that_there_are_no_limits_once_a_day_or_when_asking_for_one, 120)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    kit_be_nobody();
    CHECK_INT(kit_as_nobody(ARGS("run", "--bare", "--", "true"), &out), 0);
    CHECK_HAS(buf_str(&out), "with them: systemd-run --user --scope -p Delegate=yes croft run\n");
    buf_reset(&out);
    CHECK_INT(kit_as_nobody(ARGS("run", "--bare", "--", "true"), &out), 0);
    CHECK_STR(buf_str(&out), "");
    CHECK_INT(kit_as_nobody(ARGS("run", "--bare", "--nofile", "200", "--", "true"), &out), 0);
    CHECK_HAS(buf_str(&out), "no limits on memory and processes here");
}

TEST_LIMIT(croft_doctor_tries_the_walls_from_inside, 60)
{
    struct arena a;
    struct json *v = NULL;
    char state[4200];
    own_done(buf) out;

    kit_need_root();
    buf_init(&out, 1u << 16);
    arena_init(&a, 1u << 20);
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    CHECK_INT(program_run(ARGS(test_program("croft"), "doctor", "--json"), &out), 0);
    kit_settle();
    CHECK_OK(json_parse(&a, buf_str(&out), NULL, &v));
    CHECK(json_get_bool(v, "works", false));
    CHECK(json_get(v, STR("server_user")) != NULL);
    const struct json *acts = json_get(v, STR("acts"));
    for (const struct json *at = acts->first; at; at = at->next)
        CHECK_STR(at->s, "refused");
    CHECK(json_get_bool(json_get(json_get(v, STR("layers")), STR("ids")), "there", false));
    kit_check_empty("state/box");
    kit_check_empty("state/ids");
    arena_done(&a);
}

/* What it changed is copied out of a disk of its own, as snapshots of running ones are. */
TEST_LIMIT(an_ordinary_user_keeps_what_is_in_directories_that_were_closed, 120)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    kit_be_nobody();
    int code = kit_as_nobody(ARGS("run", "--name", "n1", "--disk", "50M", "--", "sh", "-c",
                                  "mkdir -p shut/in; echo x >shut/in/f; chmod 0 shut/in shut"),
                             &out);
    if (code == 125 && str_find(buf_str(&out), STR("disk")) >= 0)
        SKIP("no limit on disk space for an ordinary user here");
    CHECK_INT(code, 0);
    buf_reset(&out);
    CHECK_INT(kit_as_nobody(ARGS("diff", "n1"), &out), 0);
    CHECK_STR(buf_str(&out), "A  shut/\nA  shut/in/\nA  shut/in/f\n");
    CHECK_INT(kit_as_nobody(ARGS("rollback", "n1"), &out), 0);
}
