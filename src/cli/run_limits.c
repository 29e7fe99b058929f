// SPDX-License-Identifier: Apache-2.0
/* run_limits.c — see run_limits.h. */
#include "cli/run_limits.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MEMORY_MIN (1u << 20)
#define DISK_MIN   (1u << 20) /* some ways to limit it need more, and say so */
#define PIDS_MIN   2          /* pid 1 is one */
#define PIDS_MAX   4000000
#define NOFILE_MIN 128 /* the start itself needs some */
#define NOFILE_MAX 1000000
#define CPUS_MIN   0.01

uint64_t run_all_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static fallible check_count(const char *flag, uint64_t asked, uint64_t least, uint64_t most)
{
    if (!asked || (asked >= least && asked <= most))
        return NULL;
    return err_new(ERR_INVALID, "--%s: %llu; wanted %llu to %llu, or 0", flag,
                   (unsigned long long)asked, (unsigned long long)least, (unsigned long long)most);
}

static fallible check_size(const char *flag, uint64_t asked, uint64_t least, uint64_t most)
{
    if (!asked || (asked >= least && asked <= most))
        return NULL;
    return err_new(ERR_INVALID, "--%s: %llu bytes; wanted %lluM to %lluM, or 0", flag,
                   (unsigned long long)asked, (unsigned long long)least >> 20,
                   (unsigned long long)most >> 20);
}

/* The disk of the directory, or of the one it will be made in. */
static bool find_disk(const char *state, struct statvfs *ret)
{
    char path[4096];

    snprintf(path, sizeof path, "%s", state);
    while (statvfs(*path ? path : "/", ret) < 0) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return true;
}

/* Refuses more than the machine has: a limit that limits nothing is a mistake. */
fallible run_limits_check(const struct run_limits *o, const char *state)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t space = UINT64_MAX, files = NOFILE_MAX;
    struct rlimit ours;
    struct statvfs disk;

    if (o->disk && find_disk(state, &disk))
        space = (uint64_t)disk.f_blocks * disk.f_frsize;
    if (geteuid() != 0 && getrlimit(RLIMIT_NOFILE, &ours) == 0 && ours.rlim_max < files)
        files = ours.rlim_max;
    TRY(check_size("memory", o->memory, MEMORY_MIN, run_all_memory()));
    TRY(check_size("disk", o->disk, DISK_MIN, space));
    TRY(check_count("pids", o->pids, PIDS_MIN, PIDS_MAX));
    TRY(check_count("nofile", o->nofile, NOFILE_MIN, files));
    if (o->cpus != 0 && !(o->cpus >= CPUS_MIN && o->cpus <= (double)processors))
        return err_new(ERR_INVALID, "--cpus: %g; wanted %g to %ld, or 0", o->cpus, CPUS_MIN,
                       processors);
    return NULL;
}

fallible run_limits_explain(struct err *e, const char *state)
{
    struct statvfs disk;

    if (!e || !find_disk(state, &disk))
        return e;
    if ((geteuid() ? disk.f_bavail : disk.f_bfree) && (!disk.f_files || disk.f_ffree))
        return e;
    return err_wrap(e, "the disk of the state directory '%s' is full", state);
}
