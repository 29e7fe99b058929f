// SPDX-License-Identifier: Apache-2.0
/* roots.c — see roots.h. */
#include "host/server/roots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/launcher/launcher.h"
#include "host/server/grants.h"

#define FILE_MAX (LAUNCHER_ROOTS * (GRANTS_PATH_MAX + 1))

/* 0: it is not there. *ret_lines: how many are. */
static unsigned line_of(struct str text, struct str path, unsigned *ret_lines)
{
    struct str line;
    unsigned n = 0, found = 0;

    while (text.len) {
        str_cut(&text, '\n', &line);
        n++;
        if (str_eq(line, path) && !found)
            found = n;
    }
    *ret_lines = n;
    return found;
}

static fallible write_file(int dir, const struct buf *text)
{
    own_fd fd =
        openat(dir, "roots.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys("make 'roots.new'");
    TRY(fd_write_all(fd, buf_str(text)));
    if (fsync(fd) < 0 || renameat(dir, "roots.new", dir, "roots") < 0)
        return err_sys("put 'roots' in place");
    return NULL;
}

fallible roots_number(const char *state, const struct grant *grants, size_t count,
                      unsigned *numbers)
{
    own_done(buf) text;
    bool changed = false;
    own_fd dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    buf_init(&text, FILE_MAX);
    if (dir < 0)
        return err_sys("open '%s'", state);
    own_fd fd = openat(dir, "roots", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return err_sys("open 'roots'");
    if (fd >= 0)
        TRY_WRAP(fd_read_all(fd, &text), "'roots'");
    for (size_t i = 0; i < count; i++) {
        unsigned lines, n = line_of(buf_str(&text), grants[i].path, &lines);
        if (!n && lines + 1 >= LAUNCHER_ROOTS)
            return err_new(ERR_LIMIT,
                           "mount." STR_FMT ": %u directories have had a number, which is all "
                           "there are; when no sandbox and no snapshot is left, remove '%s/roots'",
                           STR_ARG(grants[i].name), lines, state);
        if (!n) {
            buf_addf(&text, STR_FMT "\n", STR_ARG(grants[i].path));
            n = lines + 1;
            changed = true;
        }
        numbers[i] = n;
    }
    TRY(buf_check(&text));
    return changed ? write_file(dir, &text) : NULL;
}
