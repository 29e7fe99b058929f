// SPDX-License-Identifier: Apache-2.0
/* identity_test.c — what a sandbox is called inside, and that no other has its machine id. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"
#include "test/test.h"

#define ID_LEN 32

static const char script[] = "cat /etc/machine-id /etc/hostname; getent hosts $(hostname);"
                             "echo 10.1.2.3 db >>/etc/hosts && sed -i s/db/base/ /etc/hosts &&"
                             "getent hosts base; stat -c %a:%u /etc /etc/hosts";

/* Without what croft itself says before and after. */
static struct str without_talk(struct str said)
{
    struct str talk = STR("croft run:"), line;

    if (str_starts(said, talk))
        str_cut(&said, '\n', &line);
    ptrdiff_t end = str_find(said, talk);
    return end < 0 ? said : str_n(said.p, (size_t)end);
}

static void check_run(struct str all, char id[ID_LEN + 1])
{
    struct str said = without_talk(all);

    CHECK(said.len > ID_LEN + 1 && said.p[ID_LEN] == '\n');
    memcpy(id, said.p, ID_LEN);
    id[ID_LEN] = '\0';
    CHECK_INT(strspn(id, "0123456789abcdef"), ID_LEN);
    CHECK_STR(str_from(said, ID_LEN + 1), "field\n127.0.1.1       field\n10.1.2.3        base\n"
                                          "755:0\n644:0\n");
}

TEST_LIMIT(croft_run_names_the_sandbox_in_its_etc_and_no_machine_id_comes_twice, 120)
{
    char state[4200], ids[2][ID_LEN + 1];

    kit_need_root();
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    kit_share_layers(state);
    for (size_t i = 0; i < 2; i++) {
        own_done(buf) out;
        buf_init(&out, 1u << 16);
        CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--bare", "--name", "field", "--",
                                   "sh", "-c", script),
                              &out),
                  0);
        kit_settle();
        check_run(buf_str(&out), ids[i]);
        kit_check_empty("state/box");
    }
    CHECK(strcmp(ids[0], ids[1]) != 0);
}

TEST_LIMIT(ordinary_user_has_names_of_his_sandbox_too, 120)
{
    char id[ID_LEN + 1], state[4200];
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    kit_be_nobody();
    snprintf(state, sizeof state, "%s/state", test_dir());
    kit_share_layers_as(state, "test-state-user", KIT_NOBODY);
    CHECK_INT(umask(077), 022); /* for everybody inside all the same */
    CHECK_INT(
        kit_as_nobody(ARGS("run", "--bare", "--name", "field", "--", "sh", "-c", script), &out), 0);
    check_run(buf_str(&out), id);
    kit_check_empty("state/box");
}

/* --- behind the launcher --- */

static void read_inside(struct rig *r, const char *id, const char *name, struct buf *out)
{
    char path[100];

    snprintf(path, sizeof path, "/proc/%d/root/%s", rig_tell(r, NATIVE_INSPECT, id).pid, name);
    buf_reset(out);
    CHECK_OK(fd_read_file(path, out));
}

static void take_snapshot(struct rig *r, const char *id, const char *name)
{
    struct native_request req = rig_request(NATIVE_SNAPSHOT, id);

    snprintf(req.snapshot, sizeof req.snapshot, "%s", name);
    rig_ok(r, &req);
}

static void start_from(struct rig *r, const char *id, const char *name)
{
    struct native_request req = rig_request(NATIVE_START, id);
    struct native_reply reply;
    int fds[2];

    own_fd block = rig_block(ARGS("action-server", "--no-auth"), ARGS(NULL));
    snprintf(req.snapshot, sizeof req.snapshot, "%s", name);
    snprintf(req.hostname, sizeof req.hostname, "%s", id);
    rig_ask(r, &req, &block, 1, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    close(fds[0]);
    close(fds[1]);
}

/* As the sandbox would have: its upper layer, while it does not run. */
static void change(const struct rig *r, const char *id, const char *name, const char *text)
{
    char path[4400];

    snprintf(path, sizeof path, "%s/box/%s/upper/etc", r->state, id);
    CHECK_INT(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/box/%s/upper/etc/%s", r->state, id, name);
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, str_of(text)));
}

TEST(machine_id_lasts_over_a_restart_and_a_snapshot_and_a_fork_has_its_own)
{
    static const char *const images[] = {NULL};
    own_done(buf) first, text;
    struct rig r;

    buf_init(&first, 4096);
    buf_init(&text, 4096);
    rig_prepare(&r, 2);
    kit_share_layers(r.state);
    r.policy.images = images;
    r.fds = test_open_fds();
    rig_fork(&r);
    rig_start(&r, "a");
    read_inside(&r, "a", "etc/machine-id", &first);
    CHECK_INT(first.len, ID_LEN + 1);
    read_inside(&r, "a", "etc/hostname", &text);
    CHECK_STR(buf_str(&text), "box\n");
    rig_tell(&r, NATIVE_KILL, "a");
    change(&r, "a", "hosts", "10.0.0.1 mine\n");
    take_snapshot(&r, "a", "point");
    rig_start(&r, "a");
    read_inside(&r, "a", "etc/machine-id", &text);
    CHECK_STR(buf_str(&text), buf_str(&first));
    read_inside(&r, "a", "etc/hosts", &text);
    CHECK_STR(buf_str(&text), "10.0.0.1 mine\n");
    start_from(&r, "b", "point");
    read_inside(&r, "b", "etc/hostname", &text);
    CHECK_STR(buf_str(&text), "b\n");
    read_inside(&r, "b", "etc/hosts", &text); /* what was changed by hand is the user's */
    CHECK_STR(buf_str(&text), "10.0.0.1 mine\n");
    read_inside(&r, "b", "etc/machine-id", &text);
    CHECK_INT(text.len, ID_LEN + 1);
    CHECK(!str_eq(buf_str(&text), buf_str(&first)));
    rig_close(&r);
}

TEST(image_whose_etc_is_a_link_keeps_it_and_its_host_gets_nothing)
{
    own_done(buf) out;
    char root[4200], path[4400];
    struct stat st;

    buf_init(&out, 1u << 16);
    kit_need_root();
    snprintf(root, sizeof root, "%s/image", test_dir());
    CHECK_INT(program_run(ARGS("mkdir", "-p", root), &out), 0);
    snprintf(path, sizeof path, "%s/image/etc", test_dir());
    CHECK_INT(symlink("/etc", path), 0); /* the host's, if anybody followed it outside */
    snprintf(path, sizeof path, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", path, 1);
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--bare", "--root", root, "--", "/sh"),
                          &out),
              127);
    kit_settle();
    snprintf(path, sizeof path, "%s/image/etc", test_dir());
    CHECK_INT(lstat(path, &st), 0);
    CHECK(S_ISLNK(st.st_mode));
    kit_check_empty("state/box");
}

/* Layers of one overlay may not lie in each other. */
TEST(a_root_that_croft_keeps_its_state_in_starts_with_its_own_names)
{
    own_done(buf) out;
    char state[4200], guest[4200];

    kit_need_root();
    buf_init(&out, 1u << 16);
    snprintf(state, sizeof state, "%s/state", test_dir());
    snprintf(guest, sizeof guest, "%s/busybox", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    CHECK_INT(program_run(ARGS("cp", "/bin/busybox", guest), &out), 0);
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--bare", "--root", test_dir(), "--",
                               "/busybox", "echo", "started"),
                          &out),
              0);
    CHECK_STR(buf_str(&out), "started\n");
    kit_settle();
}
