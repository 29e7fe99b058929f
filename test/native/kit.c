// SPDX-License-Identifier: Apache-2.0
/* kit.c — see kit.h. */
#include "test/native/kit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "base/rng.h"
#include "test/program.h"
#include "test/test.h"

void kit_need_root(void)
{
    if (geteuid() != 0)
        SKIP("needs root");
}

static unsigned count_mounts(void)
{
    own_done(buf) text;
    unsigned n = 0;

    buf_init(&text, 1u << 20);
    CHECK_OK(fd_read_file("/proc/self/mountinfo", &text));
    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == '\n';
    return n;
}

void kit_check_empty(const char *relative)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/%s", test_dir(), relative);
    DIR *d = opendir(path);
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            FAIL("'%s' is left in %s", e->d_name, relative);
    closedir(d);
}

void kit_open(struct kit *k)
{
    char state[4200];

    kit_need_root();
    snprintf(state, sizeof state, "%s/state", test_dir());
    k->mounts = count_mounts();
    k->fds = test_open_fds();
    CHECK_OK(box_host_open(&k->h, state, rng_system()));
    k->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(k->root >= 0);
}

void kit_close(struct kit *k)
{
    box_host_close(&k->h);
    close(k->root);
    CHECK_INT(test_open_fds(), k->fds);
    CHECK_INT(count_mounts(), k->mounts);
    CHECK_INT(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    CHECK_INT(errno, ECHILD);
    kit_check_empty("state/box");
    kit_check_empty("state/ids");
}

void kit_prepare(struct kit *k, struct kit_box *b, const char *id, const char *script)
{
    static const char *const pid1[] = {"croft-guest", "init", "--exec", "--", NULL};
    const char *const argv[] = {"/bin/sh", "-c", script};
    int out[2];

    *b = (struct kit_box){.req = {.magic = NATIVE_MAGIC,
                                  .version = NATIVE_VERSION,
                                  .op = NATIVE_START,
                                  .argc = 3,
                                  .envc = 1,
                                  .hostname = "box"}};
    snprintf(b->req.id, sizeof b->req.id, "%s", id);
    CHECK(pipe2(out, O_CLOEXEC) == 0);
    b->out = out[0];
    b->root = (struct box_root){
        .where = "", .upper = "u", .work = "w", .lowers = &k->root, .lower_count = 1};
    b->spec = (struct box_spec){.req = &b->req,
                                .prefix = pid1,
                                .roots = &b->root,
                                .root_count = 1,
                                .block = memfd_create("args", MFD_CLOEXEC),
                                .fds = {-1, out[1], out[1]},
                                .fd_count = 3};
    for (size_t i = 0; i < ARRAY_LEN(argv); i++)
        CHECK_OK(fd_write_all(b->spec.block, str_n(argv[i], strlen(argv[i]) + 1)));
    CHECK_OK(fd_write_all(b->spec.block, str_n("PATH=/usr/bin:/bin", 19)));
}

void kit_forget(struct kit_box *b)
{
    own_close_p(&b->out);
    own_close_p(&b->spec.block);
    own_close_p(&b->spec.fds[1]);
}

fallible kit_try(struct kit *k, struct kit_box *b, struct box *ret_box)
{
    struct box_spare e;

    TRY(native_check(&b->req, sizeof b->req));
    TRY(box_prepare_spare(&k->h, b->req.id, &e));
    return box_start(&k->h, &e, &b->spec, ret_box);
}

void kit_start(struct kit *k, struct kit_box *b, struct box *ret_box)
{
    CHECK_OK(kit_try(k, b, ret_box));
    own_close_p(&b->spec.fds[1]); /* so that its output ends with it */
    b->spec.fds[1] = -1;
}

int kit_wait(const struct box *box)
{
    siginfo_t info;

    while (waitid(P_PIDFD, (id_t)box->pidfd, &info, WEXITED) < 0)
        CHECK_INT(errno, EINTR);
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

int kit_end(struct kit *k, struct kit_box *b, struct box *box, struct buf *into)
{
    if (into)
        CHECK_OK(fd_read_all(b->out, into));
    int code = kit_wait(box);
    CHECK_OK(box_remove(&k->h, box, false));
    kit_forget(b);
    return code;
}

int kit_run(const char *const *flags, const char *const *command, struct buf *into)
{
    const char *argv[64] = {test_program("croft"), "run", "--root", "/", "--workspace", test_dir()};
    char state[4200];
    size_t n = 6;

    kit_need_root();
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    for (; *flags; flags++)
        argv[n++] = *flags;
    argv[n++] = "--";
    for (; *command; command++)
        argv[n++] = *command;
    int code = program_run(argv, into);
    kit_settle();
    return code;
}

void kit_settle(void)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/state/box", test_dir());
    own_fd box = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (box >= 0)
        CHECK_INT(flock(box, LOCK_EX), 0);
}

void kit_share_layers(const char *state)
{
    kit_share_layers_as(state, "test-state", 0);
}

void kit_share_layers_as(const char *state, const char *name, unsigned owner)
{
    char cache[600], here[4300];

    snprintf(cache, sizeof cache, "%s", test_program(name));
    snprintf(here, sizeof here, "%s/rootfs", state);
    CHECK(mkdir(state, 0755) == 0 || errno == EEXIST);
    CHECK(mkdir(cache, 0700) == 0 || errno == EEXIST);
    CHECK(mkdir(here, 0700) == 0);
    CHECK(chown(state, owner, owner) == 0 && chown(cache, owner, owner) == 0);
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mount(cache, here, NULL, MS_BIND, NULL) == 0);
}

int kit_as_nobody(const char *const *args, struct buf *out)
{
    const char *argv[64] = {"setpriv", "--reuid",        "65534", "--regid",
                            "65534",   "--clear-groups", "--",    test_program("croft")};
    size_t n = 8;

    for (; *args; args++)
        argv[n++] = *args;
    int code = program_run(argv, out);
    kit_settle();
    return code;
}

void kit_be_nobody(void)
{
    char home[4200];
    own_done(buf) out;

    kit_need_root();
    buf_init(&out, 1u << 16);
    snprintf(home, sizeof home, "%s", test_dir());
    CHECK_INT(chmod(home, 0755), 0);
    CHECK_INT(chown(home, KIT_NOBODY, KIT_NOBODY), 0);
    setenv("HOME", "/nonexistent", 1); /* a home is no workspace */
    strcat(home, "/state");
    setenv("CROFT_SERVER_STATE_DIR", home, 1);
    CHECK_INT(chdir(test_dir()), 0);
    if (kit_as_nobody(ARGS("version"), &out) != 0)
        SKIP("user nobody may not run the program under test");
    if (program_run(ARGS("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--",
                         "unshare", "-U", "true"),
                    &out) != 0)
        SKIP("ordinary users have no user namespaces here");
}

void kit_pretend(const char *path, const char *text, mode_t mode)
{
    const char *slash = strrchr(path, '/');
    char copy[4300];

    snprintf(copy, sizeof copy, "%s/pretend-%s", test_dir(), slash + 1);
    own_fd fd = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, str_of(text)));
    CHECK_INT(fchmod(fd, mode), 0);
    CHECK_INT(mount(copy, path, NULL, MS_BIND, NULL), 0);
}

void kit_sub_ids(const char *lines)
{
    kit_need_root();
    if (access("/usr/bin/newuidmap", X_OK) < 0 || access("/etc/subuid", R_OK) < 0 ||
        access("/etc/subgid", R_OK) < 0)
        SKIP("needs newuidmap (Debian: uidmap)");
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    kit_pretend("/etc/subuid", lines, 0644);
    kit_pretend("/etc/subgid", lines, 0644);
}
