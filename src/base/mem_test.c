// SPDX-License-Identifier: Apache-2.0
#include "base/mem.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

#define DEEP_PAGES 16

__attribute__((noinline)) static uintptr_t go_deep(void)
{
    volatile char used[DEEP_PAGES * 4096];

    memset((char *)used, 1, sizeof used);
    return ((uintptr_t)used & ~4095ul) + 4096;
}

static bool is_there(uintptr_t page)
{
    unsigned char in = 0;

    CHECK_INT(mincore((void *)page, 4096, &in), 0);
    return in & 1;
}

TEST(what_was_used_of_the_stack_is_given_back)
{
    uintptr_t page = go_deep();

    CHECK(is_there(page));
    mem_trim_stack();
    CHECK(!is_there(page));
}
