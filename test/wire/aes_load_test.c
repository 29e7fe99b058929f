// SPDX-License-Identifier: Apache-2.0
/* aes_load_test.c — much of everything: nothing is held up, nothing grows, nothing is left. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/aes_run.h"

static int gate_of(struct aes *a, const char *name)
{
    int fd = open(aes_path(a, name), O_WRONLY | O_CLOEXEC); /* waits for whoever reads it */

    CHECK(fd >= 0);
    return fd;
}

AES_TEST(aes_load_a_busy_shell_and_a_busy_kernel_hold_up_nothing_else)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_run_plain(&a, "mkfifo g1 g2");
    aes_put(&a, "f", STR("text\n"));
    CHECK_INT(aes_ask_post(&a, "/croft/v1/shells", "{'name':'side'}").status, 201);
    int shell = aes_send(&a, "POST", "/execute_action", "",
                         aes_quoted(&a, "{'action':{'action':'run','timeout':600,'args':{'command':"
                                        "'cat g1','blocking':true}}}"));
    int cell = aes_send(&a, "POST", "/execute_action", "",
                        aes_quoted(&a, "{'action':{'action':'run_ipython','timeout':600,'args':{"
                                       "'code':'print(open(\\\"g2\\\").read())'}}}"));
    int gates[] = {gate_of(&a, "g1"), gate_of(&a, "g2")};
    CHECK_STR(aes_ask_get(&a, "/alive").body, "{\"status\":\"ok\"}");
    CHECK_INT(aes_ask_get(&a, "/server_info").status, 200);
    CHECK_HAS(aes_print(&a, aes_act(&a, "read", "'path':'f'")), "text");
    CHECK_HAS(aes_print(&a, aes_act(&a, "write", "'path':'g','content':'x'")), "I wrote");
    CHECK_INT(aes_ask_post(&a, "/list_files", "{}").status, 200);
    const char *here = aes_text(&a, "destination=%s", a.dir);
    CHECK_INT(aes_upload(&a, here, "up", STR("up")).status, 200);
    CHECK_INT(aes_ask_get(&a, aes_text(&a, "/download_files?path=%s/f", a.dir)).status, 200);
    CHECK_HAS(
        aes_ask_post(&a, "/croft/v1/shells/side/run", "{'command':'cat up','blocking':true}").body,
        "\"content\":\"up\"");
    CHECK_HAS(aes_print(&a, aes_act(&a, "run", "'command':'echo st','is_static':true")), "st");
    for (int i = 0; i < 2; i++) {
        CHECK_INT(write(gates[i], "through\n", 8), 8);
        close(gates[i]);
    }
    CHECK_HAS(aes_take(&a, shell).body, "\"content\":\"through\"");
    CHECK_HAS(aes_take(&a, cell).body, "\"content\":\"through\\n");
    aes_close(&a);
}

/* --- what is left --- */

static unsigned count_fds(struct aes *a)
{
    unsigned n = 0;
    DIR *d = opendir(aes_text(a, "/proc/%d/fd", (int)a->wire.pid));

    CHECK(d != NULL);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Of the server, zombies included. */
static unsigned count_children(struct aes *a)
{
    own_done(buf) b;
    unsigned n = 0;

    buf_init(&b, 1u << 20);
    CHECK_OK(fd_read_file(
        aes_text(a, "/proc/%d/task/%d/children", (int)a->wire.pid, (int)a->wire.pid), &b));
    for (size_t i = 0; i < b.len; i++)
        n += b.p[i] == ' ';
    return n;
}

static void one_of_each(struct aes *a, int i)
{
    const char *file = aes_path(a, "edited");

    aes_act(a, "edit",
            aes_text(a, "'command':'str_replace','path':'%s','old_str':'v%d','new_str':'v%d'", file,
                     i, i + 1));
    CHECK_INT(aes_upload(a, aes_text(a, "destination=%s", a->dir), "up", STR("up")).status, 200);
    aes_act(a, "run_ipython", aes_text(a, "'code':'%d'", i));
    if (i % 20 == 0)
        aes_act(a, "run", "'command':'sleep 100 & true','is_static':true");
}

static void commands(struct aes *a, int count)
{
    for (int i = 0; i < count; i++)
        aes_act(a, "run", i % 10 ? "'command':':'" : "'command':'/bin/true'");
}

static void check_load(const char *program, int count, int each)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_put(&a, "edited", STR("v0\n"));
    commands(&a, 1);
    one_of_each(&a, 0);
    aes_run_plain(&a, "true");
    unsigned fds = 0, children = 0;
    do { /* the first static shell goes in its own time */
        fds = count_fds(&a);
        children = count_children(&a);
        aes_run_plain(&a, "true");
    } while (children > 2); /* bash, the kernel */
    commands(&a, count);
    for (int i = 1; i < each; i++)
        one_of_each(&a, i);
    do
        aes_run_plain(&a, "true");
    while (count_children(&a) > children);
    for (int i = 0; i < 1000 && count_fds(&a) > fds; i++)
        aes_run_plain(&a, "true");
    CHECK(count_fds(&a) <= fds);
    CHECK_STR(aes_get(&a, "edited"), aes_text(&a, "v%d\n", each));
    aes_run(&a, &(struct run_step){0, "ls -A", .want = {"=edited  up"}});
    aes_close(&a);
}

TEST_LIMIT(aes_load_of_a_thousand_commands_leaves_nothing, 240)
{
    bool slow = strstr(test_program("croft-guest"), "asan");

    check_load("croft-guest", slow ? 200 : 1000, slow ? 40 : 200);
}

/* --- memory --- */

#define PEAK_KB (64 * 1024) /* one endless line is the worst: it is kept up to its limit */

static long peak_kb(struct aes *a)
{
    own_done(buf) b;

    buf_init(&b, 64u << 10);
    CHECK_OK(fd_read_file(aes_text(a, "/proc/%d/status", (int)a->wire.pid), &b));
    const char *at = buf_cstr(&b) ? strstr(b.p, "VmHWM:") : NULL;
    CHECK(at != NULL);
    return strtol(at + 6, NULL, 10);
}

TEST_LIMIT(aes_load_of_output_is_bounded_whatever_its_shape, 120)
{
    static const struct {
        const char *from;
        int megabytes;
    } floods[] = {
        {"yes 'fifty bytes of text in a line, no more no less...'", 100},
        {"cat /dev/zero", 20},
        {"tr '\\0' x </dev/zero", 50}, /* one line */
        {"yes $'\\e[31mred\\e[0m\\r' | tr -d '\\n'", 20},
        {"yes $'\\xff\\xfe'", 20},
    };
    bool slow = strstr(test_program("croft-guest"), "asan"); /* where no peak is asked for */
    struct aes a;

    aes_open_plain(&a, "croft-guest");
    for (size_t i = 0; i < ARRAY_LEN(floods); i++) {
        struct run_answer r =
            aes_run_plain(&a, aes_text(&a, "%s | head -c %d", floods[i].from,
                                       floods[i].megabytes * (slow ? 100000 : 1000000)));
        CHECK_INT(r.rc, 0);
        CHECK(r.content.len <= 3 * 30047);
    }
    long peak = peak_kb(&a);
    if (!slow && peak > PEAK_KB)
        FAIL("the server took %ld KB", peak);
    aes_close(&a);
}
