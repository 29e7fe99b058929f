// SPDX-License-Identifier: Apache-2.0
/* v1_kit.h — for tests of /croft/v1/sandboxes: a server with directories to mount. */
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "test/serve_kit.h"

#define SANDBOXES "/croft/v1/sandboxes"
#define FIRST_KEY "first-key-that-is-long-enough"

static inline const char *dir_path(struct serve *s, const char *name)
{
    return serve_text(s, "%s/%s", test_dir(), name);
}

static inline void put_file(struct serve *s, const char *name, const char *text)
{
    own_fd fd = open(dir_path(s, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, str_of(text)));
}

static inline struct str file_text(struct serve *s, const char *name)
{
    own_done(buf) text;

    buf_init(&text, 1u << 20);
    struct err *e = fd_read_file(dir_path(s, name), &text);
    bool there = !e;
    err_free(e);
    return there ? arena_copy(&s->arena, buf_str(&text)) : STR("(none)");
}

static inline void run_with_mounts(struct serve *s)
{
    serve_run(s, (const char *const[]){"--config", dir_path(s, "c.toml"), NULL});
}

/* Two directories: "open" for every key with the scope, "shut" to read, for a key that is not. */
static inline void prepare_mounts(struct serve *s)
{
    s->key = FIRST_KEY;
    setenv("CROFT_API_KEY", FIRST_KEY, 1);
    serve_prepare(s);
    CHECK_INT(mkdir(dir_path(s, "open"), 0755), 0);
    CHECK_INT(mkdir(dir_path(s, "open/a"), 0755), 0);
    CHECK_INT(mkdir(dir_path(s, "shut"), 0755), 0);
    CHECK_INT(mkdir(dir_path(s, "outside"), 0755), 0);
    put_file(s, "open/a/old", "old\n");
    put_file(s, "open/a/gone", "gone\n");
    put_file(s, "c.toml",
             serve_text(s,
                        "[mount.open]\npath = '%s/open/'\nmodes = ['ro', 'apply', 'rw']\n"
                        "[mount.shut]\npath = '%s/shut'\nmodes = ['overlay']\nkeys = ['default']\n",
                        test_dir(), test_dir()));
}

static inline void open_with_mounts(struct serve *s)
{
    prepare_mounts(s);
    run_with_mounts(s);
}

/* A body whose mounts are of test_dir(): "%s" in quoted stands for it, up to twice. */
static inline const char *body_of(struct serve *s, const char *session, const char *more)
{
    char text[2048] = "";

    for (const char *p = more; *p;) {
        size_t n = strlen(text);
        if (strncmp(p, "%s", 2) == 0) {
            snprintf(text + n, sizeof text - n, "%s", test_dir());
            p += 2;
        } else
            snprintf(text + n, sizeof text - n, "%c", *p++);
    }
    return serve_text(s, "{'image':'host','session_id':'%s',%s}", session, text);
}

static inline struct json *make(struct serve *s, const char *session, const char *more)
{
    serve_want(s, 200, "POST", SANDBOXES, body_of(s, session, more));
    return serve_start(s, session, "");
}

static inline struct json *look(struct serve *s, const struct json *r)
{
    return serve_want(s, 200, "GET",
                      serve_text(s, SANDBOXES "/%s", serve_field(s, r, "runtime_id")), NULL);
}

static inline const char *path_of(struct serve *s, const struct json *r, const char *rest)
{
    return serve_text(s, SANDBOXES "/%s/%s", serve_field(s, r, "runtime_id"), rest);
}

/* One fork of it. */
static inline struct json *fork_of(struct serve *s, const struct json *r)
{
    return json_at(
        json_get(serve_want(s, 200, "POST", path_of(s, r, "fork"), "{}"), STR("sandboxes")), 0);
}

static inline const struct json *change_at(const struct json *diff, const char *path)
{
    const struct json *list = json_get(diff, STR("changes"));

    for (const struct json *c = list ? list->first : NULL; c; c = c->next)
        if (str_eq(json_get_str(c, "path", STR("")), str_of(path)))
            return c;
    return NULL;
}

static inline const char *kind_at(struct serve *s, const struct json *diff, const char *path)
{
    const struct json *c = change_at(diff, path);

    return c ? serve_field(s, c, "kind") : "none";
}

/* Why it could not start: told as its status, for the answer does not wait so long. */
static inline const char *failure_of(struct serve *s, const char *session)
{
    struct json *r;

    do {
        r = serve_want(s, 200, "GET", serve_text(s, "/sessions/%s", session), NULL);
        poll(NULL, 0, 5);
    } while (strcmp(serve_field(s, r, "status"), "starting") == 0);
    return serve_field(s, r, "status_detail");
}
