// SPDX-License-Identifier: Apache-2.0
/* image.c — importing the tar of a root file system, plain and with gzip and zstd, beside tar -x of
 * the same file followed by sync -f, which is what makes it comparable: an import is on disk.
 *
 * An import hashes every byte and unpacks in a process that can reach nothing else. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "bench/kit/kit.h"
#include "host/images/images.h"
#include "host/tree/tree.h"

#define DIRS  50
#define FILES 100 /* in each */
#define BYTES (20u << 10)
#define RUNS  3

static void fill(void)
{
    static char data[BYTES];
    char path[64];
    uint32_t seed = 1;

    kit_check(mkdir("r", 0755) == 0, "mkdir");
    for (int d = 0; d < DIRS; d++) {
        snprintf(path, sizeof path, "r/d%d", d);
        kit_check(mkdir(path, 0755) == 0, path);
        for (int f = 0; f < FILES; f++) {
            for (size_t i = 0; i < sizeof data; i++) { /* as compressible as text */
                seed = seed * 1664525 + 1013904223;
                data[i] = "etaoin shrdlu\nxy"[seed >> 28];
            }
            snprintf(path, sizeof path, "r/d%d/f%d", d, f);
            own_fd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
            kit_check(fd >= 0, path);
            kit_must(fd_write_all(fd, str_n(data, sizeof data)));
        }
    }
}

static double import_ms(int state, const char *path)
{
    double best = 1e9;

    for (int i = 0; i < RUNS; i++) {
        struct arena a;
        struct image image;
        struct image_import how = {.name = "bench"};
        own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
        kit_check(fd >= 0, path);
        arena_init(&a, 16u << 20);
        uint64_t start = clock_mono_ns(&clock_system);
        kit_must(images_import(state, fd, &how, &a, &image));
        double ms = kit_ms_since(start);
        best = ms < best ? ms : best;
        kit_must(images_remove(state, &image, NULL, NULL));
        arena_done(&a);
    }
    return best;
}

static double tar_ms(const char *path)
{
    char command[200];
    double best = 1e9;

    snprintf(command, sizeof command, "mkdir x && tar -C x -xf %s && sync -f x", path);
    for (int i = 0; i < RUNS; i++) {
        uint64_t start = clock_mono_ns(&clock_system);
        kit_shell(command);
        double ms = kit_ms_since(start);
        best = ms < best ? ms : best;
        kit_shell("rm -r x");
    }
    return best;
}

int main(void)
{
    static const char *const names[] = {"r.tar", "r.tar.gz", "r.tar.zst"};
    char dir[] = "/var/tmp/croft-bench-image-XXXXXX";
    double ours[3], theirs[3];

    kit_check(mkdtemp(dir) && chdir(dir) == 0, dir);
    umask(022);
    fill();
    kit_shell("tar -C r -cf r.tar . && gzip -k -1 r.tar && zstd -q -1 r.tar");
    kit_check(mkdir("state", 0700) == 0, "mkdir");
    own_fd state = open("state", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    printf("%d files, %d MB, best of %d\n", DIRS * FILES, DIRS * FILES * (int)(BYTES >> 10) / 1000,
           RUNS);
    for (size_t i = 0; i < 3; i++) {
        ours[i] = import_ms(state, names[i]);
        theirs[i] = tar_ms(names[i]);
        printf("  %-10s import %7.1f ms   tar -x %7.1f ms   ratio %.2f\n", names[i], ours[i],
               theirs[i], ours[i] / theirs[i]);
    }
    printf("bench/image: plain %.2fx, gzip %.2fx, zstd %.2fx of tar -x\n", ours[0] / theirs[0],
           ours[1] / theirs[1], ours[2] / theirs[2]);
    kit_check(chdir("/") == 0, "chdir");
    own_fd tmp = open("/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    kit_must(tree_remove(tmp, strrchr(dir, '/') + 1));
    return 0;
}
