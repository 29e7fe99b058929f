// SPDX-License-Identifier: Apache-2.0
/* Snapshots and forks as a way out: what was one sandbox's alone (keys, variables, processes,
 * ports, identity) is not in its forks, and a snapshot somebody tampered with starts nothing. What
 * is in the files is in the fork: that is the control. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/contract/contract.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"

#define LIMIT_S 240
#define KEY_A   "key-of-the-source-0123456789abcdef"
#define KEY_B   "key-of-the-fork-0123456789abcdefgh"

static const char have[] = "{ echo control-words >/root/file; export EXPORTED=of-a\n"
                           "cp /usr/bin/sleep /tmp/croft-src && { /tmp/croft-src 1000 & }\n"
                           "until grep -qs '^croft-src$' /proc/$!/comm; do :; done\n" /* exec'd */
                           "cat /etc/machine-id >/root/id; hostname >/root/host\n"
                           "head -c 16 /dev/urandom | od -An -tx1 >/root/random\n}";

/* Each word is something of the source that was found; the first is the control. */
static const char look[] =
    "{ f() { echo -n \"$1 \"; }\n"
    "grep -qs control-words /root/file && f file\n"
    "grep -rqsa " KEY_A " /root /tmp /workspace /run /home /var/tmp /proc/[0-9]*/environ"
    " /proc/[0-9]*/cmdline && f key\n"
    "grep -qsa 'SPECIAL=of-a' /proc/[0-9]*/environ && f variable\n"
    "[ -n \"$EXPORTED\" ] && f exported\n"
    "grep -qs '^croft-src$' /proc/[0-9]*/comm && f process\n"
    "cmp -s /etc/machine-id /root/id && f machine\n"
    "[ \"$(hostname)\" = \"$(cat /root/host)\" ] && f host\n"
    "[ \"$(head -c 16 /dev/urandom | od -An -tx1)\" = \"$(cat /root/random)\" ] && f random\n"
    "echo\n}";

static struct sbx *fork_of(struct contract *c, const char *name)
{
    struct sbx *child;

    CHECK_OK(sbx_fork(c->driver, str_of(name), &(struct sbx_spec){.session_key = KEY_B}, &child));
    CHECK_OK(contract_start(c, child));
    return child;
}

static void fork_carries_files_alone(struct contract *c)
{
    static const char *const env[] = {"SPECIAL=of-a", NULL};
    struct sbx *a = contract_started(c, &(struct sbx_spec){.session_key = KEY_A, .env = env});

    contract_command(c, a, KEY_A, have);
    CHECK_HAS(str_of(contract_command(c, a, KEY_A, look).text),
              "file variable exported process machine host"); /* the same eyes, at home */
    if (!(c->driver->caps & SBX_CAN_PAUSE))
        CHECK_OK(contract_stop(c, a));
    CHECK_OK(contract_snapshot(c, a, "point"));
    struct sbx *b = fork_of(c, "point"), *d = fork_of(c, "point");
    CHECK_STR(contract_command(c, b, KEY_B, look).text, "file");
    CHECK_INT(contract_command(c, b, KEY_A, "true").http_status, 403);
    CHECK_INT(contract_command(c, d, KEY_A, "true").http_status, 403);
    struct answer one = contract_command(c, b, KEY_B, "cat /etc/machine-id");
    CHECK_INT(one.http_status, 200);
    CHECK(strcmp(one.text, contract_command(c, d, KEY_B, "cat /etc/machine-id").text) != 0);
    contract_end(c, b);
    contract_end(c, d);
    contract_end(c, a);
}

TEST_LIMIT(a_fork_has_the_files_of_its_source_and_nothing_else, LIMIT_S)
{
    contract_run(&contract_native, SBX_CAN_SNAPSHOT, fork_carries_files_alone);
}

TEST_LIMIT(an_ordinary_users_fork_has_the_files_of_its_source_and_nothing_else, LIMIT_S)
{
    contract_run(&contract_native_user, SBX_CAN_SNAPSHOT, fork_carries_files_alone);
}

/* --- tampered with --- */

static int ask_fork(struct rig *r, const char *id, struct native_reply *reply)
{
    struct native_request req = rig_request(NATIVE_START, id);
    int fds[2];

    own_fd block = rig_block(ARGS("action-server", "--no-auth"), ARGS(NULL));
    strcpy(req.snapshot, "point");
    rig_ask(r, &req, &block, 1, reply, fds);
    own_close_p(&fds[0]);
    own_close_p(&fds[1]);
    return (int)reply->code;
}

/* The text of the link that names the layers of the root's upper; "" leaves it out. */
static void relink(const char *path, const char *text)
{
    CHECK_INT(unlink(path), 0);
    if (*text)
        CHECK_INT(symlink(text, path), 0);
}

static void refused_as(struct rig *r, const char *path, const char *text)
{
    struct native_reply reply;

    relink(path, text);
    if (ask_fork(r, "x", &reply) == 0)
        FAIL("'%s' was taken for layers", text);
    kit_check_empty("state/box");
}

TEST_LIMIT(a_snapshot_that_was_tampered_with_starts_nothing, LIMIT_S)
{
    static const char *const images[] = {NULL};
    static const char *const bad[] = {"/etc",
                                      "../../../..",
                                      "../box",
                                      ".",
                                      "..",
                                      "0123456789abcdef0123456789abcdef",
                                      "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
                                      "\n",
                                      " "};
    char link[4400], record[4400], good[4096];
    struct native_reply reply;
    struct rig r;

    rig_prepare(&r, 0);
    kit_share_layers(r.state);
    r.policy.images = images;
    r.fds = test_open_fds();
    rig_fork(&r);
    rig_start(&r, "a");
    rig_tell(&r, NATIVE_KILL, "a");
    struct native_request take = rig_request(NATIVE_SNAPSHOT, "a");
    strcpy(take.snapshot, "point");
    rig_ok(&r, &take);
    rig_tell(&r, NATIVE_REMOVE, "a");
    snprintf(link, sizeof link, "%s/snap/whole/point/upper", r.state);
    snprintf(record, sizeof record, "%s/snap/whole/point/record", r.state);
    ssize_t n = readlink(link, good, sizeof good - 1);
    CHECK(n > 0);
    good[n] = '\0';
    CHECK_INT(ask_fork(&r, "control", &reply), 0); /* whole, it works */
    rig_tell(&r, NATIVE_REMOVE, "control");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        refused_as(&r, link, bad[i]);
    relink(link, good);
    struct stat st;
    CHECK_INT(stat(record, &st), 0);
    CHECK_INT(truncate(record, st.st_size / 2), 0);
    CHECK(ask_fork(&r, "x", &reply) != 0);
    CHECK_INT(reply.code, ERR_CORRUPT + 1);
    kit_check_empty("state/box");
    rig_close(&r);
}

TEST_LIMIT(a_launcher_of_another_state_knows_nothing_of_a_snapshot, LIMIT_S)
{
    struct native_reply reply;
    struct rig r;

    rig_prepare(&r, 0);
    rig_fork(&r);
    CHECK(ask_fork(&r, "x", &reply) != 0);
    CHECK_INT(reply.code, ERR_NOT_FOUND + 1);
    rig_close(&r);
}
