// SPDX-License-Identifier: Apache-2.0
/* import.c — an archive becomes layers and a record; see images.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "host/images/inner.h"
#include "host/tree/tree.h"

struct import {
    struct imagestore store;
    struct image_import *how;
    struct arena *a;
    struct archive archive;
    int fd, spool, from; /* from: the one of the two that has the pieces */
    uint64_t size, left_bytes, bytes;
    struct image image;
};

/* --- the archive as a file --- */

static fallible open_spool(struct import *im, int *ret_fd)
{
    own_fd fd = openat(im->store.tmp, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0) { /* not every file system has files without a name */
        fd = openat(im->store.tmp, "spool", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 || unlinkat(im->store.tmp, "spool", 0) < 0)
            return err_sys("make a file for the archive");
    }
    *ret_fd = take_fd(&fd);
    return NULL;
}

static fallible copy_pipe(int from, int to, uint64_t limit_bytes, uint64_t *ret_size)
{
    char piece[65536];
    uint64_t size = 0;

    for (;;) {
        ssize_t n = read(from, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys("read the archive");
        if (n == 0)
            break;
        size += (uint64_t)n;
        if (size > limit_bytes)
            return err_new(ERR_TOO_LARGE, "the archive has more than %llu bytes",
                           (unsigned long long)limit_bytes);
        TRY(fd_write_all(to, str_n(piece, (size_t)n)));
    }
    *ret_size = size;
    return NULL;
}

static fallible open_archive(struct import *im, int given)
{
    struct stat st;

    if (fstat(given, &st) < 0)
        return err_sys("look at the archive");
    if (S_ISDIR(st.st_mode))
        return err_new(ERR_INVALID, "the archive is a directory; import a tar file");
    if (S_ISREG(st.st_mode)) {
        im->fd = fcntl(given, F_DUPFD_CLOEXEC, 3);
        im->size = (uint64_t)st.st_size;
        return im->fd < 0 ? err_sys("copy a descriptor") : NULL;
    }
    TRY(open_spool(im, &im->fd));
    return copy_pipe(given, im->fd, im->how->limit_bytes, &im->size);
}

/* --- layers --- */

static struct str digest_text(struct import *im, const uint8_t digest[SHA256_LEN])
{
    char hex[2 * SHA256_LEN + 1];

    hash_hex(digest, SHA256_LEN, hex);
    return arena_copy(im->a, str_of(hex));
}

/* Unpacks below tmp, then gives the layer its name. */
static fallible make_layer(struct import *im, size_t i, struct layer_result *r)
{
    struct layer_limits limits = {im->left_bytes, LAYER_ENTRIES_DEFAULT};
    char hex[2 * SHA256_LEN + 1];
    static const uint8_t unknown[SHA256_LEN];

    if (mkdirat(im->store.tmp, "layer", 0755) < 0)
        return err_sys("make a directory for the layer");
    own_fd dir = openat(im->store.tmp, "layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0 || fchmod(dir, 0755) < 0)
        return err_sys("open the layer's directory");
    TRY(unpack_layer(dir, im->from, &im->archive.layers[i], &limits, r));
    const uint8_t *want = im->archive.diff_ids[i];
    if (memcmp(want, unknown, SHA256_LEN) != 0 && memcmp(want, r->diff_id, SHA256_LEN) != 0)
        return err_new(ERR_CORRUPT, "its bytes do not have the digest the image names");
    if (syncfs(dir) < 0)
        return err_sys("write the layer to disk");
    hash_hex(r->diff_id, SHA256_LEN, hex);
    if (renameat2(im->store.tmp, "layer", im->store.layers, hex, RENAME_NOREPLACE) < 0 &&
        errno != EEXIST) /* then it is there already: the same bytes */
        return err_sys("name the layer");
    return tree_remove(im->store.tmp, "layer");
}

static bool is_there(const struct import *im, size_t i, struct str digest)
{
    static const uint8_t unknown[SHA256_LEN];

    return memcmp(im->archive.diff_ids[i], unknown, SHA256_LEN) != 0 &&
           faccessat(im->store.layers, digest.p, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static fallible import_layer(struct import *im, size_t i)
{
    struct layer_result r = {0};
    struct str digest = digest_text(im, im->archive.diff_ids[i]);
    bool shared = digest.p && is_there(im, i, digest);

    if (!shared) {
        TRY(make_layer(im, i, &r));
        digest = digest_text(im, r.diff_id);
        im->left_bytes -= r.bytes < im->left_bytes ? r.bytes : im->left_bytes;
    }
    if (!digest.p)
        return arena_check(im->a);
    im->image.layers[i] = digest;
    im->image.bytes += r.bytes ? r.bytes : im->archive.layers[i].size;
    im->how->left_out += r.left_out;
    if (im->how->progress)
        im->how->progress(im->how->arg, i + 1, im->archive.layer_count, shared);
    return NULL;
}

/* --- the image --- */

static fallible hash_config(struct import *im, uint8_t out[SHA256_LEN])
{
    struct source_file file;
    struct source_hash hash;

    source_file_init(&file, im->from, im->archive.config.at, im->archive.config.size);
    source_hash_init(&hash, &file.source, ARCHIVE_CONFIG_MAX);
    return source_hash_end(&hash, out);
}

static fallible import_describe(struct import *im)
{
    own_done(buf) text;
    uint8_t digest[SHA256_LEN];
    struct json *config;

    buf_init(&text, RECORD_MAX / 2);
    TRY(unpack_config(im->store.tmp, im->from, &im->archive.config, &text));
    struct str kept = arena_copy(im->a, buf_str(&text));
    if (!kept.p)
        return arena_check(im->a);
    TRY(json_parse(im->a, kept, NULL, &config));
    im->image.config = config;
    im->image.id = im->image.layers[0];
    if (im->archive.config.size) {
        TRY(hash_config(im, digest));
        im->image.id = digest_text(im, digest);
    }
    im->image.made_wall_ns = clock_wall_ns(&clock_system);
    return im->image.id.p ? NULL : arena_check(im->a);
}

static bool has_file(const struct import *im, struct str path)
{
    char name[IMAGE_ID_LEN + 1];
    struct stat st;

    for (size_t i = im->image.layer_count; i--;) {
        own_fd at = -1;
        snprintf(name, sizeof name, STR_FMT, STR_ARG(im->image.layers[i]));
        own_fd layer = openat(im->store.layers, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct err *e = fd_open_beneath(layer, path, O_PATH | O_NOFOLLOW, 0, &at);
        err_free(e); /* then it is not in this one */
        if (!e)
            return fstat(at, &st) == 0 && !S_ISCHR(st.st_mode); /* a whiteout is no file */
    }
    return false;
}

/* As docker writes it: letters, digits, and . _ - / : between them. */
static fallible check_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.p[i], low = (char)(c | 0x20);
        bool word = (low >= 'a' && low <= 'z') || str_is_digit(c);
        if (!word && (i == 0 || !strchr("._-/:@", c)))
            return err_new(ERR_INVALID,
                           "'" STR_FMT "' is no name for an image; give one with --name",
                           STR_ARG(str_first(name, 80)));
    }
    if (name.len >= ARCHIVE_TEXT_MAX)
        return err_new(ERR_INVALID, "the name has more than %d letters", ARCHIVE_TEXT_MAX - 1);
    return NULL;
}

static fallible import_all(struct import *im, int given)
{
    bool spooled;

    TRY(open_archive(im, given));
    TRY(open_spool(im, &im->spool));
    TRY(unpack_inspect(im->store.tmp, im->fd, im->size, im->spool, im->how->limit_bytes,
                       &im->archive, &spooled));
    im->from = spooled ? im->spool : im->fd;
    im->image.name = arena_copy(im->a, str_of(im->how->name ? im->how->name : im->archive.name));
    im->image.layer_count = im->archive.layer_count;
    im->image.layers = arena_alloc(im->a, im->image.layer_count * sizeof *im->image.layers);
    TRY(arena_check(im->a));
    TRY(check_name(im->image.name));
    im->left_bytes = im->how->limit_bytes;
    for (size_t i = 0; i < im->archive.layer_count; i++)
        TRY_WRAP(import_layer(im, i), "layer %zu of %u", i + 1, im->archive.layer_count);
    TRY(import_describe(im));
    im->image.no_bash = !has_file(im, STR("bin/bash")) && !has_file(im, STR("usr/bin/bash"));
    return imagestore_publish(&im->store, im->a, &im->image);
}

fallible images_import(int state, int fd, struct image_import *how, struct arena *a,
                       struct image *ret)
{
    struct import im = {.how = how, .a = a, .fd = -1, .spool = -1};

    if (!how->limit_bytes)
        how->limit_bytes = LAYER_BYTES_DEFAULT;
    how->left_out = 0;
    TRY(imagestore_open(state, true, &im.store));
    struct err *e = import_all(&im, fd);
    if (e) { /* what cannot be removed now is by the next import */
        err_free(tree_empty(im.store.tmp));
        err_free(imagestore_sweep(&im.store));
    }
    own_close(im.fd);
    own_close(im.spool);
    imagestore_done(&im.store);
    if (!e)
        *ret = im.image;
    return e;
}
