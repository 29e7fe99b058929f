// SPDX-License-Identifier: Apache-2.0
/* guest.c — a croft-guest and one connection to it, with bare system calls: what the client costs
 * is part of every figure. */
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "bench/kit/kit.h"
#include "net/listen.h"

static void must(struct err *e, const char *what)
{
    if (!e)
        return;
    fprintf(stderr, "bench: %s: %s\n", what, err_text(e));
    exit(1);
}

/* build/bench/NAME has build/croft-guest one folder up. */
static const char *program(void)
{
    static char path[600];
    char exe[512];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

    exe[n > 0 ? n : 0] = '\0';
    snprintf(path, sizeof path, "%s/../croft-guest", dirname(exe));
    return path;
}

static pid_t start(const struct kit_guest *g, int listener)
{
    const char *const argv[] = {program(), "fd:3", "--working-dir", g->dir, NULL};
    pid_t pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setenv("LOG_LEVEL", "warn", 1);
    if (listener == 3 ? fcntl(3, F_SETFD, 0) < 0 : dup2(listener, 3) < 0)
        _exit(126);
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

void kit_guest_start(struct kit_guest *g)
{
    struct sockaddr_storage addr;
    socklen_t len;
    int listener;

    *g = (struct kit_guest){.answer_cap = 4u << 20};
    g->answer = malloc(g->answer_cap);
    strcpy(g->dir, "/tmp/bench-guest-XXXXXX");
    if (!g->answer || !mkdtemp(g->dir))
        kit_die("directory");
    snprintf(g->address, sizeof g->address, "unix:%s/socket", g->dir);
    must(listen_open(str_of(g->address), &listener), "listen");
    must(addr_unix(str_of(g->address + 5), &addr, &len), "address");
    g->pid = start(g, listener);
    g->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (g->pid < 0 || connect(g->fd, (struct sockaddr *)&addr, len) < 0)
        kit_die("connect");
    listen_close(listener);
    kit_run(g, "true", 60);
}

void kit_guest_stop(struct kit_guest *g)
{
    char command[128];

    close(g->fd);
    kill(g->pid, SIGTERM);
    waitpid(g->pid, NULL, 0);
    snprintf(command, sizeof command, "rm -rf %s", g->dir);
    if (system(command))
        kit_die(command);
    free(g->answer);
}

static size_t length_of(const char *head, size_t len)
{
    const char *at = memmem(head, len, "ontent-length: ", 15);

    if (!at)
        at = memmem(head, len, "ontent-Length: ", 15);
    if (!at)
        kit_die("an answer without a length");
    return (size_t)atol(at + 15);
}

static struct str read_answer(struct kit_guest *g)
{
    const char *end = NULL;
    size_t want = SIZE_MAX;

    g->answer_len = 0;
    while (g->answer_len < want) {
        if (g->answer_len == g->answer_cap)
            kit_die("an answer of more than 4 MB");
        ssize_t n = read(g->fd, g->answer + g->answer_len, g->answer_cap - g->answer_len);
        if (n <= 0)
            kit_die("the guest closed the connection");
        g->answer_len += (size_t)n;
        if (!end && (end = memmem(g->answer, g->answer_len, "\r\n\r\n", 4))) {
            size_t head = (size_t)(end + 4 - g->answer);
            want = head + length_of(g->answer, head);
        }
    }
    return str_n(end + 4, g->answer_len - (size_t)(end + 4 - g->answer));
}

struct str kit_post(struct kit_guest *g, const char *path, const char *body)
{
    char request[2000];
    int n = snprintf(request, sizeof request,
                     "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     path, strlen(body), body);

    if (n >= (int)sizeof request || write(g->fd, request, (size_t)n) != n)
        kit_die("request");
    struct str answer = read_answer(g);
    if (memcmp(g->answer, "HTTP/1.1 200", 12) != 0) {
        fprintf(stderr, "%.*s\n", (int)g->answer_len, g->answer);
        kit_die("the guest refused");
    }
    return answer;
}

struct str kit_run(struct kit_guest *g, const char *command, unsigned timeout_s)
{
    char body[1000];

    snprintf(body, sizeof body,
             "{\"action\":{\"action\":\"run\",\"args\":{\"command\":\"%s\",\"blocking\":true},"
             "\"timeout\":%u}}",
             command, timeout_s);
    struct str answer = kit_post(g, "/execute_action", body);
    if (str_find(answer, STR("\"exit_code\":0")) < 0 &&
        str_find(answer, STR("\"exit_code\": 0")) < 0) {
        fprintf(stderr, STR_FMT "\n", STR_ARG(str_first(answer, 2000)));
        kit_die("a command failed");
    }
    return answer;
}

long kit_status_kb(pid_t pid, const char *field)
{
    char path[64], line[200];
    size_t len = strlen(field);
    long kb = -1;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        kit_die(path);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, field, len) == 0 && line[len] == ':')
            kb = atol(line + len + 1);
    fclose(f);
    return kb;
}
