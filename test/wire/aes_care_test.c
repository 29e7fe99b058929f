// SPDX-License-Identifier: Apache-2.0
/* aes_care_test.c — what a server leaves behind, and what it never loses. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/own.h"
#include "test/aes_run.h"
#include "test/program.h"

/* The directory in the path of an open file of the process that holds word. */
static const char *open_dir(struct aes *a, const char *word)
{
    char path[300];

    for (int i = 3; i < 64; i++) {
        ssize_t n = readlink(aes_text(a, "/proc/%d/fd/%d", (int)a->wire.pid, i), path, 299);
        path[n < 0 ? 0 : n] = '\0';
        char *at = strstr(path, word);
        if (!at)
            continue;
        at[1 + strcspn(at + 1, "/ ")] = '\0';
        return aes_text(a, "%s", path);
    }
    FAIL("nothing like '%s' is open", word);
}

AES_TEST(aes_server_that_was_killed_is_tidied_up_after_by_the_next)
{
    static const char *const words[] = {"/croft-undo-", "/croft-shell-", "/croft-kernel-"};
    const struct timespec old[2] = {{time(NULL) - 7200, 0}, {time(NULL) - 7200, 0}};
    char dirs[3][300];
    struct aes a;
    struct stat st;

    aes_open_plain(&a, program);
    aes_act(&a, "edit", aes_text(&a, "'command':'create','path':'%s/f','file_text':'x'", a.dir));
    aes_run_plain(&a, "true");
    aes_act(&a, "run_ipython", "'code':'1'");
    for (int i = 0; i < 3; i++) {
        snprintf(dirs[i], sizeof dirs[i], "%s", open_dir(&a, words[i]));
        CHECK(stat(dirs[i], &st) == 0 && S_ISDIR(st.st_mode));
    }
    CHECK_INT(kill(a.wire.pid, SIGKILL), 0);
    CHECK_INT(program_wait(a.wire.pid), 128 + SIGKILL);
    arena_done(&a.arena);
    CHECK_INT(unlink(aes_text(&a, "%s/sock", test_dir())), 0);
    for (int i = 0; i < 3; i++)
        CHECK_INT(utimensat(AT_FDCWD, dirs[i], old, 0), 0);
    aes_open_plain(&a, program);
    for (int i = 0; i < 3; i++)
        CHECK(stat(dirs[i], &st) < 0 && errno == ENOENT);
    aes_close(&a);
}
