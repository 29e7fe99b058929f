// SPDX-License-Identifier: Apache-2.0
/* escape.c — see escape.h. The verdict is the host's: by what watch.c saw, by what the bait shows,
 * and by the host's secrets in what was printed. The probe takes none. */
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

const char *const escape_traces[ESCAPE_TRACES] = {
    [TRACE_CALL] = "call",   [TRACE_DONE] = "done", [TRACE_MADE] = "made", [TRACE_OPEN] = "open",
    [TRACE_LIMIT] = "limit", [TRACE_TOLD] = "told", [TRACE_LEFT] = "left",
};

/* The line that a row printed; "" if none. A probe that broke off is not judged. */
static struct str said_by(struct str printed, const char *name)
{
    struct escape_line line;

    while (escape_next(&printed, &line))
        if (str_eq(line.name, str_of(name)))
            return line.note;
    return STR("");
}

static bool is_told(const struct escape_bait *b, struct str text)
{
    bool told = str_find(text, STR(TRACE_WRITTEN)) >= 0;

    for (size_t i = 0; i < ARRAY_LEN(b->secrets); i++)
        told = told || str_find(text, str_of(b->secrets[i])) >= 0;
    return told;
}

static bool is_left(struct str marks, const char *name)
{
    struct str line;

    while (marks.len) {
        str_cut(&marks, '\n', &line);
        if (str_eq(line, str_of(name)))
            return true;
    }
    return false;
}

/* Every row has its trace, and any other that is found counts as well. */
static const char *verdict_on(const struct escape_bait *b, const struct watch_row *r,
                              struct str said, struct str marks)
{
    if (r->open || is_told(b, said) || is_left(marks, r->name))
        return "OPEN";
    if (r->lost)
        return "lost";
    if (r->killed || r->deeds || r->failed_steps)
        return "refused";
    return (r->trace == TRACE_TOLD || r->trace == TRACE_LEFT) && said.len ? "refused" : "untried";
}

/* A mark that is no row's is of something that no row does. */
static void check_marks(const struct watch *w, struct str marks)
{
    struct str line;

    while (marks.len) {
        bool known = false;
        str_cut(&marks, '\n', &line);
        for (unsigned i = 0; i < w->count && !known; i++)
            known = str_eq(line, str_of(w->rows[i].name));
        if (!known)
            FAIL("the host is not as it was: %.*s", STR_ARG(line));
    }
}

static void take_verdicts(struct escape_bait *b, struct watch *w, struct str printed,
                          struct buf *out)
{
    own_done(buf) marks;

    buf_init(&marks, 1u << 16);
    escape_bait_marks(b, &marks);
    check_marks(w, buf_str(&marks));
    for (unsigned i = 0; i < w->count; i++) {
        const struct watch_row *r = &w->rows[i];
        struct str said = said_by(printed, r->name);
        buf_addf(out, "%s %s by %s: %ld; said %.*s\n", r->name,
                 verdict_on(b, r, said, buf_str(&marks)), escape_traces[r->trace], r->answer,
                 STR_ARG(said));
    }
    buf_addf(out, "end\n");
    CHECK(!buf_failed(out));
}

struct watch *escape_watch(const struct escape_bait *b)
{
    return watch_begin(b->words[1]); /* a name that no other bait has */
}

void escape_verdicts(struct escape_bait *b, struct watch *w, struct str printed, struct buf *out)
{
    watch_end(w);
    if (w->walls[0])
        FAIL("%s", w->walls);
    if (watch_find(b->words[1]))
        FAIL("a process of the probe's has outlived it");
    take_verdicts(b, w, printed, out);
    watch_free(w);
}

/* What is not open outside is no door on this machine. */
void escape_control(struct escape_bait *b, struct buf *out)
{
    const char *argv[ESCAPE_WORDS + 3] = {test_program("escape-probe"), "control"};
    own_done(buf) printed;
    own_done(buf) verdicts;
    struct escape_line line;

    buf_init(&printed, 1u << 20);
    buf_init(&verdicts, 1u << 20);
    memcpy(argv + 2, b->words, sizeof b->words);
    struct watch *w = escape_watch(b);
    CHECK_INT(program_run(argv, &printed), 0);
    watch_end(w);
    CHECK(w->walls[0]); /* it has none, and that is seen */
    take_verdicts(b, w, buf_str(&printed), &verdicts);
    watch_free(w);
    for (struct str text = buf_str(&verdicts); escape_next(&text, &line);)
        buf_addf(out, "%.*s %s %.*s\n", STR_ARG(line.name),
                 str_eq(line.verdict, STR("OPEN"))   ? "OPEN"
                 : str_eq(line.verdict, STR("lost")) ? "lost"
                                                     : "absent",
                 STR_ARG(line.note));
    buf_addf(out, "end\n");
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
