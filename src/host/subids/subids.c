// SPDX-License-Identifier: Apache-2.0
/* subids.c — see subids.h. */
#include "host/subids/subids.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"

#define FILE_MAX     (1u << 20)
#define TOOL_WAIT_MS 30000 /* it may ask a directory service for our name */
#define TOOL_SAYS    512

/* --- what there is --- */

static bool read_range(const char *path, const char *name, uint32_t id, uint32_t *ret_first,
                       uint32_t *ret_count)
{
    own_done(buf) text;

    buf_init(&text, FILE_MAX);
    struct err *e = fd_read_file(path, &text);
    bool found = !e && subids_parse(buf_str(&text), str_of(name), id, ret_first, ret_count);
    err_free(e); /* no such file: no ids */
    return found;
}

static bool is_mapped(const char *path, uint32_t first, uint32_t count)
{
    own_done(buf) text;

    buf_init(&text, FILE_MAX);
    struct err *e = fd_read_file(path, &text);
    bool has = !e && subids_has(buf_str(&text), first, count);
    err_free(e);
    return has;
}

/* Set-uid, or with capabilities of its own, and where that counts. */
static bool has_power(const char *path)
{
    struct stat st;
    struct statvfs fs;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0 &&
           (st.st_mode & S_ISUID || getxattr(path, "security.capability", NULL, 0) > 0) &&
           statvfs(path, &fs) == 0 && !(fs.f_flag & ST_NOSUID);
}

static const char *find_tool(const char *const *paths)
{
    for (; *paths; paths++)
        if (has_power(*paths))
            return *paths;
    return NULL;
}

static bool has_caps(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    const uint32_t need = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_SYS_ADMIN;

    return syscall(SYS_capget, &head, data) == 0 && (data[0].effective & need) == need;
}

bool subids_entered(const struct subids *s)
{
    return s->count && geteuid() != 0 && has_caps();
}

static void find_tools(struct subids *s)
{
    static const char *const uid[] = {"/usr/bin/newuidmap", "/bin/newuidmap",
                                      "/usr/local/bin/newuidmap", "/run/wrappers/bin/newuidmap",
                                      NULL};
    static const char *const gid[] = {"/usr/bin/newgidmap", "/bin/newgidmap",
                                      "/usr/local/bin/newgidmap", "/run/wrappers/bin/newgidmap",
                                      NULL};

    s->uid_tool = find_tool(uid);
    s->gid_tool = find_tool(gid);
}

/* NULL: there is a range. */
static const char *subids_lacks(struct subids *s, uint32_t *count)
{
    const struct passwd *who = getpwuid(geteuid());
    uint32_t uids = 0, gids = 0;

    if (!who)
        return "your user id has no name, which newuidmap wants";
    if (!read_range("/etc/subuid", who->pw_name, geteuid(), &s->uid, &uids) ||
        !read_range("/etc/subgid", who->pw_name, geteuid(), &s->gid, &gids))
        return "/etc/subuid and /etc/subgid give you no ids";
    *count = uids < gids ? uids : gids;
    *count = *count < SUBIDS_MOST ? *count : SUBIDS_MOST;
    if (*count < SUBIDS_LEAST)
        return "/etc/subuid and /etc/subgid give you fewer than 1,000 ids";
    if (!is_mapped("/proc/self/uid_map", s->uid, *count) ||
        !is_mapped("/proc/self/gid_map", s->gid, *count))
        return "the ids of /etc/subuid are not in this user namespace";
    if (has_caps())
        return NULL; /* inside already */
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return "no_new_privs is set, so that newuidmap has no power";
    find_tools(s);
    return s->uid_tool && s->gid_tool ? NULL : "there is no newuidmap, or it is not set-uid";
}

void subids_find(struct subids *ret_ids)
{
    uint32_t count = 0;

    *ret_ids = (struct subids){.count = 0};
    if (geteuid() == 0)
        return;
    const char *why = subids_lacks(ret_ids, &count);
    if (why) {
        snprintf(ret_ids->says, sizeof ret_ids->says, "none but root: %s", why);
        return;
    }
    ret_ids->count = count;
    snprintf(ret_ids->says, sizeof ret_ids->says,
             "%" PRIu32 ": root is you, the others are your ids from %" PRIu32
             " on, the same in all your sandboxes",
             count + 1, ret_ids->uid);
}

static uint32_t subids_outside(const struct subids *s, uint32_t first, uint32_t own,
                               uint32_t inside)
{
    if (geteuid() == 0)
        return inside;
    return inside && inside <= s->count ? first + inside - 1 : own;
}

uint32_t subids_uid(const struct subids *s, uint32_t inside)
{
    return subids_outside(s, s->uid, geteuid(), inside);
}

uint32_t subids_gid(const struct subids *s, uint32_t inside)
{
    return subids_outside(s, s->gid, getegid(), inside);
}

void subids_lines(const struct subids *s, bool groups, char out[SUBIDS_LINES])
{
    uint32_t own = groups ? getegid() : geteuid(), first = groups ? s->gid : s->uid;
    int n = snprintf(out, SUBIDS_LINES, "0 %" PRIu32 " 1\n", own);

    if (s->count)
        snprintf(out + n, SUBIDS_LINES - (size_t)n, "1 %" PRIu32 " %" PRIu32 "\n", first, s->count);
}

/* --- the tools --- */

struct tool {
    const char *path;
    uint32_t own, first;
    pid_t pid;
    int says;
};

static _Noreturn void run_tool(const struct tool *t, pid_t whom, uint32_t count, int out)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
    char pid[16], own[16], first[16], many[16];
    const char *const argv[] = {t->path, pid, own, own, "1", first, first, many, NULL};

    snprintf(pid, sizeof pid, "%d", (int)whom);
    snprintf(own, sizeof own, "%" PRIu32, t->own);
    snprintf(first, sizeof first, "%" PRIu32, t->first);
    snprintf(many, sizeof many, "%" PRIu32, count);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0)
        execve(t->path, (char *const *)argv, (char *const *)env);
    _exit(126);
}

static fallible start_tool(struct tool *t, pid_t whom, uint32_t count)
{
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_sys("make a pipe");
    t->pid = fork();
    if (t->pid == 0)
        run_tool(t, whom, count, pair[1]);
    own_close(pair[1]);
    t->says = pair[0];
    return t->pid < 0 ? err_sys("fork") : NULL;
}

static fallible end_tool(struct tool *t)
{
    own_done(buf) says;
    int status = 0;

    buf_init(&says, TOOL_SAYS);
    struct err *late = fd_wait(t->says, POLLIN, TOOL_WAIT_MS); /* it closes it when it ends */
    if (late)
        kill(t->pid, SIGKILL);
    err_free(fd_read_all(t->says, &says)); /* more than we keep is of no use */
    while (waitpid(t->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (late)
        return err_wrap(late, "'%s'", t->path);
    if (status == 0)
        return NULL;
    struct str text = str_trim(buf_str(&says));
    return err_new(ERR_FORBIDDEN,
                   "'%s' failed with status %d: " STR_FMT
                   "; is what /etc/subuid and /etc/subgid give you yours alone?",
                   t->path, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                   STR_ARG(text));
}

/* Both at once: each is an exec of a dynamic program. */
static fallible map_by_tools(const struct subids *s, pid_t whom)
{
    struct tool tools[] = {{s->uid_tool, geteuid(), s->uid, -1, -1},
                           {s->gid_tool, getegid(), s->gid, -1, -1}};
    struct err *e = NULL;

    for (size_t i = 0; i < ARRAY_LEN(tools) && !e; i++)
        e = start_tool(&tools[i], whom, s->count);
    for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
        struct err *end = tools[i].pid > 0 ? end_tool(&tools[i]) : NULL;
        own_close_p(&tools[i].says);
        if (!e)
            e = end;
        else
            err_free(end);
    }
    return e;
}

/* --- going in --- */

struct helper {
    pid_t pid;
    int sock;
};

/* Forked before: the tools have power only in the namespace we come from. */
static _Noreturn void subids_help(const struct subids *s, pid_t whom, int sock)
{
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (recv(sock, &byte, 1, 0) != 1)
        _exit(0);
    struct err *e = map_by_tools(s, whom);
    const char *text = e ? err_text(e) : "";
    bool told = send(sock, text, strlen(text) + 1, MSG_NOSIGNAL) > 0;
    _exit(told ? 0 : 1);
}

static fallible helper_start(const struct subids *s, struct helper *ret)
{
    pid_t whom = getpid();
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys("make a socket pair");
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        subids_help(s, whom, pair[1]);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return err_sys("fork");
    }
    *ret = (struct helper){pid, pair[0]};
    return NULL;
}

/* go: it is to do its work. */
static fallible helper_end(struct helper *h, bool go)
{
    char text[1024];
    ssize_t n = 0;

    if (go && send(h->sock, "", 1, MSG_NOSIGNAL) == 1)
        n = recv(h->sock, text, sizeof text - 1, 0);
    close(h->sock);
    while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (!go)
        return NULL;
    if (n <= 0)
        return err_new(ERR_INTERNAL, "who was to map your further ids is gone");
    text[n] = '\0';
    return text[0] ? err_new(ERR_FORBIDDEN, "map your further ids: %s", text) : NULL;
}

static fallible new_namespaces(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return err_sys("not root, and no user namespace to be had; 'croft doctor' says why");
    return NULL;
}

static fallible write_self(const char *file, const char *text)
{
    own_fd fd = open(file, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return err_sys("write %s", file);
    return NULL;
}

static fallible enter_alone(void)
{
    char uid[32], gid[32];

    snprintf(uid, sizeof uid, "%u %u 1\n", geteuid(), geteuid());
    snprintf(gid, sizeof gid, "%u %u 1\n", getegid(), getegid());
    TRY(new_namespaces());
    TRY(write_self("/proc/self/uid_map", uid));
    TRY(write_self("/proc/self/setgroups", "deny"));
    return write_self("/proc/self/gid_map", gid);
}

static fallible enter_with_range(const struct subids *s)
{
    struct helper h;

    TRY(helper_start(s, &h));
    struct err *e = new_namespaces();
    struct err *mapped = helper_end(&h, !e);
    return e ? e : mapped;
}

fallible subids_enter(const struct subids *s)
{
    if (subids_entered(s)) {
        if (unshare(CLONE_NEWNS) < 0)
            return err_sys("make a namespace of mounts");
    } else if (s->count)
        TRY(enter_with_range(s));
    else
        TRY(enter_alone());
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_sys("keep mounts to ourselves");
    return NULL;
}
