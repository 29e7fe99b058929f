// SPDX-License-Identifier: Apache-2.0
/* walls.c — see walls.h. */
#include "test/escape/walls.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t walls_read(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n = -1;

    while (fd >= 0 && len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
        len += (size_t)n;
    if (fd >= 0)
        close(fd);
    text[len] = '\0';
    return n < 0 && len == 0 ? -1 : (ssize_t)len;
}

static bool shares(pid_t pid, const char *who, const char *kind)
{
    char theirs[64], ours[64];
    struct stat a, b;

    snprintf(theirs, sizeof theirs, "/proc/%d/ns/%s", (int)pid, kind);
    snprintf(ours, sizeof ours, "/proc/%s/ns/%s", who, kind);
    return stat(theirs, &a) < 0 || (stat(ours, &b) == 0 && a.st_ino == b.st_ino);
}

static const char *value(const char *status, const char *key)
{
    const char *at = strstr(status, key);

    return at ? at + strlen(key) : "";
}

/* What is missing; NULL: nothing. */
static const char *missing(pid_t pid)
{
    static const char *const kinds[] = {"mnt", "pid", "net", "ipc", "uts", "user"};
    char path[64], status[8192];
    unsigned uid[4];
    int outer, inner;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (shares(pid, "1", kinds[i]) || shares(pid, "self", kinds[i]))
            return kinds[i];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (walls_read(path, status, sizeof status) <= 0)
        return "its status";
    if (sscanf(value(status, "\nUid:"), "%u %u %u %u", &uid[0], &uid[1], &uid[2], &uid[3]) != 4 ||
        !uid[0] || !uid[1] || !uid[2] || !uid[3])
        return "a user beside the host's root";
    if (sscanf(value(status, "\nNSpid:"), "%d %d", &outer, &inner) != 2)
        return "a number of its own";
    if (strncmp(value(status, "\nSeccomp:"), "\t2", 2) != 0)
        return "the filter";
    return NULL;
}

static void say(const char *who, const char *what, char *out, size_t size)
{
    if (what && !*out)
        snprintf(out, size, "%s has not: %s", who, what);
}

static void groups_of(pid_t pid, char *text, size_t size)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    walls_read(path, text, size);
}

void walls_begin(struct walls *w, pid_t pid, char *out, size_t size)
{
    w->begun = true;
    groups_of(pid, w->groups, sizeof w->groups);
    say("the probe", missing(pid), out, size);
}

void walls_check(const struct walls *w, pid_t pid, const char *who, char *out, size_t size)
{
    char groups[sizeof w->groups];

    groups_of(pid, groups, sizeof groups);
    say(who, strcmp(groups, w->groups) != 0 ? "the control groups it began in" : NULL, out, size);
    say(who, missing(pid), out, size);
}
