// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/program.h"
#include "test/tar_kit.h"

static int croft_image(struct buf *into, const char *a, const char *b, const char *c, const char *d)
{
    buf_reset(into);
    return program_run(ARGS(test_program("croft"), "image", a, b, c, d), into);
}

TEST(image_command_imports_lists_and_removes)
{
    own_done(buf) tar, got = {.limit_bytes = 65536};
    char path[300];

    buf_init(&tar, 1u << 20);
    CHECK(setenv("XDG_STATE_HOME", test_dir(), 1) == 0 && chdir(test_dir()) == 0);
    TAR_PUT(&tar, .name = "etc/hello", .data = STR("hi"));
    tar_end(&tar);
    own_fd dir = test_dir_fd();
    CHECK_OK(fd_replace_file(dir, "r.tar", buf_str(&tar), 0600));
    CHECK_INT(croft_image(&got, "import", "r.tar", "--name", "mine"), 0);
    CHECK_HAS(buf_str(&got), " mine\n");
    CHECK_HAS(buf_str(&got), "there is no /bin/bash in it");
    CHECK_INT(croft_image(&got, "ls", NULL, NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "\tmine\n");
    CHECK_INT(croft_image(&got, "ls", "--json", NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "\"name\": \"mine\", \"aliases\": [], \"layers\": 1");
    CHECK(mkdir("croft/box", 0700) == 0 && mkdir("croft/box/b", 0700) == 0);
    snprintf(path, sizeof path, "%.64s", got.p + sizeof "[{\"id\": \"" - 1);
    CHECK(symlink(path, "croft/box/b/image") == 0);
    CHECK_INT(croft_image(&got, "rm", "mine", NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "a sandbox runs on image");
    CHECK(unlink("croft/box/b/image") == 0);
    CHECK_INT(croft_image(&got, "rm", "mine", NULL, NULL), 0);
    CHECK_INT(croft_image(&got, "rm", "mine", NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "no image 'mine'");
}

TEST(image_names_go_one_by_one_and_an_import_without_a_name_keeps_them)
{
    own_done(buf) tar, got = {.limit_bytes = 65536};
    own_fd dir = test_dir_fd();
    char digit[2] = "";

    buf_init(&tar, 1u << 20);
    CHECK(setenv("XDG_STATE_HOME", test_dir(), 1) == 0 && chdir(test_dir()) == 0);
    TAR_PUT(&tar, .name = "bin/bash", .data = STR("hi"));
    tar_end(&tar);
    CHECK_OK(fd_replace_file(dir, "r.tar", buf_str(&tar), 0600));
    CHECK_INT(croft_image(&got, "import", "r.tar", "--name", "one"), 0);
    CHECK_INT(croft_image(&got, "import", "r.tar", "--name", "two:latest"), 0);
    CHECK_INT(croft_image(&got, "import", "r.tar", NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), " two:latest\n");
    CHECK_INT(croft_image(&got, "ls", NULL, NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "\ttwo:latest one\n");
    CHECK_INT(croft_image(&got, "rm", "two", NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), " two:latest\n");
    CHECK_INT(croft_image(&got, "ls", NULL, NULL, NULL), 0);
    CHECK_HAS(buf_str(&got), "\tone\n");
    CHECK_INT(croft_image(&got, "import", "r.tar", "--name", "three"), 0);
    digit[0] = got.p[0];
    CHECK_INT(croft_image(&got, "rm", digit, NULL, NULL), 0); /* by id: with all its names */
    CHECK_INT(croft_image(&got, "ls", NULL, NULL, NULL), 0);
    CHECK_STR(buf_str(&got), "");
}

TEST(image_command_used_wrongly_says_how)
{
    own_done(buf) got = {.limit_bytes = 65536};

    CHECK(setenv("XDG_STATE_HOME", test_dir(), 1) == 0);
    CHECK_INT(croft_image(&got, "pull", "x", NULL, NULL), 2);
    CHECK_HAS(buf_str(&got), "import FILE");
    CHECK_INT(croft_image(&got, "import", "/nonexistent.tar", NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "No such file");
    CHECK_INT(croft_image(&got, "import", test_dir(), NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "is a directory");
}

TEST(a_state_directory_that_cannot_be_made_says_what_to_set)
{
    own_done(buf) got = {.limit_bytes = 65536};

    if (geteuid() == 0)
        CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    CHECK(unsetenv("XDG_STATE_HOME") == 0 && unsetenv("CROFT_SERVER_STATE_DIR") == 0);
    CHECK(setenv("HOME", "/", 1) == 0); /* as many a service account has it */
    CHECK_INT(croft_image(&got, "ls", NULL, NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "'/.local/state/croft': set XDG_STATE_HOME");
    CHECK_HAS(buf_str(&got), "Permission denied");
    CHECK(setenv("CROFT_SERVER_STATE_DIR", "//", 1) == 0);
    CHECK_INT(croft_image(&got, "ls", NULL, NULL, NULL), 1);
    CHECK_HAS(buf_str(&got), "cannot be '/'");
}
