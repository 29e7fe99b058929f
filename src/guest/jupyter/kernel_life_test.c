// SPDX-License-Identifier: Apache-2.0
/* kernel_life_test.c — timeouts, interrupts, deaths and starts that fail, with the real ipykernel.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

#include "test/kernel_kit.h"

TEST(kernel_timeout_interrupts_and_the_next_cell_works)
{
    struct kit *k = kit_new();

    kit_run(k, "x = 7");
    k->timeout_s = 1;
    CHECK_STR(kit_run(k, "print('partial', flush=True)\nwhile True: pass"),
              "[Execution timed out (1.0 seconds).]");
    CHECK(k->last->timed_out);
    k->timeout_s = 50;
    k->extra = true;
    CHECK_HAS(kit_run(k, "print(x)"), "7\n[Jupyter current working directory: ");
    k->timeout_s = 0.5;
    CHECK_HAS(kit_run(k, "import time; time.sleep(100)"),
              "[Execution timed out (0.5 seconds).]\n[Jupyter current working directory: ");
    kit_free(k);
}

TEST(kernel_flood_is_cut_off_and_the_next_cell_works)
{
    struct kit *k = kit_new();

    kit_run(k, "x = 7");
    k->timeout_s = 1;
    kit_run(k, "while True: print('flood ' * 20)");
    CHECK(k->last->timed_out);
    k->timeout_s = 50;
    CHECK_STR(kit_run(k, "print(x)"), "7");
    k->timeout_s = 0.5;
    kit_run(k, "!sleep 100"); /* the interrupt reaches children too */
    k->timeout_s = 50;
    CHECK_STR(kit_run(k, "print(x)"), "7");
    kit_free(k);
}

TEST(kernel_that_ignores_interrupts_is_replaced_when_a_cell_waits)
{
    struct kit *k = kit_new();

    kit_run(k, "x = 7");
    k->timeout_s = 3; /* it must have come to that by then */
    kit_run(k, "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
               "while True: time.sleep(100)");
    k->timeout_s = 50;
    const char *got = kit_run(k, "print('x' in globals())");
    CHECK_STR(got, "[Python kernel restarted: variables and imports of earlier cells are lost.]\n"
                   "False");
    kit_free(k);
}

TEST(kernel_death_is_told_and_the_next_cell_has_a_new_one)
{
    struct kit *k = kit_new();

    CHECK_STR(kit_run(k, "print('bye', flush=True)\n"
                         "import os, time; time.sleep(1.5); os._exit(3)"),
              "bye\n[Python kernel died: exit status 3. The next cell starts a new one.]");
    CHECK(k->last->died);
    CHECK_STR(kit_run(k, "1"),
              "[Python kernel restarted: variables and imports of earlier cells are lost.]\n1");
    CHECK_STR(kit_run(k, "2"), "2");
    CHECK_HAS(kit_run(k, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
              "[Python kernel died: signal 9 (Killed).");
    CHECK_HAS(kit_run(k, "3"), "lost.]\n3");
    kit_free(k);
}

TEST(kernel_that_died_while_idle_is_replaced)
{
    struct kit *k = kit_new();

    pid_t pid = (pid_t)atoi(kit_run(k, "import os; print(os.getpid())"));
    CHECK_INT(kill(pid, SIGKILL), 0);
    CHECK_STR(kit_run(k, "1"),
              "[Python kernel restarted: variables and imports of earlier cells are lost.]\n1");
    kit_free(k);
}

TEST(kernel_that_exits_after_a_cell_loses_no_other)
{
    struct kit *k = kit_new();
    bool lost = false;

    kit_run(k, "exit()");
    for (unsigned i = 0; i < 8 && !lost; i++) { /* it ends 0.1 s later */
        const char *got = kit_run(k, "import time; time.sleep(0.05); print('ran')");
        lost = strstr(got, "restarted") || k->last->died;
        CHECK(k->last->died || strstr(got, "ran"));
    }
    CHECK(lost);
    kit_free(k);
}

static void free_kernel(void *owner, const struct kernel_result *r)
{
    struct kit *k = owner;

    CHECK(r->content.len || r->failed);
    kernel_free(take(&k->kernel));
}

static void free_kernel_early(void *owner, struct str text)
{
    struct kit *k = owner;

    (void)text;
    kernel_free(take(&k->kernel));
}

TEST(kernel_may_be_freed_in_its_callbacks)
{
    for (unsigned i = 0; i < 3; i++) {
        struct kit *k = i == 2 ? kit_with((struct kernel_config){.python = "none"}) : kit_new();
        struct kernel_cell cell = {.code = STR("print('x'); 1"),
                                   .cwd = STR("/"),
                                   .on_text = i == 1 ? free_kernel_early : NULL,
                                   .done = free_kernel,
                                   .owner = k};
        CHECK_OK(kernel_run(k->kernel, &cell, NULL));
        CHECK_OK(kernel_run(k->kernel, &cell, NULL));
        while (k->kernel)
            CHECK_OK(loop_turn(k->loop, -1));
        CHECK_OK(loop_turn(k->loop, 0));
        kit_free(k);
    }
}

TEST(kernel_refuses_too_many_cells_and_odd_timeouts)
{
    struct kit *k = kit_with((struct kernel_config){0});
    struct kernel_cell cell = {.code = STR("1"), .cwd = STR("/"), .timeout_s = -1};

    CHECK_ERR(kernel_run(k->kernel, &cell, NULL), ERR_INVALID, "a timeout of -1.000 seconds");
    cell.timeout_s = 0;
    cell.code.len = 17u << 20;
    CHECK_ERR(kernel_run(k->kernel, &cell, NULL), ERR_TOO_LARGE, "a cell of 17825792 bytes");
    cell.code.len = 1;
    for (unsigned i = 0; i < 64; i++)
        CHECK_OK(kernel_run(k->kernel, &cell, NULL));
    CHECK_ERR(kernel_run(k->kernel, &cell, NULL), ERR_BUSY, "64 cells wait already");
    kit_free(k);
}

TEST(kernel_waiting_cell_is_answered_by_its_deadline)
{
    struct kit *k = kit_new();

    kit_run(k, "import time");
    k->timeout_s = 60;
    struct kit_answer *slow = kit_ask(k, "time.sleep(2); print('slept')");
    k->timeout_s = 0.5;
    struct kit_answer *late = kit_ask(k, "print('never')");
    kit_wait(k);
    CHECK_STR(slow->content, "slept");
    CHECK_STR(late->content, "[Execution timed out (0.5 seconds).]");
    CHECK_INT(late->order, 2);
    kit_free(k);
}

TEST(kernel_timeout_counts_the_start)
{
    struct kit *k = kit_new();

    k->timeout_s = 0.05;
    k->extra = true;
    CHECK_HAS(kit_run(k, "1"), "[Execution timed out (0.05 seconds).]\n[Jupyter current");
    CHECK_HAS(k->last->content, "[Jupyter Python interpreter: " KIT_PYTHON "]");
    k->timeout_s = 50;
    k->extra = false;
    CHECK_STR(kit_run(k, "1"), "1");
    kit_free(k);
}

TEST(kernel_cancelled_cells_say_nothing_and_the_next_works)
{
    struct kit *k = kit_new();
    struct kernel_job *job, *queued;
    struct kernel_cell cell = {.code = STR("while True: pass"), .cwd = STR("/"), .done = NULL};

    kit_run(k, "x = 1");
    CHECK_OK(kernel_run(k->kernel, &cell, &job));
    CHECK_OK(kernel_run(k->kernel, &cell, &queued));
    for (int i = 0; i < 10; i++)
        CHECK_OK(loop_turn(k->loop, 50));
    kernel_cancel(queued);
    kernel_cancel(job);
    CHECK_STR(kit_run(k, "x"), "1");
    kit_free(k);
}

TEST(kernel_start_failure_says_why)
{
    struct kit *k = kit_with((struct kernel_config){.python = "/nonexistent/python"});
    struct kit_answer *a = kit_ask(k, "1"), *b = kit_ask(k, "2");

    kit_wait(k);
    CHECK_STR(a->failed, "start the Python kernel: run '/nonexistent/python': No such file or "
                         "directory");
    CHECK_STR(b->failed, a->failed);
    kit_free(k);
    k = kit_with((struct kernel_config){.python = "no-such-python"});
    a = kit_ask(k, "1");
    kit_wait(k);
    CHECK_STR(a->failed, "start the Python kernel: there is no 'no-such-python' in PATH");
    kit_free(k);
    k = kit_with((struct kernel_config){.python = "/bin/false"});
    a = kit_ask(k, "1");
    kit_wait(k);
    CHECK_STR(a->failed, "start the Python kernel: exit status 1");
    kit_free(k);
    k = kit_with((struct kernel_config){.python = "/bin/sleep", .start_ms = 100});
    a = kit_ask(k, "1");
    kit_wait(k);
    CHECK_HAS(a->failed, "start the Python kernel: ");
    kit_free(k);
}

TEST(kernel_by_name_is_found_or_refused)
{
    kit_need_ipykernel();
    struct kit *k = kit_with((struct kernel_config){.spec = "no-such-kernel"});
    struct kit_answer *a = kit_ask(k, "1");

    kit_wait(k);
    CHECK_STR(a->failed, "start the Python kernel: no kernel named 'no-such-kernel' is installed");
    kit_free(k);
    k = kit_with((struct kernel_config){.spec = "../python3"});
    a = kit_ask(k, "1");
    kit_wait(k);
    CHECK_HAS(a->failed, "is no name of a kernel");
    kit_free(k);
    if (access("/usr/share/jupyter/kernels/python3/kernel.json", R_OK) < 0)
        return;
    k = kit_with((struct kernel_config){.spec = "python3"});
    CHECK_STR(kit_run(k, "1+1"), "2");
    kit_free(k);
}

static unsigned entries(const char *path)
{
    DIR *d = opendir(path);
    unsigned n = 0;

    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

TEST(kernel_sockets_are_private_and_leave_nothing_behind)
{
    struct kit *k = kit_new();
    struct stat st;
    char path[600];
    unsigned fds = test_open_fds();

    CHECK_STR(kit_run(k, "1"), "1");
    DIR *d = opendir(test_dir());
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.')
            snprintf(path, sizeof path, "%s/%s", test_dir(), e->d_name);
    closedir(d);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0700);
    CHECK_INT(entries(path), 6);
    pid_t pid = (pid_t)atoi(kit_run(k, "import os; print(os.getpid())"));
    kernel_free(k->kernel);
    CHECK_OK(loop_turn(k->loop, 0));
    CHECK_INT(kill(pid, 0), -1);
    CHECK_INT(entries(test_dir()), 0);
    CHECK_INT(test_open_fds(), fds);
    k->kernel = NULL;
    kit_free(k);
}
