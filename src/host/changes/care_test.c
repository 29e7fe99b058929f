// SPDX-License-Identifier: Apache-2.0
/* care_test.c — what apply must not lose: mounts, moved files, the work of others, closed doors. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "test/changes_kit.h"

/* --- what is mounted in the directory --- */

static void mount_in(const struct kit *k, const char *from, const char *at)
{
    char source[400], target[400];

    snprintf(source, sizeof source, "%s/%s", test_dir(), from);
    snprintf(target, sizeof target, "%s/%s", k->lower, at);
    CHECK(mount(source, target, NULL, MS_BIND, NULL) == 0);
}

static void unmount_in(const struct kit *k, const char *at)
{
    char target[400];

    snprintf(target, sizeof target, "%s/%s", k->lower, at);
    CHECK(umount2(target, MNT_DETACH) == 0);
}

TEST(changes_never_reach_what_is_mounted_in_the_directory)
{
    static const char *const below[] = {"data", "sub/data", "file", NULL};
    struct kit k;
    struct changes_apply how = {.force = false};

    if (geteuid() != 0)
        SKIP("needs root");
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    kit_init(&k);
    sh(&k, test_dir(), "mkdir precious && echo p >precious/p && echo f >pfile");
    sh(&k, k.lower,
       "mkdir -p data kept sub/data && echo 1 >a && echo 2 >file && echo 3 >sub/other");
    for (size_t i = 0; below[i]; i++)
        mount_in(&k, i == 2 ? "pfile" : "precious", below[i]);
    mount_in(&k, "precious", "kept");
    sh(&k, k.upper,
       "mknod data c 0 0 && mkdir kept && echo mine >kept/p && echo new >kept/q && echo x >file && "
       "mknod sub c 0 0 && echo mine >a");
    CHECK_STR(scan(&k), "M  a\nD! data/\nT! file\nA! kept/p\nA! kept/q\nD! sub/\n");
    CHECK_ERR(changes_apply(&k.src, &k.c, &how), ERR_CONFLICT, "mounted at or in 'data'");
    sh(&k, k.lower, "test \"$(cat a)\" = 1");
    how.force = true;
    CHECK_OK(changes_apply(&k.src, &k.c, &how));
    CHECK_INT(how.applied, 1);
    CHECK_INT(how.mounted, 5);
    sh(&k, test_dir(), "test \"$(ls precious; cat precious/p pfile)\" = \"$(printf 'p\\np\\nf')\"");
    sh(&k, k.lower, "test \"$(cat a)\" = mine && test -f sub/other");
    for (size_t i = 0; below[i]; i++)
        unmount_in(&k, below[i]);
    unmount_in(&k, "kept");
    kit_done(&k);
}

TEST(changes_seen_and_then_mounted_over_are_not_applied)
{
    struct kit k;
    struct changes_apply how = {.force = true};

    if (geteuid() != 0)
        SKIP("needs root");
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    kit_init(&k);
    sh(&k, test_dir(), "mkdir precious && echo p >precious/p");
    sh(&k, k.lower, "mkdir -p d/e && echo 1 >d/e/p");
    sh(&k, k.upper, "mknod d c 0 0");
    scan(&k);
    mount_in(&k, "precious", "d/e");
    CHECK_ERR(changes_apply(&k.src, &k.c, &how), ERR_BUSY, "remove 'e'");
    sh(&k, k.upper, "rm d && mkdir -p d/e && echo mine >d/e/p");
    unmount_in(&k, "d/e");
    scan(&k);
    mount_in(&k, "precious", "d/e");
    CHECK_ERR(changes_apply(&k.src, &k.c, &how), ERR_CONFLICT, "mounted above 'd/e'");
    sh(&k, test_dir(), "test \"$(cat precious/p)\" = p");
    unmount_in(&k, "d/e");
    kit_done(&k);
}

/* --- some of them --- */

TEST(changes_of_files_that_moved_bring_their_new_directory_along)
{
    struct kit k;
    struct changes_apply how = {.paths = (const char *const[]){"d", NULL}};

    kit_init(&k);
    sh(&k, k.lower, "mkdir d && echo one >d/a && echo two >d/b");
    sh(&k, k.upper, "mkdir -p e/f g && echo one >e/f/a && echo two >e/b && mknod d c 0 0");
    CHECK_STR(scan(&k), "D  d/\nA  e/\nR  d/b -> e/b\nA  e/f/\nR  d/a -> e/f/a\nA  g/\n");
    CHECK_OK(changes_apply(&k.src, &k.c, &how));
    CHECK_INT(how.applied, 5);
    sh(&k, k.lower,
       "test \"$(cat e/f/a e/b)\" = \"$(printf 'one\\ntwo')\" && test ! -e d && test ! -e g");
    kit_done(&k);
}

TEST(changes_that_fail_half_way_have_deleted_nothing)
{
    struct kit k;
    struct changes_apply how = {0};

    kit_init(&k);
    sh(&k, k.lower, "mkdir d t && echo one >d/a && echo two >gone && echo three >t/x");
    sh(&k, k.upper, "mknod d c 0 0 && mknod gone c 0 0 && echo file >t && echo one >z");
    CHECK_STR(scan(&k), "D  d/\nD  gone\nT  t\nR  d/a -> z\n");
    sh(&k, k.upper, "rm z && mkdir z"); /* a guest that still runs */
    CHECK_ERR(changes_apply(&k.src, &k.c, &how), ERR_CONFLICT, "'z'");
    sh(&k, k.lower, "test \"$(cat d/a gone t/x)\" = \"$(printf 'one\\ntwo\\nthree')\"");
    kit_done(&k);
}

/* --- a guest that lies, or shuts doors --- */

TEST(changes_believe_no_attribute_a_guest_could_write_itself)
{
    static const char *const marks[][2] = {
        {"d", "opaque"}, {"d", "redirect"}, {"empty", "whiteout"}, {"long", "metacopy"}};
    struct kit k;

    kit_init(&k);
    sh(&k, k.lower, "mkdir d && echo 1 >d/a && : >empty && truncate -s 10 long");
    sh(&k, k.upper, "mkdir d && echo 2 >d/b && : >empty && truncate -s 10 long");
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        char path[400], name[40];
        snprintf(path, sizeof path, "%s/%s", k.upper, marks[i][0]);
        snprintf(name, sizeof name, "user.overlay.%s", marks[i][1]);
        CHECK(setxattr(path, name, "y", 1, 0) == 0);
    }
    CHECK_STR(scan(&k), "A  d/b\n");
    kit_done(&k);
}

TEST(changes_a_guest_closed_are_listed_and_applied_as_they_are)
{
    struct kit k;

    be_nobody();
    kit_init(&k);
    k.src.user = true;
    sh(&k, k.lower, "mkdir old && echo 1 >old/f && echo 1 >mine && chmod 0 mine");
    sh(&k, k.upper,
       "mkdir -p shut/in old && echo 1 >shut/in/f && echo 2 >old/f && echo 2 >mine && "
       "echo 3 >closed && chmod 0 closed old/f mine shut/in old && chmod 0400 shut");
    for (unsigned i = 0; i < 2; i++)
        CHECK_STR(scan(&k), "A  closed\nM  mine\nP  old/ 755 -> 000\nM  old/f\nA  shut/\n"
                            "A  shut/in/\nA  shut/in/f\n");
    apply(&k);
    sh(&k, k.lower,
       "test \"$(stat -c %a closed mine old shut)\" = \"$(printf '0\\n0\\n0\\n400')\" && chmod 700 "
       "shut old && test $(stat -c %a shut/in) = 0 && chmod 700 shut/in old/f && "
       "test \"$(cat shut/in/f old/f)\" = \"$(printf '1\\n2')\"");
    sh(&k, k.upper, "test $(stat -c %a closed) = 0");
    kit_done(&k);
}

TEST(changes_of_a_mode_after_we_opened_a_closed_directory_count)
{
    struct kit k;

    be_nobody();
    kit_init(&k);
    k.src.user = true;
    sh(&k, k.lower, "mkdir d");
    sh(&k, k.upper, "mkdir -m 0 d");
    CHECK_STR(scan(&k), "P  d/ 755 -> 000\n");
    CHECK_STR(scan(&k), "P  d/ 755 -> 000\n");
    sh(&k, k.upper, "chmod 750 d");
    CHECK_STR(scan(&k), "P  d/ 755 -> 750\n");
    sh(&k, k.upper, "chmod 700 d");
    CHECK_STR(scan(&k), "P  d/ 755 -> 700\n");
    kit_done(&k);
}

TEST(changes_that_cannot_be_read_do_not_hide_the_others)
{
    struct kit k;

    if (geteuid() != 0)
        SKIP("needs root");
    kit_init(&k);
    CHECK(chmod(test_dir(), 0777) == 0 && chmod(k.upper, 0777) == 0);
    sh(&k, k.lower,
       "mkdir -m 700 theirs && echo 1 >f && chmod 600 f && echo 1 >gone && chmod 0 gone");
    sh(&k, k.upper,
       "mkdir -m 700 root && echo 1 >root/x && echo 2 >f && echo 3 >g && mknod theirs c 0 0 && "
       "echo 1 >h && mknod gone c 0 0");
    be_nobody();
    CHECK_STR(scan(&k), "M  f\nA  g\nD  gone\nA  h\n!  root/\nD! theirs/\n");
    kit_done(&k);
}

TEST(changes_deeper_than_any_path_are_shown_where_they_begin)
{
    struct kit k;
    int at;

    kit_init(&k);
    sh(&k, k.upper, "echo 1 >a && echo 1 >z");
    at = open(k.upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 3000; i++) {
        CHECK(mkdirat(at, "ddd", 0755) == 0);
        int next = openat(at, "ddd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    close(at);
    struct str text = scan(&k);
    CHECK(str_starts(text, STR("A  a\nA  ddd/\n")) && str_ends(text, STR("\nA  z\n")));
    CHECK_INT(k.c.kinds[CHANGE_DEEP], 1);
    struct changes_apply how = {0};
    CHECK_OK(changes_apply(&k.src, &k.c, &how));
    CHECK_INT(how.deep, 1);
    CHECK_ERR(changes_refuse_deep(&k.c), ERR_TOO_LARGE, "too deep");
    sh(&k, k.lower, "test -f a && test -f z && test -d ddd/ddd");
    kit_done(&k);
}

/* --- what somebody took away meanwhile --- */

TEST(changes_of_what_was_removed_or_moved_in_the_directory_are_conflicts)
{
    struct kit k;
    struct changes_apply how = {.paths = (const char *const[]){"from", NULL}};

    kit_init(&k);
    if (geteuid() != 0)
        SKIP("needs root");
    sh(&k, k.lower,
       "mkdir dd d2 && echo 1 >m && echo 2 >dd/x && echo 3 >from && echo 4 >d2/y && echo 5 >lost "
       "&& echo 6 >again");
    mount_merged(&k);
    sh(&k, k.merged,
       "echo new >>m && echo new >>dd/x && echo new >dd/n && echo x >>from && mv from to && "
       "echo x >>d2/y && mkdir new && mv d2/y new/y && rmdir d2 && echo x >>lost && mv lost found "
       "&& mv again moved && echo x >>moved && echo other >again");
    CHECK(umount2(k.merged, MNT_DETACH) == 0);
    CHECK_STR(scan(&k), "M  again\nD  d2/\nA  dd/n\nM  dd/x\nA  found\nD  from\nD  lost\nM  m\n"
                        "A  moved\nA  new/\nA  new/y\nA  to\n");
    k.src.notes = open(test_dir(), O_RDWR | O_TMPFILE | O_APPEND | O_CLOEXEC, 0600);
    sh(&k, k.lower, "rm m lost && mv dd ee");
    CHECK_STR(scan(&k), "M  again\nD  d2/\nA! dd/\nA  dd/n\nA! dd/x\nA! found\nD  from\nA! m\n"
                        "A  moved\nA  new/\nA  new/y\nA  to\n");
    CHECK_OK(changes_apply(&k.src, &k.c, &how)); /* 'to' came from there, and nobody else took it */
    CHECK_STR(scan(&k), "M  again\nD  d2/\nA! dd/\nA  dd/n\nA! dd/x\nA! found\nA! m\nA  moved\n"
                        "A  new/\nA  new/y\nA  to\n");
    close(k.src.notes);
    kit_done(&k);
}

TEST(changes_applied_elsewhere_do_not_hide_that_somebody_took_a_file)
{
    struct kit k;
    struct changes_apply how = {.paths = (const char *const[]){"edited", "new", NULL}};

    kit_init(&k);
    if (geteuid() != 0)
        SKIP("needs root");
    sh(&k, k.lower, "echo 1 >from && echo 2 >edited");
    mount_merged(&k);
    sh(&k, k.merged, "echo x >>from && mv from to && echo x >>edited && echo y >new");
    CHECK(umount2(k.merged, MNT_DETACH) == 0);
    k.src.notes = open(test_dir(), O_RDWR | O_TMPFILE | O_APPEND | O_CLOEXEC, 0600);
    CHECK_STR(scan(&k), "M  edited\nD  from\nA  new\nA  to\n");
    CHECK_OK(changes_apply(&k.src, &k.c, &how));
    sh(&k, k.upper, "mv edited moved && mknod edited c 0 0 && echo z >>moved"); /* it goes on */
    CHECK_STR(scan(&k), "D  edited\nD  from\nA  moved\nA  to\n");
    sh(&k, k.lower, "rm from");
    CHECK_STR(scan(&k), "D  edited\nA  moved\nA! to\n");
    close(k.src.notes);
    kit_done(&k);
}

TEST(changes_of_several_that_came_from_one_lost_file_are_all_conflicts)
{
    static const char *const names[] = {"a", "b", "c"};
    struct kit k;

    if (geteuid() != 0)
        SKIP("needs root");
    kit_init(&k);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[400], origin[32] = "\001";
        snprintf(path, sizeof path, "%s/%s", k.upper, names[i]);
        CHECK(mknod(path, S_IFREG | 0644, 0) == 0);
        CHECK(setxattr(path, "trusted.overlay.origin", origin, sizeof origin, 0) == 0);
    }
    CHECK_STR(scan(&k), "A! a\nA! b\nA! c\n");
    kit_done(&k);
}

TEST(changes_of_what_was_removed_are_conflicts_of_an_ordinary_user_too)
{
    struct kit k;
    char path[400];

    be_nobody();
    kit_init(&k);
    k.src.user = true;
    sh(&k, k.lower, "echo 0 >b");
    sh(&k, k.upper, "echo 1 >m && echo 2 >new");
    snprintf(path, sizeof path, "%s/m", k.upper);
    CHECK(setxattr(path, "user.overlay.origin", "", 0, 0) == 0);
    CHECK_STR(scan(&k), "A! m\nA  new\n");
    sh(&k, k.upper, "mknod b c 0 0"); /* it may have been moved from there */
    CHECK_STR(scan(&k), "D  b\nA  m\nA  new\n");
    kit_done(&k);
}

TEST(changes_that_are_hard_links_are_no_conflict_of_an_ordinary_user_either)
{
    struct kit k;
    char path[400];

    be_nobody();
    kit_init(&k);
    k.src.user = true;
    sh(&k, k.lower, "echo 0 >b");
    sh(&k, k.upper, "echo 0 >b && ln b second");
    snprintf(path, sizeof path, "%s/b", k.upper);
    CHECK(setxattr(path, "user.overlay.origin", "", 0, 0) == 0);
    CHECK_STR(scan(&k), "A  second\n");
    apply(&k);
    sh(&k, k.lower, "test b -ef second");
    kit_done(&k);
}

/* --- what is the directory's own --- */

TEST(changes_leave_the_directory_its_own_attributes_and_bits)
{
    struct kit k;
    char path[400], value[8] = "";
    struct stat st;

    kit_init(&k);
    sh(&k, k.lower, "mkdir -m 3777 d && echo 1 >f && mkdir -m 2755 g");
    sh(&k, k.upper, "mkdir -m 750 d && echo 2 >f && mkdir -p g/new && chmod 755 g");
    snprintf(path, sizeof path, "%s/f", k.lower);
    CHECK(setxattr(path, "user.mine", "1", 1, 0) == 0);
    snprintf(path, sizeof path, "%s/f", k.upper);
    CHECK(setxattr(path, "user.theirs", "1", 1, 0) == 0);
    CHECK_STR(scan(&k), "P  d/ 777 -> 750\nM  f\nA  g/new/\n");
    apply(&k);
    snprintf(path, sizeof path, "%s/f", k.lower);
    CHECK_INT(getxattr(path, "user.mine", value, sizeof value), 1);
    CHECK(getxattr(path, "user.theirs", value, sizeof value) < 0);
    CHECK(fstatat(k.lower_fd, "d", &st, 0) == 0);
    CHECK_INT(st.st_mode & 07777, 03750);
    CHECK(fstatat(k.lower_fd, "g/new", &st, 0) == 0);
    CHECK_INT(st.st_mode & 07777, 02755);
    kit_done(&k);
}

/* As setfacl -m u:1000:rw has it, which not every machine has. */
TEST(changes_leave_a_file_its_access_list)
{
    static const uint8_t list[] = {2,    0,    0,    0,    1,    0,    6,  0,    0xff, 0xff, 0xff,
                                   0xff, 2,    0,    6,    0,    0xe8, 3,  0,    0,    4,    0,
                                   4,    0,    0xff, 0xff, 0xff, 0xff, 16, 0,    6,    0,    0xff,
                                   0xff, 0xff, 0xff, 32,   0,    4,    0,  0xff, 0xff, 0xff, 0xff};
    struct kit k;
    char path[400];
    uint8_t value[100];

    kit_init(&k);
    sh(&k, k.lower, "echo 1 >f");
    snprintf(path, sizeof path, "%s/f", k.lower);
    if (setxattr(path, "system.posix_acl_access", list, sizeof list, 0) < 0)
        SKIP("no access lists here");
    sh(&k, k.upper, "echo 2 >f && chmod 664 f");
    CHECK_STR(scan(&k), "M  f\n");
    apply(&k);
    CHECK_INT(getxattr(path, "system.posix_acl_access", value, sizeof value), sizeof list);
    CHECK(memcmp(value, list, sizeof list) == 0);
    sh(&k, k.lower, "test \"$(cat f)\" = 2 && test $(stat -c %a f) = 664");
    kit_done(&k);
}

TEST(changes_that_fail_half_way_say_how_far_they_came)
{
    struct kit k;
    struct changes_apply how = {0};

    kit_init(&k);
    sh(&k, k.upper, "echo 1 >a && echo 2 >b && echo 3 >c");
    scan(&k);
    sh(&k, k.upper, "rm c && mkdir c");
    CHECK_ERR(changes_apply(&k.src, &k.c, &how), ERR_CONFLICT, "2 of 3 changes were applied");
    CHECK_INT(how.applied, 2);
    CHECK_STR(scan(&k), "A  c/\n");
    kit_done(&k);
}

TEST(changes_with_names_that_begin_or_end_with_a_space_are_quoted)
{
    struct kit k;

    kit_init(&k);
    sh(&k, k.upper, "echo 1 >' a' && echo 1 >'b ' && echo 1 >'c d'");
    CHECK_STR(scan(&k), "A  \" a\"\nA  \"b \"\nA  c d\n");
    kit_done(&k);
}

TEST(changes_with_names_that_pretend_are_quoted)
{
    struct kit k;

    kit_init(&k);
    sh(&k, k.upper,
       "echo 1 >'a -> b' && echo 2 >\"$(printf 'x\\330\\234y')\" && echo 3 >\"$(printf "
       "'z\\302\\255')\"");
    CHECK_STR(scan(&k), "A  \"a -> b\"\nA  \"x\\330\\234y\"\nA  \"z\\302\\255\"\n");
    kit_done(&k);
}

TEST(changes_applied_in_part_make_no_conflicts_of_the_rest)
{
    struct kit k;
    struct changes_apply how = {.paths = (const char *const[]){"e", "m", NULL}};

    kit_init(&k);
    sh(&k, k.lower, "mkdir d && echo one >d/a && echo two >d/b && echo 1 >m && echo 2 >n");
    k.src.since_ns = 1; /* every change is a later one */
    k.src.notes = open(test_dir(), O_RDWR | O_TMPFILE | O_APPEND | O_CLOEXEC, 0600);
    CHECK(k.src.notes > 0);
    sh(&k, k.upper, "mkdir e && echo one >e/a && mknod d c 0 0 && echo 3 >m && echo 3 >n");
    CHECK_STR(scan(&k), "D! d/\nA  e/\nR  d/a -> e/a\nM! m\nM! n\n");
    how.force = true;
    CHECK_OK(changes_apply(&k.src, &k.c, &how));
    sh(&k, k.upper, "echo 4 >m && echo 4 >e/a");        /* it goes on */
    CHECK_STR(scan(&k), "D! d/\nM  e/a\nM  m\nM! n\n"); /* d/b is not ours */
    sh(&k, k.lower, "echo mine >m");
    CHECK_STR(scan(&k), "D! d/\nM  e/a\nM! m\nM! n\n");
    close(k.src.notes);
    kit_done(&k);
}

/* The layer is younger than what the directory has. */
static void begin_now(struct kit *k)
{
    close(k->upper_fd);
    CHECK(rmdir(k->upper) == 0 && mkdir(k->upper, 0755) == 0);
    k->upper_fd = open(k->upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
    k->src.since_ns = 0;
}

TEST(changes_take_nothing_away_that_was_written_since_they_were_seen)
{
    static const char *const names[] = {"d", "e", "from", "r"};
    struct kit k;

    kit_init(&k);
    sh(&k, k.lower,
       "mkdir -p d/in e r && echo 1 >d/in/a && echo 0 >old && echo bytes >from && echo 2 >r/b");
    begin_now(&k);
    sh(&k, k.upper,
       "mknod d c 0 0 && mknod e c 0 0 && mknod from c 0 0 && echo bytes >to && echo file >r && "
       "echo new >new");
    pass_a_step(&k);
    CHECK_STR(scan(&k), "D  d/\nD  e/\nA  new\nT  r\nR  from -> to\n");
    sh(&k, k.lower, "echo mine >d/in/b && echo mine >>from && echo mine >>r/b && mv old e");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct changes_apply how = {.paths = (const char *const[]){names[i], "new", NULL}};
        sh(&k, k.lower, "rm -f new to");
        CHECK_ERR(changes_apply(&k.src, &k.c, &how), ERR_CONFLICT, "changed a moment ago");
    }
    sh(&k, k.lower,
       "test \"$(cat d/in/a d/in/b e/old from r/b new)\" = "
       "\"$(printf '1\\nmine\\n0\\nbytes\\nmine\\n2\\nmine\\nnew')\"");
    struct changes_apply how = {.force = true};
    sh(&k, k.lower, "rm -f new to");
    CHECK_OK(changes_apply(&k.src, &k.c, &how));
    sh(&k, k.lower, "test \"$(echo *)\" = 'new r to'");
    kit_done(&k);
}

TEST(changes_that_take_away_several_names_of_one_file_are_no_conflict)
{
    struct kit k;

    kit_init(&k);
    sh(&k, k.lower,
       "mkdir d e && echo 1 >d/a && ln d/a e/a && ln d/a f && ln d/a g && echo 2 >from && "
       "ln from other");
    begin_now(&k);
    sh(&k, k.upper,
       "for i in d e f g from other; do mknod $i c 0 0; done; echo 2 >to && echo 2 >too");
    pass_a_step(&k);
    CHECK_STR(scan(&k), "D  d/\nD  e/\nD  f\nD  g\nR  from -> to\nR  other -> too\n");
    apply(&k);
    sh(&k, k.lower, "test \"$(echo *)\" = 'to too'");
    kit_done(&k);
}

TEST(changes_of_a_directory_we_took_files_out_of_are_no_conflict)
{
    struct kit k;
    struct changes_apply how = {.paths = (const char *const[]){"e", NULL}};

    kit_init(&k);
    sh(&k, k.lower, "mkdir d && echo one >d/a && echo two >d/b");
    begin_now(&k);
    k.src.notes = open(test_dir(), O_RDWR | O_TMPFILE | O_APPEND | O_CLOEXEC, 0600);
    CHECK(write(k.src.notes, "torn", 4) == 4); /* by an apply that died */
    sh(&k, k.upper, "mkdir e && echo one >e/a && mknod d c 0 0");
    pass_a_step(&k);
    scan(&k);
    CHECK_OK(changes_apply(&k.src, &k.c, &how));
    CHECK_STR(scan(&k), "D  d/\n");
    sh(&k, k.lower, "echo mine >d/c");
    CHECK_STR(scan(&k), "D! d/\n");
    close(k.src.notes);
    kit_done(&k);
}

TEST(changes_are_not_what_was_made_to_mount_on)
{
    struct kit k;

    kit_init(&k);
    sh(&k, k.lower, "mkdir had");
    sh(&k, k.upper, "mkdir -p out a/b/in used/x had/m && : >file && echo 1 >used/y && mkdir outer");
    k.src.places = (const char *const[]){"out", "a/b/in", "used/x", "had/m", "file", NULL};
    CHECK_STR(scan(&k), "A  outer/\nA  used/\nA  used/y\n");
    kit_done(&k);
}

/* Until a file made now is younger than what the kit says the sandbox began at. */
static void pass_now(const struct kit *k)
{
    struct stat st;

    do {
        own_fd fd = open(test_dir(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && fstat(fd, &st) == 0);
    } while ((uint64_t)st.st_ctim.tv_sec * NS_PER_S + (uint64_t)st.st_ctim.tv_nsec <=
             k->src.since_ns);
}

TEST(changes_that_are_hard_links_are_no_conflict_and_come_out_as_links)
{
    struct kit k;

    kit_init(&k);
    sh(&k, k.lower, "echo old >a; echo two >c");
    k.src.since_ns = clock_wall_ns(&clock_system);
    pass_now(&k);
    mount_merged(&k);
    k.src.notes = open(test_dir(), O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
    sh(&k, k.merged, "ln a b; ln -f a c; mkdir d; echo new >d/x; ln d/x d/y; ln d/x z");
    CHECK_STR(scan(&k), "A  b\nM  c\nA  d/\nA  d/x\nA  d/y\nA  z\n");
    apply(&k);
    sh(&k, k.lower, "test a -ef b && test a -ef c && test d/x -ef d/y && test d/x -ef z");
    sh(&k, k.lower, "test \"$(cat a d/x)\" = \"$(printf 'old\\nnew')\"");
    CHECK_STR(scan(&k), "");
    sh(&k, k.merged, "echo more >a; echo more >z; ln a e");
    CHECK_STR(scan(&k), "M  a\nM  b\nM  c\nM  d/x\nM  d/y\nA  e\nM  z\n");
    apply(&k);
    sh(&k, k.lower, "test a -ef b && test a -ef e && test d/x -ef z && ! test a -ef z");
    close(k.src.notes);
    kit_done(&k);
}

TEST(changes_of_two_names_of_one_file_of_the_directory_are_applied_both)
{
    struct kit k;

    kit_init(&k);
    sh(&k, k.lower, "echo old >a; ln a b; mkdir d; ln a d/c; echo g >g; ln g h");
    k.src.since_ns = clock_wall_ns(&clock_system);
    pass_now(&k);
    mount_merged(&k);
    sh(&k, k.merged, "echo one >a; echo three >b; rm -r d; rm g; echo i >h");
    CHECK_STR(scan(&k), "M  a\nM  b\nD  d/\nD  g\nM  h\n");
    const char *const first[] = {"a", NULL};
    struct changes_apply how = {.paths = first};
    k.src.notes = open(test_dir(), O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
    CHECK_OK(changes_apply(&k.src, &k.c, &how));
    CHECK_STR(scan(&k), "M  b\nD  d/\nD  g\nM  h\n"); /* nor is the rest */
    apply(&k);
    sh(&k, k.lower, "test \"$(cat a b h)\" = \"$(printf 'one\\nthree\\ni')\" && ! test -e d");
    close(k.src.notes);
    kit_done(&k);
}

TEST(changes_written_through_a_hard_link_meanwhile_are_a_conflict_still)
{
    struct kit k;

    kit_init(&k);
    sh(&k, k.lower, "echo old >a; ln a b");
    k.src.since_ns = clock_wall_ns(&clock_system);
    pass_now(&k);
    mount_merged(&k);
    sh(&k, k.merged, "ln a e; echo new >b");
    CHECK_STR(scan(&k), "M  b\nA  e\n");
    sh(&k, k.lower, "echo mine >>a");
    struct changes_apply how = {0};
    CHECK_ERR(changes_apply(&k.src, &k.c, &how), ERR_CONFLICT, "moment ago");
    sh(&k, k.lower, "grep -q mine b");
    kit_done(&k);
}
