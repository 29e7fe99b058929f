// SPDX-License-Identifier: Apache-2.0
/* snapshot.c — snapshot and fork of 10,000 files, 500 MB, that a sandbox made; peers: cp -a, tar.
 *
 * A fork is the snapshot and an overlay mounted on it, ready to be used. Needs root for the mount.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "bench/kit/kit.h"
#include "host/bench/scratch.h"
#include "host/overlay/overlay.h"
#include "host/snaps/snaps.h"

#define DIRS  100
#define FILES 100 /* in each */
#define BYTES (50u << 10)
#define RUNS  21

static void fill(int upper)
{
    static char data[BYTES];
    char path[64];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    for (int d = 0; d < DIRS; d++) {
        snprintf(path, sizeof path, "d%d", d);
        kit_check(mkdirat(upper, path, 0755) == 0, path);
        for (int f = 0; f < FILES; f++) {
            snprintf(path, sizeof path, "d%d/f%d", d, f);
            own_fd fd = openat(upper, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
            kit_check(fd >= 0, path);
            kit_must(fd_write_all(fd, str_n(data, sizeof data)));
        }
    }
}

static void mount_fork(const struct snap *s, int run)
{
    char options[16384], path[64];
    size_t n = (size_t)snprintf(options, sizeof options, "lowerdir=");

    for (size_t i = 0; i < s->layer_count; i++)
        n += (size_t)snprintf(options + n, sizeof options - n,
                              "state/snap/layers/%s:", s->layers[i].p);
    snprintf(path, sizeof path, "u%d", run);
    kit_check(mkdir(path, 0755) == 0, path);
    snprintf(path, sizeof path, "w%d", run);
    kit_check(mkdir(path, 0755) == 0, path);
    snprintf(options + n, sizeof options - n, "work,upperdir=u%d,workdir=w%d", run, run);
    kit_check(mount("overlay", "fork", "overlay", 0, options) == 0, options);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void run_all(double snap_ms[RUNS], double both_ms[RUNS])
{
    own_fd here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), state = -1, box = -1, upper = -1;
    struct arena a;
    struct snap s;
    char name[32];

    arena_init(&a, 64u << 20);
    kit_must(fd_make_dirs(here, STR("state"), 0700, &state));
    kit_must(fd_make_dirs(here, STR("state/box/b"), 0700, &box));
    kit_must(fd_make_dirs(box, STR("m0u"), 0755, &upper));
    kit_must(overlay_note(box, 0, "work"));
    fill(upper);
    for (int i = 0; i < RUNS; i++) {
        snprintf(name, sizeof name, "s%d", i);
        uint64_t start = clock_mono_ns(&clock_system);
        kit_must(snaps_take(state, box, 0, name, false, &a, &s));
        snap_ms[i] = kit_ms_since(start);
        mount_fork(&s, i);
        both_ms[i] = kit_ms_since(start);
        kit_check(access("fork/d99/f99", R_OK) == 0, "look into the fork");
        kit_check(umount("fork") == 0, "unmount");
        own_fd fresh = openat(box, "m0u", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        own_fd one = openat(fresh, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        kit_check(one >= 0, name);
    }
    arena_done(&a);
}

int main(void)
{
    struct scratch scratch;
    double snap_ms[RUNS], both_ms[RUNS];

    if (geteuid() != 0) {
        printf("snapshot: skipped, mounting needs root\n");
        return 0;
    }
    kit_must(scratch_open(&scratch, "/var/tmp"));
    kit_check(chdir(scratch.dir) == 0, scratch.dir);
    kit_check(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0,
              "unshare");
    kit_check(mkdir("work", 0755) == 0 && mkdir("fork", 0755) == 0, "mkdir");
    run_all(snap_ms, both_ms);
    qsort(snap_ms, RUNS, sizeof *snap_ms, by_value);
    qsort(both_ms, RUNS, sizeof *both_ms, by_value);
    uint64_t start = clock_mono_ns(&clock_system);
    kit_shell("cp -a state/snap/layers copy");
    double copy_ms = kit_ms_since(start);
    start = clock_mono_ns(&clock_system);
    kit_shell("tar -cf copy.tar -C state/snap layers");
    double tar_ms = kit_ms_since(start);
    printf("%d files, %d MB, N=%d, on 1 to %d layers\n", DIRS * FILES, DIRS * FILES / 1000 * 50,
           RUNS, RUNS);
    printf("  snapshot         min %6.2f  p50 %6.2f  p90 %6.2f  max %6.2f ms\n", snap_ms[0],
           snap_ms[RUNS / 2], snap_ms[RUNS * 9 / 10], snap_ms[RUNS - 1]);
    printf("  snapshot + fork  min %6.2f  p50 %6.2f  p90 %6.2f  max %6.2f ms\n", both_ms[0],
           both_ms[RUNS / 2], both_ms[RUNS * 9 / 10], both_ms[RUNS - 1]);
    printf("bench/snapshot: snapshot and fork %.2f ms (bar 20: %s), cp -a %.0f ms, tar %.0f ms\n",
           both_ms[RUNS / 2], both_ms[RUNS / 2] <= 20 ? "met" : "MISSED", copy_ms, tar_ms);
    kit_check(chdir("/") == 0, "chdir");
    kit_must(scratch_close(&scratch));
    return 0;
}
