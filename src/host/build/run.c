// SPDX-License-Identifier: Apache-2.0
/* run.c — one build: a sandbox says which base images it wants, another one builds, the launcher
 * imports. Sandboxes send foreign input: lines with a mark, then as many bytes as announced. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "host/build/inner.h"
#include "sandbox/native/msg.h"

#define PIECE (64u << 10)

/* --- away with a sandbox, whatever it does; the build may be gone --- */

static void run_dispose(struct sbx *s);

static void on_disposed_of(void *arg, struct sbx *s, const struct err *e)
{
    (void)arg, (void)s;
    if (e)
        log_warn("a build's sandbox was not removed", KV_ERR(e));
}

static void on_then_dispose(void *arg, struct sbx *s, const struct err *e)
{
    (void)arg, (void)e;
    run_dispose(s);
}

static void run_dispose(struct sbx *s)
{
    struct err *e = NULL;
    enum sbx_state now = (enum sbx_state)s->state.now;

    s->on_gone = NULL;
    if (s->op) {
        s->done = on_then_dispose;
        s->done_arg = NULL;
        return;
    }
    e = now == SBX_RUNNING ? sbx_stop(s, on_then_dispose, NULL)
                           : sbx_remove(s, on_disposed_of, NULL);
    if (e)
        log_warn("a build's sandbox was not removed", KV_ERR(e));
    err_free(e);
}

void build_stop(struct build *b)
{
    loop_timer_stop(&b->deadline);
    if (b->out.loop) {
        loop_io_stop(&b->out);
        own_close(b->out.fd);
    }
    buf_done(&b->said);
    if (b->sandbox)
        run_dispose(take(&b->sandbox));
}

/* --- a sandbox and what it says --- */

static void start_build(struct build *b);
static void look_for_bases(struct build *b);
static void look_for_tags(struct build *b);

static void on_started(void *arg, struct sbx *s, const struct err *e)
{
    struct build *b = arg;

    (void)s;
    if (e)
        build_end(b, BUILD_INTERNAL_ERROR, "start a sandbox to build in: %s", err_text(e));
}

static void end_step(struct build *b)
{
    struct str said = buf_str(&b->said);

    if (b->failed) {
        build_end(b, BUILD_FAILURE, STR_FMT, STR_ARG(said));
        return;
    }
    if (b->scanning ? !b->scanned : !b->taking || b->left) {
        build_end(b, BUILD_FAILURE, "the sandbox it was built in ended too early: " STR_FMT,
                  STR_ARG(said));
        return;
    }
    build_stop(b);
    if (b->scanning)
        look_for_bases(b);
    else
        look_for_tags(b);
}

static void on_output(struct loop_io *io)
{
    struct build *b = container_of(io, struct build, out);
    char piece[PIECE];
    ssize_t n = read(io->fd, piece, sizeof piece);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    struct err *e = n > 0 ? build_hear(b, str_n(piece, (size_t)n)) : NULL;
    if (e) {
        build_end(b, err_errno(e) ? BUILD_INTERNAL_ERROR : BUILD_FAILURE, "%s", err_text(e));
        err_free(e);
    } else if (n <= 0 || (b->taking && !b->left)) {
        end_step(b);
    }
}

static fallible open_output(struct build *b, int *ret_write)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys("make a pipe");
    own_fd reader = ends[0], writer = ends[1];
    TRY(fd_set_nonblocking(reader));
    TRY(loop_io_start(b->builds->config.loop, &b->out, reader, EPOLLIN, on_output));
    take_fd(&reader);
    *ret_write = take_fd(&writer);
    return NULL;
}

/* The context is at /in, base images at /base/0 and so on. */
static fallible build_start_run(struct build *b)
{
    const struct builds_config *c = &b->builds->config;
    char in[4400], where[BUILD_BASES][24], bases[BUILD_BASES * BUILD_NAME + 8] = "BASES=";
    struct sbx_mount mounts[1 + BUILD_BASES] = {
        {.source = in, .target = "/in", .mode = SBX_MOUNT_RO}};
    const char *command[] = {"bash", "-c", b->scanning ? build_scan_script : build_script, NULL};
    const char *env[] = {bases, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                         NULL};
    struct sbx_spec spec = {.face = SBX_FACE_COMMAND,
                            .command = command,
                            .env = env,
                            .limits = c->limits,
                            .mounts = mounts,
                            .mount_count = 1,
                            .nested = !b->scanning};
    own_fd writer = -1;

    snprintf(in, sizeof in, "%s/%s", c->dir, b->id);
    for (unsigned i = 0; i < b->base_count && !b->scanning; i++) {
        snprintf(where[i], sizeof where[i], "/base/%u", i);
        mounts[spec.mount_count++] =
            (struct sbx_mount){.target = where[i], .mode = SBX_MOUNT_OVERLAY, .image = b->bases[i]};
        strcat(strcat(bases, b->bases[i]), " ");
    }
    buf_init(&b->said, BUILD_LOG);
    TRY(open_output(b, &writer));
    spec.output = writer;
    TRY(sbx_create(c->driver, &spec, &b->sandbox));
    return sbx_start(b->sandbox, on_started, b);
}

static void build_step(struct build *b)
{
    struct err *e = build_start_run(b);

    if (e)
        build_end(b, BUILD_INTERNAL_ERROR, "make a sandbox to build in: %s", err_text(e));
    err_free(e);
}

static void on_deadline(struct loop_timer *t)
{
    struct build *b = container_of(t, struct build, deadline);

    build_end(b, BUILD_TIMEOUT, "it was not built within %llu s",
              (unsigned long long)b->builds->config.timeout_ms / 1000);
}

void build_run(struct build *b)
{
    b->scanning = true;
    loop_timer_start(b->builds->config.loop, &b->deadline, b->builds->config.timeout_ms,
                     on_deadline);
    build_step(b);
}

static void start_build(struct build *b)
{
    b->scanning = false;
    loop_timer_start(b->builds->config.loop, &b->deadline, b->builds->config.timeout_ms,
                     on_deadline);
    build_step(b);
}

/* --- base images --- */

static void put_arg(struct buf *out, const char *option, struct str value)
{
    buf_add_mem(out, option, strlen(option) + 1);
    buf_add(out, value);
    buf_add_char(out, '\0');
}

static void put_list(struct buf *out, const char *option, const struct json *list)
{
    own_done(buf) text;

    buf_init(&text, 1u << 20);
    if (!list || list->type != JSON_ARRAY)
        return;
    json_write(&text, list, JW_WEB);
    put_arg(out, option, buf_str(&text));
}

/* Options of `buildah config`, each with its NUL: what the image says of itself. */
static fallible write_config(struct build *b, const char *record)
{
    own_done(arena) a;
    own_done(buf) out;
    struct json *doc;
    char name[16];

    arena_init(&a, 16u << 20);
    buf_init(&out, 1u << 20);
    TRY(json_parse(&a, str_of(record), NULL, &doc));
    const struct json *config = json_get(doc, STR("config"));
    const struct json *env = json_get(config, STR("Env"));
    for (const struct json *v = env && env->type == JSON_ARRAY ? env->first : NULL; v; v = v->next)
        if (v->type == JSON_STR)
            put_arg(&out, "--env", v->s);
    struct str dir = json_get_str(config, "WorkingDir", STR(""));
    struct str user = json_get_str(config, "User", STR(""));
    if (dir.len)
        put_arg(&out, "--workingdir", dir);
    if (user.len)
        put_arg(&out, "--user", user);
    put_list(&out, "--entrypoint", json_get(config, STR("Entrypoint")));
    put_list(&out, "--cmd", json_get(config, STR("Cmd")));
    TRY(buf_check(&out));
    snprintf(name, sizeof name, "base%u", b->base_at);
    return fd_replace_file(b->dir, name, buf_str(&out), 0600);
}

static void on_base(void *arg, const char *record, size_t count, const struct err *why)
{
    struct build *b = arg;
    struct err *e = NULL;

    if (why && err_code(why) == ERR_NOT_FOUND)
        build_end(b, BUILD_FAILURE,
                  "FROM %s: this image is not in the store, and nothing is fetched from elsewhere: "
                  "'croft image import' adds one",
                  b->bases[b->base_at]);
    else if (why || !count)
        build_end(b, BUILD_INTERNAL_ERROR, "FROM %s: %s", b->bases[b->base_at],
                  why ? err_text(why) : "no record");
    else if ((e = write_config(b, record)))
        build_end(b, BUILD_INTERNAL_ERROR, "FROM %s: %s", b->bases[b->base_at], err_text(e));
    else {
        b->base_at++;
        look_for_bases(b);
    }
    err_free(e);
}

static void look_for_bases(struct build *b)
{
    if (b->base_at == b->base_count) {
        start_build(b);
        return;
    }
    struct err *e =
        sbx_image_find(b->builds->config.driver, str_of(b->bases[b->base_at]), on_base, b);
    if (e)
        build_end(b, BUILD_INTERNAL_ERROR, "%s", err_text(e));
    err_free(e);
}

/* --- the result --- */

static void build_import(struct build *b);

static void on_imported(void *arg, const char *id, size_t count, const struct err *e)
{
    struct build *b = arg;

    (void)id, (void)count;
    if (e)
        build_end(b, BUILD_INTERNAL_ERROR, "%s", err_text(e));
    else if (++b->tags_done < b->tag_count)
        build_import(b); /* the same once more, under its next name */
    else
        build_end(b, BUILD_SUCCESS, "%s", "");
}

static void build_import(struct build *b)
{
    struct str name = str_of(b->tags[b->tags_done]);
    struct sbx_driver *d = b->builds->config.driver;
    struct err *e = lseek(b->archive, 0, SEEK_SET) == 0
                        ? sbx_image_import(d, b->archive, name, on_imported, b)
                        : err_sys("read the image");

    if (e)
        build_end(b, BUILD_INTERNAL_ERROR, "%s", err_text(e));
    err_free(e);
}

/* An image of that name may have been imported while this one was built. */
static void on_tag(void *arg, const char *record, size_t count, const struct err *missing)
{
    struct build *b = arg;
    struct err *e = build_check_owner(b, b->tags_done, missing);

    (void)record, (void)count;
    if (e)
        build_end(b, err_code(e) == ERR_CONFLICT ? BUILD_FAILURE : BUILD_INTERNAL_ERROR, "%s",
                  err_text(e));
    else if (++b->tags_done < b->tag_count)
        look_for_tags(b);
    else {
        b->tags_done = 0;
        build_import(b);
    }
    err_free(e);
}

static void look_for_tags(struct build *b)
{
    struct err *e =
        sbx_image_find(b->builds->config.driver, str_of(b->tags[b->tags_done]), on_tag, b);

    if (e)
        build_end(b, BUILD_INTERNAL_ERROR, "%s", err_text(e));
    err_free(e);
}
