// SPDX-License-Identifier: Apache-2.0
/* Two sandboxes side by side: neither sees, reads, signals, reaches or starves the other, whatever
 * goes on in one of them the launcher answers, and no socket of the host's network is in either. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/contract/contract.h"

#define LIMIT_S 240

static void expect(struct contract *c, struct sbx *s, const char *command, const char *text)
{
    struct answer a = contract_command(c, s, NULL, command);

    CHECK_STR(a.error, "");
    CHECK_STR(a.text, text);
}

/* --- what one has, the other looks for --- */

static const char have[] =
    "echo secret-of-a | tee /tmp/mine /dev/shm/mine /workspace/mine ~/mine >/dev/null\n"
    "export TOKEN_OF_A=1\n"
    "cp /usr/bin/sleep /tmp/croft-nbr && { /tmp/croft-nbr 1000 & }\n"
    "ipcmk -Q >/dev/null\n"
    "python3 -c '\nimport socket, os, time\n"
    "t = socket.create_server((\"127.0.0.1\", 8123))\n"
    "u = socket.socket(socket.AF_UNIX); u.bind(\"\\0croft-nbr\"); u.listen()\n"
    "open(\"/tmp/up\", \"w\").write(\"x\\n\"); time.sleep(1000)' &\n"
    "mkfifo /tmp/go; until [ -s /tmp/up ]; do read -t 0.05 <>/tmp/go; done";

static const char look[] =
    "f() { echo -n \"$1 \"; }\n"
    "for d in /tmp /dev/shm /workspace ~; do grep -qs secret-of-a $d/mine && f $d; done\n"
    "grep -qs TOKEN_OF_A=1 /proc/[0-9]*/environ && f environ\n"
    "grep -qs '^croft-nbr$' /proc/[0-9]*/comm && f process\n"
    "[ $(ipcs -q | grep -c ^0x) -gt 0 ] && f queue\n"
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8123))' 2>/dev/null && f "
    "tcp\n"
    "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0croft-nbr\")' "
    "2>/dev/null && f abstract\n"
    "echo";

/* Several lines go in as one command. */
static void braced(const char *script, char *out, size_t size)
{
    CHECK(snprintf(out, size, "{ %s\n}", script) < (int)size);
}

static void look_around(struct contract *c)
{
    char text[4096];
    struct sbx *a = contract_started(c, NULL), *b = contract_started(c, NULL);
    struct sbx_info info;

    braced(have, text, sizeof text);
    contract_command(c, a, NULL, text);
    braced(look, text, sizeof text);
    char here[4096];
    snprintf(here, sizeof here, "%s", contract_command(c, a, NULL, text).text);
    CHECK_HAS(str_of(here), "/tmp /dev/shm /workspace "); /* the same eyes see it at home */
    CHECK_HAS(str_of(here), "environ process queue tcp abstract");
    expect(c, b, text, "");
    sbx_inspect(a, &info);
    CHECK(info.pid > 1);
    snprintf(text, sizeof text, "kill -0 %d 2>/dev/null || echo nobody", (int)info.pid);
    expect(c, b, text, "nobody");
    contract_end(c, a);
    contract_end(c, b);
}

TEST_LIMIT(a_sandbox_finds_nothing_of_its_neighbour, LIMIT_S)
{
    contract_run(&contract_native, 0, look_around);
}

TEST_LIMIT(an_ordinary_users_sandbox_finds_nothing_of_its_neighbour, LIMIT_S)
{
    contract_run(&contract_native_user, 0, look_around);
}

/* --- files that both have: layers, devices, what hides parts of /proc --- */

#define LOCKED                                                                                     \
    "import fcntl, os, time\n"                                                                     \
    "seen = set()\n"                                                                               \
    "for p in \"/ /usr /usr/bin /usr/bin/env /usr/share /etc /etc/passwd /etc/hosts /dev "         \
    "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/shm /dev/pts /proc "              \
    "/proc/keys /proc/timer_list /proc/kcore /proc/acpi /proc/bus /proc/sys "                      \
    "/proc/version /tmp /workspace\".split():\n"                                                   \
    "    try:\n"                                                                                   \
    "        f = os.open(p, os.O_RDONLY); i = os.fstat(f); i = (i.st_dev, i.st_ino)\n"             \
    "        i in seen or fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"                         \
    "        seen.add(i)\n"                                                                        \
    "    except BlockingIOError: print(p)\n"                                                       \
    "    except OSError: pass\n"

static const char lock_all[] =
    "python3 -c '" LOCKED "open(\"/tmp/up\", \"w\").write(\"x\\n\"); time.sleep(1000)' &\n"
    "mkfifo /tmp/go; until [ -s /tmp/up ]; do read -t 0.05 <>/tmp/go; done";
static const char find_locks[] = "python3 -c '" LOCKED "'";

static void lock_around(struct contract *c)
{
    char text[4096];
    struct sbx *a = contract_started(c, NULL), *b = contract_started(c, NULL);

    braced(lock_all, text, sizeof text);
    contract_command(c, a, NULL, text);
    braced(find_locks, text, sizeof text);
    struct answer here = contract_command(c, a, NULL, text);
    CHECK_HAS(str_of(here.text), "/usr/bin/env"); /* who holds them is found at home */
    CHECK_HAS(str_of(here.text), "/dev/null");
    expect(c, b, text, "");
    contract_end(c, a);
    contract_end(c, b);
}

/* An ordinary user's devices are the host's. */
TEST_LIMIT(a_sandbox_shares_no_lock_with_its_neighbour, LIMIT_S)
{
    contract_run(&contract_native, 0, lock_around);
}

/* A lock of an open file belongs to no process: the kernel shows it in every /proc/locks. */
#define LOCK_AT "4711471147"
static const char lock_openly[] =
    "python3 -c '\nimport fcntl, struct, time\n"
    "f = open(\"/tmp/locked\", \"w\"); l = struct.pack(\"hhqqi4x\", 1, 0, " LOCK_AT ", 1, 0)\n"
    "fcntl.fcntl(f, 37, l)\n" /* F_OFD_SETLK */
    "open(\"/tmp/up\", \"w\").write(\"x\\n\"); time.sleep(1000)' &\n"
    "mkfifo /tmp/go; until [ -s /tmp/up ]; do read -t 0.05 <>/tmp/go; done";

static void look_for_lock(struct contract *c)
{
    char text[4096];
    own_done(buf) locks;
    struct sbx *a = contract_started(c, NULL), *b = contract_started(c, NULL);

    buf_init(&locks, 1u << 20);
    braced(lock_openly, text, sizeof text);
    contract_command(c, a, NULL, text);
    CHECK_OK(fd_read_file("/proc/locks", &locks));
    CHECK_HAS(buf_str(&locks), LOCK_AT); /* outside it is seen */
    expect(c, b, "grep -c " LOCK_AT " /proc/locks", "0");
    expect(c, b, "cat /proc/locks", "");
    contract_end(c, a);
    contract_end(c, b);
}

TEST_LIMIT(a_sandbox_sees_no_lock_of_its_neighbour, LIMIT_S)
{
    contract_run(&contract_native, 0, look_for_lock);
}

TEST_LIMIT(an_ordinary_users_sandbox_sees_no_lock_of_its_neighbour, LIMIT_S)
{
    contract_run(&contract_native_user, 0, look_for_lock);
}

/* --- what of the machine is in /proc --- */

static const char list_proc[] = "cd /proc; for f in [!0-9]*; do [ $f -ef /dev/null ] && continue\n"
                                "[ -d $f ] && { [ -n \"$(ls $f)\" ] && echo $f; continue; }\n"
                                "head -c 1 $f >/dev/null 2>&1 && echo $f; done";

static void list_what_proc_tells(struct contract *c)
{
    char text[4096];
    struct str names, name;
    own_done(buf) page;
    struct sbx *s = contract_started(c, NULL);

    buf_init(&page, 1u << 20);
    CHECK_OK(fd_read_file(test_source("doc/security.md"), &page));
    braced(list_proc, text, sizeof text);
    struct answer told = contract_command(c, s, NULL, text);
    CHECK_STR(told.error, "");
    CHECK_HAS(str_of(told.text), "loadavg");
    for (names = str_of(told.text); names.len;) {
        char wanted[80];
        str_cut(&names, '\n', &name);
        snprintf(wanted, sizeof wanted, "`%.*s`", STR_ARG(name));
        if (str_find(buf_str(&page), str_of(wanted)) < 0)
            FAIL("doc/security.md does not say that /proc/%.*s is readable inside", STR_ARG(name));
    }
    contract_end(c, s);
}

TEST_LIMIT(all_that_proc_tells_inside_is_listed_in_the_security_page, LIMIT_S)
{
    contract_run(&contract_native, 0, list_what_proc_tells);
}

/* --- sockets: one way in, and none of the host's network --- */

static bool is_of(pid_t pid, const char *ns)
{
    char path[64], target[64] = "";

    snprintf(path, sizeof path, "/proc/%d/ns/pid_for_children", (int)pid);
    return readlink(path, target, sizeof target - 1) > 0 && strcmp(target, ns) == 0;
}

static void check_socket(int fd, pid_t pid, int number, unsigned *sockets)
{
    int domain = 0;
    uint64_t theirs = 0, ours = 0;
    socklen_t n = sizeof domain, m = sizeof theirs, o = sizeof ours;

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0)
        return;
    ++*sockets;
    if (domain == AF_UNIX)
        return;
    own_fd own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(getsockopt(own, SOL_SOCKET, SO_NETNS_COOKIE, &ours, &o), 0);
    CHECK_INT(getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &theirs, &m), 0);
    if (theirs == ours)
        FAIL("descriptor %d of process %d is a socket of the host's network", number, (int)pid);
}

static void check_descriptors(struct contract *c)
{
    char path[64], ns[64] = "";
    struct sbx_info info;
    unsigned processes = 0, sockets = 0;
    struct sbx *s = contract_started(c, NULL);

    contract_command(c, s, NULL, "sleep 1000 &");
    sbx_inspect(s, &info);
    snprintf(path, sizeof path, "/proc/%d/ns/pid_for_children", (int)info.pid);
    CHECK(readlink(path, ns, sizeof ns - 1) > 0);
    DIR *proc = opendir("/proc");
    for (struct dirent *e; (e = readdir(proc));) {
        pid_t pid = (pid_t)atoi(e->d_name);
        if (pid <= 0 || !is_of(pid, ns))
            continue;
        processes++;
        own_fd pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        for (int i = 0; i < 256; i++) {
            own_fd fd = (int)syscall(SYS_pidfd_getfd, pidfd, i, 0);
            if (fd >= 0)
                check_socket(fd, pid, i, &sockets);
        }
    }
    closedir(proc);
    CHECK(processes >= 3 && sockets >= 1);
    /* And from inside there is nothing to dial that runs commands: no socket in the file system,
     * and of ports only the viewer's, which shows files. */
    struct answer port = contract_command(
        c, s, NULL, "awk '$4 == \"0A\" { print $2 }' /proc/net/tcp /proc/net/tcp6");
    CHECK(strlen(port.text) == strlen("0100007F:0000") && strncmp(port.text, "0100007F:", 9) == 0);
    snprintf(path, sizeof path, "exec 9<>/dev/tcp/127.0.0.1/%ld", strtol(port.text + 9, NULL, 16));
    contract_command(c, s, NULL, path);
    expect(c, s,
           "printf 'POST /execute_action HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: "
           "2\\r\\n\\r\\n{}' >&9; head -1 <&9 | cut -d' ' -f2",
           "404");
    expect(c, s, "find / -xdev -type s 2>/dev/null | wc -l", "0");
    contract_end(c, s);
}

TEST_LIMIT(no_socket_of_the_hosts_network_is_in_a_sandbox, LIMIT_S)
{
    contract_run(&contract_native, 0, check_descriptors);
}

/* --- the server, poisoned by its own commands --- */

static const char *const poisons[] = {
    "echo 'exit 7' >/tmp/evil; export BASH_ENV=/tmp/evil ENV=/tmp/evil",
    "PROMPT_COMMAND='exit 3'",
    "PROMPT_COMMAND='kill -9 $$'",
    "readonly PROMPT_COMMAND",
    "export LD_PRELOAD=/tmp/none.so",
    "PATH=/nowhere",
    "trap 'exit 4' DEBUG",
    "set -T; trap false DEBUG ERR RETURN",
    "PS1='$(kill -9 $$)' PS0='$(kill -9 $$)'",
    "alias eval=false printf=false echo=false",
    "IFS=0123456789",
    "set -euo pipefail; set -o posix",
    "stty raw -echo",
    "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-",
    "printf '\\033]52;c;ZXZpbA==\\007\\033]0;title\\007\\033[?1049h\\033c'",
    "kill -9 $$",
    "kill -9 -1",
};

static void poison(struct contract *c)
{
    for (size_t i = 0; i < sizeof poisons / sizeof *poisons; i++) {
        struct sbx *s = contract_started(c, NULL);
        struct answer a = contract_command(c, s, NULL, poisons[i]);
        if (strchr(a.text, '\033'))
            FAIL("'%s': escape sequences come out: '%s'", poisons[i], a.text);
        contract_command(c, s, NULL, "true"); /* where a shell had to be made anew, it says so */
        a = contract_command(c, s, NULL, "/usr/bin/test 1 && \\printf 'alive %d' \"$((40 + 2))\"");
        if (!strstr(a.text, "alive 42"))
            FAIL("'%s': then '%s' %s", poisons[i], a.text, a.error);
        CHECK_STR(a.error, "");
        contract_end(c, s);
    }
}

TEST_LIMIT(no_command_breaks_the_server_for_the_next_one, LIMIT_S)
{
    contract_run(&contract_native, 0, poison);
}

TEST_LIMIT(no_command_breaks_an_ordinary_users_server_for_the_next_one, LIMIT_S)
{
    contract_run(&contract_native_user, 0, poison);
}

/* --- paths through the server's own hands --- */

static void read_through_links(struct contract *c)
{
    char path[400], command[1600];
    struct wire_action a;
    own_done(buf) text;

    buf_init(&text, 100);
    snprintf(path, sizeof path, "%s/host-file", test_dir());
    FILE *f = fopen(path, "we");
    CHECK(f && fputs("host words\n", f) >= 0 && fclose(f) == 0 && chmod(path, 0666) == 0);
    struct sbx *s = contract_started(c, NULL);
    snprintf(command, sizeof command,
             "echo own words >real; ln -s '%s' direct; ln -s '../../../../../../../..%s' up;"
             "(while :; do ln -sfn '%s' swap; ln -sfn real swap; done) >/dev/null 2>&1 &",
             path, path, path);
    contract_command(c, s, NULL, command);
    const char *const names[] = {"direct", "up", "swap", path, "../../../../../../.."};
    for (unsigned i = 0; i < 60; i++) {
        char name[900];
        const char *base = names[i % 5];
        snprintf(name, sizeof name, "%s%s", base, i % 5 == 4 ? path : "");
        wire_action_init(&a, WIRE_ACT_READ);
        a.read.path = str_of(name);
        CHECK(!strstr(contract_action(c, s, &a).text, "host words"));
        wire_action_init(&a, WIRE_ACT_WRITE);
        a.write.path = str_of(name);
        a.write.content = STR("overwritten");
        contract_action(c, s, &a);
    }
    CHECK_OK(fd_read_file(path, &text));
    CHECK_STR(buf_str(&text), "host words\n");
    contract_end(c, s);
}

TEST_LIMIT(the_servers_file_actions_do_not_follow_links_out, LIMIT_S)
{
    contract_run(&contract_native, 0, read_through_links);
}

TEST_LIMIT(an_ordinary_users_file_actions_do_not_follow_links_out, LIMIT_S)
{
    contract_run(&contract_native_user, 0, read_through_links);
}

/* --- abuse --- */

static const char *const abuses[] = {
    "bomb() { bomb | bomb & }; (bomb) >/dev/null 2>&1 &", /* the first two: only within limits */
    "(while :; do tail /dev/zero; done) >/dev/null 2>&1 &",
    "(while :; do cat /dev/zero >/dev/shm/full; done) >/dev/null 2>&1 &",
    "(while :; do for i in {10..1000}; do eval exec $i'<'/; done; done) >/dev/null 2>&1 &",
    "(i=0; while [ $((i++)) -lt 20000 ]; do : >/tmp/f$i; done) >/dev/null 2>&1 &",
    "yes &",
    "(for i in 1 2 3 4; do while :; do :; done & done) >/dev/null 2>&1 &",
    "kill -STOP -1",
};

static void be_abused(struct contract *c)
{
    struct sbx *b = contract_started(c, NULL);
    bool limits = c->driver->caps & SBX_LIMITS_MEMORY && c->driver->caps & SBX_LIMITS_PIDS;

    for (size_t i = limits ? 0 : 2; i < sizeof abuses / sizeof *abuses; i++) {
        struct sbx_spec spec = {
            .limits = {.memory_bytes = limits ? 128u << 20 : 0, .pids = limits ? 100 : 0}};
        struct sbx *a = contract_started(c, &spec);
        struct wire_action act;
        wire_action_init(&act, WIRE_ACT_RUN);
        act.run.command = str_of(abuses[i]);
        act.has_timeout = true;
        act.timeout_s = 1; /* some never answer */
        contract_action(c, a, &act);
        expect(c, b, "echo still here", "still here");
        struct sbx *other = contract_started(c, NULL); /* the launcher too */
        expect(c, other, "echo new", "new");
        contract_end(c, other);
        contract_end(c, a);
    }
    contract_end(c, b);
}

TEST_LIMIT(abuse_in_one_sandbox_leaves_launcher_and_neighbour_answering, LIMIT_S)
{
    contract_run(&contract_native, SBX_LIMITS_MEMORY | SBX_LIMITS_PIDS, be_abused);
}

TEST_LIMIT(abuse_that_needs_no_limit_leaves_an_ordinary_users_others_answering, LIMIT_S)
{
    contract_run(&contract_native_user, 0, be_abused);
}

/* --- what the kernel counts by user, or has once for the whole machine --- */

/* All of it, and held; or one of each. */
static const char take[] =
    "import ctypes, os, signal, sys\n"
    "l = ctypes.CDLL(None)\n"
    "most = int(sys.argv[1])\n"
    "def pty():\n"
    "    try: return os.open(\"/dev/ptmx\", os.O_RDWR | os.O_NOCTTY)\n"
    "    except OSError: return -1\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, {40})\n"
    "ways = (lambda: l.inotify_init1(0), lambda: l.sigqueue(os.getpid(), 40, None), pty,\n"
    "        lambda: l.syscall(206, 4096, ctypes.byref(ctypes.c_ulong(0))))\n"
    "def count(way):\n"
    "    n = 0\n"
    "    while n < most and way() >= 0: n += 1\n"
    "    return n\n"
    "print(*(count(way) for way in ways), file=open(\"/tmp/took\", \"w\"))\n"
    "if most > 1: signal.pause()\n";

static void starve(struct contract *c)
{
    unsigned watches, queued, terminals, events;
    struct itimerspec never = {{0, 0}, {1000, 0}};
    struct sbx *a = contract_started(c, NULL), *b = contract_started(c, NULL);
    char command[2000];
    timer_t timer;

    snprintf(command, sizeof command,
             "{ cat >/tmp/take.py <<'END'\n%sEND\n}; python3 /tmp/take.py 1000000 &\n", take);
    contract_command(c, a, NULL, command);
    struct answer took = contract_command(
        c, a, NULL,
        "mkfifo /tmp/go; until [ -s /tmp/took ]; do read -t 0.05 <>/tmp/go; done; cat "
        "/tmp/took");
    CHECK_INT(sscanf(took.text, "%u %u %u %u", &watches, &queued, &terminals, &events), 4);
    CHECK(watches && queued && terminals < 100); /* it did take what there is for it */
    CHECK_INT(events, 0);
    snprintf(command, sizeof command,
             "{ cat >/tmp/take.py <<'END'\n%sEND\n}; python3 /tmp/take.py 1; cat /tmp/took\n",
             take);
    expect(c, b, command, "1 1 1 0");
    own_fd inotify = inotify_init1(IN_CLOEXEC);
    CHECK(inotify >= 0);
    CHECK_INT(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0); /* a queued signal */
    CHECK_INT(timer_settime(timer, 0, &never, NULL), 0);
    CHECK_INT(timer_delete(timer), 0);
    contract_end(c, a);
    contract_end(c, b);
}

TEST_LIMIT(a_sandbox_that_takes_all_the_kernel_counts_leaves_neighbour_and_host_theirs, LIMIT_S)
{
    contract_run(&contract_native, 0, starve);
}
