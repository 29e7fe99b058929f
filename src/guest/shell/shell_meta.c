// SPDX-License-Identifier: Apache-2.0
/* shell_meta.c — reading a report, and what follows from it: user, host, interpreter.
 *
 * Whatever runs in the shell can write to the FIFO: a report is a peer's message. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/passwd.h"
#include "guest/shell/shell_inner.h"

/* Number, status, last job, process, user and options, with blanks between; directory; search
 * path. */
#define REPORT_FIELDS 3
#define REPORT_WORDS  5

static bool to_int(struct str s, int64_t max, int *ret)
{
    uint64_t v;

    if (!str_to_u64(s, &v) || v > (uint64_t)max)
        return false;
    *ret = (int)v;
    return true;
}

/* The last report that begins in bytes: an interrupt may have cut the ones before it short. */
static struct str last_beginning(struct str bytes)
{
    static const char begin[] = "\0(croft";

    for (const char *p; bytes.len && (p = memmem(bytes.p, bytes.len, begin, sizeof begin));)
        bytes = str_from(bytes, (size_t)(p - bytes.p) + sizeof begin);
    return bytes;
}

static bool parse_fields(const struct str field[], struct shell_report *r)
{
    struct str word[REPORT_WORDS], rest = field[0];
    int uid;

    for (size_t n = 0; n < REPORT_WORDS; n++)
        if (!str_cut(&rest, ' ', &word[n]))
            return false;
    *r = (struct shell_report){.sequence = word[0],
                               .background = -1,
                               .options = rest,
                               .working_dir = field[1],
                               .path = field[2]};
    if ((word[2].len && !to_int(word[2], INT_MAX, &r->background)) ||
        !to_int(word[1], 255, &r->exit_code) || !to_int(word[3], INT_MAX, &r->pid) ||
        !to_int(word[4], INT_MAX, &uid))
        return false;
    r->uid = (uid_t)uid;
    return r->pid > 0;
}

size_t shell_report_parse(struct str bytes, struct shell_report *ret, bool *ret_ok)
{
    static const char end[] = "\0)croft";
    const char *e = bytes.len ? memmem(bytes.p, bytes.len, end, sizeof end) : NULL;
    struct str field[REPORT_FIELDS], rest;

    *ret_ok = false;
    if (!e)
        return 0;
    size_t used = (size_t)(e - bytes.p) + sizeof end, n = 0;
    rest = last_beginning(str_first(bytes, used - sizeof end));
    while (n < REPORT_FIELDS && str_cut(&rest, '\0', &field[n]))
        n++;
    *ret_ok = n == REPORT_FIELDS && parse_fields(field, ret);
    return used;
}

void shell_meta_init(struct shell_owned_meta *m)
{
    *m = (struct shell_owned_meta){.exit_code = -1, .pid = -1, .uid = (uid_t)-1};
    buf_init(&m->working_dir, 1 << 16);
    buf_init(&m->python, 1 << 16);
}

void shell_meta_done(struct shell_owned_meta *m)
{
    buf_done(&m->working_dir);
    buf_done(&m->python);
}

static void find_user(struct shell_owned_meta *m, uid_t uid)
{
    struct passwd_user user;

    if (uid == m->uid)
        return;
    m->uid = uid;
    struct err *e = passwd_by_uid(PASSWD_ETC, uid, &user);
    snprintf(m->username, sizeof m->username, "%s",
             e ? "I have no name!" : user.name); /* as bash prints \u */
    err_free(e);
}

static void find_host(struct shell_owned_meta *m)
{
    char name[256] = "";

    gethostname(name, sizeof name - 1);
    name[strcspn(name, ".")] = '\0';
    snprintf(m->hostname, sizeof m->hostname, "%.63s", name);
}

/* Finds the file that `which python` would print. */
static void find_python(struct shell_owned_meta *m, struct str path)
{
    struct str dir;
    bool more = path.len > 0;

    while (more) {
        more = str_cut(&path, ':', &dir);
        buf_reset(&m->python);
        if (dir.len == 0 || dir.p[0] != '/') {
            buf_add(&m->python, buf_str(&m->working_dir));
            buf_add_cstr(&m->python, "/");
        }
        buf_add(&m->python, dir);
        buf_add_cstr(&m->python, "/python");
        const char *file = buf_cstr(&m->python);
        struct stat st;
        if (file && !buf_failed(&m->python) && stat(file, &st) == 0 && S_ISREG(st.st_mode) &&
            (st.st_mode & 0111))
            return;
    }
    buf_reset(&m->python);
}

void shell_meta_take(struct shell_owned_meta *m, const struct shell_report *r)
{
    m->exit_code = r->exit_code;
    m->pid = r->background;
    buf_reset(&m->working_dir);
    buf_add(&m->working_dir, r->working_dir);
    find_user(m, r->uid);
    find_host(m);
    find_python(m, r->path);
}

struct shell_meta shell_meta_view(const struct shell_owned_meta *m)
{
    return (struct shell_meta){
        .exit_code = m->exit_code,
        .pid = m->pid,
        .username = str_of(m->username),
        .hostname = str_of(m->hostname),
        .working_dir = buf_str(&m->working_dir),
        .python = buf_str(&m->python),
    };
}

fallible shell_meta_fill(struct arena *a, uid_t uid, struct str path, struct shell_meta *meta)
{
    struct shell_owned_meta m;

    shell_meta_init(&m);
    shell_meta_take(&m, &(struct shell_report){.uid = uid, .path = path});
    meta->username = arena_copy(a, str_of(m.username));
    meta->hostname = arena_copy(a, str_of(m.hostname));
    meta->python = arena_copy(a, buf_str(&m.python));
    shell_meta_done(&m);
    return arena_check(a);
}
