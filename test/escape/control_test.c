// SPDX-License-Identifier: Apache-2.0
/* The corpus, tried outside: a door that is shut there tests nothing. */
#include "test/escape/escape.h"
#include "test/program.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/native/kit.h"
#include "test/test.h"

static unsigned trace_of(struct str note)
{
    for (unsigned i = 0; i < ESCAPE_TRACES; i++) {
        char by[16];
        snprintf(by, sizeof by, "by %s:", escape_traces[i]);
        if (str_starts(note, str_of(by)))
            return i;
    }
    FAIL("no trace: '%.*s'", STR_ARG(note));
}

/* Each by its own trace on the host: one that does not show here shows nothing inside either. */
TEST(the_doors_of_the_escape_corpus_are_open_outside)
{
    struct escape_bait b;
    struct escape_line line;
    own_done(buf) out;
    unsigned open = 0, absent = 0, by[ESCAPE_TRACES] = {0};

    if (geteuid() != 0)
        SKIP("the controls need root");
    escape_own_mounts();
    buf_init(&out, 1u << 20);
    escape_bait_lay(&b, 0);
    escape_control(&b, &out);
    struct str text = buf_str(&out);
    while (escape_next(&text, &line)) {
        bool is_open = str_eq(line.verdict, STR("OPEN"));
        unsigned trace = trace_of(line.note);
        open += is_open;
        absent += str_eq(line.verdict, STR("absent"));
        by[trace] += is_open;
        if (str_eq(line.verdict, STR("lost")))
            FAIL("%.*s: %.*s", STR_ARG(line.name), STR_ARG(line.note));
        if (trace == TRACE_LEFT && !is_open &&
            (!str_eq(line.name, STR("10-neighbours/victim_affinity")) || CPU_COUNT(&b.cpus) > 1))
            FAIL("%.*s left nothing outside", STR_ARG(line.name));
    }
    escape_bait_take_up(&b);
    for (unsigned i = 0; i < ESCAPE_TRACES; i++) {
        printf("%u by %s, ", by[i], escape_traces[i]);
        CHECK(by[i] || i == TRACE_LIMIT); /* not every root may raise those */
    }
    printf("%u doors open outside, %u not on this machine\n", open, absent);
    CHECK(open >= ESCAPE_ATTEMPTS);
}

/* Takes the marks and wants this one among them. */
static void check_shows(struct escape_bait *b, const char *what)
{
    own_done(buf) marks;

    buf_init(&marks, 1u << 16);
    escape_bait_marks(b, &marks);
    CHECK_HAS(buf_str(&marks), what);
}

TEST(the_bait_of_the_escape_corpus_shows_what_no_row_does)
{
    struct escape_bait b;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    own_done(buf) marks;
    char path[400];

    kit_need_root();
    CHECK_INT(unshare(CLONE_NEWUTS), 0);
    escape_own_mounts();
    buf_init(&marks, 1u << 16);
    escape_bait_lay(&b, 0);
    escape_bait_marks(&b, &marks);
    CHECK_STR(buf_str(&marks), "");
    own_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(to.sun_path, sizeof to.sun_path, "%.90s/sock", b.dir);
    CHECK_INT(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    check_shows(&b, "somebody connected\n");
    CHECK_INT(kill(b.victim, VICTIM_KILL + 9), 0);
    check_shows(&b, "another signal to the victim\n");
    snprintf(path, sizeof path, "%s/new", b.dir);
    CHECK_INT(mkdir(path, 0700), 0);
    check_shows(&b, "a file beside the secret: new\n");
    CHECK_INT(mount("none", path, "tmpfs", 0, NULL), 0);
    check_shows(&b, "/proc/self/mountinfo: now has: ");
    CHECK_INT(sethostname("another", 7), 0);
    check_shows(&b, "/proc/sys/kernel/hostname: now has: another\n");
    CHECK_INT(chmod(b.file, 0600), 0);
    check_shows(&b, "another owner, mode or time of a file\n");
    CHECK_INT(truncate(b.file, 0), 0);
    check_shows(&b, "another text in a file\n");
    CHECK(kill(b.victim, SIGSTOP) == 0 &&
          waitid(P_PID, (id_t)b.victim, NULL, WSTOPPED | WNOWAIT) == 0);
    check_shows(&b, "the victim has ended or stands still\n");
    CHECK_INT(umount2(path, MNT_DETACH), 0);
    escape_bait_take_up(&b);
}

TEST(the_judge_of_the_escape_corpus_sees_an_open_door)
{
    struct str control = STR("a/one OPEN \na/two absent x\na/three OPEN \nend\n");
    unsigned doors;

    CHECK_INT(
        escape_compare(control, STR("a/one refused e\na/three refused e\nend\n"), ARGS(), &doors),
        0);
    CHECK_INT(doors, 2);
    CHECK_INT(
        escape_compare(control, STR("a/one refused e\na/three OPEN e\nend\n"), ARGS(), &doors), 1);
    CHECK_INT(
        escape_compare(control, STR("a/one refused e\na/three lost e\nend\n"), ARGS(), &doors), 1);
    CHECK_INT(escape_compare(control, STR("a/three refused e\nend\n"), ARGS(), &doors), 1);
    CHECK_INT(
        escape_compare(control, STR("a/one refused e\nend\n"), ARGS("a/three", "a/th"), &doors), 0);
    CHECK_INT(doors, 1);
}
