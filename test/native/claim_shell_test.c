// SPDX-License-Identifier: Apache-2.0
/* claim_shell_test.c — what a server that was claimed still has to get: plugins, a clock, a shell.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "test/native/claim_kit.h"
#include "test/test.h"
#include "wire/bind.h"

/* Plugins nobody named come with the first request, and the server goes on behind it. */
TEST(a_claimed_server_has_its_plugins_for_whoever_asks)
{
    static const char ask[] = "GET /croft/v1/plugins HTTP/1.1\r\nHost: x\r\n\r\n";
    struct rig r;
    char text[2000];

    rig_open(&r, 0);
    claim_warm(&r, "w", 0);
    claim_now(&r, "w");
    rig_check_answer(&r, "w", ask, "jupyter", text, sizeof text);
    CHECK(!strstr(text, "pending") && !strstr(text, "starting"));
    rig_check_answer(&r, "w", ask, "agent_skills", text, sizeof text);
    rig_check_answers(&r, "w");
    rig_close(&r);
}

/* Pid 1 has the server, and from the first shell on the forker and the shells. */
static unsigned shells_of(pid_t pid)
{
    char path[64], text[256];
    unsigned n = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text);
    CHECK(len > 0);
    for (ssize_t i = 0; i < len; i++)
        n += text[i] == ' ';
    CHECK(n >= 1);
    return n > 2 ? n - 2 : 0;
}

/* Its time begins with its claim, however long it was warm: shells that may wait do from then on.
 */
TEST(the_clock_of_a_claimed_server_begins_with_its_claim)
{
    static const char ask[] = "GET /server_info HTTP/1.1\r\nHost: x\r\n\r\n";
    static const char *const names[] = {"\"uptime\":", "\"idle_time\":"};
    struct rig r;
    char text[2000];

    rig_open(&r, 0);
    claim_warm(&r, "w", 0);
    uint64_t begun = clock_mono_ns(&clock_system);
    claim_now(&r, "w");
    rig_check_answer(&r, "w", ask, names[0], text, sizeof text);
    double most = (double)(clock_mono_ns(&clock_system) - begun) / 1e9;
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        const char *at = strstr(text, names[i]);
        CHECK(at && strtod(at + strlen(names[i]), NULL) <= most);
    }
    rig_close(&r);
}

TEST(a_shell_starts_with_its_claim)
{
    struct rig r;

    rig_open(&r, 0);
    pid_t pid = claim_warm(&r, "w", 0);
    CHECK_INT(shells_of(pid), 0);
    claim_now(&r, "w");
    CHECK_INT(shells_of(pid), 1); /* whoever was answered came behind it */
    rig_close(&r);
}

TEST(the_shell_of_one_claimed_alone_is_there_when_who_has_the_key_was_answered)
{
    static const char ask[] = "GET /croft/v1/plugins HTTP/1.1\r\nHost: x\r\n\r\n";
    struct rig r;
    char text[2000];

    rig_open(&r, 0);
    pid_t pid = claim_warm(&r, "w", 0);
    claim_later(&r, "w", BIND_ALONE_MS);
    rig_check_answer(&r, "w", ask, "jupyter", text, sizeof text);
    CHECK(shells_of(pid) >= 1);
    rig_close(&r);
}

TEST(a_shell_that_may_wait_comes_with_the_first_command)
{
    static const char body[] = "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"echo "
                               "$((6*7))\",\"blocking\":true}}}";
    struct rig r;
    char request[300], text[2000];

    rig_open(&r, 0);
    pid_t pid = claim_warm(&r, "w", 0);
    claim_later(&r, "w", BIND_LATER_MAX);
    CHECK_INT(shells_of(pid), 0);
    snprintf(request, sizeof request,
             "POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
             sizeof body - 1, body);
    rig_check_answer(&r, "w", request, "\"content\":\"42\"", text, sizeof text);
    CHECK_INT(shells_of(pid), 1);
    rig_close(&r);
}

TEST(a_shell_that_may_wait_comes_without_a_command_too)
{
    struct rig r;

    rig_open(&r, 0);
    pid_t pid = claim_warm(&r, "w", 0);
    claim_later(&r, "w", 1);
    for (unsigned i = 0; shells_of(pid) == 0; i++) {
        CHECK(i < CLAIM_WAIT_MS / 5);
        poll(NULL, 0, 5);
    }
    rig_close(&r);
}
