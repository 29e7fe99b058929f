// SPDX-License-Identifier: Apache-2.0
/* census.c — see census.h. */
#include "test/native/census.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "test/test.h"

static const char *const hierarchies[] = {
    "/sys/fs/cgroup/croft",      "/sys/fs/cgroup/unified/croft", "/sys/fs/cgroup/memory/croft",
    "/sys/fs/cgroup/pids/croft", "/sys/fs/cgroup/cpu/croft",     "/sys/fs/cgroup/freezer/croft"};
#define HIERARCHIES (sizeof hierarchies / sizeof *hierarchies)
_Static_assert(HIERARCHIES == CENSUS_HIERARCHIES, "one number each");

#define OTHERS_TRIES   50
#define OTHERS_STEP_MS 100

struct census_group {
    char name[24];
    ino_t ino[HIERARCHIES];
};

/* --- a process --- */

static bool is_number(const char *name)
{
    return *name && name[strspn(name, "0123456789")] == '\0';
}

static unsigned count_entries(const char *path)
{
    DIR *d = opendir(path);
    unsigned n = 0;

    CHECK(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static unsigned count_lines(const char *path)
{
    own_done(buf) text;
    unsigned n = 0;

    buf_init(&text, 4u << 20);
    CHECK_OK(fd_read_file(path, &text));
    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == '\n';
    return n;
}

/* A process may go while we look: then it is nobody's child. */
static pid_t parent_of(const char *pid)
{
    char path[300], text[512];
    int of = -1;

    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')');
    return end && sscanf(end + 1, " %*c %d", &of) == 1 ? of : -1;
}

static unsigned count_children(pid_t parent)
{
    DIR *d = opendir("/proc");
    unsigned n = 0;

    CHECK(d);
    for (struct dirent *e; (e = readdir(d));)
        n += is_number(e->d_name) && parent_of(e->d_name) == parent;
    closedir(d);
    return n;
}

/* --- files --- */

static unsigned files_seen; /* nftw has no argument to pass on */

static int on_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)path, (void)st, (void)type, (void)at;
    files_seen++;
    return 0;
}

void census_wait_deleted(const char *state)
{
    char path[4200], events[4096];

    snprintf(path, sizeof path, "%s/gone", state);
    own_fd fd = inotify_init1(IN_CLOEXEC);
    CHECK(fd >= 0);
    if (inotify_add_watch(fd, path, IN_DELETE) < 0)
        return; /* no launcher has been here */
    while (count_entries(path) > 2) {
        CHECK_OK(fd_wait(fd, POLLIN, 60000));
        CHECK(read(fd, events, sizeof events) > 0);
    }
}

void census_take(struct census *c, pid_t pid, const char *state)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    c->fds = count_entries(path);
    snprintf(path, sizeof path, "/proc/%d/mountinfo", (int)pid);
    c->mounts = count_lines(path);
    c->children = count_children(pid);
    census_wait_deleted(state);
    files_seen = 0;
    nftw(state, on_file, 16, FTW_PHYS);
    c->files = files_seen;
}

void census_compare(const struct census *before, const struct census *after)
{
    CHECK_INT(after->fds, before->fds);
    CHECK_INT(after->mounts, before->mounts);
    CHECK_INT(after->children, before->children);
    CHECK_INT(after->files, before->files);
}

/* --- control groups --- */

static ino_t inode_of(size_t hierarchy, const char *name)
{
    char path[128];
    struct stat st;

    snprintf(path, sizeof path, "%s/%s", hierarchies[hierarchy], name);
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

static bool same(const struct census_group *a, const struct census_group *b)
{
    return strcmp(a->name, b->name) == 0 && memcmp(a->ino, b->ino, sizeof a->ino) == 0;
}

static void note(struct census_groups *g, const char *slot)
{
    struct census_group one = {.name = "s"};

    snprintf(one.name + 1, sizeof one.name - 1, "%.20s", slot);
    for (size_t i = 0; i < HIERARCHIES; i++)
        one.ino[i] = inode_of(i, one.name) > g->since[i] ? inode_of(i, one.name) : 0;
    for (size_t i = g->count, seen = 0; i-- > 0 && seen < 64; seen++)
        if (same(&g->at[i], &one))
            return;
    if (g->count == g->room) {
        g->room = g->room ? 2 * g->room : 256;
        g->at = realloc(g->at, g->room * sizeof *g->at);
        CHECK(g->at);
    }
    g->at[g->count++] = one;
}

void census_open_groups(struct census_groups *g)
{
    *g = (struct census_groups){.at = NULL};
    for (size_t i = 0; i < HIERARCHIES; i++) {
        char name[32], path[128];
        snprintf(name, sizeof name, "census-%d", (int)getpid());
        snprintf(path, sizeof path, "%s/%s", hierarchies[i], name);
        if (mkdir(path, 0755) < 0)
            continue; /* not there: then nothing is left in it */
        g->since[i] = inode_of(i, name);
        CHECK_INT(rmdir(path), 0);
    }
}

void census_note_groups(struct census_groups *g, const char *state)
{
    char path[4300];

    snprintf(path, sizeof path, "%s/ids", state);
    DIR *d = opendir(path);
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));)
        if (is_number(e->d_name))
            note(g, e->d_name);
    closedir(d);
}

static bool is_below_us(pid_t pid)
{
    char text[16];

    while (pid > 1 && pid != getpid()) {
        snprintf(text, sizeof text, "%d", (int)pid);
        pid = parent_of(text);
    }
    return pid == getpid();
}

/* A launcher tries a slot before it knows that another croft of the machine has it, and then the
 * other's group was noted. That one goes, or is seen to hold a process of others', soon. */
static bool is_anothers(size_t hierarchy, const struct census_group *g)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s/cgroup.procs", hierarchies[hierarchy], g->name);
    for (int i = 0; i < OTHERS_TRIES; i++) {
        FILE *f = fopen(path, "re");
        int pid = 0;
        bool held = f && fscanf(f, "%d", &pid) == 1;
        if (f)
            fclose(f);
        if (inode_of(hierarchy, g->name) != g->ino[hierarchy])
            return true; /* removed by whose it was */
        if (held)
            return !is_below_us(pid);
        poll(NULL, 0, OTHERS_STEP_MS);
    }
    return false;
}

void census_check_groups(struct census_groups *g, const char *state)
{
    char path[4300];
    struct stat st;

    for (size_t n = 0; n < g->count; n++) {
        snprintf(path, sizeof path, "%s/ids/%s", state, g->at[n].name + 1);
        bool claimed = lstat(path, &st) == 0;
        for (size_t i = 0; i < HIERARCHIES && !claimed; i++)
            if (g->at[n].ino[i] && inode_of(i, g->at[n].name) == g->at[n].ino[i] &&
                !is_anothers(i, &g->at[n]))
                FAIL("control group %s/%s is left", hierarchies[i], g->at[n].name);
    }
    free(g->at);
    *g = (struct census_groups){.at = NULL};
}
