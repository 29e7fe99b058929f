// SPDX-License-Identifier: Apache-2.0
/* runner.c — runs every registered test in a process of its own, several at once.
 *
 *   test-croft [--list] [--jobs N] [--slow N] [--junit FILE] [--summary FILE] [WORD …]
 *
 * A test runs if its "folder/file.name" holds any WORD, or its name is NAME of a WORD "=NAME".
 * A WORD that fits no test is a mistake. Output is shown only for failures. --slow
 * lists the N tests that took longest, with the processor time of all that each of them started.
 * CROFT_TEST_SLOW=N waits N times as long before anything counts as hung, for emulated machines. */
#include "test/test.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "test/keeper.h"
#include "test/support.h"

ROWS_OF(tests, struct test)

#define DEFAULT_LIMIT_S 120 /* a hang guard, on a machine with much else to do */

struct run {
    const struct test *test;
    pid_t pid; /* of its keeper */
    int pidfd, output;
    uint64_t start_ns;
};

struct took {
    const struct test *test;
    double seconds, cpu_seconds;
};

struct totals {
    unsigned passed, failed, skipped;
    struct took *took; /* of each that has ended */
    size_t ended;
    FILE *junit; /* NULL: none */
};

struct options {
    unsigned jobs, slow;
    bool list;
    const char *junit, *summary;
    char **words;
    int word_count;
};

static const char *short_file(const char *file)
{
    return strncmp(file, "src/", 4) == 0 ? file + 4 : file;
}

static bool word_fits(const char *word, const struct test *t)
{
    char full[256];

    snprintf(full, sizeof full, "%s.%s", short_file(t->file), t->name);
    if (word[0] == '=')
        return strcmp(t->name, word + 1) == 0 || strcmp(full, word + 1) == 0;
    return strstr(full, word);
}

static bool wanted(const struct options *o, const struct test *t)
{
    for (int i = 0; i < o->word_count; i++)
        if (word_fits(o->words[i], t))
            return true;
    return o->word_count == 0;
}

static bool words_fit(const struct options *o)
{
    bool all = true;

    for (int i = 0; i < o->word_count; i++) {
        bool any = false;
        for (size_t j = 0; j < ROWS_LEN(tests) && !any; j++)
            any = word_fits(o->words[i], ROWS_AT(tests, j));
        if (!any)
            fprintf(stderr, "no test fits '%s'\n", o->words[i]);
        all = all && any;
    }
    return all;
}

static void start(struct run *r, const struct test *t)
{
    *r = (struct run){.test = t, .start_ns = clock_mono_ns(&clock_system)};
    r->output = memfd_create("test-output", MFD_CLOEXEC);
    unsigned limit_s = t->limit_s ? t->limit_s : DEFAULT_LIMIT_S;
    r->pid = keeper_start(t, test_slow() * limit_s, r->output);
    r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
}

static void show_output(const struct run *r)
{
    struct stat st;

    if (fstat(r->output, &st) < 0 || st.st_size == 0)
        return;
    char *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, r->output, 0);
    if (p == MAP_FAILED)
        return;
    off_t from = st.st_size > 16384 ? st.st_size - 16384 : 0;
    printf("%.*s%s", (int)(st.st_size - from), p + from, p[st.st_size - 1] == '\n' ? "" : "\n");
    munmap(p, (size_t)st.st_size);
}

static void junit_case(FILE *f, const struct run *r, int code, double seconds)
{
    if (!f)
        return;
    fprintf(f, "  <testcase classname=\"%s\" name=\"%s\" time=\"%.3f\">", short_file(r->test->file),
            r->test->name, seconds);
    if (code == EXIT_SKIP)
        fprintf(f, "<skipped/>");
    else if (code != EXIT_PASS)
        fprintf(f, "<failure message=\"exit %d%s\"/>", code,
                code == KEEPER_LATE ? ", time limit" : "");
    fprintf(f, "</testcase>\n");
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void say_failed(const struct run *r, int code, double seconds)
{
    printf("%s %s.%s (%.2f s)%s\n", code == EXIT_SKIP ? "skip" : "FAIL", short_file(r->test->file),
           r->test->name, seconds, code == KEEPER_LATE ? " over its time limit" : "");
    if (code > 128)
        printf("     ended by signal %d (%s)\n", code - 128, strsignal(code - 128));
    show_output(r);
}

static void finish(struct run *r, struct totals *totals)
{
    struct rusage used = {0};
    int status = 0;

    while (wait4(r->pid, &status, 0, &used) < 0 && errno == EINTR)
        ;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    double seconds = (double)(clock_mono_ns(&clock_system) - r->start_ns) / 1e9;
    totals->passed += code == EXIT_PASS;
    totals->skipped += code == EXIT_SKIP;
    totals->failed += code != EXIT_PASS && code != EXIT_SKIP;
    if (code != EXIT_PASS)
        say_failed(r, code, seconds);
    junit_case(totals->junit, r, code, seconds);
    totals->took[totals->ended++] =
        (struct took){r->test, seconds, seconds_of(used.ru_utime) + seconds_of(used.ru_stime)};
    close(r->pidfd);
    close(r->output);
    r->pid = 0;
}

static int compare_took(const void *a, const void *b)
{
    const struct took *x = a, *y = b;

    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static void say_slow(struct totals *totals, unsigned n)
{
    qsort(totals->took, totals->ended, sizeof *totals->took, compare_took);
    for (size_t i = 0; i < n && i < totals->ended; i++) {
        const struct took *t = &totals->took[i];
        printf("%7.2f s, %6.2f s of processor  %s.%s\n", t->seconds, t->cpu_seconds,
               short_file(t->test->file), t->test->name);
    }
}

enum { LONG, PROGRAMS, REST, RANKS };

static size_t rank_of(const struct test *t)
{
    if (t->limit_s >= DEFAULT_LIMIT_S)
        return LONG;
    return strncmp(t->file, "test/", 5) == 0 ? PROGRAMS : REST;
}

/* Long ones first, then those of whole programs: none is to be waited for alone at the end. */
static const struct test *next_test(const struct options *o, size_t *next)
{
    while (*next < RANKS * ROWS_LEN(tests)) {
        size_t rank = *next / ROWS_LEN(tests);
        const struct test *t = ROWS_AT(tests, (*next)++ % ROWS_LEN(tests));
        if (rank_of(t) == rank && wanted(o, t))
            return t;
    }
    return NULL;
}

static void run_all(const struct options *o, struct totals *totals)
{
    struct run *runs = mem_new(o->jobs * sizeof *runs);
    struct pollfd *polls = mem_new(o->jobs * sizeof *polls);
    size_t next = 0;

    for (;;) {
        unsigned busy = 0;
        for (unsigned i = 0; i < o->jobs; i++) {
            const struct test *t = NULL;
            while (!runs[i].pid && (t = next_test(o, &next)))
                start(&runs[i], t);
            polls[i] = (struct pollfd){runs[i].pid ? runs[i].pidfd : -1, POLLIN, 0};
            busy += runs[i].pid != 0;
        }
        if (!busy)
            break;
        poll(polls, o->jobs, -1);
        for (unsigned i = 0; i < o->jobs; i++)
            if (polls[i].revents)
                finish(&runs[i], totals);
    }
    free(runs);
    free(polls);
}

static struct options parse(int argc, char **argv)
{
    /* more than there are processors: tests wait for most of their time */
    struct options o = {.jobs = 2 * (unsigned)sysconf(_SC_NPROCESSORS_ONLN) + 2};
    int i = 1;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--list") == 0)
            o.list = true;
        else if (i + 1 < argc && strcmp(argv[i], "--jobs") == 0)
            o.jobs = (unsigned)atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--slow") == 0)
            o.slow = (unsigned)atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--junit") == 0)
            o.junit = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--summary") == 0)
            o.summary = argv[++i];
        else {
            fprintf(stderr,
                    "usage: %s [--list] [--jobs N] [--slow N] [--junit FILE] [--summary FILE]"
                    " [WORD …]\n",
                    argv[0]);
            exit(2);
        }
    }
    if (o.jobs < 1)
        o.jobs = 1;
    o.words = argv + i;
    o.word_count = argc - i;
    return o;
}

int main(int argc, char **argv)
{
    struct options o = parse(argc, argv);

    if (!words_fit(&o))
        return 2;
    if (o.list) {
        for (size_t i = 0; i < ROWS_LEN(tests); i++)
            if (wanted(&o, ROWS_AT(tests, i)))
                printf("%s.%s\n", short_file(ROWS_AT(tests, i)->file), ROWS_AT(tests, i)->name);
        return 0;
    }
    struct totals totals = {.took = mem_new(ROWS_LEN(tests) * sizeof *totals.took)};
    totals.junit = o.junit ? fopen(o.junit, "w") : NULL;
    if (totals.junit)
        fprintf(totals.junit, "<testsuite name=\"croft\">\n");
    run_all(&o, &totals);
    if (totals.junit) {
        fprintf(totals.junit, "</testsuite>\n");
        fclose(totals.junit);
    }
    say_slow(&totals, o.slow);
    FILE *summary = o.summary ? fopen(o.summary, "a") : NULL;
    if (summary) {
        fprintf(summary, "%u %u %u\n", totals.passed, totals.failed, totals.skipped);
        fclose(summary);
    }
    printf("%u passed, %u failed, %u skipped\n", totals.passed, totals.failed, totals.skipped);
    free(totals.took);
    return totals.failed || !totals.passed;
}
