// SPDX-License-Identifier: Apache-2.0
/* claim_shell_test.c — what a server that was claimed still has to get: plugins, a clock, a shell.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "test/native/claim_kit.h"
#include "test/test.h"

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

/* Of pid 1: the server, and from the first command on the forker and the shell. */
static unsigned children_of(pid_t pid)
{
    char path[64], text[256];
    unsigned n = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text);
    CHECK(len >= 0);
    for (ssize_t i = 0; i < len; i++)
        n += text[i] == ' ';
    return n;
}

/* Its time begins with its claim at the earliest, however long it was warm. */
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

TEST(a_claimed_sandbox_is_one_process_until_somebody_connects)
{
    static const char body[] = "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"echo "
                               "$((6*7))\",\"blocking\":true}}}";
    struct rig r;
    char request[300], text[2000];

    rig_open(&r, 0);
    pid_t pid = claim_warm(&r, "w", 0);
    CHECK_INT(children_of(pid), 0);
    claim_bind(&r, "w");
    CHECK_INT(children_of(pid), 0);
    rig_check_answers(&r, "w");
    CHECK_INT(children_of(pid), 1);
    snprintf(request, sizeof request,
             "POST /execute_action HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
             sizeof body - 1, body);
    rig_check_answer(&r, "w", request, "\"content\":\"42\"", text, sizeof text);
    CHECK_INT(children_of(pid), 3);
    rig_close(&r);
}
