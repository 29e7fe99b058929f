// SPDX-License-Identifier: Apache-2.0
/* last.c — when a run was, what its command was, and which run over a directory was the last.
 *
 * box/ID/run is a link whose text is the command; it was made or touched when the run began or
 * ended. A run that left nothing has no box: state/last/HASH, a link too, has its id and command,
 * and the time of the run. HASH is of the directory's path. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/own.h"
#include "base/plain.h"
#include "base/rng.h"
#include "host/overlay/overlay.h"
#include "host/tree/inner.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define RUN       "run"
#define LAST      "last"
#define KEY_BYTES 16

static const char end_letters[] = "knxd"; /* by enum overlay_end */

static uint64_t mtime_of(const struct stat *st)
{
    return (uint64_t)st->st_mtim.tv_sec * NS_PER_S + (uint64_t)st->st_mtim.tv_nsec;
}

void overlay_put_command(const char *const *argv, char out[OVERLAY_COMMAND_MAX])
{
    size_t len = 0;

    for (; *argv && len < OVERLAY_COMMAND_MAX - 1; argv++)
        len +=
            (size_t)snprintf(out + len, OVERLAY_COMMAND_MAX - len, "%s%s", len ? " " : "", *argv);
    out[len < OVERLAY_COMMAND_MAX ? len : OVERLAY_COMMAND_MAX - 1] = '\0';
}

fallible overlay_note_run(int box, const char *command)
{
    return symlinkat(*command ? command : " ", box, RUN) < 0 ? err_sys("note the command") : NULL;
}

void overlay_note_end(int box)
{
    utimensat(box, RUN, NULL, AT_SYMLINK_NOFOLLOW); /* else it is as old as its beginning */
}

void overlay_read_run(int box, const char *id, struct overlay_run *ret)
{
    struct stat st;

    *ret = (struct overlay_run){.end = OVERLAY_KEPT};
    snprintf(ret->id, sizeof ret->id, "%s", id);
    ssize_t n = readlinkat(box, RUN, ret->command, sizeof ret->command - 1);
    ret->command[n > 0 ? n : 0] = '\0';
    if (fstatat(box, n > 0 ? RUN : ".", &st, AT_SYMLINK_NOFOLLOW) == 0)
        ret->wall_ns = mtime_of(&st);
}

static void last_name(struct str dir, char out[2 * KEY_BYTES + 1])
{
    uint8_t digest[SHA256_LEN];

    sha256(dir, digest);
    hash_hex(digest, KEY_BYTES, out);
}

static bool last_read(int last, const char *name, struct overlay_run *ret)
{
    char text[2 + OVERLAY_ID_MAX + OVERLAY_COMMAND_MAX];
    ssize_t n = last < 0 ? -1 : readlinkat(last, name, text, sizeof text - 1);
    const char *letter = n > 2 ? strchr(end_letters, text[0]) : NULL;
    struct stat st;

    if (!letter || !*letter || fstatat(last, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    struct str rest = str_n(text + 2, (size_t)n - 2), id;
    str_cut(&rest, ' ', &id);
    *ret = (struct overlay_run){.end = (enum overlay_end)(letter - end_letters),
                                .wall_ns = mtime_of(&st)};
    snprintf(ret->id, sizeof ret->id, STR_FMT, STR_ARG(id));
    snprintf(ret->command, sizeof ret->command, STR_FMT, STR_ARG(rest));
    return true;
}

/* A failure is silent: an older run is then the last one. */
void overlay_note_last(int state, const char *dir, const struct overlay_run *run)
{
    char name[2 * KEY_BYTES + 1], temp[sizeof "new." + RNG_HEX_LEN] = "new.";
    char text[2 + OVERLAY_ID_MAX + OVERLAY_COMMAND_MAX];
    struct timespec when = {(time_t)(run->wall_ns / NS_PER_S), (long)(run->wall_ns % NS_PER_S)};
    struct overlay_run before;

    if (mkdirat(state, LAST, 0700) < 0 && errno != EEXIST)
        return;
    own_fd last = openat(state, LAST, DIR_FLAGS, 0);
    last_name(str_of(dir), name);
    if (last < 0 || (last_read(last, name, &before) && before.wall_ns > run->wall_ns))
        return;
    snprintf(text, sizeof text, "%c %s %s", end_letters[run->end], run->id, run->command);
    rng_hex(rng_system(), temp + strlen(temp));
    if (symlinkat(text, last, temp) < 0)
        return;
    const struct timespec times[2] = {when, when};
    if (utimensat(last, temp, times, AT_SYMLINK_NOFOLLOW) < 0 ||
        renameat(last, temp, last, name) < 0)
        unlinkat(last, temp, 0);
}

bool overlay_read_last(int state, const char *here, struct overlay_run *ret)
{
    own_fd last = openat(state, LAST, DIR_FLAGS, 0);
    struct str dir = str_of(here);
    struct overlay_run run;
    char name[2 * KEY_BYTES + 1];
    bool any = false;

    while (last >= 0 && dir.len) {
        last_name(dir, name);
        if (last_read(last, name, &run) && (!any || run.wall_ns > ret->wall_ns)) {
            *ret = run;
            any = true;
        }
        if (dir.len == 1)
            break; /* that was "/" */
        while (dir.p[dir.len - 1] != '/')
            dir.len--;
        dir.len -= dir.len > 1;
    }
    return any;
}

void overlay_forget_last(int state, uint64_t before_wall_ns)
{
    own_done(buf) names = {0};
    own_fd last = openat(state, LAST, DIR_FLAGS, 0);
    size_t count = 0;
    struct err *e = last < 0 ? NULL : tree_read_names(last, 16u << 20, &names, &count);

    if (e)
        count = 0;
    err_free(e); /* they stay */
    for (const char *name = names.p; count--; name += strlen(name) + 1) {
        struct stat st;
        if (fstatat(last, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && mtime_of(&st) < before_wall_ns)
            unlinkat(last, name, 0);
    }
}

void overlay_put_run(struct buf *out, const struct overlay_run *run)
{
    time_t s = (time_t)(run->wall_ns / NS_PER_S);
    char when[32] = "?";
    struct tm tm;

    if (localtime_r(&s, &tm))
        strftime(when, sizeof when, "%F %T", &tm);
    plain_put_name(out, str_of(run->id));
    buf_addf(out, " of %s", when);
    if (!run->command[0] || strcmp(run->command, " ") == 0)
        return;
    buf_add_cstr(out, " (");
    plain_put_name(out, str_of(run->command));
    buf_add_char(out, ')');
}
