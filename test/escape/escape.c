// SPDX-License-Identifier: Apache-2.0
/* escape.c — see escape.h. The verdict is the host's: the probe's lines are only what it met. */
#include "test/escape/escape.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/program.h"
#include "test/test.h"

bool escape_next(struct str *text, struct escape_line *ret_line)
{
    struct str line = STR("");

    str_cut(text, '\n', &line);
    if (str_eq(line, STR("end")))
        return false;
    if (line.len == 0 && text->len == 0)
        FAIL("the probe broke off");
    *ret_line = (struct escape_line){STR(""), STR(""), STR("")};
    if (!str_cut(&line, ' ', &ret_line->name) || !str_cut(&line, ' ', &ret_line->verdict))
        FAIL("not a line of the probe: '%.*s'", STR_ARG(line));
    ret_line->note = line;
    return true;
}

void escape_control(const struct escape_bait *b, struct buf *out)
{
    const char *argv[ESCAPE_WORDS + 3] = {test_program("escape-probe"), "control"};

    memcpy(argv + 2, b->words, sizeof b->words);
    CHECK_INT(program_run(argv, out), 0);
}

void escape_place_probe(char dir[300])
{
    own_done(buf) program;
    char path[400];

    buf_init(&program, 1u << 24);
    snprintf(dir, 300, "%s/probe", test_dir());
    snprintf(path, sizeof path, "%s/escape-probe", dir);
    CHECK(mkdir(dir, 0777) == 0 && chmod(dir, 0777) == 0);
    CHECK_OK(fd_read_file(test_program("escape-probe"), &program));
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    CHECK(fd >= 0 && fchmod(fd, 0755) == 0);
    CHECK_OK(fd_write_all(fd, buf_str(&program)));
}

static struct str verdict_of(struct str text, struct str name, struct str *ret_note)
{
    struct escape_line line;

    while (escape_next(&text, &line)) {
        if (!str_eq(line.name, name))
            continue;
        *ret_note = line.note;
        return line.verdict;
    }
    return STR("missing");
}

static bool is_granted(const char *const *granted, struct str name)
{
    for (; *granted; granted++)
        if (str_eq(str_of(*granted), name))
            return true;
    return false;
}

unsigned escape_compare(struct str control, struct str inside, const char *const *granted,
                        unsigned *ret_doors)
{
    struct escape_line line;
    unsigned open = 0;

    *ret_doors = 0;
    while (escape_next(&control, &line)) {
        struct str note = STR("");
        struct str verdict = verdict_of(inside, line.name, &note);
        if (!str_eq(line.verdict, STR("OPEN")) || is_granted(granted, line.name))
            continue;
        ++*ret_doors;
        if (str_eq(verdict, STR("refused")))
            continue;
        open++;
        printf("%.*s: %.*s %.*s\n", STR_ARG(line.name), STR_ARG(verdict), STR_ARG(note));
    }
    return open;
}

unsigned escape_judge(struct str control, struct str inside)
{
    unsigned doors, open = escape_compare(control, inside, ARGS(), &doors);

    if (open)
        FAIL("%u of %u doors are not shut", open, doors);
    return doors;
}
