// SPDX-License-Identifier: Apache-2.0
/* guest_test.c — croft-guest from outside: what the file is, where it listens, how it ends. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "net/listen.h"
#include "test/program.h"
#include "test/test.h"
#include "test/wire.h"

#define MAX_BYTES (400u << 10)

/* --- the file --- */

static void load_guest(struct buf *file)
{
    buf_init(file, 64u << 20);
    CHECK_OK(fd_read_file(test_program("croft-guest"), file));
}

static bool holds(const struct buf *file, const char *word)
{
    return str_find(buf_str(file), str_of(word)) >= 0;
}

TEST(the_guest_is_one_small_static_file)
{
    own_done(buf) file;

    load_guest(&file);
    if (holds(&file, "__asan_init"))
        SKIP("built for ASan: dynamic and large by nature");
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)file.p;
    CHECK(file.len > sizeof *head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0);
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(file.p + head->e_phoff);
    bool stack = false;
    for (int i = 0; i < head->e_phnum; i++) {
        if (segments[i].p_type == PT_INTERP || segments[i].p_type == PT_DYNAMIC)
            FAIL("segment %d asks for a dynamic linker", i);
        if ((segments[i].p_flags & (PF_W | PF_X)) == (PF_W | PF_X))
            FAIL("segment %d can be written and run", i);
        stack |= segments[i].p_type == PT_GNU_STACK;
    }
    CHECK(stack);
    if (file.len > MAX_BYTES)
        FAIL("%zu bytes, at most %u are allowed", file.len, MAX_BYTES);
}

TEST(the_guest_knows_no_tls)
{
    static const char *const words[] = {"OpenSSL", "libssl", "libcrypto", "SSL_CTX", "tls_server"};
    own_done(buf) file;

    load_guest(&file);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (holds(&file, words[i]))
            FAIL("it holds '%s'", words[i]);
}

/* --- the process --- */

/* Starts the guest with listen_fd (or -1) as 3; true once it says that it listens. */
static bool guest_start(struct wire *w, const char *address, int listen_fd)
{
    int ready[2];
    char byte;

    CHECK(pipe2(ready, O_CLOEXEC) == 0);
    w->pid = program_start(
        &(struct program){.argv = ARGS(test_program("croft-guest"), address, "--ready-fd", "4"),
                          .fds = (int[]){-1, -1, -1, listen_fd, ready[1]},
                          .fd_count = 5});
    close(ready[1]);
    bool listens = read(ready[0], &byte, 1) == 1;
    if (listens)
        CHECK_INT(read(ready[0], &byte, 1), 0); /* closed: whoever waits for its end is not kept */
    close(ready[0]);
    return listens;
}

static void check_alive(const struct wire *w)
{
    own_done(buf) got;

    buf_init(&got, 1u << 20);
    wire_exchange(w, STR("GET /alive HTTP/1.0\r\n\r\n"), &got);
    CHECK_HAS(buf_str(&got), "HTTP/1.1 200 OK\r\n");
    CHECK_HAS(buf_str(&got), "\r\n\r\n{\"status\":\"ok\"}");
}

TEST(the_guest_answers_on_a_unix_socket)
{
    char address[120];
    struct wire w;

    snprintf(address, sizeof address, "unix:%s/guest.sock", test_dir());
    CHECK(guest_start(&w, address, -1));
    wire_at(&w, address);
    check_alive(&w);
    CHECK_INT(wire_stop(&w), 0);
    CHECK(access(address + 5, F_OK) < 0); /* it takes its socket away with it */
}

TEST(the_guest_answers_on_tcp)
{
    char address[64];
    struct wire w;

    snprintf(address, sizeof address, "127.0.0.1:%u", test_free_port());
    CHECK(guest_start(&w, address, -1));
    wire_at(&w, address);
    check_alive(&w);
    CHECK_INT(wire_stop(&w), 0);
}

TEST(the_guest_answers_on_a_socket_it_was_given)
{
    char url[64];
    struct wire w;
    int fd;

    CHECK_OK(listen_open(STR("127.0.0.1:0"), &fd));
    CHECK_OK(listen_name(fd, false, url, sizeof url));
    CHECK(guest_start(&w, "fd:3", fd));
    wire_at(&w, url);
    check_alive(&w);
    check_alive(&w);
    CHECK_INT(wire_stop(&w), 0);
    close(fd);
}

TEST(the_guest_leaves_a_socket_file_that_is_not_its_own)
{
    char address[120];
    struct wire w;
    int fd;

    snprintf(address, sizeof address, "unix:%s/given.sock", test_dir());
    CHECK_OK(listen_open(str_of(address), &fd));
    for (int i = 0; i < 2; i++) {
        CHECK(guest_start(&w, "fd:3", fd));
        wire_at(&w, address);
        check_alive(&w);
        CHECK_INT(wire_stop(&w), 0);
        CHECK(access(address + 5, F_OK) == 0);
    }
    listen_close(fd);
    CHECK(access(address + 5, F_OK) < 0);
}

TEST(a_guest_that_cannot_listen_says_why_and_fails)
{
    struct wire w;
    int fds[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    CHECK(!guest_start(&w, "fd:3", fds[0]));
    CHECK_INT(program_wait(w.pid), 2);
    close(fds[0]);
    close(fds[1]);
}

TEST(a_guest_refuses_a_ready_descriptor_that_is_none)
{
    static const char *const bad[] = {"", "x", "4x", "-1", "2", "77", "4294967300"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        own_done(buf) got;
        buf_init(&got, 4096);
        const char *const *argv =
            ARGS(test_program("croft-guest"), "127.0.0.1:0", "--ready-fd", bad[i]);
        CHECK_INT(program_run(argv, &got), 2);
        CHECK_HAS(buf_str(&got), "action-server: --ready-fd '");
        CHECK_HAS(buf_str(&got), "not the number of an open descriptor");
    }
}
