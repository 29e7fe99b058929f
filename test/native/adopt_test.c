// SPDX-License-Identifier: Apache-2.0
/* adopt_test.c — servers and launchers die, sandboxes live on, and whoever comes next finds them.
 */
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "host/record/record.h"
#include "sandbox/sandbox.h"
#include "test/native/kit.h"
#include "test/native/launcher_kit.h"
#include "test/program.h"
#include "test/test.h"

static int adopt(struct rig *r, const char *id, enum native_state state)
{
    struct native_request req = rig_request(NATIVE_ADOPT, id);
    struct native_reply reply;
    int fds[2];

    rig_ask(r, &req, NULL, 0, &reply, fds);
    CHECK_STR(str_of(reply.text), "");
    CHECK_INT(reply.state, state);
    CHECK_INT(fds[1], -1);
    return fds[0];
}

static void check_list(struct rig *r, const char *const *ids)
{
    struct native_request req = rig_request(NATIVE_LIST, "");
    struct native_reply reply;
    int fds[2];
    unsigned n = 0;

    rig_ask(r, &req, NULL, 0, &reply, fds);
    for (; ids[n]; n++)
        CHECK_STR(str_of(reply.ids[n]), str_of(ids[n]));
    CHECK_INT(reply.count, n);
}

TEST(sandboxes_of_a_killed_launcher_live_on_and_the_next_one_adopts_them)
{
    struct rig r;

    rig_open(&r, 2);
    rig_start(&r, "b");
    rig_start(&r, "a");
    rig_tell(&r, NATIVE_PAUSE, "b");
    pid_t pid = rig_tell(&r, NATIVE_INSPECT, "a").pid;
    rig_kill(&r);
    rig_check_answers(&r, "a");

    rig_fork(&r);
    check_list(&r, ARGS("a", "b"));
    CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "a").pid, pid);
    CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "b").state, NATIVE_PAUSED);
    own_fd a = adopt(&r, "a", NATIVE_RUNNING), b = adopt(&r, "b", NATIVE_PAUSED);
    rig_tell(&r, NATIVE_RESUME, "b");
    rig_check_answers(&r, "b");
    CHECK_ERR(fd_wait(a, POLLIN, 0), ERR_TIMEOUT, "");
    rig_tell(&r, NATIVE_KILL, "a");
    CHECK_OK(fd_wait(a, POLLIN, 60000));
    CHECK_ERR(fd_wait(b, POLLIN, 0), ERR_TIMEOUT, "");
    struct native_reply dead = rig_tell(&r, NATIVE_INSPECT, "a");
    CHECK_INT(dead.state, NATIVE_EXITED);
    CHECK_INT(dead.flags, NATIVE_CODE_UNKNOWN);
    CHECK_INT(adopt(&r, "a", NATIVE_EXITED), -1);
    rig_tell(&r, NATIVE_REMOVE, "a");
    close(take_fd(&a));
    close(take_fd(&b));
    rig_close(&r);
    rig_reap();
}

TEST(an_adopted_sandbox_that_dies_by_itself_is_seen_and_starts_again)
{
    struct rig r;

    rig_open(&r, 0);
    rig_start(&r, "a");
    rig_kill(&r);
    rig_fork(&r);
    pid_t pid = rig_tell(&r, NATIVE_INSPECT, "a").pid;
    own_fd death = adopt(&r, "a", NATIVE_RUNNING);
    CHECK_INT(kill(pid, SIGKILL), 0);
    CHECK_OK(fd_wait(death, POLLIN, 60000));
    rig_tell(&r, NATIVE_KILL, "a"); /* answered when it is dead, here at once or soon */
    CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "a").state, NATIVE_EXITED);
    kit_check_empty("state/ids");
    rig_start(&r, "a");
    rig_check_answers(&r, "a");
    close(take_fd(&death));
    rig_close(&r);
    rig_reap();
}

TEST(spare_processes_and_torn_starts_of_a_killed_launcher_are_swept)
{
    struct rig r;
    struct native_request req = rig_request(NATIVE_START, "a");

    rig_open(&r, 4);
    rig_tell(&r, NATIVE_LIST, "");
    own_fd block = rig_block(ARGS("action-server"), ARGS(NULL));
    CHECK_OK(fd_send(r.sock, str_n(&req, sizeof req), &block, 1));
    rig_kill(&r);
    close(take_fd(&block));
    r.policy.spares = 0;
    rig_fork(&r);
    rig_tell(&r, NATIVE_LIST, "");
    rig_close(&r);
    rig_reap();
}

/* A number that is another process's by now; that one must not be taken for the sandbox. */
TEST(a_record_that_names_another_process_is_not_believed)
{
    struct rig r;
    struct record rec;
    char path[4300];

    rig_prepare(&r, 0);
    r.policy.persist = true;
    rig_fork(&r);
    rig_start(&r, "a");
    pid_t pid = rig_tell(&r, NATIVE_INSPECT, "a").pid;
    rig_kill(&r);
    CHECK_INT(kill(pid, SIGKILL), 0);
    rig_reap();
    snprintf(path, sizeof path, "%s/box/a/record", r.state);
    own_fd fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK_INT(read(fd, &rec, sizeof rec), sizeof rec);
    rec.pid = getpid();
    CHECK_INT(pwrite(fd, &rec, sizeof rec, 0), sizeof rec);
    close(take_fd(&fd));
    rig_fork(&r);
    CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "a").state, NATIVE_EXITED);
    rig_tell(&r, NATIVE_KILL, "a");
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
}

static void rewrite(const char *path, const void *bytes, size_t len)
{
    own_fd fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    CHECK_OK(fd_write_all(fd, str_n(bytes, len)));
}

/* As a croft of before wrote it: without what came since. */
static size_t make_older(const struct record *rec, uint32_t version, char *out)
{
    const char *in = (const char *)rec;
    size_t machine = offsetof(struct record, machine_id), cpu = offsetof(struct record, cpu_ns);
    size_t n = machine, from = machine + sizeof rec->machine_id;

    memcpy(out, in, n);
    memcpy(out + offsetof(struct record, version), &version, sizeof version);
    memcpy(out + n, in + from, cpu - from);
    n += cpu - from;
    from = version < 4 ? cpu + sizeof rec->cpu_ns : cpu;
    memcpy(out + n, in + from, sizeof *rec - from);
    return n + sizeof *rec - from;
}

TEST(a_sandbox_of_another_version_of_croft_keeps_its_files)
{
    struct rig r;
    struct record rec;
    char path[4300], kept[4300], old[sizeof rec];
    struct stat st;

    rig_prepare(&r, 0);
    r.policy.persist = true;
    rig_fork(&r);
    rig_start(&r, "a");
    rig_kill(&r);
    snprintf(path, sizeof path, "%s/box/a/record", r.state);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK_INT(read(fd, &rec, sizeof rec), sizeof rec);
    close(take_fd(&fd));
    snprintf(kept, sizeof kept, "%s/box/a/u/kept", r.state);
    CHECK_INT(mkdir(kept, 0755), 0);

    struct record newer = rec; /* nobody knows what it says: it is left, and lives */
    newer.version++;
    rewrite(path, &newer, sizeof newer);
    rig_fork(&r);
    CHECK_INT(program_wait(r.pid), 1);
    close(r.sock);
    CHECK_INT(stat(kept, &st), 0);
    CHECK_INT(kill(rec.pid, 0), 0);
    rig_check_answers(&r, "a");
    for (uint32_t version = 3; version < 5; version++) {
        rewrite(path, old, make_older(&rec, version, old));
        rig_fork(&r);
        CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "a").pid, rec.pid);
        rig_check_answers(&r, "a");
        rig_kill(&r);
    }
    rewrite(path, &rec, sizeof rec);
    rig_fork(&r);
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
    rig_reap();
}

/* No control groups to look into: the process' number and start time must do. */
TEST(an_ordinary_users_launcher_adopts_too)
{
    struct rig r;

    static const char *const system[] = {NULL}; /* the machine's own: '/' has mounts below it */

    rig_prepare(&r, 1);
    r.policy.images = system;
    r.policy.ceiling = (struct native_limits){.nofile = 4096}; /* the rest needs groups */
    kit_be_nobody();
    kit_share_layers_as(r.state, "test-state-user", KIT_NOBODY);
    CHECK_INT(setgroups(0, NULL), 0);
    CHECK_INT(setresgid(KIT_NOBODY, KIT_NOBODY, KIT_NOBODY), 0);
    CHECK_INT(setresuid(KIT_NOBODY, KIT_NOBODY, KIT_NOBODY), 0);
    CHECK_INT(prctl(PR_SET_DUMPABLE, 1), 0); /* or it may not write its own maps */
    rig_fork(&r);
    rig_start(&r, "a");
    pid_t pid = rig_tell(&r, NATIVE_INSPECT, "a").pid;
    rig_kill(&r);
    rig_check_answers(&r, "a");
    rig_fork(&r);
    CHECK_INT(rig_tell(&r, NATIVE_ADOPT, "a").pid, pid);
    rig_check_answers(&r, "a");
    rig_tell(&r, NATIVE_KILL, "a");
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
    rig_reap();
}

/* --- keep: the server goes, the launcher stays --- */

TEST(a_launcher_that_keeps_waits_for_the_next_server)
{
    struct rig r;
    char sockets[4300];
    int other;
    struct native_reply reply;
    size_t n, count;

    rig_prepare(&r, 1);
    r.policy.persist = true;
    rig_fork(&r);
    snprintf(sockets, sizeof sockets, "%s/run", r.state);
    rig_start(&r, "a");
    CHECK_OK(launcher_connect(sockets, &other));
    CHECK_OK(fd_wait(other, POLLIN, 60000));
    CHECK_OK(fd_recv(other, &reply, sizeof reply, &n, NULL, 0, &count));
    CHECK_STR(str_of(reply.text), "the launcher has a server");
    CHECK_INT(reply.code, ERR_BUSY + 1);
    close(other);

    own_close_p(&r.ready);
    own_close_p(&r.control);
    r.ready = r.control = -1;
    close(r.sock); /* the server dies */
    rig_check_answers(&r, "a");
    CHECK_OK(launcher_connect(sockets, &r.sock));
    check_list(&r, ARGS("a"));
    own_fd death = adopt(&r, "a", NATIVE_RUNNING);
    rig_tell(&r, NATIVE_REMOVE, "a");
    CHECK_OK(fd_wait(death, POLLIN, 60000));
    close(take_fd(&death));
    rig_close(&r); /* nothing lives: it ends */
}

TEST(files_of_a_kept_sandbox_outlive_launcher_and_sandbox)
{
    struct rig r;
    char path[4300];
    struct stat st;

    rig_prepare(&r, 0);
    r.policy.persist = true;
    rig_fork(&r);
    rig_start(&r, "a");
    rig_tell(&r, NATIVE_KILL, "a");
    snprintf(path, sizeof path, "%s/box/a/u/kept", r.state);
    CHECK_INT(mkdir(path, 0755), 0);
    close(r.sock);
    CHECK_INT(program_wait(r.pid), 0);
    CHECK_INT(stat(path, &st), 0);
    rig_fork(&r);
    CHECK_INT(rig_tell(&r, NATIVE_INSPECT, "a").state, NATIVE_EXITED);
    rig_start(&r, "a");
    rig_check_answers(&r, "a");
    CHECK_INT(stat(path, &st), 0);
    rig_tell(&r, NATIVE_REMOVE, "a");
    rig_close(&r);
}

TEST(a_state_has_one_launcher)
{
    struct rig r;
    int sock;
    pid_t pid;

    rig_open(&r, 0);
    rig_tell(&r, NATIVE_LIST, ""); /* it has the lock */
    CHECK_OK(launcher_fork(&r.policy, &sock, &pid));
    CHECK_INT(program_wait(pid), 1);
    close(sock);
    rig_start(&r, "a");
    rig_close(&r);
}

/* --- the server's side: the driver --- */

struct served {
    struct loop *loop;
    struct sbx_launcher launcher;
    struct sbx_host host;
    struct sbx_driver *driver;
    unsigned gone;
};

static void open_driver(struct served *v, struct rig *r)
{
    *v = (struct served){.gone = 0};
    CHECK_OK(loop_new(&clock_system, &v->loop));
    v->host = (struct sbx_host){
        .loop = v->loop, .launcher = &v->launcher, .state_dir = r->state, .guest_fd = -1};
    v->launcher = (struct sbx_launcher){.sock = r->sock, .caps = ~0u};
    CHECK_OK(sbx_driver_open(sbx_backend_find(STR("native")), &v->host, &v->driver));
}

static void on_gone(void *arg, struct sbx *s)
{
    (void)s;
    ((struct served *)arg)->gone++;
}

static struct sbx *create(struct served *v, const char *id)
{
    struct sbx_spec spec = {.id = id, .on_gone = on_gone, .arg = v};
    struct sbx *s;

    CHECK_OK(sbx_create(v->driver, &spec, &s));
    return s;
}

struct waiting {
    bool done;
    int code; /* of the error; -1: none */
};

static void on_done(void *arg, struct sbx *s, const struct err *e)
{
    (void)s;
    *(struct waiting *)arg = (struct waiting){true, e ? (int)err_code(e) : -1};
}

static int wait_for(struct served *v, struct sbx *s,
                    struct err *(*op)(struct sbx *s, sbx_done *done, void *arg))
{
    struct waiting w = {.done = false};

    CHECK_OK(op(s, on_done, &w));
    while (!w.done)
        CHECK_OK(loop_turn(v->loop, 60000));
    return w.code;
}

/* A server of its own process, which dies without a word. */
static void start_and_die(struct rig *r, const char *id)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct served v;
        open_driver(&v, r);
        CHECK_INT(wait_for(&v, create(&v, id), sbx_start), -1);
        _exit(0);
    }
    close(r->sock);
    CHECK_INT(program_wait(pid), 0);
}

TEST(a_driver_adopts_what_a_server_before_it_started)
{
    struct rig r;
    struct served v;
    struct sbx_info info;
    char sockets[4300];

    rig_prepare(&r, 0);
    r.policy.persist = true;
    rig_fork(&r);
    start_and_die(&r, "a");
    snprintf(sockets, sizeof sockets, "%s/run", r.state);
    CHECK_OK(launcher_connect(sockets, &r.sock));
    open_driver(&v, &r);
    struct sbx *a = create(&v, "a"), *none = create(&v, "none");
    CHECK_INT(wait_for(&v, a, sbx_adopt), -1);
    CHECK_INT(wait_for(&v, none, sbx_adopt), ERR_NOT_FOUND);
    sbx_inspect(a, &info);
    CHECK_INT(info.state, SBX_RUNNING);
    CHECK(info.pid > 1);
    CHECK_INT(wait_for(&v, a, sbx_pause), -1);
    CHECK_INT(wait_for(&v, a, sbx_resume), -1);
    rig_check_answers(&r, "a");
    CHECK_INT(kill(info.pid, SIGKILL), 0);
    while (!v.gone)
        CHECK_OK(loop_turn(v.loop, 60000));
    sbx_inspect(a, &info);
    CHECK_INT(info.state, SBX_STOPPED);
    CHECK_STR(info.failure, "pid 1 was ended by signal 9");
    CHECK_INT(wait_for(&v, a, sbx_start), -1);
    CHECK_INT(wait_for(&v, a, sbx_stop), -1);
    CHECK_INT(wait_for(&v, a, sbx_remove), -1);
    CHECK_INT(wait_for(&v, none, sbx_remove), -1);
    sbx_driver_close(v.driver);
    loop_free(v.loop);
    rig_close(&r);
}
