// SPDX-License-Identifier: Apache-2.0
/* editor_directory.c — what `find -L DIR -maxdepth 2 | sort` would show, without a shell. Names are
 * whatever a stranger made them: control characters are shown escaped, broken UTF-8 replaced. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/utf8.h"
#include "guest/edit/editor_inner.h"
#include "guest/edit/space.h"

#define ENTRIES_MAX 100000

static const char clipped[] =
    "<response clipped><NOTE>Due to the max output limit, only part of this directory has been "
    "shown to you. You should use `ls -la` instead to view large directories incrementally."
    "</NOTE>";

struct entry {
    struct str path; /* in the arena */
    bool is_dir;
};

struct listing {
    struct job *j;
    struct entry *entries;
    size_t count, cap;
    size_t hidden;
};

static bool add_entry(struct listing *l, struct str path, bool is_dir)
{
    if (l->count == ENTRIES_MAX)
        return false;
    if (l->count == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 64;
        struct entry *more = realloc(l->entries, cap * sizeof *more);
        if (!more) {
            l->j->a->failed = true;
            return false;
        }
        l->entries = more;
        l->cap = cap;
    }
    l->entries[l->count++] = (struct entry){path, is_dir};
    return !l->j->a->failed;
}

static struct str child_path(struct arena *a, struct str dir, const char *name)
{
    bool is_root = str_eq(dir, STR("/"));

    return arena_printf(a, STR_FMT "%s%s", STR_ARG(dir), is_root ? "" : "/", name);
}

static bool is_directory(const struct edit_space *s, struct str path)
{
    struct stat st;
    struct err *e = space_stat(s, path, &st);
    bool is_dir = !e && S_ISDIR(st.st_mode);

    err_free(e);
    return is_dir;
}

static void add_names(struct listing *l, struct str dir, DIR *d, bool is_top)
{
    for (struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (e->d_name[0] == '.') {
            l->hidden += is_top;
            continue;
        }
        struct str path = child_path(l->j->a, dir, e->d_name);
        if (!path.p)
            return;
        bool is_dir = e->d_type == DT_DIR || ((e->d_type == DT_LNK || e->d_type == DT_UNKNOWN) &&
                                              is_directory(&l->j->ed->space, path));
        if (!add_entry(l, path, is_dir))
            return;
    }
}

static fallible directory_list(struct listing *l, struct str dir, bool is_top)
{
    own_fd fd = -1;

    TRY(space_open(&l->j->ed->space, dir, O_RDONLY | O_DIRECTORY, &fd));
    DIR *d = fdopendir(fd);
    if (!d)
        return err_sys("list '" STR_FMT "'", STR_ARG(dir));
    take_fd(&fd);
    add_names(l, dir, d, is_top);
    closedir(d);
    return NULL;
}

static int by_path(const void *x, const void *y)
{
    return str_cmp(((const struct entry *)x)->path, ((const struct entry *)y)->path);
}

static void add_name(struct buf *b, struct str path)
{
    own_done(buf) clean;

    buf_init(&clean, SIZE_MAX / 2);
    utf8_add_replaced(&clean, path);
    for (size_t i = 0; i < clean.len; i++) {
        unsigned char c = (unsigned char)clean.p[i];
        if (c < 0x20 || c == 0x7f)
            buf_addf(b, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\x%02x", c);
        else
            buf_add_char(b, (char)c);
    }
    b->no_memory |= clean.no_memory;
}

/* The limit is on the bare list, one path to a line; the slashes come on top. */
static void add_list(struct buf *b, const struct listing *l)
{
    size_t left = EDITOR_MAX_CHARS;
    own_done(buf) one;

    buf_init(&one, SIZE_MAX / 2);
    for (size_t i = 0; i < l->count; i++) {
        buf_reset(&one);
        add_name(&one, l->entries[i].path);
        size_t chars = utf8_count(buf_str(&one));
        if (i)
            buf_add_char(b, '\n');
        if (chars + 1 > left) {
            buf_add(b, str_first(buf_str(&one), utf8_offset(buf_str(&one), left)));
            buf_add_cstr(b, clipped);
            return;
        }
        left -= chars + 1;
        buf_add(b, buf_str(&one));
        if (l->entries[i].is_dir && !str_eq(l->entries[i].path, STR("/")))
            buf_add_char(b, '/');
    }
    b->no_memory |= one.no_memory;
}

static void directory_collect(struct listing *l)
{
    struct job *j = l->j;

    if (!add_entry(l, j->path, true))
        return;
    own(err) e = directory_list(l, j->path, true);
    if (e) {
        job_fail_os(j, e, "read");
        return;
    }
    size_t top = l->count;
    for (size_t i = 1; i < top; i++)
        if (l->entries[i].is_dir)
            err_free(directory_list(l, l->entries[i].path,
                                    false)); /* its name is shown, its content not */
    qsort(l->entries, l->count, sizeof *l->entries, by_path);
}

void directory_run(struct job *j)
{
    struct listing l = {.j = j};
    own_done(buf) b;

    buf_init(&b, SIZE_MAX / 2);
    j->r->kind = EDIT_OK;
    directory_collect(&l);
    if (j->r->kind == EDIT_OK) {
        answer_add(&b,
                   "Here's the files and directories up to 2 levels deep in {}, excluding hidden "
                   "items:\n",
                   j->path);
        add_list(&b, &l);
        if (l.hidden)
            answer_add(&b,
                       "\n\n{} hidden files/directories in this directory are excluded. You can "
                       "use 'ls -la {}' to see them.",
                       job_number(j, (long long)l.hidden), j->path);
        answer_buf(j->a, j->r, EDIT_OK, &b);
    }
    free(l.entries);
}
