// SPDX-License-Identifier: Apache-2.0
#include "host/changes/changes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "test/changes_kit.h"

/* What two trees hold: names, types, modes, bytes. */
static void check_same_trees(const struct kit *k, const char *a, const char *b)
{
    char script[1500];

    snprintf(script, sizeof script,
             "list() { cd $1 && find . -printf '%%p %%y %%m %%l\\n' | LC_ALL=C sort; }; "
             "test \"$(list %s)\" = \"$(list %s)\" && diff -r --no-dereference %s %s",
             a, b, a, b);
    sh(k, "/", script);
}

TEST(changes_of_a_real_overlay_are_listed_and_applied)
{
    struct kit k;

    kit_init(&k);
    if (geteuid() != 0)
        SKIP("needs root");
    sh(&k, k.lower,
       "mkdir -p keep gone/deep again odir && echo 1 >keep/a && echo 2 >keep/b && echo 3 "
       ">gone/deep/x"
       " && echo 4 >again/old && echo 5 >touched && echo 6 >mode && ln -s here link && echo 7 "
       ">type "
       "&& echo moved-bytes >from && echo 8 >odir/z");
    mount_merged(&k);
    sh(&k, k.merged,
       "echo new >>keep/a && rm -r gone && rm -r again && mkdir again && echo n >again/new && "
       ": >>touched && chmod 600 mode && ln -sfn there link && rm type && mkdir type && "
       "echo t >type/t && mv from to && mkdir -p add/sub && echo s >add/sub/f && rm -r odir && "
       "echo file >odir && mkfifo pipe");
    CHECK_STR(scan(&k), "A  add/\nA  add/sub/\nA  add/sub/f\nA  again/new\nD  again/old\nD  gone/\n"
                        "M  keep/a\nM  link -> there\nP  mode 644 -> 600\nT  odir\n!  pipe\n"
                        "R  from -> to\nT  type/\nA  type/t\n");
    apply(&k);
    CHECK_STR(scan(&k), "!  pipe\n");
    CHECK(umount2(k.merged, MNT_DETACH) == 0);
    sh(&k, k.lower,
       "test -f to && test ! -e from && test ! -e gone && test ! -e pipe && "
       "test \"$(cat odir keep/a type/t)\" = \"$(printf 'file\\n1\\nnew\\nt')\"");
    kit_done(&k);
}

TEST(changes_applied_give_the_tree_the_sandbox_saw)
{
    struct kit k;
    char copy[300];

    kit_init(&k);
    if (geteuid() != 0)
        SKIP("needs root");
    sh(&k, k.lower,
       "i=0; while [ $i -lt 60 ]; do mkdir -p d$((i%7))/e$((i%3)); echo $i "
       ">d$((i%7))/e$((i%3))/f$i; i=$((i+1)); done");
    mount_merged(&k);
    sh(&k, k.merged,
       "rm -r d0 d1/e1; mv d2 moved; mv d3/e0 d3/renamed; for f in d4/e*/f*; do echo more >>$f; "
       "done; "
       "rm -r d5; mkdir d5; cp -a d6 d5/copy; chmod 750 d6; rm d6/e0/*; ln -s d6 d1/link");
    snprintf(copy, sizeof copy, "%s/copy", test_dir());
    sh(&k, "/", "true");
    char script[700];
    snprintf(script, sizeof script, "cp -a %s %s", k.merged, copy);
    sh(&k, "/", script);
    scan(&k);
    CHECK_INT(k.c.conflicts, 0);
    apply(&k);
    CHECK(umount2(k.merged, MNT_DETACH) == 0);
    check_same_trees(&k, k.lower, copy);
    kit_done(&k);
}

TEST(changes_in_whiteouts_and_opaque_directories_of_an_ordinary_user)
{
    struct kit k;

    kit_init(&k);
    k.src.user = true;
    sh(&k, k.lower, "mkdir d o && echo 1 >d/a && echo 2 >d/b && echo 3 >o/x && echo 4 >o/y");
    sh(&k, k.upper, "mkdir d o && : >d/a && echo 5 >o/y && mknod d/b c 0 0");
    char path[400];
    snprintf(path, sizeof path, "%s/d/a", k.upper);
    CHECK(setxattr(path, "user.overlay.whiteout", "", 0, 0) == 0);
    snprintf(path, sizeof path, "%s/o", k.upper);
    CHECK(setxattr(path, "user.overlay.opaque", "y", 1, 0) == 0);
    CHECK_STR(scan(&k), "D  d/a\nD  d/b\nD  o/x\nM  o/y\n");
    apply(&k);
    sh(&k, k.lower, "test -z \"$(ls d)\" && test \"$(ls o)\" = y");
    kit_done(&k);
}

TEST(changes_of_several_layers_are_those_of_the_stack)
{
    struct kit k;
    int fds[3];

    kit_init(&k);
    sh(&k, k.lower, "mkdir d && echo 1 >d/a && echo 2 >d/b && echo 3 >c");
    sh(&k, test_dir(),
       "mkdir l1 l2 && mkdir l1/d l1/n && echo x >l1/d/a && echo n >l1/n/deep && mknod l1/c c 0 0 "
       "&& "
       "mknod l2/d c 0 0 && mknod l2/n c 0 0 && mkdir upper/d && echo y >upper/d/z && echo 3 "
       ">upper/c");
    fds[0] = k.upper_fd;
    for (int i = 1; i < 3; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/l%d", test_dir(), 3 - i);
        fds[i] = open(path, O_PATH | O_CLOEXEC);
    }
    k.src.uppers = fds;
    k.src.upper_count = 3;
    CHECK_STR(scan(&k), "D  d/a\nD  d/b\nA  d/z\n");
    close(fds[1]);
    close(fds[2]);
    kit_done(&k);
}

TEST(changes_never_bring_set_id_bits_owners_or_attributes)
{
    struct kit k;
    struct stat st;
    char path[400];

    kit_init(&k);
    sh(&k, k.upper, "mkdir d && cp /bin/true d/root && chmod 6755 d/root && chmod 3777 d");
    if (geteuid() == 0) {
        CHECK(chown(k.lower, 1234, 1235) == 0);
        sh(&k, k.upper, "chown -R 0:0 . && chmod 6755 d/root && chmod 3777 d");
    }
    snprintf(path, sizeof path, "%s/d/root", k.upper);
    CHECK(setxattr(path, "user.evil", "1", 1, 0) == 0);
    CHECK_STR(scan(&k), "A  d/\nA  d/root\n");
    apply(&k);
    CHECK(fstatat(k.lower_fd, "d/root", &st, 0) == 0);
    CHECK_INT(st.st_mode & 07777, 0755);
    if (geteuid() == 0) {
        CHECK_INT(st.st_uid, 1234);
        CHECK_INT(st.st_gid, 1235);
    }
    snprintf(path, sizeof path, "%s/d/root", k.lower);
    CHECK(getxattr(path, "user.evil", NULL, 0) < 0);
    CHECK(fstatat(k.lower_fd, "d", &st, 0) == 0);
    CHECK_INT(st.st_mode & 07777, 0777);
    kit_done(&k);
}

TEST(changes_follow_no_link_on_either_side)
{
    struct kit k;
    struct changes_apply how = {.force = true};

    kit_init(&k);
    sh(&k, test_dir(), "mkdir outside && echo secret >outside/secret && echo x >outside/victim");
    sh(&k, k.lower, "mkdir d && echo old >d/victim && echo l >leak");
    sh(&k, k.upper, "mkdir d && echo evil >d/victim && ln -s ../outside/secret leak");
    CHECK_STR(scan(&k), "M  d/victim\nT  leak -> ../outside/secret\n");
    /* now the directory on the host becomes a link to elsewhere, after the look */
    sh(&k, k.lower, "rm -r d && ln -s ../outside d");
    CHECK_ERR(changes_apply(&k.src, &k.c, &how), ERR_NOT_FOUND, "d/victim");
    sh(&k, test_dir(), "test \"$(cat outside/victim)\" = x");
    sh(&k, k.lower, "rm d && mkdir d");
    scan(&k);
    apply(&k);
    sh(&k, k.lower, "test -L leak && test \"$(cat d/victim)\" = evil");
    kit_done(&k);
}

TEST(changes_that_meet_changes_of_the_directory_are_conflicts)
{
    struct kit k;
    struct changes_apply how = {0};

    kit_init(&k);
    sh(&k, k.lower, "echo 1 >a && echo 2 >b && mkdir d && echo 3 >d/x");
    close(k.upper_fd);
    CHECK(rmdir(k.upper) == 0 && mkdir(k.upper, 0755) == 0);
    k.upper_fd = open(k.upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
    sh(&k, k.upper, "echo mine >a && echo mine >b && mknod d c 0 0 && echo mine >new");
    k.src.since_ns = 0;
    CHECK_STR(scan(&k), "M  a\nM  b\nD  d/\nA  new\n"); /* the layer is younger */
    pass_a_step(&k);
    sh(&k, k.lower, "echo theirs >a && echo more >d/y && echo theirs >new");
    CHECK_STR(scan(&k), "M! a\nM  b\nD! d/\nM! new\n");
    CHECK_INT(k.c.conflicts, 3);
    CHECK_ERR(changes_apply(&k.src, &k.c, &how), ERR_CONFLICT, "--force");
    sh(&k, k.lower, "test \"$(cat a b)\" = \"$(printf 'theirs\\n2')\"");
    how.paths = (const char *const[]){"b", NULL};
    CHECK_OK(changes_apply(&k.src, &k.c, &how));
    CHECK_INT(how.applied, 1);
    how = (struct changes_apply){.force = true};
    scan(&k);
    CHECK_OK(changes_apply(&k.src, &k.c, &how));
    sh(&k, k.lower, "test \"$(cat a b new)\" = \"$(printf 'mine\\nmine\\nmine')\" && test ! -e d");
    kit_done(&k);
}

TEST(changes_seen_and_then_changed_again_are_not_overwritten)
{
    struct kit k;
    struct changes_apply how = {0};

    kit_init(&k);
    sh(&k, k.lower, "echo 1 >a");
    sh(&k, k.upper, "echo mine >a && echo mine >b");
    scan(&k);
    sh(&k, k.lower, "echo 2 >a");
    CHECK_ERR(changes_apply(&k.src, &k.c, &how), ERR_CONFLICT, "a moment ago");
    scan(&k);
    sh(&k, k.lower, "echo 2 >b");
    CHECK_ERR(changes_apply(&k.src, &k.c, &how), ERR_CONFLICT, "'b'");
    sh(&k, k.lower, "test \"$(cat a b)\" = \"$(printf 'mine\\n2')\" && test $(ls -A | wc -l) = 2");
    kit_done(&k);
}

TEST(changes_with_hostile_entries_are_shown_and_harm_nothing)
{
    struct kit k;
    struct jw w;

    kit_init(&k);
    if (geteuid() == 0)
        sh(&k, k.upper, "mknod disk b 8 0 && mknod mem c 1 1");
    sh(&k, k.upper,
       "mkfifo fifo && echo x >\"$(printf 'a\\nb\\033[31m')\" && echo y >\"$(printf 'bad\\377')\" "
       "&& "
       "truncate -s 4T sparse && echo z >\"$(printf 'r\\342\\200\\256t')\"");
    struct str text = scan(&k);
    CHECK_HAS(text, "A  \"a\\nb\\033[31m\"\n");
    CHECK_HAS(text, "A  \"bad\\377\"\n");
    CHECK_HAS(text, "A  \"r\\342\\200\\256t\"\n");
    CHECK_HAS(text, "!  fifo\n");
    if (geteuid() == 0)
        CHECK_HAS(text, "!  disk\n");
    apply(&k);
    sh(&k, k.lower, "test ! -e fifo && test ! -e disk && test $(du -k sparse | cut -f1) -lt 100");
    buf_reset(&k.text);
    jw_init(&w, &k.text, 0);
    scan(&k);
    buf_reset(&k.text);
    JW_OBJECT(&w, NULL) {
        changes_put_json(&w, &k.c);
    }
    CHECK_HAS(buf_str(&k.text), "\"kind\":\"special\",\"path\":\"fifo\",\"type\":\"special\"");
    kit_done(&k);
}

TEST(changes_refuse_layers_whose_bytes_are_elsewhere)
{
    struct kit k;
    char path[400];

    kit_init(&k);
    k.src.user = true;
    sh(&k, k.upper, "mkdir d && truncate -s 10 f");
    snprintf(path, sizeof path, "%s/f", k.upper);
    CHECK(setxattr(path, "user.overlay.metacopy", "", 0, 0) == 0);
    CHECK_ERR(changes_scan(&k.src, &k.c), ERR_UNSUPPORTED, "'f'");
    CHECK(unlink(path) == 0);
    snprintf(path, sizeof path, "%s/d", k.upper);
    CHECK(setxattr(path, "user.overlay.redirect", "/etc", 4, 0) == 0);
    CHECK_ERR(changes_scan(&k.src, &k.c), ERR_UNSUPPORTED, "'d'");
    kit_done(&k);
}

TEST(changes_fail_cleanly_at_every_step)
{
    struct kit k;

    kit_init(&k);
    sh(&k, k.lower, "mkdir d && echo 1 >d/a && echo same >from && echo 3 >c");
    sh(&k, k.upper, "mkdir d && echo 2 >d/a && echo same >to && mknod from c 0 0 && mkdir n");
    for (unsigned n = 1;; n++) {
        struct changes_apply how = {0};
        unsigned fds = test_open_fds();
        fault_at(n);
        struct err *e = changes_scan(&k.src, &k.c);
        if (!e)
            e = changes_apply(&k.src, &k.c, &how);
        bool fired = fault_fired();
        fault_at(0);
        changes_done(&k.c);
        CHECK_INT(test_open_fds(), fds);
        sh(&k, k.lower, "test -z \"$(find . -name '.croft*')\"");
        if (!fired) {
            CHECK_OK(e);
            break;
        }
        err_free(e);
    }
    sh(&k, k.lower,
       "test \"$(cat d/a to)\" = \"$(printf '2\\nsame')\" && test -d n && test ! -e from");
    kit_done(&k);
}

TEST(changes_are_applied_by_an_ordinary_user_too)
{
    struct kit k;

    be_nobody();
    kit_init(&k);
    sh(&k, k.lower, "mkdir d && echo 1 >d/a && echo 2 >b");
    sh(&k, k.upper,
       "mkdir d && echo 2 >d/a && mknod b c 0 0 && mkdir ro && echo r >ro/r && "
       "chmod 555 ro");
    CHECK_STR(scan(&k), "D  b\nM  d/a\nA  ro/\nA  ro/r\n");
    apply(&k);
    CHECK_STR(scan(&k), "");
    kit_done(&k);
}
