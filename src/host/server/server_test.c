// SPDX-License-Identifier: Apache-2.0
/* server_test.c — a part that nobody but this file names: the server has its setting and its route,
 * waits for its beginning, reads it anew, and closes it. */
#include "host/server/server.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "host/config/settings.h"
#include "host/keys/keys.h"
#include "host/part/part.h"
#include "loop/loop.h"
#include "net/server.h"
#include "test/program.h"
#include "test/test.h"
#include "test/wire.h"

extern const char croft_guest_start[], croft_guest_end[];

struct probe_settings {
    struct str word; /* unset: another test's server */
};

static const struct cfg_row rows[] = {
    CFG_STR(probe_settings, word, "probe.word", NULL, "What the test's route says.", .flag = ""),
};
CFG_TABLE(probe) = {rows, ARRAY_LEN(rows), .size = sizeof(struct probe_settings)};

struct probe {
    struct str word;
    int out;
    struct part_answer begun;
    struct loop_timer soon;
    struct loop *loop;
};

static void probe_say(const struct probe *p, const char *what)
{
    if (p->word.p)
        fd_print(p->out, "%s\n", what);
}

static void probe_reload(void *state, const struct host *h)
{
    const struct probe_settings *s = settings_of(h->settings, CFG_TABLE_OF(probe));
    struct probe *p = state;

    p->word = s->word;
}

static fallible probe_open(struct host *h, void **ret_state)
{
    struct probe *p = mem_new(sizeof *p);

    CHECK(keys_of(h) != NULL); /* it is open already */
    *p = (struct probe){.out = h->config->out, .loop = h->loop};
    *ret_state = p;
    probe_reload(p, h);
    return NULL;
}

static void on_soon(struct loop_timer *t)
{
    const struct probe *p = container_of(t, struct probe, soon);

    probe_say(p, "begun");
    p->begun.done(p->begun.arg, NULL);
}

static void probe_begin(void *state, part_done *done, void *arg)
{
    struct probe *p = state;

    p->begun = (struct part_answer){done, arg};
    loop_timer_start(p->loop, &p->soon, 0, on_soon);
}

static void probe_end(void *state, part_done *done, void *arg)
{
    probe_say(state, "ended");
    done(arg, NULL);
}

static void probe_close(void *state)
{
    probe_say(state, "closed");
    free(state);
}

static fallible handle_word(struct http_req *req)
{
    const struct probe *p = req->owner;

    http_reply(req, 200, STR("text/plain"), p->word);
    return NULL;
}

static const struct route routes[] = {{"GET", "/test/word", handle_word}};

HOST_PART(probe) = {
    .name = "probe",
    .needs = PART_NEEDS("keys"),
    .routes = routes,
    .route_count = ARRAY_LEN(routes),
    .open = probe_open,
    .begin = probe_begin,
    .reload = probe_reload,
    .end = probe_end,
    .close = probe_close,
};

/* --- the server, in a child --- */

static void write_settings(const char *word)
{
    own_fd dir = test_dir_fd();
    char text[200];

    snprintf(text, sizeof text,
             "[server]\nbackend = 'local'\nlisten = '127.0.0.1:0'\n[probe]\nword = '%s'\n", word);
    CHECK_OK(fd_replace_file(dir, "croft.toml", str_of(text), 0644));
}

static fallible read_settings(struct settings *s)
{
    static const char *const no_env[] = {NULL};
    char path[400];
    int argc = 0;

    snprintf(path, sizeof path, "%s/croft.toml", test_dir());
    TRY(settings_begin(s, NULL, &argc, NULL));
    return settings_load(s, str_of(path), no_env);
}

static fallible on_reload(void *arg, const struct settings **ret_settings)
{
    TRY(read_settings(arg));
    *ret_settings = arg;
    return NULL;
}

static _Noreturn void serve(int out)
{
    static struct settings first, second;
    char state[300];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_setup(2, LOG_ERROR, LOG_TEXT);
    snprintf(state, sizeof state, "%s/state", test_dir());
    CHECK_OK(read_settings(&first));
    const struct server_config c = {
        .settings = &first,
        .state = state,
        .guest = str_n(croft_guest_start, (size_t)(croft_guest_end - croft_guest_start)),
        .out = out,
        .reload = on_reload,
        .arg = &second};
    CHECK_OK(server_run(&c));
    settings_done(&first);
    settings_done(&second);
    _exit(0);
}

static void read_line(int fd, char *line, size_t size)
{
    size_t n = 0;

    while (n + 1 < size && read(fd, line + n, 1) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
}

static void ask_word(const struct wire *w, struct buf *into)
{
    buf_reset(into);
    wire_exchange(w, STR("GET /test/word HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
                  into);
}

TEST(a_part_is_served_reloaded_and_closed_without_a_word_in_the_server)
{
    own_done(buf) answer;
    char line[200];
    struct wire w;
    int out[2];

    buf_init(&answer, 1u << 16);
    CHECK_INT(chmod(test_dir(), 0711), 0);
    write_settings("one");
    CHECK(pipe(out) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(out[0]);
        serve(out[1]);
    }
    close(out[1]);
    read_line(out[0], line, sizeof line);
    CHECK_STR(line, "begun"); /* before anybody is told where the server is */
    read_line(out[0], line, sizeof line);
    wire_at(&w, line);
    ask_word(&w, &answer);
    CHECK_HAS(buf_str(&answer), "\r\n\r\none");
    write_settings("two");
    CHECK_INT(kill(pid, SIGHUP), 0);
    while (str_find(buf_str(&answer), STR("\r\n\r\ntwo")) < 0) {
        poll(NULL, 0, 10);
        ask_word(&w, &answer);
    }
    CHECK_INT(kill(pid, SIGTERM), 0);
    read_line(out[0], line, sizeof line);
    CHECK_STR(line, "ended");
    read_line(out[0], line, sizeof line);
    CHECK_STR(line, "closed");
    CHECK_INT(program_wait(pid), 0);
    close(out[0]);
}
