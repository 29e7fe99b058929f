// SPDX-License-Identifier: Apache-2.0
/* guest.c — croft guest FILE: writes out the croft-guest that croft carries. */
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "cli/cli.h"

extern const char croft_guest_start[], croft_guest_end[];

static fallible write_out(const char *path)
{
    const char *slash = strrchr(path, '/');
    char dir[4096] = ".";

    if (slash) {
        size_t n = (size_t)(slash - path) + 1;
        if (n >= sizeof dir)
            return err_new(ERR_INVALID, "the path is too long");
        memcpy(dir, path, n);
        dir[n] = '\0';
    }
    own_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys("open '%s'", dir);
    struct str program = str_n(croft_guest_start, (size_t)(croft_guest_end - croft_guest_start));
    return fd_replace_file(fd, slash ? slash + 1 : path, program, 0755);
}

static int guest_run(struct cli *cli, int argc, char **argv)
{
    if (argc != 1 || argv[0][0] == '-' || !argv[0][0])
        return cli_misuse(cli, err_new(ERR_INVALID, "name the file to write"));
    return cli_fail(cli, err_wrap(write_out(argv[0]), "write '%.200s'", argv[0]));
}

CLI_COMMAND(guest) = {
    .name = "guest",
    .group = CLI_PROGRAMS,
    .summary = "write out the program that runs inside sandboxes",
    .usage = "FILE",
    .help = "croft carries croft-guest: one static file that needs nothing of the system it\n"
            "runs on. FILE is replaced in one step and is executable.\n",
    .run = guest_run,
};
