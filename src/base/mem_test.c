// SPDX-License-Identifier: Apache-2.0
#include "base/mem.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "test/test.h"

TEST(memory_comes_cleared)
{
    for (int round = 0; round < 3; round++) {
        unsigned char *p = mem_new(1000);
        for (int i = 0; i < 1000; i++)
            CHECK_INT(p[i], 0);
        memset(p, 0xff, 1000);
        free(p);
    }
    own_free char *copy = mem_dup_cstr("copied");
    CHECK_STR(copy, "copied");
}

TEST(memory_a_peer_caused_can_be_refused)
{
    fault_at(1);
    own_free void *p = mem_try(100);
    CHECK(p == NULL && fault_fired());
}

TEST(memory_we_chose_is_there_or_the_program_ends)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        fault_at(1);
        free(mem_new(100));
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
