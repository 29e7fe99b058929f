// SPDX-License-Identifier: Apache-2.0
/* edit_kit.h — what the tests of src/guest/edit share: a workspace, files in it, and calls in
 * short. */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "guest/edit/editor.h"
#include "guest/edit/file_read.h"
#include "guest/edit/file_write.h"
#include "test/test.h"

struct kit {
    struct arena a;
    struct editor ed;
    struct editor_undo undo;
    struct str dir; /* the workspace */
    struct edit_result r;
};

static inline struct str kit_path(struct kit *k, const char *name)
{
    return arena_printf(&k->a, STR_FMT "/%s", STR_ARG(k->dir), name);
}

static inline void kit_open_undo(struct editor_undo *u)
{
    CHECK(mkdirat(test_dir_fd(), "h", 0700) == 0);
    u->fd = openat(test_dir_fd(), "h", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

__attribute__((unused)) static void kit_init(struct kit *k)
{
    *k = (struct kit){.r = {.kind = EDIT_OK}};
    arena_init(&k->a, 512u << 20);
    k->dir = arena_printf(&k->a, "%s/w", test_dir());
    CHECK(mkdirat(test_dir_fd(), "w", 0755) == 0);
    k->undo = (struct editor_undo){-1, kit_open_undo};
    k->ed.undo = &k->undo;
    k->ed.space =
        (struct edit_space){.cwd = k->dir, .root_fd = -1, .uid = EDIT_NO_OWNER, .gid = (gid_t)-1};
}

__attribute__((unused)) static void kit_done(struct kit *k)
{
    own_close(k->undo.fd);
    own_close(k->ed.space.root_fd);
    arena_done(&k->a);
}

/* From now on only what is beneath the workspace can be reached. */
static inline void kit_fence(struct kit *k)
{
    k->ed.space.root = k->dir;
    k->ed.space.root_fd = open(k->dir.p, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(k->ed.space.root_fd >= 0);
}

static inline struct str kit_put(struct kit *k, const char *name, struct str data)
{
    struct str path = kit_path(k, name);
    int fd = open(path.p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    CHECK(fd >= 0);
    CHECK_OK(fd_write_all(fd, data));
    close(fd);
    return path;
}

static inline struct str kit_get(struct kit *k, const char *name)
{
    own_done(buf) b;

    buf_init(&b, 256u << 20);
    CHECK_OK(fd_read_file(kit_path(k, name).p, &b));
    return arena_copy(&k->a, buf_str(&b));
}

/* Runs a command on a file of the workspace and gives its content. */
__attribute__((unused)) static struct str kit_edit(struct kit *k, struct editor_args args,
                                                   const char *command, const char *name)
{
    args.command = str_of(command);
    args.path = kit_path(k, name);
    CHECK_OK(editor_run(&k->ed, &args, &k->a, &k->r));
    return k->r.content;
}

__attribute__((unused)) static struct str kit_view(struct kit *k, const char *name,
                                                   const char *range)
{
    struct json *v = NULL;

    if (range)
        CHECK_OK(json_parse(&k->a, str_of(range), NULL, &v));
    return kit_edit(k, (struct editor_args){.view_range = v}, "view", name);
}

__attribute__((unused)) static struct str kit_replace(struct kit *k, const char *name,
                                                      const char *from, const char *to)
{
    return kit_edit(k, (struct editor_args){.old_str = str_of(from), .new_str = str_of(to)},
                    "str_replace", name);
}

__attribute__((unused)) static struct str kit_insert(struct kit *k, const char *name,
                                                     const char *line, const char *text)
{
    struct json *v = NULL;

    if (line)
        CHECK_OK(json_parse(&k->a, str_of(line), NULL, &v));
    return kit_edit(k, (struct editor_args){.insert_line = v, .new_str = str_of(text)}, "insert",
                    name);
}

/* The form with each {} filled in by the path of name. */
__attribute__((unused)) static struct str kit_says(struct kit *k, const char *form,
                                                   const char *name)
{
    own_done(buf) b;
    struct str rest = str_of(form), path = kit_path(k, name);

    buf_init(&b, 1u << 20);
    for (ptrdiff_t at; (at = str_find(rest, STR("{}"))) >= 0;
         rest = str_from(rest, (size_t)at + 2)) {
        buf_add(&b, str_first(rest, (size_t)at));
        buf_add(&b, path);
    }
    buf_add(&b, rest);
    return arena_copy(&k->a, buf_str(&b));
}

/* Files in the workspace that no test put there. */
__attribute__((unused)) static bool kit_has_leftovers(struct kit *k)
{
    struct str command = arena_printf(&k->a, "find %s -name '.croft-*' | grep -q .", k->dir.p);

    return system(command.p) == 0;
}
