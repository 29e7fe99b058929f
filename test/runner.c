// SPDX-License-Identifier: Apache-2.0
/* runner.c — runs every registered test in a process of its own, several at once.
 *
 *   test-croft [--list] [--jobs N] [--junit FILE] [--summary FILE] [WORD …]
 *
 * A test runs if its "folder/file.name" holds any WORD. Output is shown only for failures. */
#include "test/test.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "test/support.h"

ROWS_OF(tests, struct test)

enum { EXIT_PASS = 0, EXIT_FAIL = 1, EXIT_SKIP = 77 };
#define DEFAULT_LIMIT_S 60

struct run {
    const struct test *test;
    pid_t pid;
    int pidfd, output;
    uint64_t start_ns;
    bool timed_out;
};

struct totals {
    unsigned passed, failed, skipped;
};

struct options {
    unsigned jobs;
    bool list;
    const char *junit, *summary;
    char **words;
    int word_count;
};

static const char *short_file(const char *file)
{
    return strncmp(file, "src/", 4) == 0 ? file + 4 : file;
}

static bool wanted(const struct options *o, const struct test *t)
{
    char full[256];

    snprintf(full, sizeof full, "%s.%s", short_file(t->file), t->name);
    for (int i = 0; i < o->word_count; i++)
        if (strstr(full, o->words[i]))
            return true;
    return o->word_count == 0;
}

static void start(struct run *r, const struct test *t)
{
    *r = (struct run){.test = t, .start_ns = clock_mono_ns(&clock_system)};
    r->output = memfd_create("test-output", MFD_CLOEXEC);
    fflush(NULL); /* or the child writes our buffers once more, the JUnit file too */
    r->pid = fork();
    if (r->pid == 0) {
        setpgid(0, 0); /* so that a test's own children can be ended with it */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(r->output, STDOUT_FILENO);
        dup2(r->output, STDERR_FILENO);
        signal(SIGPIPE, SIG_IGN);
        t->run();
        support_end_test(EXIT_PASS);
    }
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
        fprintf(f, "<failure message=\"exit %d%s\"/>", code, r->timed_out ? ", time limit" : "");
    fprintf(f, "</testcase>\n");
}

static void finish(struct run *r, struct totals *totals, FILE *junit)
{
    int status = 0;

    while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
        ;
    kill(-r->pid, SIGKILL); /* whatever it left running */
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    double seconds = (double)(clock_mono_ns(&clock_system) - r->start_ns) / 1e9;
    if (r->timed_out)
        code = 124;
    if (code == EXIT_PASS) {
        totals->passed++;
    } else {
        const char *word = code == EXIT_SKIP ? "skip" : "FAIL";
        totals->skipped += code == EXIT_SKIP;
        totals->failed += code != EXIT_SKIP;
        printf("%s %s.%s (%.2f s)%s\n", word, short_file(r->test->file), r->test->name, seconds,
               r->timed_out ? " over its time limit" : "");
        if (code > 128)
            printf("     ended by signal %d (%s)\n", code - 128, strsignal(code - 128));
        show_output(r);
    }
    junit_case(junit, r, code, seconds);
    close(r->pidfd);
    close(r->output);
    support_remove_dir_of(r->pid);
    r->pid = 0;
}

static void end_overdue(struct run *runs, unsigned jobs)
{
    uint64_t now = clock_mono_ns(&clock_system);

    for (unsigned i = 0; i < jobs; i++) {
        unsigned limit =
            runs[i].pid && runs[i].test->limit_s ? runs[i].test->limit_s : DEFAULT_LIMIT_S;
        if (!runs[i].pid || now - runs[i].start_ns < limit * NS_PER_S)
            continue;
        runs[i].timed_out = true;
        kill(-runs[i].pid, SIGKILL);
        kill(runs[i].pid, SIGKILL);
    }
}

static void run_all(const struct options *o, struct totals *totals, FILE *junit)
{
    struct run *runs = mem_new(o->jobs * sizeof *runs);
    struct pollfd *polls = mem_new(o->jobs * sizeof *polls);
    size_t next = 0;

    for (;;) {
        unsigned busy = 0;
        for (unsigned i = 0; i < o->jobs; i++) {
            while (!runs[i].pid && next < ROWS_LEN(tests)) {
                const struct test *t = ROWS_AT(tests, next++);
                if (wanted(o, t))
                    start(&runs[i], t);
            }
            polls[i] = (struct pollfd){runs[i].pid ? runs[i].pidfd : -1, POLLIN, 0};
            busy += runs[i].pid != 0;
        }
        if (!busy)
            break;
        poll(polls, o->jobs, 500);
        for (unsigned i = 0; i < o->jobs; i++)
            if (polls[i].revents)
                finish(&runs[i], totals, junit);
        end_overdue(runs, o->jobs);
    }
    free(runs);
    free(polls);
}

static struct options parse(int argc, char **argv)
{
    struct options o = {.jobs = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) + 1};
    int i = 1;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--list") == 0)
            o.list = true;
        else if (i + 1 < argc && strcmp(argv[i], "--jobs") == 0)
            o.jobs = (unsigned)atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--junit") == 0)
            o.junit = argv[++i];
        else if (i + 1 < argc && strcmp(argv[i], "--summary") == 0)
            o.summary = argv[++i];
        else {
            fprintf(stderr,
                    "usage: %s [--list] [--jobs N] [--junit FILE] [--summary FILE] [WORD …]\n",
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
    struct totals totals = {0};

    if (o.list) {
        for (size_t i = 0; i < ROWS_LEN(tests); i++)
            if (wanted(&o, ROWS_AT(tests, i)))
                printf("%s.%s\n", short_file(ROWS_AT(tests, i)->file), ROWS_AT(tests, i)->name);
        return 0;
    }
    FILE *junit = o.junit ? fopen(o.junit, "w") : NULL;
    if (junit)
        fprintf(junit, "<testsuite name=\"croft\">\n");
    run_all(&o, &totals, junit);
    if (junit) {
        fprintf(junit, "</testsuite>\n");
        fclose(junit);
    }
    FILE *summary = o.summary ? fopen(o.summary, "a") : NULL;
    if (summary) {
        fprintf(summary, "%u %u %u\n", totals.passed, totals.failed, totals.skipped);
        fclose(summary);
    }
    printf("%u passed, %u failed, %u skipped\n", totals.passed, totals.failed, totals.skipped);
    return totals.failed || !totals.passed;
}
