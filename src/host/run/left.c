// SPDX-License-Identifier: Apache-2.0
/* left.c — see left.h. */
#include "host/run/left.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/own.h"
#include "base/plain.h"

#define LEFT     "left"
#define TOLD     "left.told"
#define TOLD_S   86400
#define LEFT_MAX (64u << 10) /* more of it is not said */

int left_listen(void)
{
    int fd = memfd_create("left", MFD_CLOEXEC);

    log_setup(fd, fd < 0 ? LOG_OFF : LOG_WARN, LOG_JSON);
    return fd;
}

/* Appended in one call: two runs that end at once do not mix lines. The run that says them holds
 * the lock while it reads and unlinks: what is added then goes into the next file. */
static void add_to(int state, const char *name, struct str text)
{
    struct stat st = {.st_nlink = 0};

    while (text.len && !st.st_nlink) {
        own_fd to =
            openat(state, name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (to < 0 || flock(to, LOCK_EX) < 0 || fstat(to, &st) < 0)
            return; /* then it is not said: nothing depends on it */
        if (st.st_nlink && st.st_size < LEFT_MAX)
            err_free(fd_write_all(to, text)); /* the same */
    }
}

void left_keep(int state, int gathered, const struct err *e)
{
    own_done(buf) text;

    buf_init(&text, LEFT_MAX);
    if (e)
        log_warn("not all that a run left could be removed", KV_ERR(e));
    log_setup(STDERR_FILENO, LOG_INFO, LOG_TEXT);
    if (gathered >= 0 && lseek(gathered, 0, SEEK_SET) == 0)
        err_free(fd_read_all(gathered, &text)); /* as much as there is room for */
    if (text.len)
        add_to(state, LEFT, buf_str(&text));
    own_close(gathered);
}

static bool put_line(struct str line, struct buf *out)
{
    static const char *const of[] = {"path", "id"};
    own_done(arena) a;
    struct json *event = NULL;

    arena_init(&a, 1u << 20);
    err_free(json_parse(&a, line, NULL, &event)); /* cut short by a death: it is no event */
    struct str msg = event ? json_get_str(event, "msg", STR("")) : STR("");
    if (!msg.len)
        return false;
    buf_add_cstr(out, "croft run: ");
    plain_put_lines(out, msg);
    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        struct str what = json_get_str(event, of[i], STR(""));
        if (!what.len)
            continue;
        buf_add_cstr(out, ": ");
        plain_put_name(out, what);
    }
    struct str why = json_get_str(event, "error", STR(""));
    buf_add_cstr(out, why.len ? ": " : "");
    plain_put_lines(out, why);
    buf_add_char(out, '\n');
    return true;
}

static void read_told(int state, struct buf *told)
{
    own_fd fd = openat(state, TOLD, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    if (st.st_mtim.tv_sec + TOLD_S < time(NULL))
        unlinkat(state, TOLD, 0); /* long enough ago to be said again */
    else
        err_free(fd_read_all(fd, told));
}

static void left_tell_one(int state, struct str events, int fd)
{
    own_done(buf) told;
    own_done(buf) out;
    struct str line;

    buf_init(&told, 2 * LEFT_MAX);
    buf_init(&out, 2 * LEFT_MAX);
    read_told(state, &told);
    size_t before = told.len;
    while (str_cut(&events, '\n', &line)) {
        size_t from = out.len;
        if (!put_line(line, &out))
            continue;
        struct str said = str_n(out.p + from, out.len - from);
        if (str_find(buf_str(&told), said) >= 0)
            out.len = from;
        else
            buf_add(&told, said);
    }
    add_to(state, TOLD, str_n(told.p + before, told.len - before));
    err_free(fd_write_all(fd, buf_str(&out))); /* the terminal is gone */
}

void left_tell(const char *state, int fd)
{
    own_done(buf) events;
    own_fd dir = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    own_fd left = dir < 0 ? -1 : openat(dir, LEFT, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    struct stat st;

    buf_init(&events, 2 * LEFT_MAX);
    if (left < 0)
        return;
    if (flock(left, LOCK_EX) < 0 || fstat(left, &st) < 0 || !st.st_nlink)
        return; /* another run says it */
    err_free(fd_read_all(left, &events));
    unlinkat(dir, LEFT, 0);
    own_close_p(&left);
    left = -1;
    left_tell_one(dir, buf_str(&events), fd);
}

bool left_is_new(const char *state, struct str line)
{
    own_done(buf) told;
    own_fd dir = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);

    buf_init(&told, 2 * LEFT_MAX);
    if (dir < 0)
        return true;
    read_told(dir, &told);
    if (str_find(buf_str(&told), line) >= 0)
        return false;
    add_to(dir, TOLD, line);
    return true;
}
