// SPDX-License-Identifier: Apache-2.0
/* aes.c — see aes.h. */
#include "test/aes.h"

#include <errno.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/program.h"

#define LIST_MAX    32
#define ANSWER_MAX  (256u << 20)
#define ARENA_BYTES (1u << 30)

static void make_dir(const char *path)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        FAIL("mkdir %s: %m", path);
}

/* Is this variable among them? */
static bool has_name(const char *const *list, const char *entry)
{
    size_t n = strcspn(entry, "=") + 1;

    for (; list && *list; list++)
        if (strncmp(*list, entry, n) == 0)
            return true;
    return false;
}

static void add_all(const char **list, size_t *n, const char *const *more)
{
    for (; more && *more; more++) {
        CHECK(*n + 1 < LIST_MAX);
        list[(*n)++] = *more;
    }
    list[*n] = NULL;
}

/* A listening socket on a free port, for the server to take over. */
static int listen_somewhere(struct aes *a)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(bind(fd, (struct sockaddr *)&in, len) == 0 && listen(fd, 128) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&in, &len) == 0);
    wire_at(&a->wire, aes_text(a, "http://127.0.0.1:%u", ntohs(in.sin_port)));
    return fd;
}

static void start(struct aes *a, const struct aes_config *c, const char *address, int socket_fd)
{
    const char *base = test_dir();
    const char *user = aes_text(a, "USER=%s", a->user);
    const char *argv[LIST_MAX], *env[LIST_MAX];
    size_t args = 0, vars = 0;
    int ready[2];
    char byte;

    add_all(argv, &args, c->wrap);
    add_all(argv, &args,
            ARGS(test_program(c->program), "action-server", address, "--working-dir", a->dir,
                 "--viewer-url", aes_text(a, "%s/viewer-url", base), "--ready-fd", "4"));
    add_all(argv, &args, c->args);
    add_all(env, &vars,
            ARGS(aes_text(a, "PATH=%s/bin:/usr/local/bin:/usr/bin:/bin", base),
                 aes_text(a, "HOME=%s/home", base), user,
                 aes_text(a, "GIT_CONFIG_GLOBAL=%s/home/.gitconfig", base), "LANG=C.UTF-8",
                 "PAGER=cat", aes_text(a, "NO_CHANGE_TIMEOUT_SECONDS=%u", a->soft_s),
                 aes_text(a, "SESSION_API_KEY=%s", c->key ? c->key : ""), "LOG_LEVEL=warn"));
    size_t kept = 0;
    for (size_t i = 0; i < vars; i++)
        if (!has_name(c->env, env[i]))
            env[kept++] = env[i];
    vars = kept;
    add_all(env, &vars, c->env);
    CHECK(pipe2(ready, O_CLOEXEC) == 0);
    a->wire.pid = program_start(
        &(struct program){.argv = argv,
                          .env = env,
                          .fds = (int[]){-1, -1, c->log ? c->log : -1, socket_fd, ready[1]},
                          .fd_count = 5});
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        FAIL("%s ended before it listened", c->program);
    close(ready[0]);
}

void aes_open(struct aes *a, const struct aes_config *config)
{
    const char *base = test_dir();
    const struct passwd *me = getpwuid(geteuid());

    *a = (struct aes){.program = config->program, .soft_s = config->soft_s ? config->soft_s : 1};
    arena_init(&a->arena, ARENA_BYTES);
    snprintf(a->dir, sizeof a->dir, "%s%s", config->dir ? config->dir : base,
             config->dir ? "" : "/ws");
    snprintf(a->user, sizeof a->user, "%s", me ? me->pw_name : "root");
    make_dir(a->dir);
    make_dir(aes_text(a, "%s/home", base));
    make_dir(aes_text(a, "%s/bin", base));
    if (symlink("/usr/bin/python3", aes_text(a, "%s/bin/python", base)) < 0 && errno != EEXIST)
        FAIL("symlink python: %m");
    if (config->tcp) {
        own_fd fd = listen_somewhere(a);
        start(a, config, "fd:3", fd);
        return;
    }
    const char *address = aes_text(a, "unix:%s/sock", base);
    wire_at(&a->wire, address);
    start(a, config, address, -1);
}

void aes_open_plain(struct aes *a, const char *program)
{
    aes_open(a, &(struct aes_config){.program = program});
}

void aes_want_own_home(struct aes *a)
{
    const struct json *o = aes_act(a, "run", "'command':'echo $HOME ~','blocking':true");
    const char *home = aes_text(a, "%s/home", test_dir());

    CHECK_STR(json_get_str(o, "content", STR("")), aes_text(a, "%s %s", home, home));
}

void aes_close(struct aes *a)
{
    CHECK_INT(wire_stop(&a->wire), 0);
    arena_done(&a->arena);
}

const char *aes_text(struct aes *a, const char *fmt, ...)
{
    own_done(buf) b;
    va_list ap;

    buf_init(&b, ANSWER_MAX);
    va_start(ap, fmt);
    buf_vaddf(&b, fmt, ap);
    va_end(ap);
    CHECK_OK(buf_check(&b));
    return arena_cstr(&a->arena, buf_str(&b));
}

/* --- the workspace --- */

const char *aes_path(struct aes *a, const char *name)
{
    return aes_text(a, "%s/%s", a->dir, name);
}

void aes_put(struct aes *a, const char *name, struct str content)
{
    own_fd fd = open(aes_path(a, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0)
        FAIL("write %s: %m", name);
    while (content.len) {
        ssize_t n = write(fd, content.p, content.len);
        CHECK(n > 0);
        content = str_from(content, (size_t)n);
    }
}

struct str aes_get(struct aes *a, const char *name)
{
    own_done(buf) b;

    buf_init(&b, ANSWER_MAX);
    CHECK_OK(fd_read_file(aes_path(a, name), &b));
    return arena_copy(&a->arena, b.len ? buf_str(&b) : STR(""));
}

bool aes_exists(struct aes *a, const char *name)
{
    struct stat st;

    return lstat(aes_path(a, name), &st) == 0;
}

/* --- requests --- */

int aes_send(struct aes *a, const char *method, const char *target, const char *headers,
             struct str body)
{
    int fd = wire_connect(&a->wire);

    wire_send(fd, str_of(aes_text(a,
                                  "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s"
                                  "Content-Length: %zu\r\n\r\n",
                                  method, target, headers, body.len)));
    wire_send(fd, body);
    return fd;
}

/* Pieces into one. */
static struct str unchunk(struct aes *a, struct str chunked)
{
    own_done(buf) whole;
    struct str line;

    buf_init(&whole, ANSWER_MAX);
    while (str_cut(&chunked, '\n', &line)) {
        size_t size = strtoul(line.p, NULL, 16);
        if (size == 0)
            return arena_copy(&a->arena, whole.len ? buf_str(&whole) : STR(""));
        CHECK(chunked.len >= size + 2);
        buf_add(&whole, str_first(chunked, size));
        chunked = str_from(chunked, size + 2);
    }
    FAIL("the answer stops in the middle");
}

struct aes_answer aes_take(struct aes *a, int fd)
{
    struct aes_answer r = {0};
    own_done(buf) got;

    buf_init(&got, ANSWER_MAX);
    wire_read_to_end(fd, &got);
    close(fd);
    ptrdiff_t end = str_find(buf_str(&got), STR("\r\n\r\n"));
    if (end < 0 || !str_starts(buf_str(&got), STR("HTTP/1.1 ")))
        FAIL("no HTTP answer: " STR_FMT, STR_ARG(buf_str(&got)));
    r.status = atoi(got.p + 9);
    r.head = arena_copy(&a->arena, str_first(buf_str(&got), (size_t)end));
    r.body = arena_copy(&a->arena, str_from(buf_str(&got), (size_t)end + 4));
    if (str_find(r.head, STR("transfer-encoding: chunked")) >= 0)
        r.body = unchunk(a, r.body);
    return r;
}

struct aes_answer aes_ask(struct aes *a, const char *method, const char *target,
                          const char *headers, struct str body)
{
    return aes_take(a, aes_send(a, method, target, headers, body));
}

struct aes_answer aes_ask_get(struct aes *a, const char *target)
{
    return aes_ask(a, "GET", target, "", STR(""));
}

struct str aes_quoted(struct aes *a, const char *text)
{
    struct str s = arena_copy(&a->arena, str_of(text));

    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] == '\'')
            ((char *)s.p)[i] = '"';
    return s;
}

struct aes_answer aes_ask_post(struct aes *a, const char *target, const char *quoted)
{
    return aes_ask(a, "POST", target, "Content-Type: application/json\r\n", aes_quoted(a, quoted));
}

struct json *aes_json(struct aes *a, struct str text)
{
    struct json *v = NULL;

    CHECK_OK(json_parse(&a->arena, text, &(struct json_limits){.size_bytes = ANSWER_MAX}, &v));
    return v;
}

struct str aes_print(struct aes *a, const struct json *v)
{
    own_done(buf) b;

    buf_init(&b, ANSWER_MAX);
    json_write(&b, v, JW_WEB);
    return arena_copy(&a->arena, buf_str(&b));
}

/* A command may take as long as it likes, unless its test is about that. */
struct aes_answer aes_try_act(struct aes *a, const char *name, const char *quoted_args)
{
    bool waits = strcmp(name, "run") == 0 && !strstr(quoted_args, "'blocking':");

    return aes_ask_post(a, "/execute_action",
                        aes_text(a, "{'action':{'action':'%s','args':{%s%s}}}", name, quoted_args,
                                 waits ? ",'blocking':true" : ""));
}

struct json *aes_act(struct aes *a, const char *name, const char *quoted_args)
{
    struct aes_answer r = aes_try_act(a, name, quoted_args);

    if (r.status != 200)
        FAIL("%s {%s}: %d " STR_FMT, name, quoted_args, r.status, STR_ARG(r.body));
    return aes_json(a, r.body);
}

struct aes_answer aes_upload(struct aes *a, const char *query, const char *name, struct str content)
{
    own_done(buf) form;

    buf_init(&form, ANSWER_MAX);
    buf_addf(&form,
             "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s\"\r\n"
             "Content-Type: application/octet-stream\r\n\r\n",
             name);
    buf_add(&form, content);
    buf_add(&form, STR("\r\n--b--\r\n"));
    return aes_ask(a, "POST", aes_text(a, "/upload_file?%s", query),
                   "Content-Type: multipart/form-data; boundary=b\r\n", buf_str(&form));
}

const char *aes_fill(struct aes *a, const char *text, const char *mark, const char *value)
{
    own_done(buf) b;
    struct str rest = str_of(text);
    ptrdiff_t at;

    buf_init(&b, ANSWER_MAX);
    while ((at = str_find(rest, str_of(mark))) >= 0) {
        buf_add(&b, str_first(rest, (size_t)at));
        buf_add_cstr(&b, value);
        rest = str_from(rest, (size_t)at + strlen(mark));
    }
    buf_add(&b, rest);
    return arena_cstr(&a->arena, b.len ? buf_str(&b) : STR(""));
}
