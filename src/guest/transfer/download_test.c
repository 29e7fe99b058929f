// SPDX-License-Identifier: Apache-2.0
/* download_test.c — GET /download_files and POST /list_files. */
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "test/transfer_kit.h"

static struct web_answer list(struct kit *k, const char *body)
{
    char request[800];

    snprintf(request, sizeof request,
             "POST /list_files HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
             body);
    return kit_send(k, str_of(request));
}

static void check_list(struct kit *k, const char *body, const char *want)
{
    struct web_answer a = list(k, body);

    CHECK_INT(a.status, 200);
    CHECK_STR(a.body, want);
}

TEST(a_listing_has_directories_first_and_is_sorted_as_python_sorts)
{
    struct kit k;
    char body[500];

    kit_sh("mkdir -p w/Beta w/alpha w/alpha-2 w/.hid; cd w; touch b.txt A.txt .env '\xc3\x84' "
           "'\xc3\xa4z'; ln -s alpha zlink; ln -s nowhere gone; ln -s b.txt flink; mkfifo pipe");
    kit_open_web(&k, false);
    check_list(&k, "{\"path\":\"w\"}",
               "[\".hid/\",\"alpha-2/\",\"alpha/\",\"Beta/\",\"zlink/\",\".env\",\"A.txt\","
               "\"b.txt\",\"flink\",\"pipe\",\"\xc3\x84\",\"\xc3\xa4z\"]");
    check_list(&k, "{}", "[\"w/\"]");
    check_list(&k, "{\"path\":null}", "[\"w/\"]");
    check_list(&k, "{\"path\":\"\"}", "[\"w/\"]");
    snprintf(body, sizeof body, "{\"path\":\"%s/w/alpha/..\"}", test_dir());
    CHECK_INT(list(&k, body).status, 200);
    check_list(&k, "{\"path\":\"w/alpha\"}", "[]");
    check_list(&k, "{\"path\":\"w/b.txt\"}", "[]");
    check_list(&k, "{\"path\":\"missing\"}", "[]");
    check_list(&k, "{\"path\":\"w\\u0000x\"}", "[]");
    kit_close_web(&k);
}

TEST(a_listing_that_is_not_asked_for_in_json_is_a_500)
{
    static const char *const bodies[] = {"", "nonsense", "[]", "null", "{\"path\":1}"};
    struct kit k;

    kit_open_web(&k, false);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct web_answer a = list(&k, bodies[i]);
        CHECK_INT(a.status, 500);
        CHECK_STR(a.body, "{\"detail\":\"An unexpected error occurred. Please try again later.\"}");
    }
    kit_close_web(&k);
}

TEST(a_boundary_hides_what_is_outside)
{
    struct kit k;

    kit_sh("mkdir w; ln -s /etc w/etc; printf x >w/f; ln -s /etc/passwd w/passwd; ln -s ../w/f "
           "w/same");
    kit_open_web(&k, true);
    check_list(&k, "{\"path\":\"/etc\"}", "[]");
    check_list(&k, "{\"path\":\"w/etc\"}", "[]");
    check_list(&k, "{\"path\":\"w/../..\"}", "[]");
    CHECK_INT(kit_get(&k, "/download_files", "/etc").status, 403);
    CHECK_INT(kit_get(&k, "/download_files", kit_path("../..")).status, 403);
    struct web_answer a = kit_get(&k, "/download_files", kit_path("w"));
    CHECK_INT(a.status, 200);
    own_fd fd = kit_open("t.zip", O_WRONLY | O_CREAT);
    CHECK_OK(fd_write_all(fd, a.body));
    CHECK_STR(kit_sh("unzip -Z1 t.zip | sort"), "f\nsame\n");
    kit_close_web(&k);
}

TEST(a_tree_comes_as_a_zip_with_names_relative_to_it)
{
    struct kit k;

    kit_sh("mkdir -p tree/sub/empty; printf 1 >tree/a; head -c 900000 /dev/urandom >tree/sub/b\n"
           "ln -s a tree/link; ln -s sub tree/dirlink; ln -s nowhere tree/gone");
    kit_open_web(&k, false);
    struct web_answer a = kit_get(&k, "/download_files", kit_path("tree/"));
    CHECK_INT(a.status, 200);
    CHECK_HAS(a.head, "content-type: application/zip\r\n");
    CHECK_HAS(a.head, "transfer-encoding: chunked\r\n");
    CHECK_HAS(a.head, "content-disposition: attachment; filename=\"tree.zip\"\r\n");
    own_fd fd = kit_open("t.zip", O_WRONLY | O_CREAT);
    CHECK_OK(fd_write_all(fd, a.body));
    CHECK_STR(kit_sh("unzip -tqq t.zip && unzip -Z1 t.zip | sort; unzip -q t.zip -d u; cmp "
                     "tree/sub/b u/sub/b; cat u/link"),
              "a\nlink\nsub/b\n1");
    kit_close_web(&k);
}

TEST(one_file_comes_under_its_name)
{
    struct kit k;

    kit_sh("printf content >'n\xc3\xa4 me'; printf x >plain");
    kit_open_web(&k, false);
    struct web_answer a = kit_get(&k, "/download_files", kit_path("n\xc3\xa4 me"));
    CHECK_INT(a.status, 200);
    CHECK_HAS(a.head, "content-disposition: attachment; filename*=utf-8''n%C3%A4%20me.zip\r\n");
    own_fd fd = kit_open("t.zip", O_WRONLY | O_CREAT);
    CHECK_OK(fd_write_all(fd, a.body));
    CHECK_STR(kit_python("import zipfile\nz = zipfile.ZipFile('t.zip')\n"
                         "print(z.namelist() == ['n\\xe4 me'], z.read('n\\xe4 me'))"),
              "True b'content'\n");
    CHECK_HAS(kit_get(&k, "/download_files", kit_path("plain")).head, "filename=\"plain.zip\"");
    kit_close_web(&k);
}

TEST(a_download_that_cannot_be_is_refused_with_a_status)
{
    struct kit k;

    kit_sh("mkfifo pipe");
    kit_open_web(&k, false);
    struct web_answer a = kit_get(&k, "/download_files", "relative");
    CHECK_INT(a.status, 400);
    CHECK_STR(a.body, "{\"detail\":\"Path must be an absolute path\"}");
    a = kit_get(&k, "/download_files", kit_path("missing"));
    CHECK_INT(a.status, 404);
    CHECK_STR(a.body, "{\"detail\":\"File not found\"}");
    a = kit_get(&k, "/download_files", NULL);
    CHECK_INT(a.status, 422);
    CHECK_HAS(a.body, "'loc': ('query', 'path')");
    CHECK_INT(kit_get(&k, "/download_files", kit_path("pipe")).status, 400);
    kit_close_web(&k);
}

TEST(a_peer_that_leaves_in_the_middle_of_a_download_costs_nothing)
{
    struct kit k;
    struct web_client c;
    char request[600];

    kit_sh("mkdir t; truncate -s 50M t/f");
    kit_open_web(&k, false);
    unsigned fds = test_open_fds();
    web_connect(&k.web, &c, 1u << 20);
    snprintf(request, sizeof request, "GET /download_files?path=%s HTTP/1.1\r\nHost: a\r\n\r\n",
             kit_path("t"));
    CHECK(web_send(&k.web, &c, str_of(request)));
    web_turns(&k.web, 5);
    CHECK(web_read_some(&c, 1000) > 0);
    web_close_client(&c);
    web_turns(&k.web, 5);
    CHECK_INT(test_open_fds(), fds);
    kit_close_web(&k);
}

/* --- memory --- */

#define LARGE (200ull << 20)

static bool is_asan(void)
{
    return strstr(test_program("croft"), "/asan/") != NULL;
}

static long peak_kb(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

/* Runs client in a child on one end of a connection, the server here, until the child ends. */
static void serve_child(struct kit *k, void (*client)(int fd))
{
    int ends[2], status = 0;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        client(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    CHECK_OK(http_server_serve(k->web.server, ends[0]));
    while (waitpid(pid, &status, WNOHANG) == 0)
        CHECK_OK(loop_turn(k->web.loop, 10));
    CHECK_INT(status, 0);
}

static void send_large(int fd)
{
    static char piece[1u << 20];
    own_done(buf) b;
    char answer[4096];

    kit_form(&b, kit_into("w", ""), "file", "large", STR(""));
    size_t end = (size_t)str_find(buf_str(&b), STR("\r\n--B--"));
    size_t length = (size_t)str_find(buf_str(&b), STR("Content-Length: ")) + 16;
    uint64_t body = 0;
    CHECK(str_to_u64(str_first(str_from(buf_str(&b), length), 3), &body));
    CHECK_OK(fd_write_all(fd, str_first(buf_str(&b), length)));
    dprintf(fd, "%llu", (unsigned long long)(body + LARGE));
    CHECK_OK(fd_write_all(fd, str_from(str_first(buf_str(&b), end), length + 3)));
    for (uint64_t sent = 0; sent < LARGE; sent += sizeof piece)
        CHECK_OK(fd_write_all(fd, str_n(piece, sizeof piece)));
    CHECK_OK(fd_write_all(fd, str_from(buf_str(&b), end)));
    ssize_t n = read(fd, answer, sizeof answer);
    CHECK(n > 15 && memcmp(answer, "HTTP/1.1 200 OK", 15) == 0);
}

static void take_large(int fd)
{
    static char piece[1u << 20];
    uint64_t got = 0;
    ssize_t n;

    dprintf(fd, "GET /download_files?path=%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            kit_path("w"));
    while ((n = read(fd, piece, sizeof piece)) > 0)
        got += (uint64_t)n;
    CHECK(n == 0 && got > LARGE);
}

TEST_LIMIT(memory_stays_small_for_200_mb_each_way, 120)
{
    struct kit k;

    kit_open_web(&k, false);
    long before = peak_kb();
    serve_child(&k, send_large);
    CHECK_STR(kit_sh("stat -c %s w/large"), "209715200\n");
    serve_child(&k, take_large);
    if (!is_asan() && peak_kb() - before > 4096)
        FAIL("%ld KB more at the peak", peak_kb() - before);
    kit_close_web(&k);
}
