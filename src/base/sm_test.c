// SPDX-License-Identifier: Apache-2.0
#include "base/sm.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "test/test.h"

enum { DOOR_OPEN, DOOR_SHUT, DOOR_LOCKED, DOOR_GONE = 31 };

static const struct sm_state door[] = {
    [DOOR_OPEN] = {"open", TO(DOOR_SHUT) | TO(DOOR_GONE)},
    [DOOR_SHUT] = {"shut", TO(DOOR_OPEN) | TO(DOOR_LOCKED)},
    [DOOR_LOCKED] = {"locked", TO(DOOR_SHUT)},
    [DOOR_GONE] = {"gone", 0},
};

TEST(a_machine_moves_along_its_edges_and_knows_its_name)
{
    struct sm m;

    sm_init(&m, door, "door", DOOR_OPEN);
    CHECK_STR(sm_name(&m), "open");
    CHECK(sm_may(&m, DOOR_SHUT) && sm_may(&m, DOOR_GONE) && !sm_may(&m, DOOR_LOCKED));
    CHECK(!sm_may(&m, DOOR_OPEN)); /* standing still is an edge too */
    sm_move(&m, DOOR_SHUT, "d1");
    CHECK_STR(sm_name(&m), "shut");
    CHECK_INT(m.now, DOOR_SHUT);
}

TEST(a_move_is_told_at_debug_level_with_the_id)
{
    struct sm m;
    int pair[2];
    char text[1000];

    CHECK(pipe2(pair, O_CLOEXEC) == 0);
    log_setup(pair[1], LOG_DEBUG, LOG_JSON);
    sm_init(&m, door, "door", DOOR_OPEN);
    sm_move(&m, DOOR_SHUT, "d1");
    ssize_t n = read(pair[0], text, sizeof text);
    CHECK(n > 0);
    CHECK_HAS(str_n(text, (size_t)n),
              "\"what\":\"door\",\"id\":\"d1\",\"from\":\"open\",\"to\":\"shut\"");
}

static int ends_by(unsigned from, unsigned to)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        struct sm m;
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        close(STDERR_FILENO); /* the assertion need not be read */
        sm_init(&m, door, "door", from);
        sm_move(&m, to, "d1");
        _exit(0);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(an_edge_that_is_not_in_the_table_ends_the_program)
{
    CHECK_INT(ends_by(DOOR_OPEN, DOOR_LOCKED), SIGABRT);
    CHECK_INT(ends_by(DOOR_GONE, DOOR_OPEN), SIGABRT);
    CHECK_INT(ends_by(DOOR_OPEN, DOOR_GONE), 0);
}
