// SPDX-License-Identifier: Apache-2.0
/* make.c — what a sandbox is to be, as the launcher and pid 1 want to hear it.
 *
 * Kept small, for there are thousands: mounts as many as there are, and one block of bytes, which
 * is that of a claim (wire/bind.h) and has that of a start in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/own.h"
#include "sandbox/environment.h"
#include "sandbox/native/inner.h"
#include "wire/bind.h"

#define WORKSPACE   "/workspace"
#define SEALS       (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define BLOCK_MAX   (2u << 20)
#define BLOCK_USUAL 1000
#define USER_BYTES  160

/* --- mounts --- */

static bool is_below(const char *path, const char *root, const char **ret_rest)
{
    size_t n = strlen(root);

    while (n > 1 && root[n - 1] == '/')
        n--;
    if (strncmp(path, root, n) != 0 || (path[n] && path[n] != '/' && n > 1))
        return false;
    path += n;
    while (*path == '/')
        path++;
    *ret_rest = *path ? path : ".";
    return true;
}

/* Finds the launcher's root for a path; a path outside all roots is refused. If one root lies in
 * another the inner counts: its own modes, and no link leads out of it. */
static fallible find_root(const struct sbx_host *host, const char *what, const char *path,
                          struct native_mount *m)
{
    const char *const *roots = host->launcher->roots;
    const char *rest, *best = NULL;

    for (uint32_t i = 0; roots && roots[i]; i++)
        if (is_below(path, roots[i], &rest) && (!best || strlen(rest) < strlen(best))) {
            best = rest;
            m->root = i;
        }
    if (!best)
        return err_new(ERR_FORBIDDEN,
                       "%s '%.300s' is below none of the directories sandboxes may use", what,
                       path);
    if (strlen(best) >= sizeof m->path)
        return err_new(ERR_INVALID, "%s '%.300s': the path is too long", what, path);
    snprintf(m->path, sizeof m->path, "%s", best);
    return NULL;
}

static fallible add_mount(const struct sbx_host *host, const char *what,
                          const struct sbx_mount *from, struct native_mount *m)
{
    static const uint32_t modes[] = {[SBX_MOUNT_RO] = NATIVE_RO,
                                     [SBX_MOUNT_RW] = NATIVE_RW,
                                     [SBX_MOUNT_OVERLAY] = NATIVE_OVERLAY};

    *m = (struct native_mount){.mode = modes[from->mode]};
    size_t n = strlen(from->target);
    if (n < sizeof m->target)
        memcpy(m->target, from->target, n + 1);
    if (n >= sizeof m->target || !native_target_ok(m->target, sizeof m->target))
        return err_new(ERR_INVALID, "%s at '%.200s': an absolute, plain path is wanted", what,
                       from->target);
    if (!from->image)
        return find_root(host, what, from->source, m);
    TRY(native_image_check(from->image));
    m->root = NATIVE_ROOT_IMAGE;
    snprintf(m->path, sizeof m->path, "%s", from->image);
    return NULL;
}

static fallible set_mounts(struct native *n, const struct sbx_spec *spec)
{
    const struct sbx_host *host = n->base.driver->host;
    const struct sbx_mount workspace = {
        .source = spec->workspace, .target = WORKSPACE, .mode = SBX_MOUNT_RW};
    size_t count = spec->mount_count + (spec->workspace != NULL), at = 0;

    if (count > NATIVE_MOUNTS)
        return err_new(ERR_LIMIT, "mounts: %zu, at most %d with the workspace", count,
                       NATIVE_MOUNTS);
    own_free struct native_mount *mounts =
        count ? mem_new(count * sizeof(struct native_mount)) : NULL;
    if (spec->workspace)
        TRY(add_mount(host, "workspace", &workspace, &mounts[at++]));
    for (size_t i = 0; i < spec->mount_count; i++)
        TRY(add_mount(host, "mount", &spec->mounts[i], &mounts[at++]));
    free(n->mounts);
    free(n->workspace);
    n->mounts = take(&mounts);
    n->mount_count = count;
    n->workspace = spec->workspace ? mem_dup_cstr(spec->workspace) : NULL;
    return NULL;
}

/* --- image, name, limits --- */

static fallible set_image(struct native *n, const char *name)
{
    n->image = 0;
    free(take(&n->image_name));
    if (!name || strcmp(name, "host") == 0)
        return NULL;
    TRY(native_image_check(name)); /* the launcher's store has it, or the start fails */
    n->image = NATIVE_IMAGE_STORED;
    n->image_name = mem_dup_cstr(name);
    return NULL;
}

static fallible set_name(struct native *n, const char *name)
{
    size_t len = strlen(name);

    if (len >= sizeof n->hostname)
        return err_new(ERR_INVALID, "hostname '%.80s': at most %zu characters", name,
                       sizeof n->hostname - 1);
    memcpy(n->hostname, name, len + 1);
    return native_id_ok(n->hostname, sizeof n->hostname)
               ? NULL
               : err_new(ERR_INVALID, "hostname '%.80s': letters, digits, '-', '_' and '.' only",
                         name);
}

/* --- the block --- */

static void make_put(struct buf *b, const char *text)
{
    buf_add_mem(b, text, strlen(text) + 1);
}

static bool has_option(const char *const *argv, const char *name)
{
    size_t n = strlen(name);

    for (; *argv; argv++)
        if (strncmp(*argv, name, n) == 0 && (!(*argv)[n] || (*argv)[n] == '='))
            return true;
    return false;
}

/* The flags of our server: where its shells start, and as which user. */
static uint32_t put_server(struct buf *b, const struct sbx_spec *spec, const char *user)
{
    static const char *const ours[] = {"action-server", NULL};
    const char *const *argv = spec->command ? spec->command : ours;
    bool places = !has_option(argv, "--working-dir");
    uint32_t n = 0;

    for (; argv[n]; n++)
        make_put(b, argv[n]);
    if (places) {
        make_put(b, "--working-dir");
        make_put(b, spec->working_dir ? spec->working_dir : WORKSPACE);
        n += 2;
    }
    if (user[0]) {
        make_put(b, "--user");
        make_put(b, user);
        n += 2;
    }
    return n;
}

static uint32_t put_command(struct buf *b, const struct sbx_spec *spec)
{
    uint32_t n = 0;

    for (; spec->command[n]; n++)
        make_put(b, spec->command[n]);
    return n;
}

static fallible check_command(const struct sbx_spec *spec)
{
    size_t n = 0;

    while (spec->command && spec->command[n])
        n++;
    if (spec->command ? n == 0 : spec->face == SBX_FACE_COMMAND)
        return err_new(ERR_INVALID, "command: it is empty; name a program to run");
    if (n + 8 > BIND_LIST_MAX)
        return err_new(ERR_LIMIT, "command: more than %u arguments", BIND_LIST_MAX - 8);
    if (spec->working_dir && spec->working_dir[0] != '/')
        return err_new(ERR_INVALID, "working_dir '%.200s' must be an absolute path",
                       spec->working_dir);
    return NULL;
}

static fallible set_block(struct native *n, const struct sbx_spec *spec)
{
    static const char *const kept[] = {"LANG", "LC_ALL", "TERM", "TZ", NULL};
    bool command = spec->face == SBX_FACE_COMMAND;
    struct bind_head head = {.magic = BIND_MAGIC, .flags = command ? BIND_COMMAND : 0};
    char user[USER_BYTES] = "";
    own_done(buf) env, b;

    buf_init(&env, ENVIRONMENT_BYTES);
    buf_init(&b, BLOCK_MAX);
    buf_reserve(&env, BLOCK_USUAL);
    buf_reserve(&b, BLOCK_USUAL);
    TRY(check_command(spec));
    TRY(environment_make(&env, n->base.driver->host, kept, spec));
    if (spec->has_user)
        snprintf(user, sizeof user, spec->has_fs_group ? "%u:%u:%u" : "%u:%u", spec->uid, spec->gid,
                 spec->fs_group);
    else if (spec->user && snprintf(user, sizeof user, "%s", spec->user) >= (int)sizeof user)
        return err_new(ERR_INVALID, "user '%.80s': more than %d characters", spec->user,
                       USER_BYTES - 1);
    buf_add_mem(&b, &head, sizeof head);
    make_put(&b, command && spec->working_dir ? spec->working_dir : "");
    make_put(&b, command ? user : "");
    n->args_at = b.len;
    head.argc = command ? put_command(&b, spec) : put_server(&b, spec, user);
    head.envc = environment_count(&env);
    buf_add(&b, buf_str(&env));
    TRY_WRAP(buf_check(&b), "command and environment");
    memcpy(b.p, &head, sizeof head);
    char *bytes = mem_try(b.len);
    if (!bytes)
        return err_no_memory();
    memcpy(bytes, b.p, b.len);
    free(n->block);
    n->block = bytes;
    n->block_len = b.len;
    n->command = command;
    return NULL;
}

fallible native_set_spec(struct native *n, const struct sbx_spec *spec)
{
    const struct sbx_limits *l = &spec->limits;

    TRY(set_name(n, spec->hostname ? spec->hostname : n->base.id));
    TRY(set_mounts(n, spec));
    n->limits = (struct native_limits){.memory_bytes = l->memory_bytes,
                                       .disk_bytes = l->disk_bytes,
                                       .pids = l->pids,
                                       .cpu_milli = l->cpu_permille,
                                       .nofile = l->open_files};
    return set_block(n, spec);
}

fallible native_set_new(struct native *n, const struct sbx_spec *spec)
{
    TRY(set_image(n, spec->image));
    n->nested = spec->nested;
    if (spec->output)
        n->out_pipe = fcntl(spec->output, F_DUPFD_CLOEXEC, 3);
    if (n->out_pipe < 0)
        return err_sys("copy the pipe of its output");
    return native_set_spec(n, spec);
}

/* --- for the wire --- */

void native_fill(const struct native *n, struct native_request *req)
{
    struct bind_head head;

    memcpy(&head, n->block, sizeof head);
    req->limits = n->limits;
    req->image = n->image;
    req->flags |= n->nested && req->op == NATIVE_START ? NATIVE_NESTED : 0;
    if (n->image_name && req->op == NATIVE_START)
        snprintf(req->image_name, sizeof req->image_name, "%s", n->image_name);
    memcpy(req->hostname, n->hostname, sizeof req->hostname);
    memcpy(req->snapshot, n->snapshot, sizeof req->snapshot);
    bool bare = n->base.warm && req->op == NATIVE_START; /* the rest comes with its claim */
    if (n->mount_count && !bare)
        memcpy(req->mounts, n->mounts, n->mount_count * sizeof *n->mounts);
    if (req->op == NATIVE_CLAIM || bare)
        return;
    req->argc = head.argc;
    req->envc = head.envc;
}

/* Puts the options of pid 1 before a start's command; gives their number. */
static uint32_t put_options(struct buf *b, const struct native *n)
{
    const char *cwd = n->block + sizeof(struct bind_head), *user = cwd + strlen(cwd) + 1;
    size_t before = b->len;

    make_put(b, "--exec");
    if (cwd[0]) {
        make_put(b, "--cwd");
        make_put(b, cwd);
    }
    if (user[0]) {
        make_put(b, "--user");
        make_put(b, user);
    }
    make_put(b, "--");
    return environment_count(&(struct buf){.p = b->p + before, .len = b->len - before});
}

fallible native_seal(struct str text, int *ret_fd)
{
    own_fd fd = memfd_create("asked", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return err_sys("make a memory file");
    TRY(fd_write_all(fd, text));
    if (lseek(fd, 0, SEEK_SET) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
        return err_sys("seal a memory file");
    *ret_fd = take_fd(&fd);
    return NULL;
}

fallible native_make_block(const struct native *n, struct native_request *req, int *ret_fd)
{
    own_fd fd = memfd_create("block", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    size_t from = req->op == NATIVE_CLAIM ? 0 : n->args_at;
    own_done(buf) options;

    buf_init(&options, BLOCK_MAX);
    if (from && n->command)
        req->argc += put_options(&options, n);
    TRY(buf_check(&options));
    if (fd < 0)
        return err_sys("make a memory file");
    if (options.len)
        TRY(fd_write_all(fd, buf_str(&options)));
    TRY(fd_write_all(fd, str_n(n->block + from, n->block_len - from)));
    if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
        return err_sys("seal a memory file");
    *ret_fd = take_fd(&fd);
    return NULL;
}
