// SPDX-License-Identifier: Apache-2.0
/* dirs_test.c — the directory of a sandbox that wrote nothing serves the next one, which finds
 * nothing of the last; any other is deleted. */
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/record.h"
#include "host/tree/tree.h"
#include "test/native/census.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/test.h"

#define LIVES 16 /* of one directory */

struct dirs {
    struct kit k;
    int gone;
};

static void open_dirs(struct dirs *d)
{
    kit_open(&d->k);
    CHECK_OK(box_host_many(&d->k.h));
    if (d->k.h.by_path)
        SKIP("times of change are coarse before Linux 6.13: no directory serves twice");
    CHECK_OK(fd_make_dirs(d->k.h.dir, STR(BOX_GONE), 0700, &d->gone));
    box_dirs_open(&d->k.h, d->gone);
    CHECK(d->k.h.dirs.spares != NULL);
}

static void close_dirs(struct dirs *d)
{
    box_host_rest(&d->k.h);
    box_dirs_forget(&d->k.h.dirs);
    CHECK_OK(tree_empty(d->gone));
    close(d->gone);
    kit_close(&d->k);
}

/* One that has ended, its directory still there and its overlay gone. */
static void live(struct dirs *d, const char *id, const char *script, struct buf *out,
                 struct box *ret_box)
{
    struct kit_box b;

    kit_prepare(&d->k, &b, id, script);
    CHECK_OK(box_dirs_make(&d->k.h, &b.spec));
    b.spec.flags = BOX_DIR_MADE;
    kit_start(&d->k, &b, ret_box);
    if (out)
        CHECK_OK(fd_read_all(b.out, out));
    CHECK_INT(kit_wait(ret_box), 0);
    CHECK_INT(ret_box->layers.count, 1);
    CHECK_OK(fd_wait(d->k.h.dirs.watch, POLLIN, 60000)); /* it may go a little later */
    CHECK_OK(box_remove(&d->k.h, ret_box, true));
    kit_forget(&b);
}

static bool bury(struct dirs *d, struct box *box)
{
    bool kept = box_dirs_keep(&d->k.h, box);

    if (kept)
        box_dirs_clear(&d->k.h.dirs);
    else
        CHECK_OK(box_remove_dir(&d->k.h, box->id));
    return kept;
}

static void look_at(const struct dirs *d, const char *id, struct stat *st, struct record *r)
{
    char path[64];

    snprintf(path, sizeof path, "%s/u", id);
    CHECK_INT(fstatat(d->k.h.boxes, path, st, AT_SYMLINK_NOFOLLOW), 0);
    own_fd dir = openat(d->k.h.boxes, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(record_read(dir, r));
}

TEST(the_directory_of_a_sandbox_that_wrote_nothing_serves_the_next)
{
    static const char seen[] = "ls -A / | sort; stat -c '%a %u %g %h %s' /; lsattr -d / 2>&1";
    struct dirs d;
    struct box box;
    struct stat first, second;
    struct record one, two;
    own_done(buf) before, after;

    buf_init(&before, 1u << 16);
    buf_init(&after, 1u << 16);
    open_dirs(&d);
    live(&d, "t1", seen, &before, &box);
    look_at(&d, "t1", &first, &one);
    CHECK(bury(&d, &box));
    kit_check_empty("state/box");
    live(&d, "t2", seen, &after, &box);
    look_at(&d, "t2", &second, &two);
    CHECK(first.st_ino == second.st_ino);
    CHECK(str_eq(buf_str(&after), buf_str(&before)));
    CHECK_STR(str_of(two.id), "t2");
    CHECK(strcmp(one.machine_id, two.machine_id) != 0);
    CHECK(two.pid != one.pid);
    /* times are its own */
    CHECK(second.st_mtim.tv_sec > first.st_mtim.tv_sec ||
          second.st_mtim.tv_nsec != first.st_mtim.tv_nsec);
    CHECK(second.st_ctim.tv_sec > first.st_ctim.tv_sec ||
          second.st_ctim.tv_nsec != first.st_ctim.tv_nsec);
    CHECK(bury(&d, &box));
    close_dirs(&d);
}

TEST(the_next_sandbox_has_a_file_system_id_of_its_own)
{
    struct dirs d;
    struct box box;
    own_done(buf) before, after;

    buf_init(&before, 64);
    buf_init(&after, 64);
    open_dirs(&d);
    live(&d, "t1", "stat -f -c %i /", &before, &box);
    CHECK(bury(&d, &box));
    live(&d, "t1", "stat -f -c %i /", &after, &box);
    CHECK(bury(&d, &box));
    CHECK(before.len > 4 && after.len > 4);
    CHECK(!str_eq(buf_str(&after), buf_str(&before)));
    close_dirs(&d);
}

/* Each leaves the root as it was, or nearly so. */
TEST(the_directory_of_a_sandbox_that_changed_anything_serves_nobody)
{
    static const char *const traces[] = {
        "echo a >/x",
        "echo a >/x && rm /x",
        "mkdir /d && rmdir /d",
        "chmod 700 /",
        "chmod 700 / && chmod 755 /",
        "chown 1:1 / && chown 0:0 /",
        "touch /",
        "touch -d @1 /",
        "chattr +d / 2>/dev/null && chattr -d / || touch /",
        "python3 -c 'import os; os.setxattr(\"/\", \"user.x\", b\"1\")' 2>/dev/null || touch /",
        "seq -f /f%g 3000 | xargs touch && seq -f /f%g 3000 | xargs rm",
        "rmdir /mnt 2>/dev/null || mv /srv /srv2 2>/dev/null || touch /"};
    struct dirs d;
    struct box box;
    struct stat st;

    open_dirs(&d);
    for (size_t i = 0; i < ARRAY_LEN(traces); i++) {
        printf("%s\n", traces[i]);
        live(&d, "t1", traces[i], NULL, &box);
        CHECK(!bury(&d, &box));
        CHECK(fstatat(d.gone, BOX_SPARE, &st, AT_SYMLINK_NOFOLLOW) < 0);
    }
    live(&d, "t1", "cat /etc/passwd >/dev/null; ls / >/dev/null", NULL, &box); /* to look is free */
    CHECK(bury(&d, &box));
    close_dirs(&d);
}

/* --- what is looked at, each alone: as if the kernel had not moved its times --- */

static void set_flag(int fd)
{
    int flags = 0;

    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
        return;
    flags |= FS_NODUMP_FL;
    CHECK_INT(ioctl(fd, FS_IOC_SETFLAGS, &flags), 0);
}

static void set_mode(int fd)
{
    CHECK_INT(fchmod(fd, 0711), 0);
}

static void set_owner(int fd)
{
    CHECK_INT(fchown(fd, 1, (gid_t)-1), 0);
}

static void set_group(int fd)
{
    CHECK_INT(fchown(fd, (uid_t)-1, 1), 0);
}

static void add_name(int fd)
{
    CHECK_INT(symlinkat("x", fd, "x"), 0);
}

static void add_attribute(int fd)
{
    CHECK_INT(fsetxattr(fd, "trusted.overlay.impure", "y", 1, 0), 0);
}

static void change_nothing(int fd)
{
    CHECK_INT(futimens(fd, NULL), 0);
}

TEST(every_property_of_an_upper_layer_is_looked_at)
{
    static const struct {
        void (*change)(int fd);
        bool kept;
    } rows[] = {{set_flag, false},     {set_mode, false}, {set_owner, false},
                {set_group, false},    {add_name, false}, {add_attribute, false},
                {change_nothing, true}};
    struct dirs d;
    struct box box;

    open_dirs(&d);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct stat st;
        printf("row %zu\n", i);
        live(&d, "t1", "exit 0", NULL, &box);
        own_fd upper = openat(d.k.h.boxes, "t1/u", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(upper >= 0);
        rows[i].change(upper);
        CHECK_INT(fstat(upper, &st), 0);
        struct box_layer *l = &box.layers.at[0];
        l->changed_s = st.st_ctim.tv_sec;
        l->changed_ns = (uint32_t)st.st_ctim.tv_nsec;
        l->written_s = st.st_mtim.tv_sec;
        l->written_ns = (uint32_t)st.st_mtim.tv_nsec;
        l->bytes = (uint64_t)st.st_size; /* of a file system that counts names */
        CHECK_INT(bury(&d, &box), rows[i].kept);
    }
    close_dirs(&d);
}

TEST(a_directory_with_anything_but_its_layers_serves_nobody)
{
    static const char *const names[] = {"m0u", "thaw", "image"};
    struct dirs d;
    struct box box;

    open_dirs(&d);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        live(&d, "t1", "exit 0", NULL, &box);
        own_fd dir = openat(d.k.h.boxes, "t1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK_INT(symlinkat("x", dir, names[i]), 0);
        CHECK(!bury(&d, &box));
    }
    /* nor one whose work directory holds more than an overlay leaves there */
    live(&d, "t1", "exit 0", NULL, &box);
    own_fd work = openat(d.k.h.boxes, "t1/w/work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(symlinkat("x", work, "#1"), 0);
    close(take_fd(&work));
    CHECK(box_dirs_keep(&d.k.h, &box));
    box_dirs_clear(&d.k.h.dirs);
    CHECK(!box_dirs_any(&d.k.h.dirs));
    kit_check_empty("state/gone/spare");
    close_dirs(&d);
}

/* A file that is on its way through a socket holds its file system as well. */
TEST(a_directory_whose_overlay_somebody_holds_serves_nobody)
{
    struct dirs d;
    struct kit_box b;
    struct box box;
    char path[64];

    open_dirs(&d);
    kit_prepare(&d.k, &b, "t1", "exec sleep 1000");
    CHECK_OK(box_dirs_make(&d.k.h, &b.spec));
    b.spec.flags = BOX_DIR_MADE;
    kit_start(&d.k, &b, &box);
    snprintf(path, sizeof path, "/proc/%d/root", (int)box.pid);
    own_fd held = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(held >= 0);
    CHECK_OK(box_kill(&d.k.h, &box));
    CHECK_INT(kit_wait(&box), 128 + SIGKILL);
    CHECK_OK(box_remove(&d.k.h, &box, true));
    kit_forget(&b);
    CHECK_INT(box.layers.count, 1);
    CHECK(!bury(&d, &box));
    close(take_fd(&held));
    close_dirs(&d);
}

TEST(directories_are_kept_in_bounds)
{
    struct dirs d;
    struct box box;

    open_dirs(&d);
    for (unsigned i = 1; i <= LIVES; i++) { /* the same one each time */
        live(&d, "t1", "exit 0", NULL, &box);
        CHECK_INT(box.layers.lives, i);
        CHECK_INT(bury(&d, &box), i < LIVES);
    }
    for (unsigned i = 0; i <= BOX_SPARES; i++) { /* a new one each time */
        live(&d, "t1", "exit 0", NULL, &box);
        bool kept = box_dirs_keep(&d.k.h, &box); /* not cleared: nobody takes it */
        CHECK_INT(kept, i < BOX_SPARES);
        if (!kept)
            CHECK_OK(box_remove_dir(&d.k.h, "t1"));
    }
    close_dirs(&d);
}

TEST(one_of_another_kind_does_not_serve)
{
    struct dirs d;
    struct kit_box b;
    struct box box;

    open_dirs(&d);
    live(&d, "t1", "exit 0", NULL, &box);
    CHECK(bury(&d, &box));
    kit_prepare(&d.k, &b, "t2", "exit 0");
    b.root.upper = "upper";
    CHECK_OK(box_dirs_make(&d.k.h, &b.spec));
    CHECK_INT(b.spec.lives, 1);
    b.root.upper = "u";
    CHECK_ERR(box_dirs_make(&d.k.h, &b.spec), ERR_CONFLICT, "name"); /* it is taken */
    CHECK_OK(box_remove_dir(&d.k.h, "t2"));
    b.spec.disk = NATIVE_DISK_LOOP;
    CHECK_OK(box_dirs_make(&d.k.h, &b.spec));
    CHECK_INT(b.spec.lives, 1);
    CHECK_OK(box_remove_dir(&d.k.h, "t2"));
    b.spec.disk = NATIVE_DISK_NONE;
    CHECK_OK(box_dirs_make(&d.k.h, &b.spec));
    CHECK_INT(b.spec.lives, 2);
    CHECK_OK(box_remove_dir(&d.k.h, "t2"));
    kit_forget(&b);
    close_dirs(&d);
}

TEST_LIMIT(every_call_of_a_start_in_a_directory_that_served_may_fail_and_nothing_is_left, 120)
{
    struct dirs d;
    unsigned ok = 0, failed = 0;

    open_dirs(&d);
    fault_share();
    for (unsigned n = 1; n < 400 && ok < 12; n++) {
        struct kit_box b;
        struct box box;
        live(&d, "t1", "exit 0", NULL, &box);
        bury(&d, &box);
        kit_prepare(&d.k, &b, "t1", "exit 0");
        fault_at(n);
        struct err *e = box_dirs_make(&d.k.h, &b.spec);
        b.spec.flags = BOX_DIR_MADE;
        if (!e)
            e = kit_try(&d.k, &b, &box);
        bool kept = false;
        struct err *left = NULL;
        if (!e) {
            CHECK_INT(kit_wait(&box), 0);
            left = box_remove(&d.k.h, &box, true);
            kept = box_dirs_keep(&d.k.h, &box);
            box_dirs_clear(&d.k.h.dirs);
        }
        fault_at(0);
        if (left) {
            err_free(left);
            CHECK_OK(box_remove(&d.k.h, &box, true));
        }
        failed += e != NULL;
        ok = e ? 0 : ok + 1;
        err_free(e);
        kit_forget(&b);
        if (!kept)
            CHECK_OK(box_remove_dir(&d.k.h, "t1"));
        kit_check_empty("state/box");
    }
    CHECK(failed > 50);
    close_dirs(&d);
}

/* --- in a launcher --- */

static void make_path(const struct rig *r, const char *path)
{
    own_fd root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), made = -1;
    char whole[4400];

    snprintf(whole, sizeof whole, "%s/%s", r->state, path);
    CHECK_OK(fd_make_dirs(root, str_of(whole + 1), 0700, &made));
}

/* On its way from one sandbox to the next it has no record, wherever it is. */
TEST(directories_a_killed_launcher_kept_are_deleted_by_the_next)
{
    static const char *const left[] = {"gone/spare/1/u", "gone/spare/1/w",     "gone/spare/7/u",
                                       "box/leaving/u",  "box/leaving/w/work", "box/coming/u",
                                       "box/coming/w"};
    struct rig r;
    struct native_reply list;

    rig_prepare(&r, 2);
    for (size_t i = 0; i < ARRAY_LEN(left); i++)
        make_path(&r, left[i]);
    own_fd dir = test_dir_fd(), box = -1;
    CHECK_OK(fd_make_dirs(dir, STR("state/box/leaving"), 0700, &box));
    CHECK_OK(fd_replace_file(box, RECORD_NEW, STR("x"), 0600));
    close(take_fd(&box));
    close(take_fd(&dir));
    rig_fork(&r);
    list = rig_tell(&r, NATIVE_LIST, "");
    CHECK_INT(list.count, 0);
    kit_check_empty("state/box");
    census_wait_deleted(r.state);
    kit_check_empty("state/gone");
    rig_start(&r, "leaving"); /* and all their names are free */
    rig_tell(&r, NATIVE_REMOVE, "leaving");
    rig_start(&r, "coming");
    rig_tell(&r, NATIVE_REMOVE, "coming");
    rig_kill(&r);
    rig_reap();
    rig_fork(&r);
    rig_start(&r, "coming");
    rig_tell(&r, NATIVE_REMOVE, "coming");
    rig_close(&r); /* which looks for what is left */
}
