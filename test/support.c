// SPDX-License-Identifier: Apache-2.0
/* support.c — checks, directories and paths behind test.h. */
#include "test/support.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/test.h"

static void print_bytes(const char *label, struct str s)
{
    printf("  %s (%zu bytes): \"", label, s.len);
    for (size_t i = 0; i < s.len && i < 2000; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '\n')
            printf("\\n");
        else if (c < 0x20 || c == 0x7f)
            printf("\\x%02x", c);
        else
            putchar(c);
    }
    printf("\"%s\n", s.len > 2000 ? "…" : "");
}

void support_end_test(int code)
{
    fault_at(0);
    exit(code); /* LeakSanitizer speaks at exit */
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    fault_at(0);
    printf("%s:%d: ", file, line);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    _exit(EXIT_FAIL); /* no leak report on top of a failure */
}

void test_skip(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    printf("     ");
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    _exit(EXIT_SKIP);
}

void test_check_int(const char *file, int line, const char *what, long long got, long long want)
{
    if (got != want)
        test_fail(file, line, "%s is %lld, want %lld", what, got, want);
}

void test_check_str(const char *file, int line, const char *what, struct str got, struct str want)
{
    if (str_eq(got, want))
        return;
    size_t same = 0;
    while (same < got.len && same < want.len && got.p[same] == want.p[same])
        same++;
    print_bytes("got ", got);
    print_bytes("want", want);
    test_fail(file, line, "%s differs from byte %zu on", what, same);
}

void test_check_has(const char *file, int line, const char *what, struct str got, struct str part)
{
    if (str_find(got, part) >= 0)
        return;
    print_bytes("got ", got);
    print_bytes("want part", part);
    test_fail(file, line, "%s does not hold it", what);
}

void test_check_ok(const char *file, int line, const char *what, struct err *e)
{
    if (e)
        test_fail(file, line, "%s: %s", what, err_text(e));
}

void test_check_err(const char *file, int line, const char *what, struct err *e, enum err_code code,
                    const char *part)
{
    if (!e)
        test_fail(file, line, "%s succeeded, want %s", what, err_code_word(code));
    if (err_code(e) != code)
        test_fail(file, line, "%s: %s (%s), want %s", what, err_text(e), err_code_word(err_code(e)),
                  err_code_word(code));
    test_check_has(file, line, what, str_of(err_text(e)), str_of(part));
    err_free(e);
}

static void dir_of(pid_t pid, char *out, size_t size)
{
    const char *base = getenv("TMPDIR");
    snprintf(out, size, "%s/croft-test-%d", base ? base : "/tmp", (int)pid);
}

const char *test_dir(void)
{
    static char path[256];

    if (path[0])
        return path;
    dir_of(getpid(), path, sizeof path);
    support_remove_dir_of(getpid()); /* of a process of this number that was killed long ago */
    if (mkdir(path, 0700) < 0)
        FAIL("mkdir %s: %m", path);
    return path;
}

unsigned test_slow(void)
{
    const char *times = getenv("CROFT_TEST_SLOW");

    return times && atoi(times) > 1 ? (unsigned)atoi(times) : 1;
}

int test_dir_fd(void)
{
    int fd = open(test_dir(), O_PATH | O_DIRECTORY | O_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    remove(path);
    return 0;
}

void support_remove_dir_of(pid_t pid)
{
    char path[256];

    dir_of(pid, path, sizeof path);
    if (access(path, F_OK) < 0)
        return;
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (access(path, F_OK) < 0)
        return;
    pid_t rm = fork(); /* names longer than a path may be: rm walks by descriptor */
    if (rm == 0) {
        execl("/bin/rm", "rm", "-rf", "--one-file-system", path, NULL);
        _exit(127);
    }
    waitpid(rm, NULL, 0);
}

const char *test_program(const char *name)
{
    static char path[512];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);

    CHECK(n > 0);
    path[n] = '\0';
    snprintf(strrchr(path, '/') + 1, 60, "%s", name);
    return path;
}

const char *test_source(const char *relative)
{
    static char path[512];
    const char *root = getenv("CROFT_SOURCE");

    snprintf(path, sizeof path, "%s/%s", root ? root : ".", relative);
    return path;
}

/* Goes on in a child; the caller stays behind and ends as the child does, reaping all others. */
static void go_on_below(void)
{
    int status = 0;
    pid_t pid = fork(), ended;

    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return;
    }
    do
        ended = waitpid(-1, &status, __WALL);
    while (ended > 0 && ended != pid);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

void test_alone(void)
{
    test_dir(); /* named after the pid the keeper knows */
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
        return;
    go_on_below(); /* as pid 1 */
    CHECK_INT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    CHECK_INT(mount("proc", "/proc", "proc", 0, NULL), 0);
    go_on_below(); /* as its child: pid 1 gets the orphans */
}

/* The kernel gives away those from here on, and a croft serve the 12,000 below. */
#define SERVERS 12000u

static unsigned first_given_port(void)
{
    unsigned first = 0;
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");

    CHECK(f && fscanf(f, "%u", &first) == 1);
    fclose(f);
    return first;
}

unsigned test_free_port(void)
{
    static unsigned calls;
    const unsigned lowest = 1024, each = 8;
    unsigned first = first_given_port();
    unsigned top = first > SERVERS + 2 * lowest ? first - SERVERS : 65535;
    unsigned room = (top - lowest) / each;

    for (unsigned tries = 0; tries < each * room; tries++, calls++) {
        unsigned port = lowest + (each * (unsigned)getpid() + calls) % (each * room);
        struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool is_free = bind(fd, (struct sockaddr *)&any, sizeof any) == 0;
        close(fd);
        if (is_free) {
            calls++;
            return port;
        }
    }
    FAIL("every port of this machine is taken");
}

bool test_own_network(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    if (unshare(CLONE_NEWNET) < 0)
        return false;
    int any = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(ioctl(any, SIOCSIFFLAGS, &lo), 0);
    close(any);
    return true;
}

unsigned test_open_fds(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");

    CHECK(d != NULL);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 3; /* ".", ".." and the directory itself */
}
