// SPDX-License-Identifier: Apache-2.0
/* Paths that lie: root file systems made of links, mounts sent elsewhere, working directories that
 * are descriptors, set-id files left for the host. The verdict is what the host finds afterwards.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/native/kit.h"
#include "test/program.h"
#include "test/test.h"

#define SECRET  "the host's own words"
#define LIMIT_S 180

/* <dir>/root with the probe in it, <dir>/trap for what is led astray, <dir>/given to be mounted. */
struct ground {
    char root[300], trap[300], secret[300], state[300];
    int dir;
    bool user; /* not root, but nobody */
};

static void put(int dir, const char *name, const char *text, mode_t mode)
{
    own_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    CHECK(fd >= 0 && fchmod(fd, mode) == 0);
    CHECK_OK(fd_write_all(fd, str_of(text)));
}

static const char *const owned[] = {"root", "root/probe", "trap", "given", "given/mark", "secret"};

static void prepare(struct ground *g, bool user)
{
    own_done(buf) program;

    kit_need_root();
    g->user = user;
    if (user)
        kit_be_nobody();
    buf_init(&program, 1u << 24);
    g->dir = test_dir_fd();
    snprintf(g->root, sizeof g->root, "%s/root", test_dir());
    snprintf(g->trap, sizeof g->trap, "%s/trap", test_dir());
    snprintf(g->secret, sizeof g->secret, "%s/secret", test_dir());
    snprintf(g->state, sizeof g->state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", g->state, 1);
    CHECK(mkdirat(g->dir, "root", 0755) == 0 && mkdirat(g->dir, "trap", 0777) == 0 &&
          mkdirat(g->dir, "given", 0777) == 0);
    CHECK_OK(fd_read_file(test_program("escape-probe"), &program));
    own_fd fd = openat(g->dir, "root/probe", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    CHECK_OK(fd_write_all(fd, buf_str(&program)));
    put(g->dir, "secret", SECRET, 0644);
    put(g->dir, "given/mark", "given", 0644);
    for (size_t i = 0; user && i < ARRAY_LEN(owned); i++)
        CHECK_INT(fchownat(g->dir, owned[i], KIT_NOBODY, KIT_NOBODY, 0), 0);
}

static void use_layers(struct ground *g)
{
    if (g->user)
        kit_share_layers_as(g->state, "test-state-user", KIT_NOBODY);
    else
        kit_share_layers(g->state);
}

static int croft(const struct ground *g, const char *const *args, struct buf *out)
{
    const char *argv[32] = {test_program("croft")};
    size_t n = 1;

    if (g->user)
        return kit_as_nobody(args, out);
    for (; *args; args++)
        argv[n++] = *args;
    return program_run(argv, out);
}

static void finish(struct ground *g)
{
    kit_settle();
    kit_check_empty("trap");
    kit_check_empty("state/box");
    close(g->dir);
}

/* The probe's attempts on paths, in this root; gives the exit code. */
static int try_root(struct ground *g, const char *flag, const char *value, struct buf *out)
{
    char file[320];

    snprintf(file, sizeof file, "FILE=%s", g->secret);
    buf_reset(out);
    return croft(g,
                 ARGS("run", "--discard", "--bare", "--root", g->root, flag, value, "--workdir",
                      "/", "--", "/probe", file, "by_its_name", "dot_dot_chain",
                      "root_of_every_process"),
                 out);
}

static void link_name(struct ground *g, const char *name, const char *to)
{
    char path[64];

    snprintf(path, sizeof path, "root/%s", name);
    CHECK_INT(symlinkat(to, g->dir, path), 0);
}

static void unlink_name(struct ground *g, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "root/%s", name);
    CHECK_INT(unlinkat(g->dir, path, 0), 0);
}

/* CVE-2026-41579, CVE-2025-52881. */
static void try_a_root_whose_directories_are_links_leads_nowhere(bool user)
{
    static const char *const names[] = {"dev", "proc", "sys", "etc", "tmp", "workspace", "usr"};
    struct ground g;
    own_done(buf) out;

    prepare(&g, user);
    buf_init(&out, 1u << 20);
    const char *const targets[] = {g.trap, "../trap", "/proc/self/fd/3", "/proc/1/root", "."};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        for (size_t t = 0; t < ARRAY_LEN(targets); t++) {
            link_name(&g, names[i], targets[t]);
            int code = try_root(&g, "--name", "links", &out);
            if (code != 0 && code != 125)
                FAIL("%s -> %s: exit code %d: %.*s", names[i], targets[t], code,
                     STR_ARG(buf_str(&out)));
            if (str_find(buf_str(&out), STR(SECRET)) >= 0)
                FAIL("%s -> %s: %.*s", names[i], targets[t], STR_ARG(buf_str(&out)));
            kit_settle();
            unlink_name(&g, names[i]);
        }
    finish(&g);
}

TEST_LIMIT(a_root_whose_directories_are_links_leads_nowhere, LIMIT_S)
{
    try_a_root_whose_directories_are_links_leads_nowhere(false);
}

TEST_LIMIT(an_ordinary_users_root_of_links_leads_nowhere, LIMIT_S)
{
    try_a_root_whose_directories_are_links_leads_nowhere(true);
}

/* The control of the one above: the same root, honest, works, and the probe finds what is there. */
static void try_a_root_of_plain_directories_works_and_is_probed(bool user)
{
    struct ground g;
    own_done(buf) out;

    prepare(&g, user);
    buf_init(&out, 1u << 20);
    CHECK_INT(try_root(&g, "--name", "plain", &out), 0);
    CHECK_HAS(buf_str(&out), "1-paths/by_its_name said No such file");
    kit_settle();
    CHECK_INT(try_root(&g, "--ro", g.secret, &out), 0); /* given: then it is found, by its name */
    CHECK_HAS(buf_str(&out), "1-paths/by_its_name said " SECRET);
    finish(&g);
}

TEST_LIMIT(a_root_of_plain_directories_works_and_is_probed, LIMIT_S)
{
    try_a_root_of_plain_directories_works_and_is_probed(false);
}

TEST_LIMIT(an_ordinary_users_plain_root_works_and_is_probed, LIMIT_S)
{
    try_a_root_of_plain_directories_works_and_is_probed(true);
}

/* CVE-2024-42472: the place to mount on is a link, or lies behind one. */
static void try_a_mount_goes_through_no_link_of_the_root(bool user)
{
    char given[2][400];
    struct ground g;
    own_done(buf) out;

    prepare(&g, user);
    buf_init(&out, 1u << 20);
    snprintf(given[0], sizeof given[0], "%s/given:/at", test_dir());
    snprintf(given[1], sizeof given[1], "%s/given:/at/below", test_dir());
    for (int i = 0; i < 2; i++) {
        link_name(&g, "at", g.trap);
        CHECK_INT(try_root(&g, "--rw", given[i], &out), 125);
        kit_settle();
        unlink_name(&g, "at");
        link_name(&g, "at", "../trap");
        CHECK_INT(try_root(&g, "--rw", given[i], &out), 125);
        kit_settle();
        unlink_name(&g, "at");
    }
    finish(&g);
}

TEST_LIMIT(a_mount_goes_through_no_link_of_the_root, LIMIT_S)
{
    try_a_mount_goes_through_no_link_of_the_root(false);
}

TEST_LIMIT(an_ordinary_users_mount_goes_through_no_link_of_the_root, LIMIT_S)
{
    try_a_mount_goes_through_no_link_of_the_root(true);
}

/* CVE-2021-30465: the same, while somebody exchanges directory and link as fast as he can. */
static void try_a_mount_goes_through_no_link_that_comes_and_goes(bool user)
{
    char given[400];
    struct ground g;
    unsigned ran = 0;
    own_done(buf) out;

    prepare(&g, user);
    buf_init(&out, 1u << 20);
    snprintf(given, sizeof given, "%s/given:/at/below", test_dir());
    CHECK(mkdirat(g.dir, "root/at", 0755) == 0 && mkdirat(g.dir, "root/at/below", 0755) == 0);
    link_name(&g, "other", g.trap);
    pid_t swapper = fork();
    if (swapper == 0)
        for (;;)
            syscall(SYS_renameat2, g.dir, "root/at", g.dir, "root/other", 2 /* EXCHANGE */);
    for (int i = 0; i < 40; i++) {
        int code = try_root(&g, "--rw", given, &out);
        CHECK(code == 0 || code == 125);
        CHECK(str_find(buf_str(&out), STR(" OPEN ")) < 0);
        ran += code == 0;
        kit_settle();
    }
    kill(swapper, SIGKILL);
    program_wait(swapper);
    printf("%u of 40 ran\n", ran);
    finish(&g);
}

TEST_LIMIT(a_mount_goes_through_no_link_that_comes_and_goes, LIMIT_S)
{
    try_a_mount_goes_through_no_link_that_comes_and_goes(false);
}

TEST_LIMIT(an_ordinary_users_mount_goes_through_no_link_that_comes_and_goes, LIMIT_S)
{
    try_a_mount_goes_through_no_link_that_comes_and_goes(true);
}

/* CVE-2024-21626. */
static void try_a_working_directory_that_is_a_descriptor_leads_nowhere(bool user)
{
    char workdir[64], file[600];
    struct ground g;
    own_done(buf) out;

    prepare(&g, user);
    buf_init(&out, 1u << 20);
    use_layers(&g);
    snprintf(file, sizeof file, "../../../../../../../../..%s", g.secret);
    for (int fd = 0; fd < 24; fd++) {
        snprintf(workdir, sizeof workdir, "/proc/self/fd/%d", fd);
        buf_reset(&out);
        croft(&g,
              ARGS("run", "--discard", "--bare", "--workdir", workdir, "--", "/usr/bin/cat", file),
              &out);
        if (str_find(buf_str(&out), STR(SECRET)) >= 0)
            FAIL("descriptor %d leads out", fd);
        kit_settle();
    }
    finish(&g);
}

TEST_LIMIT(a_working_directory_that_is_a_descriptor_leads_nowhere, LIMIT_S)
{
    try_a_working_directory_that_is_a_descriptor_leads_nowhere(false);
}

TEST_LIMIT(an_ordinary_users_working_directory_that_is_a_descriptor_leads_nowhere, LIMIT_S)
{
    try_a_working_directory_that_is_a_descriptor_leads_nowhere(true);
}

static const char move_and_look[] =
    "mkdir /part/deep && cd /part/deep && mv /all/part/deep /all/deep && "
    "cat ../mark ../../secret ../../../../../../../../../../etc/hostname; true";

/* Two views of one directory: what is carried out of the one does not lead above the other. */
static void try_a_directory_moved_out_of_its_mount_leads_nowhere(bool user)
{
    char all[400], part[400];
    struct ground g;
    own_done(buf) out;

    prepare(&g, user);
    buf_init(&out, 1u << 20);
    use_layers(&g);
    CHECK_INT(mkdirat(g.dir, "given/part", 0777), 0);
    if (user)
        CHECK_INT(fchownat(g.dir, "given/part", KIT_NOBODY, KIT_NOBODY, 0), 0);
    snprintf(all, sizeof all, "%s/given:/all", test_dir());
    snprintf(part, sizeof part, "%s/given/part:/part", test_dir());
    croft(&g,
          ARGS("run", "--discard", "--bare", "--rw", all, "--rw", part, "--", "sh", "-c",
               move_and_look),
          &out);
    CHECK(str_find(buf_str(&out), STR(SECRET)) < 0);
    CHECK_INT(faccessat(g.dir, "given/deep", F_OK, 0), 0); /* it was moved */
    finish(&g);
}

TEST_LIMIT(a_directory_moved_out_of_its_mount_leads_nowhere, LIMIT_S)
{
    try_a_directory_moved_out_of_its_mount_leads_nowhere(false);
}

TEST_LIMIT(an_ordinary_users_moved_directory_leads_nowhere, LIMIT_S)
{
    try_a_directory_moved_out_of_its_mount_leads_nowhere(true);
}

/* A set-id program in an upper layer is one on the host's disk: nobody may get at it, and apply
 * takes the bit off. */
TEST_LIMIT(set_id_files_made_inside_are_none_outside, LIMIT_S)
{
    char upper[600], workspace[400];
    struct stat st;
    struct ground g;
    own_done(buf) out;

    prepare(&g, false);
    buf_init(&out, 1u << 20);
    kit_share_layers(g.state);
    CHECK_INT(chmod(test_dir(), 0755), 0);
    snprintf(workspace, sizeof workspace, "%s/given", test_dir());
    CHECK_INT(
        program_run(ARGS(test_program("croft"), "run", "--name", "setid", "--workspace", workspace,
                         "--", "sh", "-c", "cp /usr/bin/id . && chmod 6755 id && ls -l id"),
                    &out),
        0);
    CHECK_HAS(buf_str(&out), "-rwsr-sr-x"); /* inside it is what it says */
    kit_settle();
    snprintf(upper, sizeof upper, "%s/box/setid/m0u/id", g.state);
    CHECK(stat(upper, &st) == 0 && st.st_mode & S_ISUID); /* so there is something to guard */
    CHECK(program_run(ARGS("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                           "--", "env", upper), /* setpriv itself may still go anywhere */
                      &out) != 0);
    CHECK_INT(program_run(ARGS(test_program("croft"), "apply", "setid"), &out), 0);
    CHECK_INT(fstatat(g.dir, "given/id", &st, 0), 0);
    CHECK_INT(st.st_mode & (S_ISUID | S_ISGID), 0);
    CHECK_INT(program_run(ARGS(test_program("croft"), "rollback", "setid"), &out), 0);
    finish(&g);
}

/* The directory itself, changed for real: what would run as root there is none once it has ended.
 */
TEST_LIMIT(set_id_files_left_in_a_writable_directory_are_taken_off, LIMIT_S)
{
    char given[400];
    struct stat st;
    static const char leave_set_id[] =
        "cd /given; mkdir deep; cp /usr/bin/id deep/id; chmod 6755 deep/id;"
        "chmod 2775 deep; ls -l deep/id; setcap cap_setuid+ep deep/id || :";
    struct ground g;
    own_done(buf) out;

    prepare(&g, false);
    buf_init(&out, 1u << 20);
    kit_share_layers(g.state);
    snprintf(given, sizeof given, "%s/given:/given", test_dir());
    CHECK_INT(program_run(ARGS(test_program("croft"), "run", "--bare", "--rw", given, "--", "sh",
                               "-c", leave_set_id),
                          &out),
              0);
    CHECK_HAS(buf_str(&out), "-rwsr-sr-x");
    kit_settle();
    CHECK_INT(fstatat(g.dir, "given/deep/id", &st, 0), 0);
    CHECK_INT(st.st_mode & 07777, 0755);
    CHECK_INT(fstatat(g.dir, "given/deep", &st, 0), 0);
    CHECK_INT(st.st_mode & 07777, 02775); /* of a directory the bit gives nobody anything */
    finish(&g);
}
