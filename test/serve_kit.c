// SPDX-License-Identifier: Apache-2.0
/* serve_kit.c — see serve_kit.h. */
#include "test/serve_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/b64.h"
#include "base/fd.h"
#include "host/ops/docs.h"
#include "test/native/kit.h"
#include "test/program.h"

#define ANSWER_MAX  (64u << 20)
#define ARENA_BYTES (1u << 30)
#define READY_MS    60000
#define READY_STEP  20

void serve_come_back(const struct serve_answer *a, int status, const char *part)
{
    CHECK_INT(a->status, status);
    CHECK_HAS(json_get_str(a->json, "detail", STR("")), str_of(part));
    CHECK_HAS(a->head, "retry-after: ");
}

const char *serve_text(struct serve *s, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    CHECK(vasprintf(&text, fmt, ap) >= 0);
    va_end(ap);
    struct str copy = arena_copy(&s->arena, str_of(text));
    free(text);
    CHECK(copy.p != NULL);
    return copy.p;
}

/* --- the program --- */

static void begin(struct serve *s)
{
    *s = (struct serve){.key = s->key, .log = s->log};
    arena_init(&s->arena, ARENA_BYTES);
    snprintf(s->state, sizeof s->state, "%s/state", test_dir());
}

void serve_prepare_user(struct serve *s)
{
    kit_be_nobody();
    CHECK(test_own_network());
    begin(s);
    kit_share_layers_as(s->state, "test-state-user", KIT_NOBODY);
    CHECK_INT(setgroups(0, NULL), 0);
    CHECK_INT(setresgid(KIT_NOBODY, KIT_NOBODY, KIT_NOBODY), 0);
    CHECK_INT(setresuid(KIT_NOBODY, KIT_NOBODY, KIT_NOBODY), 0);
    CHECK_INT(prctl(PR_SET_DUMPABLE, 1), 0); /* or it may not write its own maps */
    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

void serve_prepare(struct serve *s)
{
    kit_need_root();
    CHECK(test_own_network()); /* a server that is started again finds its ports free */
    begin(s);
    CHECK_INT(chmod(test_dir(), 0711), 0); /* the server, of user nobody, passes through */
    kit_share_layers(s->state);
    CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    setenv("HOME", test_dir(), 1);
}

void serve_run(struct serve *s, const char *const *args)
{
    const char *argv[24] = {"serve",  "--listen",    "127.0.0.1:0", "--state",
                            s->state, "--log-level", "warn"};
    size_t n = 7;

    if (!s->at_exit) { /* so that nothing is left behind a test */
        argv[n++] = "--at-exit";
        argv[n++] = "delete";
    }
    for (; args && *args; args++) {
        CHECK(n + 1 < ARRAY_LEN(argv));
        argv[n++] = *args;
    }
    wire_start_log(&s->wire, "croft", argv, s->log ? s->log : -1);
}

void serve_run_with(struct serve *s, const char *config)
{
    own_fd dir = test_dir_fd();

    CHECK_OK(fd_replace_file(dir, "croft.toml", str_of(config), 0644));
    serve_run(s, ARGS("--config", serve_text(s, "%s/croft.toml", test_dir())));
}

void serve_reload(struct serve *s, const char *config)
{
    const char *sign = serve_text(s, "sign%u", ++s->reloads);
    own_fd dir = test_dir_fd();
    own_done(buf) text;

    buf_init(&text, 65536);
    buf_addf(&text, "%s[pool.%s]\nimage = 'host'\ntarget = 0\n", config, sign);
    CHECK_OK(fd_replace_file(dir, "croft.toml", buf_str(&text), 0644));
    CHECK_INT(kill(s->wire.pid, SIGHUP), 0);
    while (str_find(serve_get(s, "/croft/v1/pool").body, str_of(sign)) < 0)
        poll(NULL, 0, 10);
}

void serve_open(struct serve *s)
{
    serve_prepare(s);
    serve_run(s, NULL);
}

void serve_reap(void)
{
    while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
        ;
    CHECK_INT(errno, ECHILD);
}

pid_t serve_lock_rows(struct serve *s)
{
    static const char script[] = "import sqlite3,sys,time\n"
                                 "d=sqlite3.connect(sys.argv[1],isolation_level=None,timeout=60)\n"
                                 "d.execute('BEGIN IMMEDIATE')\n"
                                 "sys.stdout.write('x'); sys.stdout.flush()\n"
                                 "time.sleep(600)\n";
    int out[2];
    char byte;

    CHECK_INT(pipe2(out, O_CLOEXEC), 0);
    pid_t locker = program_start(&(struct program){
        .argv = ARGS("python3", "-c", script, serve_text(s, "%s/server/croft.db", s->state)),
        .fds = (int[]){-1, out[1]},
        .fd_count = 2});
    CHECK_INT(read(out[0], &byte, 1), 1);
    close(out[0]);
    close(out[1]);
    return locker;
}

void serve_unlock_rows(pid_t locker)
{
    CHECK_INT(kill(locker, SIGKILL), 0);
    program_wait(locker);
}

void serve_kill(struct serve *s)
{
    CHECK_INT(kill(s->wire.pid, SIGKILL), 0);
    CHECK_INT(program_wait(s->wire.pid), 128 + SIGKILL);
}

pid_t serve_launcher(const struct serve *s)
{
    own_done(buf) text;
    char path[64];

    buf_init(&text, 4096);
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)s->wire.pid, (int)s->wire.pid);
    CHECK_OK(fd_read_file(path, &text));
    CHECK(text.len > 0 && buf_cstr(&text)); /* its only child */
    return (pid_t)strtol(text.p, NULL, 10);
}

/* Those whose files a clean end keeps. */
static void remove_paused(struct serve *s)
{
    struct serve_answer a = serve_ask(s, "GET", "/list", NULL);
    const struct json *list = a.status == 200 ? json_get(a.json, STR("runtimes")) : NULL, *r;

    for (size_t i = 0; list && (r = json_at(list, i)); i++)
        if (strcmp(serve_field(s, r, "status"), "paused") == 0)
            serve_ask(s, "POST", "/stop",
                      serve_text(s, "{'runtime_id': '%s'}", serve_field(s, r, "runtime_id")));
}

void serve_close(struct serve *s)
{
    remove_paused(s);
    CHECK_INT(wire_stop(&s->wire), 0);
    serve_reap();
    kit_check_empty("state/box");
    kit_check_empty("state/gone");
    kit_check_empty("state/ids");
    kit_check_empty("state/sock");
    kit_check_empty("state/server/out");
    arena_done(&s->arena);
}

/* --- asking --- */

static struct str quoted_of(struct serve *s, const char *quoted)
{
    char *text = strdup(quoted);

    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    struct str copy = arena_copy(&s->arena, str_of(text));
    free(text);
    return copy;
}

static struct serve_answer ask_at(struct serve *s, const struct wire *to, const char *header,
                                  const char *method, const char *target, const char *quoted)
{
    own_done(buf) got;
    struct serve_answer a = {.status = 0};
    struct str body = quoted ? quoted_of(s, quoted) : STR("");
    const char *head = serve_text(s,
                                  "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s"
                                  "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                  method, target, header, body.len, body.p);

    buf_init(&got, ANSWER_MAX);
    wire_exchange(to, str_of(head), &got);
    struct str all = arena_copy(&s->arena, buf_str(&got));
    ptrdiff_t end = str_find(all, STR("\r\n\r\n"));
    if (end < 0)
        FAIL("%s %s: no answer but '%.100s'", method, target, all.p);
    a.head = str_first(all, (size_t)end);
    a.body = str_from(all, (size_t)end + 4);
    a.status = atoi(a.head.p + sizeof "HTTP/1.1");
    err_free(json_parse(&s->arena, a.body, NULL, &a.json)); /* NULL then */
    return a;
}

/* Parameters stand for one part each. */
static bool is_path_of(struct str template, struct str path)
{
    for (bool more = true; more;) {
        struct str a, b;
        more = str_cut(&template, '/', &a);
        if (str_cut(&path, '/', &b) != more)
            return false;
        if (!str_eq(a, b) && !(b.len && str_starts(a, STR("{"))))
            return false;
    }
    return true;
}

static struct str path_of(struct serve *s, const char *target)
{
    char *path = strdup(target), *to = path;

    for (const char *at = target; *at && *at != '?'; at++)
        if (*at != '/' || at[1] != '/')
            *to++ = *at;
    struct str copy = arena_copy(&s->arena, str_n(path, (size_t)(to - path)));
    free(path);
    return copy;
}

/* Whatever the server answers on a route of the document is in the document. */
static void check_documented(struct serve *s, const char *method, const char *target, int status)
{
    own_done(buf) text;
    struct str path = path_of(s, target);
    const struct json *exact = NULL;
    char code[16];

    buf_init(&text, 1u << 20);
    if (!s->document) {
        CHECK_OK(docs_openapi(&text));
        CHECK_OK(json_parse(&s->arena, arena_copy(&s->arena, buf_str(&text)), NULL, &s->document));
    }
    for (const struct json *p = json_get(s->document, STR("paths"))->first; p; p = p->next)
        if (str_eq(p->key, path) || (!exact && is_path_of(p->key, path)))
            exact = p;
    for (const struct json *o = exact ? exact->first : NULL; o; o = o->next) {
        if (!str_eq_nocase(o->key, str_of(method)))
            continue;
        snprintf(code, sizeof code, "%d", status);
        if (!json_get(json_get(o, STR("responses")), str_of(code)))
            FAIL("%s %s answered %d, and openapi.json does not know that", method, target, status);
    }
}

struct serve_answer serve_ask(struct serve *s, const char *method, const char *target,
                              const char *quoted)
{
    const char *header = s->key ? serve_text(s, "X-API-Key: %s\r\n", s->key) : "";
    struct serve_answer a = ask_at(s, &s->wire, header, method, target, quoted);

    check_documented(s, method, target, a.status);
    return a;
}

struct serve_answer serve_get(struct serve *s, const char *target)
{
    return serve_ask(s, "GET", target, NULL);
}

struct json *serve_want(struct serve *s, int status, const char *method, const char *target,
                        const char *quoted)
{
    struct serve_answer a = serve_ask(s, method, target, quoted);

    if (a.status != status || !a.json)
        FAIL("%s %s: %d " STR_FMT, method, target, a.status, STR_ARG(a.body));
    return a.json;
}

void serve_refused(struct serve *s, int status, const char *part, const char *method,
                   const char *target, const char *quoted)
{
    const struct json *o = serve_want(s, status, method, target, quoted);

    CHECK_HAS(json_get_str(o, "detail", STR("")), str_of(part));
}

const char *serve_field(struct serve *s, const struct json *o, const char *key)
{
    return serve_text(s, STR_FMT, STR_ARG(json_get_str(o, key, STR(""))));
}

/* --- runtimes --- */

struct json *serve_start(struct serve *s, const char *session, const char *more)
{
    struct json *r = serve_want(
        s, 200, "POST", "/start",
        serve_text(s, "{'image':'host','session_id':'%s'%s%s}", session, *more ? "," : "", more));

    for (int ms = 0; str_eq(json_get_str(r, "status", STR("")), STR("starting"));
         ms += READY_STEP) {
        if (ms > (int)test_slow() * READY_MS)
            FAIL("session %s does not start", session);
        poll(NULL, 0, READY_STEP); /* as its clients do */
        r = serve_want(s, 200, "GET", serve_text(s, "/sessions/%s", session), NULL);
    }
    CHECK_STR(json_get_str(r, "status", STR("")), "running");
    return r;
}

void serve_wait_warm(struct serve *s)
{
    for (;;) {
        const struct json *o = serve_want(s, 200, "GET", "/croft/v1/pool", NULL);
        if (json_get_int(json_at(json_get(o, STR("pools")), 0), "ready", 0) > 0)
            return;
        poll(NULL, 0, 5);
    }
}

struct json *serve_tell(struct serve *s, const char *target, const struct json *runtime)
{
    return serve_want(s, 200, "POST", target,
                      serve_text(s, "{'runtime_id':'%s'}", serve_field(s, runtime, "runtime_id")));
}

struct serve_answer serve_ask_inside(struct serve *s, const struct json *runtime,
                                     const char *method, const char *target, const char *quoted)
{
    struct wire to = {.pid = 0};
    const char *header =
        serve_text(s, "X-Session-API-Key: %s\r\n", serve_field(s, runtime, "session_api_key"));

    wire_at(&to, serve_field(s, runtime, "url"));
    return ask_at(s, &to, header, method, target, quoted);
}

int serve_visit(struct serve *s, const struct json *runtime, const char *target)
{
    return serve_ask_inside(s, runtime, "GET", target, NULL).status;
}

static struct str exec_by(struct serve *s, const struct json *runtime, const char *command,
                          const char *blocking)
{
    struct serve_answer a = serve_ask_inside(
        s, runtime, "POST", "/execute_action",
        serve_text(s, "{'action':{'action':'run','args':{'command':'%s','blocking':%s}}}", command,
                   blocking));

    if (a.status != 200 || !a.json)
        FAIL("%s: %d " STR_FMT, command, a.status, STR_ARG(a.body));
    return json_get_str(a.json, "content", STR("(none)"));
}

struct str serve_exec(struct serve *s, const struct json *runtime, const char *command)
{
    return exec_by(s, runtime, command, "true");
}

struct str serve_exec_soft(struct serve *s, const struct json *runtime, const char *command)
{
    struct str said = exec_by(s, runtime, command, "false");

    while (!said.len) /* a shell may take its time */
        said = exec_by(s, runtime, "", "false");
    return said;
}

void serve_put(struct serve *s, const struct json *runtime, const char *path, struct str bytes)
{
    own_done(buf) coded;

    buf_init(&coded, 1u << 20);
    b64_add(&coded, bytes);
    CHECK_STR(
        serve_exec(s, runtime, serve_text(s, "echo %s | base64 -d > %s", buf_cstr(&coded), path)),
        "");
}

struct json *serve_start_image(struct serve *s, const char *image, const char *session,
                               const char *more)
{
    struct json *r =
        serve_want(s, 200, "POST", "/start",
                   serve_text(s, "{'image':'%s','session_id':'%s'%s}", image, session, more));

    while (strcmp(serve_field(s, r, "status"), "starting") == 0) {
        poll(NULL, 0, 20); /* as its clients do */
        r = serve_want(s, 200, "GET", serve_text(s, "/sessions/%s", session), NULL);
    }
    return r;
}

const char *serve_make_key(struct serve *s, const char *quoted)
{
    return serve_field(s, serve_want(s, 201, "POST", "/croft/v1/tokens", quoted), "secret");
}

void serve_read_until(int fd, const char *part)
{
    own_done(buf) said;
    char byte;

    buf_init(&said, 1u << 20);
    while (str_find(buf_str(&said), str_of(part)) < 0) {
        CHECK_INT(read(fd, &byte, 1), 1);
        buf_add_char(&said, byte);
    }
}
