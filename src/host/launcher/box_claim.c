// SPDX-License-Identifier: Apache-2.0
/* box_claim.c — what a warm sandbox still lacks, put into it from outside.
 *
 * The host owns its namespaces, so the launcher may enter them. The host name's is entered by a
 * child, and the mounts' too: it ends there, after 30 s at the latest. Only pid 1
 * lives inside, but nothing here relies on that. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/own.h"
#include "host/launcher/box_inner.h"
#include "host/launcher/identity.h"
#include "host/launcher/mounts.h"
#include "host/record/record.h"
#include "host/kernel/sys.h"

/* --- limits --- */

static fallible limit_each(const pid_t *pids, size_t count, uint32_t most)
{
    struct rlimit files = {most, most};

    for (size_t i = 0; i < count; i++)
        if (prlimit(pids[i], RLIMIT_NOFILE, &files, NULL) < 0 && errno != ESRCH)
            return err_sys("limit open files to %u", most);
    return NULL;
}

/* Pid 1 has had it since it began; what it forks inherits it. As the owner of its namespace: root
 * may lack the capability that others need for that. */
static fallible limit_files(const struct box_host *h, const struct box *b, uint32_t most)
{
    pid_t pids[16];
    size_t count = 0;
    char group[BOX_NAME];
    struct ids_owner o;

    box_group_name(b->slot, group);
    TRY(cg_list(&h->cg, group, pids, ARRAY_LEN(pids), &count));
    if (!count)
        pids[count++] = b->pid;
    TRY(ids_own(&o, box_ids(h, b->slot).uid));
    struct err *e = limit_each(pids, count, most);
    ids_disown(&o);
    return e;
}

static fallible set_limits(const struct box_host *h, const struct box *b,
                           const struct native_limits *now, const struct native_limits *was)
{
    char group[BOX_NAME];

    box_group_name(b->slot, group);
    TRY(cg_limit(&h->cg, group, was, now));
    return now->nofile && now->nofile != was->nofile ? limit_files(h, b, now->nofile) : NULL;
}

/* --- inside --- */

struct visit {
    const struct box_host *h;
    const struct box *b;
    const struct native_request *req;
    bool renamed;
    struct box_cargo c;          /* mounts */
    int root;                    /* as pid 1 sees it */
    int userns, mountns, namens; /* its own; those that are needed */
};

static fallible attach_all(const struct visit *v)
{
    struct ids_range ids = box_ids(v->h, v->b->slot);
    size_t at = 0;

    if (setns(v->mountns, CLONE_NEWNS) < 0)
        return err_sys("enter its namespace of mounts");
    TRY(ids_enter(&ids)); /* directories that are missing are made as the sandbox's root */
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++) {
        const struct native_mount *m = &v->req->mounts[i];
        struct stat st;
        if (!m->mode)
            continue;
        if (fstat(v->c.fds[at], &st) < 0)
            return err_sys("look at the source of '%s'", m->target);
        TRY(mounts_attach(v->c.fds[at++], v->root, m->target + 1, !S_ISDIR(st.st_mode)));
    }
    return NULL;
}

static fallible go_in(const struct visit *v)
{
    const char *name = v->req->hostname;

    if (v->renamed && (setns(v->namens, CLONE_NEWUTS) < 0 || sethostname(name, strlen(name)) < 0))
        return err_sys("set the host name");
    return v->c.count ? attach_all(v) : NULL;
}

static _Noreturn void go_in_and_die(const struct visit *v, int sock)
{
    signal(SIGALRM, SIG_DFL);
    alarm(BOX_WAIT_MS / 1000); /* the launcher waits for this child */
    struct err *e = go_in(v);
    struct box_report r = {.kind = REPORT_ERROR};

    if (e) {
        r.code = (uint32_t)err_code(e);
        snprintf(r.text, sizeof r.text, "%s", err_text(e));
    }
    bool told = !e || send(sock, &r, sizeof r, MSG_NOSIGNAL) == sizeof r;
    _exit(e || !told ? 1 : 0);
}

static fallible in_a_child(const struct visit *v)
{
    struct box_report r = {.kind = 0};
    int pair[2], status = 0;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys("make a socket pair");
    own_fd ours = pair[0], theirs = pair[1];
    pid_t pid = fork();
    if (pid == 0)
        go_in_and_die(v, theirs);
    if (pid < 0)
        return err_sys("fork");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NULL;
    if (recv(ours, &r, sizeof r, MSG_DONTWAIT) != sizeof r)
        return err_new(ERR_INTERNAL, "go inside: the child died");
    r.text[sizeof r.text - 1] = '\0';
    return err_recode(err_new(ERR_INTERNAL, "%s", r.text), (enum err_code)r.code);
}

static fallible open_proc(pid_t pid, const char *what, int flags, int *ret_fd)
{
    char path[48];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
    *ret_fd = open(path, flags | O_CLOEXEC);
    return *ret_fd < 0 ? err_sys("open '%s'", path) : NULL;
}

/* Our child: the number is its own. */
static fallible open_each(struct visit *v, bool mounts)
{
    pid_t pid = v->b->pid;

    if (v->renamed)
        TRY(open_proc(pid, "ns/uts", O_RDONLY, &v->namens));
    if (!mounts)
        return NULL;
    TRY(open_proc(pid, "ns/user", O_RDONLY, &v->userns));
    TRY(open_proc(pid, "ns/mnt", O_RDONLY, &v->mountns));
    return open_proc(pid, "root", O_PATH | O_DIRECTORY, &v->root);
}

/* As the owner of its namespace: by a pidfd root would need CAP_SYS_PTRACE, for pid 1 is not to be
 * looked into. */
static fallible open_inside(struct visit *v, bool mounts)
{
    struct ids_owner o;

    TRY(ids_own(&o, box_ids(v->h, v->b->slot).uid));
    struct err *e = open_each(v, mounts);
    ids_disown(&o);
    return e;
}

static fallible claim_build(struct visit *v, struct box_host *h, const struct box_spec *spec,
                            int dir)
{
    struct box copy = {.slot = v->b->slot, .home = -1, .disk = -1};
    struct err *e = box_build(h, spec, &copy, v->userns, dir, NULL, &v->c);

    own_close_p(&copy.home);
    return e;
}

static void visit_done(struct visit *v)
{
    box_cargo_done(&v->c);
    own_close_p(&v->root);
    own_close_p(&v->userns);
    own_close_p(&v->mountns);
    own_close_p(&v->namens);
}

static bool has_mounts(const struct native_request *r)
{
    for (unsigned i = 0; i < NATIVE_MOUNTS; i++)
        if (r->mounts[i].mode)
            return true;
    return false;
}

/* For the next launcher: what it is mounted on decides whether it may be frozen. */
static fallible claim_note(int dir, const struct native_request *req)
{
    struct record r;

    TRY(record_read(dir, &r));
    return record_write(dir, &r, req);
}

fallible box_claim(struct box_host *h, struct box *b, const struct box_spec *spec,
                   const struct native_request *was)
{
    const struct native_request *req = spec->req;
    bool mounts = has_mounts(req);
    struct visit v = {.h = h,
                      .b = b,
                      .req = req,
                      .renamed = strcmp(req->hostname, was->hostname) != 0,
                      .root = -1,
                      .userns = -1,
                      .mountns = -1,
                      .namens = -1};

    b->limits = req->limits;
    TRY_WRAP(set_limits(h, b, &req->limits, &was->limits), "limits");
    if (!v.renamed && !mounts)
        return NULL;
    own_fd dir = openat(h->boxes, b->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys("open its directory");
    struct err *e = open_inside(&v, mounts);
    if (!e && mounts)
        e = claim_build(&v, h, spec, dir);
    if (!e)
        e = in_a_child(&v);
    if (!e && v.renamed)
        e = err_wrap(h->names >= 0 ? identity_rename(h->names, b->id, req->hostname)
                                   : identity_rename(dir, IDENTITY_DIR, req->hostname),
                     "host name");
    if (!e && mounts)
        e = claim_note(dir, req);
    visit_done(&v);
    return e;
}
