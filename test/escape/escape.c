// SPDX-License-Identifier: Apache-2.0
/* escape.c — see escape.h. The verdict is the host's: the probe's lines are only what it met. */
#include "test/escape/escape.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/rng.h"
#include "test/program.h"
#include "test/test.h"

void escape_secret_make(struct escape_secret *s)
{
    char token[RNG_HEX_LEN + 1];

    rng_hex(rng_system(), token);
    snprintf(s->path, sizeof s->path, "%s/host-secret", test_dir());
    snprintf(s->file_word, sizeof s->file_word, "FILE=%s", s->path);
    snprintf(s->secret_word, sizeof s->secret_word, "SECRET=%s", token);
    int fd = open(s->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && write(fd, token, RNG_HEX_LEN) == RNG_HEX_LEN);
    close(fd);
}

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

struct str escape_control(const struct escape_secret *s)
{
    static struct buf out;

    buf_init(&out, 1u << 20);
    char program[512];
    snprintf(program, sizeof program, "%s", test_program("escape-probe"));
    CHECK_INT(program_run(ARGS(program, "control", s->file_word, s->secret_word), &out), 0);
    return buf_str(&out);
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

unsigned escape_judge(struct str control, struct str inside)
{
    struct escape_line line;
    unsigned doors = 0, open = 0;

    while (escape_next(&control, &line)) {
        struct str note = STR("");
        struct str verdict = verdict_of(inside, line.name, &note);
        if (!str_eq(line.verdict, STR("OPEN")))
            continue;
        doors++;
        if (str_eq(verdict, STR("refused")))
            continue;
        open++;
        fprintf(stderr, "%.*s: %.*s %.*s\n", STR_ARG(line.name), STR_ARG(verdict), STR_ARG(note));
    }
    if (open)
        FAIL("%u of %u doors are not shut", open, doors);
    return doors;
}
