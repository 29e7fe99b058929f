// SPDX-License-Identifier: Apache-2.0
/* snapshot_test.c — the launcher's snapshots where a server is not honest, or somebody dies. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/record/record.h"
#include "host/rootfs/rootfs.h"
#include "host/snaps/snaps.h"
#include "host/snaps/whole.h"
#include "host/tree/tree.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"
#include "test/test.h"

/* The machine's own system: the kit's `/` has the store in it, and overlay refuses that. */
static void rig_prepare_host(struct rig *r)
{
    static const char *const images[] = {NULL};

    rig_prepare(r, 0);
    kit_share_layers(r->state);
    r->policy.images = images;
    r->fds = test_open_fds();
}

static struct native_request snap_request(enum native_op op, const char *id, const char *name)
{
    struct native_request r = rig_request(op, id);

    snprintf(r.snapshot, sizeof r.snapshot, "%s", name);
    return r;
}

static void snap(struct rig *r, enum native_op op, const char *id, const char *name)
{
    struct native_request req = snap_request(op, id, name);

    rig_ok(r, &req);
}

static void start_from(struct rig *r, const char *id, const char *name)
{
    struct native_request req = snap_request(NATIVE_START, id, name);
    struct native_reply reply;
    char byte;
    int fds[2];

    own_fd block = rig_block(ARGS("action-server", "--no-auth"), ARGS("PATH=/usr/bin:/bin"));
    req.envc = 1;
    rig_ask(r, &req, &block, 1, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    CHECK_OK(fd_wait(fds[0], POLLIN, 60000));
    CHECK_INT(read(fds[0], &byte, 1), 1);
    close(fds[0]);
    close(fds[1]);
}

/* What a sandbox wrote, as its upper layer has it. */
static void put(const struct rig *r, const char *id, const char *name)
{
    char path[4400];

    snprintf(path, sizeof path, "%s/box/%s/upper/%s", r->state, id, name);
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
}

static unsigned count(const struct rig *r, const char *below)
{
    char path[4400];
    unsigned n = 0;

    snprintf(path, sizeof path, "%s/%s", r->state, below);
    DIR *d = opendir(path);
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

/* Sees the file as the sandbox does, through its process. */
static bool sees(struct rig *r, const char *id, const char *name)
{
    char path[400];

    snprintf(path, sizeof path, "/proc/%d/root/%s", rig_tell(r, NATIVE_INSPECT, id).pid, name);
    return access(path, F_OK) == 0;
}

static void stopped(struct rig *r, const char *id)
{
    rig_start(r, id);
    rig_tell(r, NATIVE_KILL, id);
}

TEST(snapshot_in_use_can_be_removed_and_its_layers_go_with_the_last_fork)
{
    struct rig r;

    rig_prepare_host(&r);
    rig_fork(&r);
    stopped(&r, "a");
    put(&r, "a", "kept-file");
    snap(&r, NATIVE_SNAPSHOT, "a", "point");
    start_from(&r, "b", "point");
    rig_tell(&r, NATIVE_REMOVE, "a");
    snap(&r, NATIVE_SNAPSHOT_REMOVE, "", "point");
    CHECK(sees(&r, "b", "kept-file"));
    CHECK(count(&r, "snap/layers") > 0);
    struct native_request gone = snap_request(NATIVE_SNAPSHOT_REMOVE, "", "point");
    rig_refused(&r, &gone, NULL, 0, ERR_NOT_FOUND, "point");
    rig_tell(&r, NATIVE_REMOVE, "b");
    rig_close(&r);
    own_fd state = open(r.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(whole_sweep(state)); /* as the next launcher does */
    CHECK_INT(count(&r, "snap/layers"), 0);
}

TEST(snapshots_are_listed_in_order)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_SNAPSHOT_LIST, "");
    struct native_reply reply;
    int fds[2];

    rig_prepare_host(&r);
    rig_fork(&r);
    stopped(&r, "a");
    snap(&r, NATIVE_SNAPSHOT, "a", "two");
    snap(&r, NATIVE_SNAPSHOT, "a", "one");
    rig_ask(&r, &req, NULL, 0, &reply, fds);
    CHECK_INT(reply.count, 2);
    CHECK_STR(str_of(reply.ids[0]), "one");
    CHECK_STR(str_of(reply.ids[1]), "two");
    rig_close(&r);
}

/* The next server is there before the work is done, and is told nothing that it did not ask. */
TEST(what_a_server_that_is_gone_asked_for_is_done_and_not_told_to_the_next)
{
    struct native_request list = rig_request(NATIVE_SNAPSHOT_LIST, "");
    struct native_request drop = snap_request(NATIVE_SNAPSHOT_REMOVE, "", "one");
    struct native_reply reply;
    char path[4300];
    struct rig r;
    int fds[2], lock;

    rig_prepare_host(&r);
    r.policy.persist = true;
    rig_fork(&r);
    rig_start(&r, "a"); /* or there is nobody to keep a launcher for */
    stopped(&r, "b");
    snap(&r, NATIVE_SNAPSHOT, "b", "one");
    snap(&r, NATIVE_SNAPSHOT, "b", "two");
    snprintf(path, sizeof path, "%s/snap", r.state);
    own_fd store = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(tree_lock(store, &lock)); /* who removes it waits for that */
    CHECK_OK(fd_send(r.sock, str_n(&drop, sizeof drop), NULL, 0));
    close(r.sock);
    snprintf(path, sizeof path, "%s/run", r.state);
    CHECK_OK(launcher_connect(path, &r.sock));
    CHECK_INT(rig_tell(&r, NATIVE_LIST, "").op, NATIVE_LIST);
    close(lock);
    do {
        rig_ask(&r, &list, NULL, 0, &reply, fds);
        CHECK_INT(reply.op, NATIVE_SNAPSHOT_LIST);
    } while (reply.count > 1);
    drop = snap_request(NATIVE_SNAPSHOT_REMOVE, "", "two");
    drop.tag = 7;
    rig_ask(&r, &drop, NULL, 0, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    CHECK_INT(reply.tag, 7);
    CHECK_INT(rig_tell(&r, NATIVE_REMOVE, "b").op, NATIVE_REMOVE);
    CHECK_INT(rig_tell(&r, NATIVE_REMOVE, "a").op, NATIVE_REMOVE);
    close(take_fd(&store));
    rig_close(&r);
}

TEST(snapshot_of_a_host_directory_is_refused_by_its_name)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_START, "a");
    struct native_reply reply;
    int fds[2];

    rig_prepare_host(&r);
    rig_fork(&r);
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    req.mounts[0] =
        (struct native_mount){.mode = NATIVE_RW, .root = 1, .path = ".", .target = "/workspace"};
    rig_ask(&r, &req, &block, 1, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    close(fds[0]);
    close(fds[1]);
    close(take_fd(&block));
    struct native_request take = snap_request(NATIVE_SNAPSHOT, "a", "point");
    rig_refused(&r, &take, NULL, 0, ERR_UNSUPPORTED, "/workspace");
    rig_close(&r);
}

TEST(fork_with_other_mounts_than_its_snapshot_is_refused)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_START, "a");
    struct native_reply reply;
    int fds[2];

    rig_prepare_host(&r);
    rig_fork(&r);
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    req.mounts[0] =
        (struct native_mount){.mode = NATIVE_OVERLAY, .root = 0, .path = ".", .target = "/w"};
    rig_ask(&r, &req, &block, 1, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    close(fds[0]);
    close(fds[1]);
    snap(&r, NATIVE_SNAPSHOT, "a", "point");
    req = snap_request(NATIVE_START, "b", "point");
    rig_refused(&r, &req, &block, 1, ERR_INVALID, "/w");
    req.mounts[0] =
        (struct native_mount){.mode = NATIVE_OVERLAY, .root = 1, .path = ".", .target = "/w"};
    rig_refused(&r, &req, &block, 1, ERR_INVALID, "/w");
    req.mounts[0].root = 0;
    rig_ask(&r, &req, &block, 1, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    close(fds[0]);
    close(fds[1]);
    close(take_fd(&block));
    rig_close(&r);
}

/* As versions left it that had an overlay for /usr alone; file NULL: in an image of its own. */
static void make_old(const struct rig *r, const char *id, const char *file)
{
    char path[4400];
    struct record is;

    snprintf(path, sizeof path, "%s/box/%s", r->state, id);
    own_fd box = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd record = openat(box, "record", O_RDWR | O_CLOEXEC);
    CHECK(record >= 0 && pread(record, &is, sizeof is, 0) == sizeof is);
    CHECK(is.flags & RECORD_JOINED);
    is.flags &= ~(uint32_t)RECORD_JOINED;
    CHECK(pwrite(record, &is, sizeof is, 0) == sizeof is);
    if (!file)
        return;
    CHECK(mkdirat(box, ROOTFS_UPPER_USR, 0755) == 0);
    own_fd upper = openat(box, ROOTFS_UPPER_USR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_fd made = openat(upper, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(made >= 0);
}

static void check_old(struct rig *r, const char *id)
{
    CHECK(sees(r, id, "usr/of-old") && sees(r, id, "usr/bin/env") && sees(r, id, "etc/passwd"));
    CHECK(!sees(r, id, "games") && !sees(r, id, "share"));
}

TEST(sandboxes_and_snapshots_with_an_overlay_for_usr_go_on_with_it)
{
    struct rig r;

    rig_prepare_host(&r);
    rig_fork(&r);
    stopped(&r, "a");
    make_old(&r, "a", "of-old");
    stopped(&r, "a");
    snap(&r, NATIVE_SNAPSHOT, "a", "old");
    start_from(&r, "a", "");
    check_old(&r, "a");
    rig_tell(&r, NATIVE_KILL, "a");
    start_from(&r, "b", "old");
    check_old(&r, "b");
    stopped(&r, "c");
    snap(&r, NATIVE_SNAPSHOT, "c", "new");
    struct native_request req = snap_request(NATIVE_ROLLBACK, "c", "old");
    rig_refused(&r, &req, NULL, 0, ERR_UNSUPPORTED, "/usr");
    req = snap_request(NATIVE_ROLLBACK, "a", "new");
    rig_refused(&r, &req, NULL, 0, ERR_UNSUPPORTED, "/usr");
    snap(&r, NATIVE_ROLLBACK, "a", "old");
    start_from(&r, "a", "");
    check_old(&r, "a");
    make_old(&r, "c", NULL);
    start_from(&r, "c", "");
    CHECK(count(&r, "box/c/" ROOTFS_UPPER_USR) == 0);
    rig_close(&r);
}

TEST(fork_cannot_take_the_place_of_a_sandbox_that_was)
{
    struct rig r;

    rig_prepare_host(&r);
    rig_fork(&r);
    stopped(&r, "a");
    snap(&r, NATIVE_SNAPSHOT, "a", "point");
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    struct native_request req = snap_request(NATIVE_START, "a", "point");
    rig_refused(&r, &req, &block, 1, ERR_CONFLICT, "files of its own");
    close(take_fd(&block));
    rig_close(&r);
}

/* A killed launcher leaves what it had not finished, and a sandbox that stands still for it. */
TEST(next_launcher_sweeps_half_a_snapshot_and_lets_its_sandbox_go_on)
{
    struct rig r;
    char path[4400];

    rig_prepare_host(&r);
    r.policy.persist = true;
    rig_fork(&r);
    rig_start(&r, "a");
    snap(&r, NATIVE_SNAPSHOT, "a", "point");
    rig_tell(&r, NATIVE_PAUSE, "a");
    rig_kill(&r);
    snprintf(path, sizeof path, "%s/box/a/thaw", r.state);
    CHECK_INT(symlink("snapshot", path), 0);
    snprintf(path, sizeof path, "%s/snap/whole/.new-0", r.state);
    CHECK_INT(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/snap/layers/0123456789abcdef0123456789abcdef", r.state);
    CHECK_INT(mkdir(path, 0755), 0);
    unsigned layers = count(&r, "snap/layers");
    rig_fork(&r);
    CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "a").state, NATIVE_RUNNING);
    CHECK_INT(count(&r, "snap/whole"), 1);
    CHECK_INT(count(&r, "snap/layers"), layers - 1);
    start_from(&r, "b", "point");
    rig_tell(&r, NATIVE_REMOVE, "b");
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
    rig_reap();
}

/* Wherever it was cut: whole or not there, and the sandbox runs. */
TEST(launcher_killed_while_it_copies_leaves_a_store_that_the_next_one_sweeps)
{
    struct rig r;
    char name[32];

    rig_prepare_host(&r);
    r.policy.persist = true;
    rig_fork(&r);
    rig_start(&r, "a");
    snap(&r, NATIVE_SNAPSHOT, "a", "point");
    for (unsigned i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "file-%u", i);
        put(&r, "a", name);
    }
    for (unsigned round = 0; round < 3; round++) {
        snprintf(name, sizeof name, "s%u", round);
        struct native_request req = snap_request(NATIVE_SNAPSHOT, "a", name);
        CHECK_OK(fd_send(r.sock, str_n(&req, sizeof req), NULL, 0));
        if (round) { /* answered beside the copying, so that has begun */
            struct native_request look = rig_request(NATIVE_INSPECT, "a");
            CHECK_OK(fd_send(r.sock, str_n(&look, sizeof look), NULL, 0));
            CHECK_OK(fd_wait(r.sock, POLLIN, 60000));
        }
        rig_kill(&r);
        rig_fork(&r);
        CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "a").state, NATIVE_RUNNING);
        rig_check_answers(&r, "a");
        unsigned whole = count(&r, "snap/whole");
        snprintf(name, sizeof name, "again%u", round);
        snap(&r, NATIVE_SNAPSHOT, "a", name);
        CHECK_INT(count(&r, "snap/whole"), whole + 1);
    }
    start_from(&r, "b", name);
    CHECK(sees(&r, "b", "file-0") && sees(&r, "b", "file-499"));
    rig_tell(&r, NATIVE_REMOVE, "b");
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
    rig_reap();
}

/* Death between the note and the exchange, and between the exchange and the note's taking effect:
 * the files are there either way. */
TEST(sandbox_keeps_its_files_when_its_freezing_was_cut_short)
{
    static const char layer[] = "0123456789abcdef0123456789abcdef";
    struct rig r;
    char upper[4400], note[4400], frozen[4400];

    rig_prepare_host(&r);
    r.policy.persist = true;
    rig_fork(&r);
    stopped(&r, "a");
    snap(&r, NATIVE_SNAPSHOT, "a", "first");
    put(&r, "a", "precious");
    rig_kill(&r);
    snprintf(upper, sizeof upper, "%s/box/a/upper", r.state);
    snprintf(note, sizeof note, "%s/box/a/.upper.l", r.state);
    snprintf(frozen, sizeof frozen, "%s/snap/layers/%s", r.state, layer);
    CHECK_INT(rename(upper, frozen), 0);
    CHECK_INT(mkdir(upper, 0755), 0);
    CHECK_INT(symlink(layer, note), 0);
    rig_fork(&r);
    rig_start(&r, "a");
    CHECK(sees(&r, "a", "precious"));
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
    rig_reap();
}

TEST(long_stacks_are_flattened_behind_the_servers_back)
{
    struct rig r;
    char name[32];

    rig_prepare_host(&r);
    rig_fork(&r);
    stopped(&r, "a");
    for (unsigned i = 0; i < SNAPS_FLATTEN_AT + 5; i++) {
        snprintf(name, sizeof name, "file-%u", i);
        put(&r, "a", name);
        snprintf(name, sizeof name, "s%u", i);
        snap(&r, NATIVE_SNAPSHOT, "a", name);
    }
    start_from(&r, "b", name);
    for (unsigned i = 0; i < SNAPS_FLATTEN_AT + 5; i++) {
        snprintf(name, sizeof name, "file-%u", i);
        CHECK(sees(&r, "b", name));
    }
    rig_start(&r, "a");
    CHECK(sees(&r, "a", "file-0") && sees(&r, "a", "file-24"));
    rig_close(&r);
    own_fd state = open(r.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(whole_flatten(state, "s24"));
    own_fd dir = -1;
    char stack[4096];
    CHECK_OK(whole_open(state, "s24", &dir));
    ssize_t n = readlinkat(dir, "upper", stack, sizeof stack);
    CHECK(n > 0 && n < (ssize_t)(SNAPS_FLATTEN_AT + 1) * (SNAPS_LAYER_LEN + 1));
}

/* --- on the command line --- */

TEST_LIMIT(croft_lists_removes_and_runs_from_the_launchers_snapshots, 120)
{
    struct rig r;
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    rig_prepare_host(&r);
    rig_fork(&r);
    setenv("CROFT_SERVER_STATE_DIR", r.state, 1);
    stopped(&r, "a");
    put(&r, "a", "root-file");
    snap(&r, NATIVE_SNAPSHOT, "a", "point");
    CHECK_INT(program_run(ARGS(test_program("croft"), "snapshot", "ls"), &out), 0);
    CHECK_STR(buf_str(&out), "point\tsandbox a\n");
    buf_reset(&out);
    CHECK_INT(program_run(ARGS(test_program("croft"), "snapshot", "ls", "--json"), &out), 0);
    CHECK_HAS(buf_str(&out), "{\"name\": \"point\", \"sandbox\": \"a\", \"made\": \"");
    buf_reset(&out);
    CHECK_INT(
        program_run(ARGS(test_program("croft"), "run", "--from", "point", "--name", "c", "--", "sh",
                         "-c", "pwd; ls /root-file; cat /etc/hostname; echo x >/root-file"),
                    &out),
        0);
    CHECK_STR(buf_str(&out), "/workspace\n/root-file\nc\n");
    buf_reset(&out);
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--from", "point", "--root", "/usr",
                               "--", "true"),
                          &out),
              125);
    CHECK_HAS(buf_str(&out), "this machine's own system");
    buf_reset(&out);
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--from", "pint", "--", "true"), &out),
              125);
    CHECK_HAS(buf_str(&out), "no snapshot 'pint'");
    buf_reset(&out);
    CHECK_INT(program_run(ARGS(test_program("croft"), "snapshot", "rm", "point"), &out), 0);
    CHECK_STR(buf_str(&out), "point\tsandbox a\n");
    CHECK_INT(program_run(ARGS(test_program("croft"), "snapshot", "rm", "point"), &out), 1);
    CHECK_HAS(buf_str(&out), "no snapshot 'point'");
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
}

TEST_LIMIT(copy_of_a_directory_in_a_snapshot_is_not_guessed_at, 120)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_START, "a");
    struct native_reply reply;
    own_done(buf) out;
    int fds[2];

    buf_init(&out, 1u << 16);
    rig_prepare_host(&r);
    rig_fork(&r);
    setenv("CROFT_SERVER_STATE_DIR", r.state, 1);
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    req.mounts[0] =
        (struct native_mount){.mode = NATIVE_OVERLAY, .root = 0, .path = ".", .target = "/w"};
    rig_ask(&r, &req, &block, 1, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    close(fds[0]);
    close(fds[1]);
    close(take_fd(&block));
    snap(&r, NATIVE_SNAPSHOT, "a", "point");
    CHECK_INT(
        program_run(ARGS(test_program("croft"), "run", "--from", "point", "--", "true"), &out),
        125);
    CHECK_HAS(buf_str(&out), "a copy of a directory that its server alone can find");
    rig_close(&r);
}
