// SPDX-License-Identifier: Apache-2.0
/* range_test.c — an ordinary user to whom /etc/subuid gives ids: his sandboxes have users. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

/* layers: those of others with the same ids. */
static void begin(const char *lines, const char *layers)
{
    char state[4200];

    kit_be_nobody();
    kit_sub_ids(lines);
    snprintf(state, sizeof state, "%s/state", test_dir());
    kit_share_layers_as(state, layers, KIT_NOBODY);
}

static int croft(struct buf *out, const char *const *args)
{
    buf_reset(out);
    return kit_as_nobody(args, out);
}

TEST_LIMIT(a_range_of_ids_gives_a_users_sandbox_its_users, 120)
{
    static const char script[] = "cat /proc/self/uid_map | tr -s ' '; id; umask 077; cd;"
                                 "mkdir a && echo x >a/b && stat -c '%U %n' a/b . /tmp/";
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    begin(KIT_SUB_IDS, "test-state-range");
    CHECK_INT(croft(&out, ARGS("doctor")), 0);
    CHECK_HAS(buf_str(&out), "yes  users");
    CHECK_HAS(buf_str(&out), "65536: root is you");
    CHECK_HAS(buf_str(&out), "NO   ids");
    CHECK_INT(croft(&out, ARGS("run", "--bare", "--user", "openhands", "--require", "users", "--",
                               "sh", "-c", script)),
              0);
    CHECK_HAS(buf_str(&out), " 0 65534 1\n 1 1610612736 65535\n"
                             "uid=1000(openhands) gid=1000(openhands) groups=1000(openhands)");
    CHECK_HAS(buf_str(&out), "openhands a/b\nopenhands .\nroot /tmp/\n");
    kit_check_empty("state/box");
    kit_check_empty("state/ids");
}

TEST_LIMIT(what_inner_users_changed_is_listed_applied_and_dropped, 120)
{
    static const char script[] =
        "mkdir -m 0777 d && cd d && setpriv --reuid 1000 --regid 1000 --clear-groups sh -c "
        "'umask 077; mkdir x && echo hi >x/f && ln -s f x/l'";
    own_done(buf) out;
    char work[4200], file[4300];
    struct stat st;

    buf_init(&out, 1u << 16);
    begin(KIT_SUB_IDS, "test-state-range");
    snprintf(work, sizeof work, "%s/work", test_dir());
    snprintf(file, sizeof file, "%s/d/x/f", work);
    CHECK_INT(mkdir(work, 0755), 0);
    CHECK_INT(chown(work, KIT_NOBODY, KIT_NOBODY), 0);
    CHECK_INT(chdir(work), 0);
    CHECK_INT(croft(&out, ARGS("run", "--name", "r1", "--", "sh", "-c", script)), 0);
    CHECK_HAS(buf_str(&out), " added in the copy; nothing changed here");
    CHECK_INT(croft(&out, ARGS("diff")), 0);
    CHECK_HAS(buf_str(&out), "d/x/f\n");
    CHECK_INT(croft(&out, ARGS("snapshot", "take", "r1", "--name", "before")), 0);
    CHECK_INT(croft(&out, ARGS("apply")), 0);
    CHECK_INT(lstat(file, &st), 0);
    CHECK_INT(st.st_uid, KIT_NOBODY);
    CHECK_INT(croft(&out, ARGS("rollback")), 0);
    CHECK_INT(croft(&out, ARGS("run", "--discard", "--from", "before", "--", "stat", "-c", "%u %n",
                               "d/x/f")),
              0);
    CHECK_HAS(buf_str(&out), "1000 d/x/f\n");
    CHECK_INT(croft(&out, ARGS("snapshot", "rm", "before")), 0);
    kit_check_empty("state/box");
    kit_check_empty("state/snap/layers");
}

TEST_LIMIT(an_image_keeps_its_owners_in_a_range, 60)
{
    static const char make[] =
        "mkdir -p i/bin i/tmp && cp /bin/busybox i/bin && echo x >i/f && chmod 0600 i/f && "
        "tar -C i --owner=1000 --group=1001 -cf i.tar . && chmod 0644 i.tar";
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    begin(KIT_SUB_IDS, "test-state-range");
    if (access("/bin/busybox", X_OK) < 0)
        SKIP("needs busybox");
    CHECK_INT(program_run(ARGS("sh", "-c", make), &out), 0);
    CHECK_INT(croft(&out, ARGS("image", "import", "i.tar", "--name", "box")), 0);
    CHECK_INT(croft(&out, ARGS("run", "--bare", "--image", "box", "--", "/bin/busybox", "stat",
                               "-c", "%u:%g %a", "/f")),
              0);
    CHECK_HAS(buf_str(&out), "1000:1001 600\n");
    CHECK_INT(croft(&out, ARGS("image", "rm", "box")), 0);
    kit_check_empty("state/box");
}

TEST_LIMIT(a_user_without_a_range_is_refused_users_by_name, 120)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    begin("somebody:1610612736:65536\n", "test-state-user");
    CHECK_INT(croft(&out, ARGS("run", "--bare", "--user", "openhands", "--", "true")), 125);
    CHECK_HAS(buf_str(&out), "run as 'openhands': layer 'users'");
    CHECK_HAS(buf_str(&out), "usermod --add-subuids");
    CHECK_INT(croft(&out, ARGS("run", "--bare", "--require", "users", "--", "true")), 125);
    CHECK_HAS(buf_str(&out), "layer 'users'");
    CHECK_INT(croft(&out, ARGS("doctor")), 0);
    CHECK_HAS(buf_str(&out), "none but root: /etc/subuid and /etc/subgid give you no ids");
}

TEST_LIMIT(a_newuidmap_that_fails_is_quoted, 60)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    begin(KIT_SUB_IDS, "test-state-range");
    kit_pretend("/usr/bin/newuidmap", "#!/bin/sh\necho 'no way' >&2\nexit 3\n", 04755);
    CHECK_INT(croft(&out, ARGS("run", "--bare", "--", "true")), 125);
    CHECK_HAS(buf_str(&out), "'/usr/bin/newuidmap' failed with status 3: no way");
    CHECK_INT(croft(&out, ARGS("doctor")), 1);
    CHECK_HAS(buf_str(&out), "no way");
}
