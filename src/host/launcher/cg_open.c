// SPDX-License-Identifier: Apache-2.0
/* cg_open.c — which control groups croft may use: the machine's, as root; else the group it is in,
 * if that was delegated (as systemd does, to a user's services and scopes). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/str.h"
#include "host/launcher/cg_inner.h"

#define OURS       "croft"
#define CPU_WEIGHT 2            /* ordinary processes on each processor */
#define ASIDE      "croft-self" /* where this process goes: a group that hands on has none */
#define FILE_MAX   4096

static bool has_word(int dir, const char *file, const char *word)
{
    own_fd fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
    own_done(buf) text;
    struct str rest, part;

    buf_init(&text, FILE_MAX);
    if (fd < 0)
        return false;
    struct err *e = fd_read_all(fd, &text);
    if (e) {
        err_free(e);
        return false;
    }
    rest = str_trim(buf_str(&text));
    for (bool more = true; more;) {
        more = str_cut(&rest, ' ', &part);
        if (str_eq(part, str_of(word)))
            return true;
    }
    return false;
}

static int open_ours(int parent)
{
    if (parent < 0 || (mkdirat(parent, OURS, 0755) < 0 && errno != EEXIST))
        return -1;
    if (faccessat(parent, OURS, W_OK, AT_EACCESS) < 0)
        return -1; /* root's, and we are not root */
    return openat(parent, OURS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* In a delegated group the kernel refuses as long as processes are in it, so croft moves to a group
 * below. It still refuses if other processes are there: then that controller is not to be had. */
static bool hand_on(const struct cg *cg, int dir, const char *word)
{
    char plus[16];

    snprintf(plus, sizeof plus, "+%s", word);
    if (has_word(dir, "cgroup.subtree_control", word) ||
        cg_put(cg, dir, "cgroup.subtree_control", plus))
        return true;
    return cg->delegated && errno == EBUSY && (mkdirat(dir, ASIDE, 0755) == 0 || errno == EEXIST) &&
           cg_put(cg, dir, ASIDE "/cgroup.procs", "0") &&
           cg_put(cg, dir, "cgroup.subtree_control", plus);
}

/* A controller reaches our groups when every level above hands it on. */
static void open_v2(struct cg *cg, int root)
{
    cg->v2 = open_ours(root);
    if (cg->v2 < 0)
        return;
    for (unsigned c = CG_MEMORY; c <= CG_CPU; c++)
        cg->on_v2[c] = has_word(root, "cgroup.controllers", cg_word(c)) &&
                       hand_on(cg, root, cg_word(c)) && hand_on(cg, cg->v2, cg_word(c));
    cg->on_v2[CG_FREEZER] = true;
}

/* --- where this process is --- */

/* Lines "ID:CONTROLLERS:PATH"; of v2 the controllers are empty. */
static bool find_path(struct str member, const char *controller, struct str *ret_path)
{
    struct str line, id, words, word;

    while (member.len) {
        str_cut(&member, '\n', &line);
        if (!str_cut(&line, ':', &id) || !str_cut(&line, ':', &words))
            continue;
        *ret_path = line;
        if (!*controller && !words.len)
            return true;
        while (words.len) {
            str_cut(&words, ',', &word);
            if (*controller && str_eq(word, str_of(controller)))
                return true;
        }
    }
    return false;
}

/* -1: not known, or the hierarchy's root, which cannot be delegated. */
static int open_member(int top, struct str member, const char *controller)
{
    char path[4096];
    struct str at;
    int dir = -1;

    if (!find_path(member, controller, &at) || at.len < 2 || at.len >= sizeof path ||
        at.p[0] != '/')
        return -1;
    err_free(fd_open_beneath(top, str_from(at, 1), O_RDONLY | O_DIRECTORY, 0, &dir)); /* none */
    return dir;
}

static int open_top(int base, const char *word)
{
    return openat(base, word, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* member: empty for the machine's own groups. */
static void open_all(struct cg *cg, int base, struct str member)
{
    bool only_v2 = faccessat(base, "cgroup.controllers", F_OK, 0) == 0;
    own_fd top = open_top(base, only_v2 ? "." : "unified");
    own_fd mine = member.len && top >= 0 ? open_member(top, member, "") : -1;

    if (top >= 0 && (mine >= 0 || !member.len))
        open_v2(cg, member.len ? mine : top);
    for (unsigned c = 0; c < CG_COUNT && !only_v2; c++) {
        own_fd all = open_top(base, cg_word(c));
        own_fd own = member.len && all >= 0 ? open_member(all, member, cg_word(c)) : -1;
        if (!cg->on_v2[c] && all >= 0)
            cg->v1[c] = open_ours(member.len ? own : all);
    }
}

/* All sandboxes together are one group, which by default weighs as much as one process: on a busy
 * machine it would get next to nothing. An administrator's own weight stays. A refusal of the
 * kernel does no harm. */
static void cg_weigh(const struct cg *cg)
{
    bool v2 = cg->on_v2[CG_CPU];
    int dir = v2 ? cg->v2 : cg->v1[CG_CPU];
    const char *file = v2 ? "cpu.weight" : "cpu.shares";
    unsigned one = v2 ? 100 : 1024, most = v2 ? 10000 : 262144;
    unsigned weight = one * CPU_WEIGHT * (unsigned)get_nprocs();
    char text[16];

    snprintf(text, sizeof text, "%u", one);
    if (dir < 0 || !has_word(dir, file, text))
        return;
    snprintf(text, sizeof text, "%u", weight < most ? weight : most);
    (void)cg_put(cg, dir, file, text);
}

/* The limits of many sandboxes add up to more processes than the machine has numbers for, so a part
 * of those stays for all other programs. An administrator's own limit stays. */
static void spare_pids(const struct cg *cg)
{
    int dir = cg->on_v2[CG_PIDS] ? cg->v2 : cg->v1[CG_PIDS];
    own_done(buf) text;
    char most[32];

    buf_init(&text, FILE_MAX);
    if (dir < 0 || !has_word(dir, "pids.max", "max"))
        return;
    struct err *e = fd_read_file("/proc/sys/kernel/pid_max", &text);
    long all = e ? 0 : strtol(buf_cstr(&text), NULL, 10);
    snprintf(most, sizeof most, "%ld", all - all / 4);
    if (all > 0)
        (void)cg_put(cg, dir, "pids.max", most);
    err_free(e);
}

static bool has_any(const struct cg *cg)
{
    for (unsigned c = 0; c < CG_COUNT; c++)
        if (cg_has(cg, c))
            return true;
    return false;
}

void cg_open(struct cg *cg, const char *base, struct str member, bool plain)
{
    own_fd dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *cg = (struct cg){.v2 = -1, .v1 = {-1, -1, -1, -1}, .plain = plain};
    if (dir < 0)
        return;
    open_all(cg, dir, STR(""));
    cg_weigh(cg);
    spare_pids(cg);
    if (has_any(cg) || !member.len)
        return;
    cg->delegated = true;
    open_all(cg, dir, member);
}
