// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "host/overlay/overlay.h"
#include "test/program.h"
#include "test/test.h"

/* A directory, and a sandbox "box-1" that changed its copy. */
static void make_box(void)
{
    char script[2000];

    umask(022);
    snprintf(script, sizeof script,
             "cd %s && mkdir -p work/d state/croft/box state/croft/ids && chmod 700 state/croft && "
             "echo 1 >work/a && echo 2 >work/d/b && mkdir -p state/croft/box/box-1/m0u/d && "
             "cd state/croft/box/box-1/m0u && echo one >a && mknod d/b c 0 0 && echo n >new && "
             "mkfifo pipe",
             test_dir());
    CHECK_INT(system(script), 0); /* NOLINT(cert-env33-c): our own words */
    char path[300];
    snprintf(path, sizeof path, "%s/state/croft/box/box-1", test_dir());
    own_fd box = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/work", test_dir());
    CHECK_OK(overlay_note(box, 0, path));
    snprintf(path, sizeof path, "%s/state", test_dir());
    CHECK(setenv("XDG_STATE_HOME", path, 1) == 0);
}

static int croft(struct buf *into, const char *verb, const char *a, const char *b, const char *c)
{
    buf_reset(into);
    return program_run(ARGS(test_program("croft"), verb, a, b, c), into);
}

static void go(const char *below)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", test_dir(), below);
    CHECK(chdir(path) == 0);
}

TEST(diff_lists_changes_by_name_and_by_the_directory_we_are_in)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    CHECK_INT(croft(&got, "diff", "box-1", NULL, NULL), 0);
    CHECK_STR(buf_str(&got), "M  a\nD  d/b\nA  new\n!  pipe\n");
    go("work/d");
    CHECK_INT(croft(&got, "diff", NULL, NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "croft diff: box-1 of 20");
    CHECK_HAS(buf_str(&got), "\nM  a\nD  d/b\nA  new\n!  pipe\n");
    CHECK_INT(croft(&got, "diff", "--json", NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "{\"sandbox\": \"box-1\", \"made\": \"20");
    CHECK_HAS(buf_str(&got), "\"directories\": [{\"directory\": \"");
    CHECK_HAS(buf_str(&got), "{\"kind\": \"modified\", \"path\": \"a\", \"type\": \"file\", "
                             "\"mode\": 420, \"size\": 4, \"old_size\": 2, \"conflict\": false}");
}

TEST(diff_without_a_sandbox_says_what_there_is)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    go("state");
    CHECK_INT(croft(&got, "diff", NULL, NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "name one of: 'box-1' over '");
    CHECK_INT(croft(&got, "diff", "box-2", NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "no sandbox 'box-2' has left changes; there are: 'box-1'");
    CHECK_INT(croft(&got, "diff", "../x", NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "is no name of a sandbox");
    CHECK_INT(croft(&got, "diff", "a", "b", NULL), 1);
    CHECK_INT(croft(&got, "rollback", "box-1", NULL, NULL), 0);
    CHECK_INT(croft(&got, "diff", NULL, NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "'croft run' makes one");
}

TEST(apply_puts_changes_into_the_directory_and_rollback_drops_them)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    go("work");
    CHECK_INT(croft(&got, "apply", "box-1", "new", "nosuch"), 1);
    CHECK_HAS(buf_str(&got), "'nosuch' is not among the changes");
    CHECK_INT(croft(&got, "apply", "box-1", "../../etc", NULL), 1);
    CHECK(access("new", F_OK) < 0);
    CHECK_INT(croft(&got, "apply", "box-1", "./new", NULL), 0);
    CHECK_HAS(buf_str(&got), "applied 1 to '");
    CHECK(access("new", F_OK) == 0 && access("d/b", F_OK) == 0);
    CHECK_INT(croft(&got, "apply", "box-1", "--json", NULL), 0);
    CHECK_HAS(buf_str(&got), "\"applied\": 2, \"skipped\": 1}]}");
    CHECK(access("d/b", F_OK) < 0);
    CHECK_INT(croft(&got, "diff", NULL, NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "\n!  pipe\n");
    CHECK_INT(croft(&got, "rollback", NULL, NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "dropped the changes of box-1 of 20");
    go("state/croft/box");
    CHECK(access("box-1", F_OK) < 0);
}

TEST(rollback_of_a_sandbox_that_runs_is_refused)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    go("state/croft/ids");
    CHECK(symlink("box-1", "17") == 0);
    CHECK_INT(croft(&got, "rollback", "box-1", NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "still runs");
    CHECK(access("../box/box-1", F_OK) == 0);
}

TEST(snapshot_command_freezes_and_diff_still_shows_all)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    go("work");
    CHECK_INT(croft(&got, "snapshot", "take", "--name", "s1"), 0);
    CHECK_HAS(buf_str(&got), "s1\t");
    CHECK_INT(croft(&got, "diff", "box-1", NULL, NULL), 0);
    CHECK_STR(buf_str(&got), "M  a\nD  d/b\nA  new\n!  pipe\n");
    CHECK_INT(croft(&got, "snapshot", "ls", "--json", NULL), 0);
    CHECK_HAS(buf_str(&got), "[{\"name\": \"s1\", \"directory\": \"");
    CHECK_INT(croft(&got, "snapshot", "take", "--name", "s1"), 1);
    CHECK_HAS(buf_str(&got), "there is a snapshot 's1' already");
    CHECK_INT(croft(&got, "snapshot", "rm", "s1", NULL), 0);
    CHECK_INT(croft(&got, "diff", "box-1", NULL, NULL), 0); /* the sandbox stands on it still */
    CHECK_STR(buf_str(&got), "M  a\nD  d/b\nA  new\n!  pipe\n");
    CHECK_INT(croft(&got, "snapshot", "show", NULL, NULL), 2);
}

TEST(rollback_sweeps_the_layers_only_it_stood_on)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    go("work");
    CHECK_INT(croft(&got, "snapshot", "take", "--name", "s1"), 0);
    CHECK_INT(croft(&got, "snapshot", "rm", "s1", NULL), 0);
    CHECK_INT(croft(&got, "rollback", "box-1", NULL, NULL), 0);
    go("state/croft/snap");
    CHECK(rmdir("layers") == 0); /* it is empty */
}

/* Another box over the directory, whose run ended at that time. */
static void make_run(const char *id, const char *command, uint64_t wall_s)
{
    char path[400], source[300];
    struct timespec times[2] = {{(time_t)wall_s, 0}, {(time_t)wall_s, 0}};

    snprintf(path, sizeof path, "%s/state/croft/box/%s", test_dir(), id);
    snprintf(source, sizeof source, "%s/work", test_dir());
    CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
    own_fd box = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(mkdirat(box, "m0u", 0755) == 0 || errno == EEXIST);
    CHECK(mkdirat(box, "m0u/new", 0755) == 0 || errno == EEXIST);
    CHECK(symlinkat(source, box, "m0s") == 0 || errno == EEXIST);
    CHECK_OK(overlay_note_run(box, command));
    CHECK(utimensat(box, "run", times, AT_SYMLINK_NOFOLLOW) == 0);
}

static void note_that_nothing_changed(const char *id, const char *command)
{
    struct overlay_run run = {.wall_ns = clock_wall_ns(&clock_system) + NS_PER_S,
                              .end = OVERLAY_NOTHING};
    char path[300];

    snprintf(run.id, sizeof run.id, "%s", id);
    snprintf(run.command, sizeof run.command, "%s", command);
    snprintf(path, sizeof path, "%s/state/croft", test_dir());
    own_fd state = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/work", test_dir());
    overlay_note_last(state, path, &run);
}

TEST(without_a_name_the_last_run_is_meant_even_when_it_changed_nothing)
{
    static const char *const verbs[] = {"diff", "apply", "rollback"};
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    note_that_nothing_changed("later", "make test");
    go("work/d");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        CHECK_INT(croft(&got, verbs[i], NULL, NULL, NULL), 0);
        CHECK_HAS(buf_str(&got), "the last run here, later of 20");
        CHECK_HAS(buf_str(&got), " (make test), changed nothing\n");
        CHECK_INT(croft(&got, verbs[i], "--json", NULL, NULL), 0);
        CHECK_HAS(buf_str(&got), "{\"sandbox\": \"later\", \"made\": \"20");
        CHECK_HAS(buf_str(&got), "\"command\": \"make test\", \"directories\": []}\n");
    }
    CHECK(access("b", F_OK) == 0 && access("../new", F_OK) < 0);
    CHECK_INT(croft(&got, "diff", "box-1", NULL, NULL), 0);
    CHECK_STR(buf_str(&got), "M  a\nD  d/b\nA  new\n!  pipe\n");
}

TEST(rollback_twice_drops_one_run)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    make_run("older", "make", 1700000000);
    go("work");
    CHECK_INT(croft(&got, "rollback", NULL, NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "dropped the changes of box-1 of 20");
    CHECK_INT(croft(&got, "rollback", NULL, NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "the changes of the last run here, box-1 of 20");
    CHECK_HAS(buf_str(&got), ", were dropped; name one of: 'older' over '");
    CHECK_INT(croft(&got, "apply", NULL, NULL, NULL), 1);
    CHECK(access("../state/croft/box/older/m0u/new", F_OK) == 0);
    CHECK_INT(croft(&got, "rollback", "older", NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "dropped the changes of older of 2023-11-1");
    CHECK_HAS(buf_str(&got), " (make)\n");
    CHECK_INT(croft(&got, "diff", NULL, NULL, NULL), 1); /* a later one was the last */
    CHECK_HAS(buf_str(&got), "box-1 of 20");
    CHECK_HAS(buf_str(&got), "'croft run' makes one");
}

TEST(an_apply_to_an_older_run_does_not_make_it_the_last)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    make_run("box-1", "first", 1700000000);
    make_run("second", "last", 1700000001);
    go("work");
    CHECK_INT(croft(&got, "apply", "box-1", "a", NULL), 0);
    CHECK_HAS(buf_str(&got), " from box-1 of 2023-11-1");
    CHECK_INT(croft(&got, "diff", NULL, NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "croft diff: second of 2023-11-1");
    CHECK_HAS(buf_str(&got), " (last)\nA  new/\n");
}

TEST(what_runs_changed_goes_by_age_and_the_list_says_when)
{
    own_done(buf) got = {.limit_bytes = 65536};
    uint64_t now = clock_wall_ns(&clock_system) / NS_PER_S;

    make_box();
    make_run("box-1", "make test", now);
    make_run("old", "make", now - 31 * 86400);
    CHECK(setenv("CROFT_RUN_KEEP", "0", 1) == 0);
    CHECK_INT(croft(&got, "diff", "--list", NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "1 added; make\n");
    CHECK(unsetenv("CROFT_RUN_KEEP") == 0);
    CHECK_INT(croft(&got, "diff", "--list", NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "; goes in 29d; make test\n");
    CHECK(str_find(buf_str(&got), STR("old ")) < 0);
    CHECK_INT(croft(&got, "diff", "--list", "--json", NULL), 0);
    CHECK_HAS(buf_str(&got), "\"command\": \"make test\", \"running\": false, \"goes\": \"20");
    go("state/croft/box");
    CHECK(access("old", F_OK) < 0);
}

TEST(apply_does_not_follow_a_directory_that_became_a_link)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    go("");
    CHECK(mkdir("elsewhere", 0755) == 0 && rename("work", "moved") == 0);
    CHECK(symlink("elsewhere", "work") == 0);
    CHECK_INT(croft(&got, "apply", "box-1", NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "now leads to");
    CHECK(access("elsewhere/new", F_OK) < 0);
}

TEST(apply_wants_the_directory_the_sandbox_worked_on_unless_forced)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    go("work");
    own_fd box = open("../state/croft/box/box-1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd work = open(".", O_PATH | O_CLOEXEC);
    CHECK_OK(overlay_note_which(box, 0, work, geteuid() != 0));
    CHECK_INT(croft(&got, "diff", NULL, NULL, NULL), 0);
    go("");
    CHECK(mkdir("another", 0755) == 0 && mkdir("another/d", 0755) == 0);
    CHECK(rename("work", "moved") == 0 && rename("another", "work") == 0);
    CHECK_INT(croft(&got, "apply", "box-1", NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "another directory has its name now");
    CHECK_HAS(buf_str(&got), "--force");
    CHECK(access("work/new", F_OK) < 0);
    CHECK_INT(croft(&got, "diff", "box-1", NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "another directory has its name now: this is what would change");
    CHECK_HAS(buf_str(&got), "A  new\n");
    CHECK_INT(croft(&got, "diff", "box-1", "--json", NULL), 0);
    CHECK_HAS(buf_str(&got), "\"other_directory\": true");
    CHECK(rename("work", "another") == 0 && rename("moved", "work") == 0);
    CHECK_INT(croft(&got, "apply", "box-1", NULL, NULL), 0);
    CHECK(access("work/new", F_OK) == 0);
    CHECK(rename("work", "moved") == 0 && rename("another", "work") == 0);
    struct stat before, after;
    CHECK_INT(fstatat(box, "m0a", &before, 0), 0);
    CHECK_INT(croft(&got, "apply", "box-1", "--force", NULL), 0);
    CHECK_INT(fstatat(box, "m0a", &after, 0), 0); /* notes are of the other one's files */
    CHECK_INT(after.st_size, before.st_size);
    CHECK_HAS(buf_str(&got), "', another directory than the sandbox worked on");
    CHECK(access("work/new", F_OK) == 0);
}

TEST(diff_lists_every_sandbox_that_has_left_changes)
{
    own_done(buf) got = {.limit_bytes = 65536};

    setenv("XDG_STATE_HOME", test_dir(), 1);
    CHECK_INT(croft(&got, "diff", "--list", NULL, NULL), 0);
    CHECK_STR(buf_str(&got), "");
    CHECK_INT(croft(&got, "diff", "--list", "--json", NULL), 0);
    CHECK_STR(buf_str(&got), "[]\n");
    make_box();
    go("");
    CHECK_INT(croft(&got, "diff", "--list", NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "box-1 ");
    CHECK_HAS(buf_str(&got), "/work: 1 added, 1 modified, 1 deleted, 1 special; goes in ");
    CHECK(mkdir("state/croft/box/bare", 0755) == 0 && mkdir("state/croft/box/bare/m0u", 0755) == 0);
    CHECK(rename("work", "moved") == 0);
    CHECK_INT(croft(&got, "diff", "--list", "--json", NULL), 0);
    CHECK_HAS(buf_str(&got), "{\"sandbox\": \"box-1\", \"made\": \"20");
    CHECK_HAS(buf_str(&got), "\"running\": false, \"goes\": \"20");
    CHECK_HAS(buf_str(&got), "No such file or directory\"}]}]\n");
    CHECK_INT(croft(&got, "diff", "--list", "box-1", NULL), 2);
    CHECK_HAS(buf_str(&got), "name none");
}

TEST(rollback_needs_no_directory)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    go("");
    CHECK(rename("work", "moved") == 0);
    CHECK_INT(croft(&got, "diff", "box-1", NULL, NULL), 1);
    CHECK_INT(croft(&got, "rollback", "box-1", NULL, NULL), 0);
    CHECK(access("state/croft/box/box-1", F_OK) < 0);
}

TEST(apply_that_failed_says_what_it_did_in_json_too)
{
    own_done(buf) got = {.limit_bytes = 65536};
    struct rlimit small = {65536, 65536};

    make_box();
    go("state/croft/box/box-1/m0u");
    own_fd big = open("zbig", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(ftruncate(big, 1 << 20) == 0 && pwrite(big, "x", 1, (1 << 20) - 1) == 1);
    go("work");
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0 && signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    CHECK_INT(croft(&got, "apply", "box-1", "--json", NULL), 1);
    CHECK_HAS(buf_str(&got), "2 of 4 changes were applied before this");
    CHECK_HAS(buf_str(&got), "\"applied\": 2");
}

TEST(what_lies_too_deep_is_said_and_is_a_failure)
{
    own_done(buf) got = {.limit_bytes = 1u << 20};
    char name[201];

    memset(name, 'e', 200);
    name[200] = '\0';
    make_box();
    go("state/croft/box/box-1/m0u");
    int at = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 24; i++) {
        CHECK_INT(mkdirat(at, name, 0755), 0);
        int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    close(at);
    CHECK_INT(croft(&got, "diff", "box-1", NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "M  a\nD  d/b\n");
    CHECK_HAS(buf_str(&got), "1 lie too deep to be looked into");
    CHECK_INT(croft(&got, "apply", "box-1", "new", NULL), 0); /* it was not asked for */
    CHECK_INT(croft(&got, "apply", "box-1", NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "too deep to be looked into, so what is in them was left out: ");
    CHECK_HAS(buf_str(&got), "applied ");
    go("work");
    CHECK_INT(access(name, F_OK), 0);
}

/* --- lines --- */

TEST(diff_shows_lines_as_patch_takes_them)
{
    static const char script[] =
        "cd %s && echo 3 >work/d/stays && mkdir p && cp -a work p/ && seq 30 >work/n && printf "
        "'x\ny' >work/end && "
        "cp work/n work/end p/work/ && cd state/croft/box/box-1/m0u && rm pipe && "
        "(echo 0; seq 14; echo fifteen; seq 16 30; echo) >n && printf 'x\nz' >end && "
        "printf '\n\n' >blank && cd %s && croft diff --patch box-1 >lines && "
        "(cd p/work && patch -sp1 <../../lines) && (cd work && croft apply box-1 --force "
        ">/dev/null) "
        "&& diff -r work p/work && echo same";
    own_done(buf) got = {.limit_bytes = 65536};
    char line[1500];

    if (program_run(ARGS("sh", "-c", "command -v patch"), &got) != 0)
        SKIP("there is no patch(1)");
    buf_reset(&got);
    make_box();
    const char *program = test_program("croft");
    snprintf(line, sizeof line, "PATH=%.*s:$PATH; ", (int)(strrchr(program, '/') - program),
             program);
    size_t n = strlen(line);
    snprintf(line + n, sizeof line - n, script, test_dir(), test_dir());
    CHECK_INT(program_run(ARGS("bash", "-c", line), &got), 0);
    CHECK_STR(buf_str(&got), "same\n");
}

TEST(diff_shows_one_path_when_one_is_named)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    CHECK_INT(croft(&got, "diff", "box-1", "d", NULL), 0);
    CHECK_STR(buf_str(&got), "D  d/b\n");
    CHECK_INT(croft(&got, "diff", "box-1", "a", "--patch"), 0);
    CHECK_STR(buf_str(&got), "M  a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+one\n");
    CHECK_INT(croft(&got, "diff", "box-1", "d", "--json"), 0);
    CHECK_HAS(buf_str(&got), "\"deleted\": 1");
    CHECK_HAS(buf_str(&got), "\"added\": 0");
    go("work");
    CHECK_INT(croft(&got, "diff", "d/b", NULL, NULL), 0); /* of the last run */
    CHECK_HAS(buf_str(&got), "croft diff: box-1 of 20");
    CHECK_HAS(buf_str(&got), "\nD  d/b\n");
    CHECK_INT(croft(&got, "diff", "box-1", "nosuch", NULL), 1);
    CHECK_HAS(buf_str(&got), "'nosuch' is not among the changes; 'croft diff box-1' lists them");
    CHECK_INT(croft(&got, "diff", "box-1", "--patch", "--json"), 2);
}

TEST(diff_says_of_what_it_cannot_show_by_lines_why)
{
    own_done(buf) got = {.limit_bytes = 65536};

    make_box();
    go("state/croft/box/box-1/m0u");
    own_fd big = open("big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(ftruncate(big, 1 << 30) == 0 && pwrite(big, "x", 1, 0) == 1);
    own_fd binary = open("binary", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK_INT(write(binary, "a\0b\n", 4), 4);
    CHECK_INT(croft(&got, "diff", "box-1", "big", "--patch"), 0);
    CHECK_STR(buf_str(&got),
              "A  big\n/dev/null and b/big differ: too large to be shown by lines\n");
    CHECK_INT(croft(&got, "diff", "box-1", "binary", "--patch"), 0);
    CHECK_STR(buf_str(&got), "A  binary\n/dev/null and b/binary differ: binary\n");
}
