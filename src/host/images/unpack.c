// SPDX-License-Identifier: Apache-2.0
/* unpack.c — the three things done with an archive, each in a worker. Their answers are checked as
 * if the archive had written them, which it may have. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "host/images/inner.h"
#include "host/subids/subids.h"
#include "host/worker/worker.h"
#include "image/tar.h"

/* --- what is it? --- */

#define MEMBERS_LOOKED_AT 4096 /* an image has a few for each layer */

struct inspect {
    int fd, spool;
    uint64_t size, limit_bytes;
};

struct inspect_answer {
    struct archive archive;
    uint32_t spooled;
};

static fallible spool_all(struct source *from, const struct inspect *in, uint64_t *ret_size)
{
    char piece[65536];
    uint64_t size = 0;

    for (;;) {
        size_t n;
        TRY(from->read(from, piece, sizeof piece, &n));
        if (!n)
            break;
        size += n;
        if (size > in->limit_bytes)
            return err_new(ERR_TOO_LARGE, "it unpacks to more than %llu bytes",
                           (unsigned long long)in->limit_bytes);
        TRY(fd_write_all(in->spool, str_n(piece, n)));
    }
    *ret_size = size;
    return NULL;
}

/* Every root file system has some of these, and no archive of an image has any. */
static bool is_of_a_root(const char *path)
{
    static const char *const known[] = {"bin",   "dev", "etc",  "home", "lib",
                                        "lib64", "opt", "proc", "root", "run",
                                        "sbin",  "sys", "tmp",  "usr",  "var"};
    struct str rest = str_of(path), first;

    str_cut(&rest, '/', &first);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (str_eq(first, str_of(known[i])))
            return true;
    return false;
}

/* Members come in any order: it is an image if one of its names is that of an image's list, and
 * they are all looked at unless one says before that it is a root file system. */
static fallible find_kind(const struct inspect *in, bool *ret_image)
{
    struct source_file file;
    struct tar t;
    const struct tar_entry *e = NULL;
    unsigned seen = 0;
    own(decoder) d = NULL;

    source_file_init(&file, in->fd, 0, in->size);
    TRY(decoder_new(&file.source, &d));
    tar_init(&t, decoder_source(d));
    struct err *err = tar_next(&t, &e);
    if (!err && !e)
        err = err_new(ERR_INVALID, "an empty archive");
    while (!err && e && !*ret_image && seen++ < MEMBERS_LOOKED_AT && !is_of_a_root(e->path)) {
        *ret_image = archive_is_image(e->path);
        err = tar_next(&t, &e);
    }
    tar_done(&t);
    return err;
}

static fallible is_plain(const struct inspect *in, bool *ret_plain)
{
    char magic[8] = "";

    if (pread(in->fd, magic, sizeof magic, 257) < 0)
        return err_sys("read the archive");
    *ret_plain = memcmp(magic, "ustar", 5) == 0;
    return NULL;
}

static fallible inspect_inside(void *arg, int out)
{
    const struct inspect *in = arg;
    struct inspect_answer answer = {0};
    bool image = false, plain = false;

    TRY(find_kind(in, &image));
    TRY(is_plain(in, &plain));
    if (!image) {
        answer.archive.rootfs = answer.archive.layer_count = 1;
        answer.archive.layers[0] = (struct archive_piece){0, in->size};
    } else if (plain)
        TRY(archive_read(in->fd, in->size, &answer.archive));
    else {
        struct source_file file;
        own(decoder) d = NULL;
        uint64_t size;
        source_file_init(&file, in->fd, 0, in->size);
        TRY(decoder_new(&file.source, &d));
        TRY(spool_all(decoder_source(d), in, &size));
        TRY(archive_read(in->spool, size, &answer.archive));
        answer.spooled = 1;
    }
    return fd_write_all(out, str_n(&answer, sizeof answer));
}

static bool piece_fits(const struct archive_piece *p, uint64_t size)
{
    return p->at <= size && p->size <= size - p->at;
}

static bool is_sane(const struct archive *a, uint64_t size)
{
    bool ok = a->layer_count >= 1 && a->layer_count <= ARCHIVE_LAYERS_MAX && a->rootfs <= 1 &&
              memchr(a->name, '\0', sizeof a->name) && piece_fits(&a->config, size) &&
              a->config.size <= ARCHIVE_CONFIG_MAX;

    for (uint32_t i = 0; ok && i < a->layer_count; i++)
        ok = piece_fits(&a->layers[i], size);
    return ok;
}

fallible unpack_inspect(int tmp, int fd, uint64_t size, int spool, uint64_t limit_bytes,
                        struct archive *ret, bool *ret_spooled)
{
    struct inspect in = {fd, spool, size, limit_bytes};
    struct worker_job job = {inspect_inside, &in, tmp, (const int[]){fd, spool}, 2};
    struct inspect_answer answer;
    own_done(buf) b;

    buf_init(&b, sizeof answer);
    TRY(worker_run(&job, &b));
    if (b.len != sizeof answer)
        return err_new(ERR_INTERNAL, "the worker's answer has %zu bytes", b.len);
    memcpy(&answer, b.p, sizeof answer);
    off_t whole = answer.spooled ? lseek(spool, 0, SEEK_END) : (off_t)size;
    if (!is_sane(&answer.archive, whole < 0 ? 0 : (uint64_t)whole))
        return err_new(ERR_INVALID, "the archive names pieces outside of itself");
    *ret = answer.archive;
    *ret_spooled = answer.spooled != 0;
    return NULL;
}

/* --- its configuration --- */

struct config {
    int fd;
    const struct archive_piece *piece;
};

static fallible config_inside(void *arg, int out)
{
    const struct config *c = arg;
    struct source_file file;
    own_done(buf) text, json;
    size_t n;

    buf_init(&text, ARCHIVE_CONFIG_MAX);
    buf_init(&json, RECORD_MAX / 2);
    char *to = c->piece->size ? buf_reserve(&text, (size_t)c->piece->size) : NULL;
    if (c->piece->size && !to)
        return err_no_memory();
    source_file_init(&file, c->fd, c->piece->at, c->piece->size);
    TRY(source_fill(&file.source, to ? to : (char[1]){0}, (size_t)c->piece->size, &n));
    buf_commit(&text, n);
    TRY(archive_config(buf_str(&text), &json));
    return fd_write_all(out, buf_str(&json));
}

fallible unpack_config(int tmp, int fd, const struct archive_piece *piece, struct buf *ret_json)
{
    struct config c = {fd, piece};
    struct worker_job job = {config_inside, &c, tmp, &fd, 1};

    return worker_run(&job, ret_json);
}

/* --- a layer --- */

struct layer_job {
    struct layer_sink sink;
    int dir, fd;
    const struct archive_piece *piece;
    const struct layer_limits *limits;
    bool owners;
    struct buf opaque; /* paths, each with a NUL */
};

#define OPAQUE_MAX (16u << 20)

static fallible note_opaque(struct layer_sink *s, struct str path)
{
    struct layer_job *j = container_of(s, struct layer_job, sink);

    buf_add(&j->opaque, path);
    buf_add_char(&j->opaque, '\0');
    return buf_check(&j->opaque);
}

static fallible layer_inside(void *arg, int out)
{
    struct layer_job *j = arg;
    struct source_file file;
    struct layer_result result;

    source_file_init(&file, j->fd, j->piece->at, j->piece->size);
    TRY(layer_unpack(&file.source, j->dir, j->owners, j->limits, &j->sink, &result));
    TRY(fd_write_all(out, str_n(&result, sizeof result)));
    return fd_write_all(out, buf_str(&j->opaque));
}

/* A name at a time, following nothing: the path is the archive's. */
static fallible set_opaque(int dir, struct str path)
{
    own_fd fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    struct str rest = path, name;

    while (fd >= 0 && (str_cut(&rest, '/', &name) || name.len)) {
        char text[NAME_MAX + 1];
        if (!name.len || name.len > NAME_MAX || str_eq(name, STR("..")))
            return err_new(ERR_INVALID, "a directory named '" STR_FMT "'", STR_ARG(name));
        memcpy(text, name.p, name.len);
        text[name.len] = '\0';
        int next = openat(fd, text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        own_close(fd);
        fd = next;
    }
    const char *attribute = geteuid() == 0 ? "trusted.overlay.opaque" : "user.overlay.opaque";
    if (fd < 0 || fsetxattr(fd, attribute, "y", 1, 0) < 0)
        return err_sys("mark '" STR_FMT "' as opaque", STR_ARG(str_first(path, 200)));
    return NULL;
}

fallible unpack_layer(int dir, int fd, const struct archive_piece *piece,
                      const struct layer_limits *limits, struct layer_result *ret)
{
    struct subids ids;
    subids_find(&ids);
    bool owners = geteuid() == 0 || subids_entered(&ids);
    struct layer_job j = {{note_opaque}, dir, fd, piece, limits, owners, {0}};
    struct worker_job job = {layer_inside, &j, dir, &fd, 1};
    own_done(buf) answer;

    buf_init(&j.opaque, OPAQUE_MAX);
    buf_init(&answer, sizeof *ret + OPAQUE_MAX);
    TRY(worker_run(&job, &answer)); /* j.opaque stays empty on this side */
    if (answer.len < sizeof *ret)
        return err_new(ERR_INTERNAL, "the worker's answer has %zu bytes", answer.len);
    struct str rest = str_from(buf_str(&answer), sizeof *ret), path;
    while (rest.len && (str_cut(&rest, '\0', &path) || path.len))
        TRY(set_opaque(dir, path));
    memcpy(ret, answer.p, sizeof *ret);
    return NULL;
}
