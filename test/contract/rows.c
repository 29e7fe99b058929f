// SPDX-License-Identifier: Apache-2.0
/* rows.c — the contract, a sentence each; see contract.h. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/follow.h"
#include "test/contract/contract.h"
#include "test/native/census.h"

void contract_runs_commands(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);
    struct answer a = contract_command(c, s, NULL, "echo $((6 * 7)); (exit 3)");

    CHECK_INT(a.failure, ACTION_NO_FAILURE);
    CHECK_STR(a.text, "42");
    CHECK_INT(a.exit_code, 3);
    contract_end(c, s);
}

void contract_reads_what_was_written(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);
    struct wire_action a;

    wire_action_init(&a, WIRE_ACT_WRITE);
    a.write.path = STR("note.txt");
    a.write.content = STR("first\nsecond");
    CHECK_INT(contract_action(c, s, &a).type, WIRE_OBS_WRITE);
    wire_action_init(&a, WIRE_ACT_READ);
    a.read.path = STR("note.txt");
    CHECK_STR(contract_action(c, s, &a).text, "first\nsecond\n");
    CHECK_STR(contract_command(c, s, NULL, "cat note.txt").text, "first\nsecond");
    contract_end(c, s);
}

void contract_edits_files(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);
    struct wire_action a;
    char path[300];

    struct answer pwd = contract_command(c, s, NULL, "echo one > f; pwd");
    snprintf(path, sizeof path, "%.200s/f", pwd.text);
    wire_action_init(&a, WIRE_ACT_EDIT);
    a.edit.path = str_of(path);
    a.edit.command = STR("str_replace");
    a.edit.old_str = STR("one");
    a.edit.new_str = STR("two");
    a.edit.impl_source = STR("oh_aci");
    CHECK_HAS(contract_action(c, s, &a).text, "has been edited");
    CHECK_STR(contract_command(c, s, NULL, "cat f").text, "two");
    contract_end(c, s);
}

void contract_keeps_a_shell_between_commands(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);

    contract_command(c, s, NULL, "cd /usr && word=kept");
    CHECK_STR(contract_command(c, s, NULL, "echo $PWD $word").text, "/usr kept");
    contract_end(c, s);
}

void contract_gives_the_environment_of_the_spec(struct contract *c)
{
    const char *const env[] = {"GREETING=good day", NULL};
    struct sbx *s = contract_started(c, &(struct sbx_spec){.env = env});

    CHECK_STR(contract_command(c, s, NULL, "echo \"$GREETING\"").text, "good day");
    contract_end(c, s);
}

void contract_keeps_the_callers_variables_out(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);

    CHECK_STR(contract_command(c, s, NULL, "echo \"[$CROFT_TEST_SECRET]\"").text, "[]");
    contract_end(c, s);
}

void contract_wants_the_session_key(struct contract *c)
{
    struct sbx *s = contract_started(c, &(struct sbx_spec){.session_key = "sesame"});
    struct answer a = contract_command(c, s, CONTRACT_WRONG_KEY, "echo in");

    CHECK_INT(a.failure, ACTION_BAD);
    CHECK(a.http_status == 401 || a.http_status == 403);
    CHECK_STR(contract_command(c, s, "sesame", "echo in").text, "in");
    contract_end(c, s);
}

void contract_hides_the_session_key_from_commands(struct contract *c)
{
    struct sbx *s = contract_started(c, &(struct sbx_spec){.session_key = "sesame-0451"});
    struct sbx_info info;
    char command[400];

    sbx_inspect(s, &info);
    const char *key = info.session_key ? info.session_key : "sesame-0451";
    snprintf(command, sizeof command, "env | grep -c -e '%.4s''%s'; env | wc -l", key, key + 4);
    CHECK(contract_command(c, s, "sesame-0451", command).text[0] == '0');
    contract_end(c, s);
}

void contract_stops_and_starts_again(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);

    contract_command(c, s, NULL, "echo stays > kept");
    CHECK_OK(contract_stop(c, s));
    CHECK_OK(contract_start(c, s));
    CHECK_STR(contract_command(c, s, NULL, "cat kept").text, "stays");
    contract_end(c, s);
}

void contract_ends_its_processes_when_stopped(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);
    struct sbx_info info;

    contract_command(c, s, NULL, "sleep 4511 & (setsid sleep 4511 &)");
    sbx_inspect(s, &info);
    int pidfd = info.pid ? (int)syscall(SYS_pidfd_open, info.pid, 0) : -1;
    CHECK_OK(contract_stop(c, s));
    if (pidfd >= 0) {
        CHECK(syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0 && errno == ESRCH);
        close(pidfd);
    }
    CHECK_OK(contract_remove(c, s));
    own_done(buf) list;
    DIR *d = opendir("/proc");
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d));) {
        char path[300];
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        buf_init(&list, 1u << 20);
        struct err *gone = fd_read_file(path, &list);
        if (!gone && list.len > 9 && memcmp(list.p, "sleep\0004511", 10) == 0)
            FAIL("process %s lives on", e->d_name);
        err_free(gone);
        buf_done(&list);
    }
    closedir(d);
    buf_init(&list, 1);
}

static unsigned entries(const char *path)
{
    unsigned n = 0;
    DIR *d = opendir(path);

    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Names below the state directory, two levels deep: sandboxes are there, whatever the backend. */
static unsigned count_state(struct contract *c)
{
    unsigned n = 0;
    char path[600];
    census_wait_deleted(c->state_dir);
    DIR *d = opendir(c->state_dir);
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", c->state_dir, e->d_name);
        if (e->d_name[0] != '.' && lstat(path, &st) == 0)
            n += 1 + (S_ISDIR(st.st_mode) ? entries(path) : 0);
    }
    closedir(d);
    return n;
}

void contract_leaves_nothing_when_removed(struct contract *c)
{
    contract_end(c, contract_started(c, NULL)); /* what a driver makes once is made now */
    struct sbx *s = contract_started(c, NULL);
    unsigned with = count_state(c);
    contract_command(c, s, NULL, "mkdir -p a/b/c; chmod 500 a/b; echo x > f; mkfifo p; ln -s / r");
    contract_end(c, s);
    CHECK(count_state(c) < with);
    unsigned without = count_state(c);
    contract_end(c, contract_started(c, NULL));
    CHECK_INT(count_state(c), without);
}

void contract_runs_two_at_once_apart(struct contract *c)
{
    struct sbx *one = contract_started(c, NULL), *two = contract_started(c, NULL);

    contract_command(c, one, NULL, "echo one > who");
    CHECK_HAS(contract_command(c, two, NULL, "cat who").text, "No such file");
    contract_command(c, two, NULL, "echo two > who");
    CHECK_STR(contract_command(c, one, NULL, "cat who").text, "one");
    contract_end(c, one);
    CHECK_STR(contract_command(c, two, NULL, "cat who").text, "two");
    contract_end(c, two);
}

void contract_refuses_an_id_twice(struct contract *c)
{
    struct sbx_spec spec = {.id = "the-one"};
    struct sbx *s = contract_create(c, &spec), *other;

    CHECK_ERR(sbx_create(c->driver, &spec, &other), ERR_CONFLICT, "the-one");
    contract_end(c, s);
    contract_end(c, contract_create(c, &spec));
}

void contract_refuses_bad_ids(struct contract *c)
{
    static const char *const bad[] = {
        "",
        ".",
        "..",
        "a/b",
        "../up",
        "a b",
        "new\nline",
        "ümlaut",
        "0123456789012345678901234567890123456789012345678901234567890123456789",
    };
    struct sbx *s;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_ERR(sbx_create(c->driver, &(struct sbx_spec){.id = bad[i]}, &s), ERR_INVALID, "id");
}

static void never(void *arg, struct sbx *s, const struct err *e)
{
    (void)arg, (void)s, (void)e;
    FAIL("a refused operation was answered");
}

void contract_refuses_what_its_state_forbids(struct contract *c)
{
    struct sbx *s = contract_create(c, NULL);
    struct sbx_address address;

    CHECK_ERR(sbx_stop(s, never, NULL), ERR_CONFLICT, "is created");
    if (c->driver->caps & SBX_CAN_EXPOSE)
        CHECK_ERR(sbx_expose(s, 80, &address), ERR_CONFLICT, "is created");
    CHECK_OK(contract_start(c, s));
    CHECK_ERR(sbx_start(s, never, NULL), ERR_CONFLICT, "is running");
    CHECK_ERR(sbx_remove(s, never, NULL), ERR_CONFLICT, "stop it first");
    if (c->driver->caps & SBX_CAN_BIND)
        CHECK_ERR(sbx_bind(s, &(struct sbx_spec){0}), ERR_CONFLICT, "only a new one");
    if (c->driver->caps & SBX_CAN_EXPOSE)
        CHECK_ERR(sbx_expose(s, 0, &address), ERR_INVALID, "port 0");
    contract_end(c, s);
}

static void set_flag(void *arg, struct sbx *s, const struct err *e)
{
    (void)s, (void)e;
    *(bool *)arg = true;
}

void contract_does_one_operation_at_a_time(struct contract *c)
{
    struct sbx *s = contract_create(c, NULL);
    bool started = false;

    CHECK_OK(sbx_start(s, set_flag, &started));
    CHECK_ERR(sbx_stop(s, never, NULL), ERR_BUSY, "start");
    CHECK_ERR(sbx_remove(s, never, NULL), ERR_BUSY, "start");
    contract_turns_until(c, &started);
    contract_end(c, s);
}

void contract_refuses_by_name_what_it_lacks(struct contract *c)
{
    struct sbx *s = contract_create(c, NULL), *other;
    unsigned caps = c->driver->caps;

    if (!(caps & SBX_CAN_PAUSE))
        CHECK_ERR(sbx_pause(s, never, NULL), ERR_UNSUPPORTED, c->driver->backend->name);
    if (!(caps & SBX_CAN_SNAPSHOT)) {
        CHECK_ERR(sbx_snapshot(s, STR("x"), never, NULL), ERR_UNSUPPORTED, "snapshot");
        CHECK_ERR(sbx_fork(c->driver, STR("x"), &(struct sbx_spec){0}, &other), ERR_UNSUPPORTED,
                  "fork");
        CHECK_ERR(sbx_snapshot_list(c->driver, NULL, NULL), ERR_UNSUPPORTED, "snapshots");
        CHECK_ERR(sbx_snapshot_remove(c->driver, STR("x"), NULL, NULL), ERR_UNSUPPORTED,
                  c->driver->backend->name);
    }
    if (!(caps & SBX_LIMITS_MEMORY)) {
        struct sbx_spec spec = {.limits.memory_bytes = 64u << 20};
        CHECK_ERR(sbx_create(c->driver, &spec, &other), ERR_UNSUPPORTED, "limit");
    }
    contract_end(c, s);
}

void contract_tells_when_a_sandbox_dies(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);
    struct sbx_info info;

    sbx_inspect(s, &info);
    CHECK(kill(info.pid, SIGKILL) == 0);
    while (!c->gone)
        CHECK_OK(loop_turn(c->loop, 10000));
    sbx_inspect(s, &info);
    CHECK_INT(info.state, SBX_STOPPED);
    CHECK(info.failure != NULL);
    CHECK_INT(c->gone, 1);
    CHECK_OK(contract_start(c, s));
    CHECK_STR(contract_command(c, s, NULL, "echo back").text, "back");
    contract_end(c, s);
}

void contract_says_why_it_cannot_start(struct contract *c)
{
    struct sbx *s;
    struct err *e = sbx_create(c->driver, &(struct sbx_spec){.workspace = "/no/such/place"}, &s);

    if (!e) { /* it may look only when it starts */
        e = contract_start(c, s);
        CHECK_OK(contract_remove(c, s));
    }
    CHECK(e != NULL);
    CHECK_HAS(err_text(e), "/no/such/place");
    err_free(e);
}

void contract_leaks_nothing_over_many_lives(struct contract *c)
{
    contract_end(c, contract_started(c, NULL));
    unsigned before = test_open_fds();
    for (unsigned i = 0; i < 10; i++)
        contract_end(c, contract_started(c, NULL));
    CHECK_INT(test_open_fds(), before);
}

void contract_shows_a_workspace_of_the_host(struct contract *c)
{
    char dir[300], file[400];

    snprintf(dir, sizeof dir, "%s/project", test_dir());
    snprintf(file, sizeof file, "%s/made", dir);
    CHECK(mkdir(dir, 0777) == 0 && chmod(dir, 0777) == 0);
    struct sbx *s = contract_started(c, &(struct sbx_spec){.workspace = dir});
    contract_command(c, s, NULL, "echo inside > made");
    contract_end(c, s);
    own_done(buf) text;
    buf_init(&text, 100);
    CHECK_OK(fd_read_file(file, &text));
    CHECK_STR(buf_str(&text), "inside\n");
}

void contract_binds_before_the_start(struct contract *c)
{
    const char *const env[] = {"BOUND=late", NULL};
    struct sbx *s = contract_create(c, NULL);

    CHECK_OK(sbx_bind(s, &(struct sbx_spec){.env = env, .session_key = "k"}));
    CHECK_OK(contract_start(c, s));
    CHECK_STR(contract_command(c, s, "k", "echo $BOUND").text, "late");
    contract_end(c, s);
}

struct log_reader {
    struct sbx_follower follower;
    struct sbx_place first;
    struct buf heard;
    bool begun, ended;
};

static void on_log_begin(struct sbx_follower *f)
{
    struct log_reader *r = container_of(f, struct log_reader, follower);

    CHECK(!r->begun);
    r->begun = true;
    r->first = f->at;
    sbx_log_next(f, &r->heard);
}

static void on_more(struct sbx_follower *f)
{
    struct log_reader *r = container_of(f, struct log_reader, follower);

    CHECK(r->begun);
    sbx_log_next(f, &r->heard);
}

static void on_log_end(struct sbx_follower *f, const struct err *e)
{
    struct log_reader *r = container_of(f, struct log_reader, follower);

    if (e)
        FAIL("%s", err_text(e));
    CHECK(r->begun && !r->ended);
    sbx_log_next(f, &r->heard);
    r->ended = true;
}

static fallible listen_to(struct sbx *s, struct log_reader *r, const struct sbx_log_from *from)
{
    *r = (struct log_reader){
        .follower = {.on_begin = on_log_begin, .on_more = on_more, .on_end = on_log_end}};
    buf_init(&r->heard, 1u << 20);
    return sbx_follow(s, from, &r->follower);
}

static struct str what_it_said(struct contract *c, struct sbx *s, struct log_reader *r,
                               const struct sbx_log_from *from)
{
    CHECK_OK(listen_to(s, r, from));
    contract_turns_until(c, &r->ended);
    return buf_str(&r->heard);
}

void contract_keeps_a_log(struct contract *c)
{
    struct log_reader live, all, last, rest, again;
    struct sbx *s = contract_create(c, NULL);
    struct sbx_log_from from = {.lines = UINT64_MAX, .follow = true};

    CHECK_OK(listen_to(s, &live, &from));
    CHECK_OK(contract_start(c, s));
    CHECK(!live.ended);
    contract_command(c, s, NULL, "true"); /* a server nobody has used may have said nothing */
    while (live.heard.len == 0)           /* it may be ready before it says so */
        CHECK_OK(loop_turn(c->loop, 1000));
    CHECK_OK(contract_stop(c, s));
    contract_turns_until(c, &live.ended);
    struct str heard = buf_str(&live.heard);
    CHECK_ERR(sbx_follow(s, &from, &again.follower), ERR_CONFLICT, "has ended");
    from.follow = false;
    CHECK_STR(what_it_said(c, s, &all, &from), heard); /* all of it, and nothing twice */
    from.lines = 1;
    struct str line = what_it_said(c, s, &last, &from);
    CHECK(line.len > 0 && str_ends(heard, line));
    CHECK_INT(str_find_char(line, '\n'), (long long)line.len - 1);
    from = (struct sbx_log_from){.has_place = true, .place = last.first};
    CHECK_STR(what_it_said(c, s, &rest, &from), line);
    if (c->driver->caps & SBX_IS_HERE) { /* at once, then */
        own_done(buf) out;
        buf_init(&out, 1u << 20);
        CHECK_OK(sbx_logs(s, &out));
        CHECK_STR(buf_str(&out), heard);
    }
    buf_done(&live.heard);
    buf_done(&all.heard);
    buf_done(&last.heard);
    buf_done(&rest.heard);
    contract_end(c, s);
}

/* Nobody is told of what he does not want any more, nor of what is freed with the driver. */
void contract_lets_go_of_a_log(struct contract *c)
{
    struct log_reader one, other;
    struct sbx *s = contract_started(c, NULL);
    struct sbx_log_from from = {.lines = UINT64_MAX, .follow = true};

    CHECK_OK(listen_to(s, &one, &from));
    CHECK_OK(listen_to(s, &other, &from));
    sbx_unfollow(&one.follower);
    sbx_unfollow(&one.follower);
    contract_turns_until(c, &other.begun);
    contract_end(c, s);
    contract_turns_until(c, &other.ended);
    CHECK(!one.ended);
    buf_done(&one.heard);
    buf_done(&other.heard);
}

void contract_reaches_a_port_inside(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);
    struct sbx_address address;
    char page[2000], line[600];
    unsigned port;

    snprintf(line, sizeof line,
             "mkdir web; echo from within > web/index.html; coproc P { exec python3 -u -c '"
             "import http.server, os; os.chdir(\"web\")\n"
             "h = http.server.HTTPServer((\"127.0.0.1\", %u), "
             "http.server.SimpleHTTPRequestHandler)\n"
             "print(h.server_port); h.serve_forever()' 2>/dev/null; }",
             c->port);
    contract_command(c, s, NULL, line);
    struct answer a = contract_command(c, s, NULL, "read -r port <&${P[0]}; echo $port");
    CHECK(sscanf(a.text, "%u", &port) == 1);
    CHECK_OK(sbx_expose(s, (uint16_t)port, &address));
    contract_get(c, &address, page, sizeof page);
    CHECK_HAS(page, "from within");
    contract_end(c, s);
}

void contract_pauses_and_resumes(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);

    contract_command(c, s, NULL, ": > ticks; (while sleep 0.01; do echo tick; done >> ticks) &");
    CHECK_OK(contract_pause(c, s));
    CHECK_ERR(sbx_pause(s, never, NULL), ERR_CONFLICT, "is paused");
    CHECK_OK(contract_resume(c, s));
    CHECK_STR(contract_command(c, s, NULL,
                               "wc -l < ticks > a; until [ $(wc -l < ticks) -gt $(cat "
                               "a) ]; do sleep 0.01; done; echo on")
                  .text,
              "on");
    contract_end(c, s);
}

void contract_stops_while_paused(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);

    CHECK_OK(contract_pause(c, s));
    contract_end(c, s);
}

void contract_hides_the_hosts_files(struct contract *c)
{
    char file[300], command[400];

    snprintf(file, sizeof file, "%s/host-secret", test_dir());
    snprintf(command, sizeof command, "cat %s; ls /root /home", file);
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && write(fd, "secret-9313", 11) == 11);
    close(fd);
    struct sbx *s = contract_started(c, NULL);
    struct answer a = contract_command(c, s, NULL, command);
    CHECK(!strstr(a.text, "secret-9313"));
    CHECK_HAS(a.text, "No such file");
    contract_end(c, s);
}

void contract_hides_the_hosts_processes(struct contract *c)
{
    char command[100];
    struct sbx *s = contract_started(c, NULL);

    snprintf(command, sizeof command, "ls -d /proc/[0-9]* | wc -l; kill -0 %d", getpid());
    struct answer a = contract_command(c, s, NULL, command);
    CHECK(atoi(a.text) > 0 && atoi(a.text) < 12);
    CHECK(a.exit_code != 0);
    contract_end(c, s);
}

void contract_hides_the_hosts_network(struct contract *c)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    char command[200];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 4) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    struct sbx *s = contract_started(c, NULL);
    snprintf(command, sizeof command, "(echo > /dev/tcp/127.0.0.1/%d) 2>/dev/null; echo $?",
             ntohs(at.sin_port));
    CHECK_STR(contract_command(c, s, NULL, command).text, "1");
    close(fd);
    contract_end(c, s);
}
