// SPDX-License-Identifier: Apache-2.0
/* changes_kit.h — a directory and a layer over it, for tests of host/changes. */
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "host/changes/changes.h"
#include "test/test.h"

struct kit {
    char lower[300], upper[300], merged[300];
    int lower_fd, upper_fd;
    struct changes_source src;
    struct changes c;
    struct buf text;
};

static inline void make_dir(char out[300], const char *name)
{
    snprintf(out, 300, "%s/%s", test_dir(), name);
    CHECK(mkdir(out, 0755) == 0);
}

static inline void kit_init(struct kit *k)
{
    umask(022);
    make_dir(k->lower, "lower");
    make_dir(k->upper, "upper");
    make_dir(k->merged, "merged");
    k->lower_fd = open(k->lower, O_PATH | O_DIRECTORY | O_CLOEXEC);
    k->upper_fd = open(k->upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
    k->src = (struct changes_source){.uppers = &k->upper_fd,
                                     .upper_count = 1,
                                     .lower = k->lower_fd,
                                     .since_ns = 4000000000 * NS_PER_S};
    k->c = (struct changes){0};
    buf_init(&k->text, 1 << 20);
}

static inline void kit_done(struct kit *k)
{
    changes_done(&k->c);
    buf_done(&k->text);
    close(k->lower_fd);
    close(k->upper_fd);
}

static inline void sh(const struct kit *k, const char *where, const char *script)
{
    char command[4096];

    snprintf(command, sizeof command, "cd %s && %s", where, script);
    (void)k;
    if (system(command) != 0) /* NOLINT(cert-env33-c): our own words */
        FAIL("failed: %s", command);
}

static inline struct str scan(struct kit *k)
{
    changes_done(&k->c);
    CHECK_OK(changes_scan(&k->src, &k->c));
    buf_reset(&k->text);
    changes_put_text(&k->text, &k->c);
    return buf_str(&k->text);
}

static inline void apply(struct kit *k)
{
    struct changes_apply how = {0};

    CHECK_OK(changes_apply(&k->src, &k->c, &how));
}

static inline void be_nobody(void)
{
    if (geteuid() != 0)
        return;
    CHECK(chown(test_dir(), 65534, 65534) == 0);
    CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
}

static inline void mount_merged(const struct kit *k)
{
    char options[1200], work[300];

    make_dir(work, "work");
    snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s,redirect_dir=off",
             k->lower, k->upper, work);
    CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mount("overlay", k->merged, "overlay", 0, options) == 0);
}

/* Until a file made now is younger than the layer: the clock of files moves in steps. */
static inline void pass_a_step(const struct kit *k)
{
    struct statx layer, probe;

    CHECK(statx(k->upper_fd, "", AT_EMPTY_PATH, STATX_BTIME, &layer) == 0);
    do {
        own_fd fd = open(test_dir(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && statx(fd, "", AT_EMPTY_PATH, STATX_CTIME, &probe) == 0);
    } while (probe.stx_ctime.tv_sec == layer.stx_btime.tv_sec &&
             probe.stx_ctime.tv_nsec <= layer.stx_btime.tv_nsec);
}
