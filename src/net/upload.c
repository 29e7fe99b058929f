// SPDX-License-Identifier: Apache-2.0
/* upload.c — see upload.h. Names come from a peer: multipart.h gives one path component, and only
 * that is renamed to, beneath the directory held. */
#include "net/upload.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/rng.h"
#include "net/multipart.h"

#define FIELD_BYTES (1u << 20)
#define NAMES_BYTES (4u << 20) /* names of fields and files */

struct file {
    struct upload_file file;
    char temp[16 + RNG_HEX_LEN]; /* empty: it has its own name */
};

struct upload {
    struct upload_config config;
    struct multipart *parser;
    struct arena arena;
    const struct upload_file *files;
    const struct upload_field *fields;
    const struct upload_file **files_end; /* where the next goes */
    const struct upload_field **fields_end;
    /* of the part that comes in */
    struct file *file; /* NULL: a field */
    bool nameless;
    int fd;
    struct str field_name;
    struct buf value;
    size_t field_bytes; /* of the fields before */
};

static fallible add_file(struct upload *u, const struct multipart_part *part)
{
    char hex[RNG_HEX_LEN + 1];

    if (part->filename.len > NAME_MAX)
        return err_new(ERR_INVALID, "a filename is at most %d bytes", NAME_MAX);
    for (const struct upload_file *f = u->files; f; f = f->next)
        if (str_eq(f->name, part->filename))
            return err_new(ERR_INVALID, "file '" STR_FMT "' is sent twice", STR_ARG(f->name));
    struct file *file = arena_new(&u->arena, struct file);
    if (!file)
        return arena_check(&u->arena);
    file->file.field = arena_copy(&u->arena, part->name);
    file->file.name = arena_copy(&u->arena, part->filename);
    file->file.content_type = arena_copy(&u->arena, part->content_type);
    TRY(arena_check(&u->arena));
    rng_hex(u->config.rng, hex);
    snprintf(file->temp, sizeof file->temp, ".upload-%s", hex);
    struct err *e =
        fd_open_beneath(u->config.dir, str_of(file->temp), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                        u->config.mode, &u->fd);
    if (e)
        return err_wrap(e, "create file '" STR_FMT "'", STR_ARG(file->file.name));
    *u->files_end = &file->file;
    u->files_end = &file->file.next;
    u->file = file;
    return NULL;
}

static fallible on_part(void *ctx, const struct multipart_part *part)
{
    struct upload *u = ctx;

    u->file = NULL;
    u->nameless = part->filename.p && part->filename.len == 0;
    if (u->nameless)
        return NULL;
    if (part->filename.p)
        return add_file(u, part);
    u->field_name = arena_copy(&u->arena, part->name);
    return arena_check(&u->arena);
}

static fallible on_data(void *ctx, struct str piece)
{
    struct upload *u = ctx;

    if (u->nameless)
        return err_new(ERR_INVALID, "a file without a name");
    if (!u->file) {
        if (piece.len > u->config.field_bytes - u->field_bytes - u->value.len)
            return err_new(ERR_TOO_LARGE, "the fields of a form are at most %zu bytes",
                           u->config.field_bytes);
        buf_add(&u->value, piece);
        return buf_check(&u->value);
    }
    struct upload_file *f = &u->file->file;
    if (u->config.file_bytes && piece.len > u->config.file_bytes - f->size_bytes)
        return err_new(ERR_TOO_LARGE, "file '" STR_FMT "' is over %llu bytes", STR_ARG(f->name),
                       (unsigned long long)u->config.file_bytes);
    TRY_WRAP(fd_write_all(u->fd, piece), "file '" STR_FMT "'", STR_ARG(f->name));
    f->size_bytes += piece.len;
    return NULL;
}

static fallible add_field(struct upload *u)
{
    struct upload_field *field = arena_new(&u->arena, struct upload_field);

    if (!field)
        return arena_check(&u->arena);
    field->name = u->field_name;
    field->value = arena_copy(&u->arena, buf_str(&u->value));
    TRY(arena_check(&u->arena));
    u->field_bytes += u->value.len;
    buf_reset(&u->value);
    *u->fields_end = field;
    u->fields_end = &field->next;
    return NULL;
}

static fallible on_part_end(void *ctx)
{
    struct upload *u = ctx;

    if (u->nameless)
        return NULL;
    if (!u->file)
        return add_field(u);
    own_close(take_fd(&u->fd));
    return NULL;
}

fallible upload_new(struct str content_type, const struct upload_config *config,
                    struct upload **ret_upload)
{
    static const struct multipart_events events = {on_part, on_data, on_part_end};
    own(upload) u = mem_try(sizeof *u);

    if (!u)
        return err_no_memory();
    u->config = *config;
    if (!u->config.mode)
        u->config.mode = 0644;
    if (!u->config.field_bytes)
        u->config.field_bytes = FIELD_BYTES;
    if (!u->config.rng)
        u->config.rng = rng_system();
    u->fd = -1;
    u->files_end = &u->files;
    u->fields_end = &u->fields;
    arena_init(&u->arena, NAMES_BYTES + 2 * u->config.field_bytes);
    buf_init(&u->value, u->config.field_bytes);
    TRY(multipart_new(content_type, &events, u, &u->parser));
    *ret_upload = take(&u);
    return NULL;
}

void upload_free(struct upload *u)
{
    if (!u)
        return;
    own_close(u->fd);
    for (const struct upload_file *f = u->files; f; f = f->next) {
        const struct file *file = container_of(f, struct file, file);
        if (file->temp[0])
            unlinkat(u->config.dir, file->temp, 0); /* if that fails there is nothing else to do */
    }
    multipart_free(u->parser);
    buf_done(&u->value);
    arena_done(&u->arena);
    free(u);
}

fallible upload_feed(struct upload *u, struct str data)
{
    return multipart_feed(u->parser, data);
}

fallible upload_end(struct upload *u)
{
    TRY(multipart_end(u->parser));
    for (const struct upload_file *f = u->files; f; f = f->next) {
        struct file *file = container_of((struct upload_file *)f, struct file, file);
        if (renameat(u->config.dir, file->temp, u->config.dir, f->name.p) < 0)
            return err_sys("name file '" STR_FMT "'", STR_ARG(f->name));
        file->temp[0] = '\0';
    }
    return NULL;
}

const struct upload_file *upload_files(const struct upload *u)
{
    return u->files;
}

const struct upload_field *upload_fields(const struct upload *u)
{
    return u->fields;
}

struct str upload_field(const struct upload *u, struct str name)
{
    for (const struct upload_field *f = u->fields; f; f = f->next)
        if (str_eq(f->name, name))
            return f->value;
    return (struct str){NULL, 0};
}
