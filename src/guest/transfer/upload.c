// SPDX-License-Identifier: Apache-2.0
/* upload.c — POST /upload_file. Everything waits in a hidden directory, made in the deepest part of
 * the destination that exists, until it is whole; a destination is not made for an upload that
 * fails. */
#include "net/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rng.h"
#include "guest/stale/stale.h"
#include "guest/transfer/inner.h"
#include "guest/zip/place.h"
#include "wire/api.h"

struct incoming {
    struct http_req *req;
    const struct transfer *t;
    struct loop *loop;
    struct str destination, rest; /* rest: what of it does not exist yet */
    bool recursive;
    bool exact; /* our own: see zip.h */
    int above, staging, dest, archive;
    char staging_name[sizeof STALE_UPLOAD + RNG_HEX_LEN];
    struct upload *form;
    const struct upload_file *file;
    struct zip_in *zip;
    struct loop_later step;
};

static struct place_owner owner_of(const struct incoming *in)
{
    return (struct place_owner){in->t->uid, in->t->gid};
}

/* Removes all that did not get a name; safe to call at any time, also twice. */
static void clean_up(struct incoming *in)
{
    loop_later_cancel(&in->step);
    zip_in_free(take(&in->zip));
    if (in->form && in->staging >= 0)
        for (const struct upload_file *f = upload_files(in->form); f; f = f->next)
            unlinkat(in->staging, f->name.p, 0); /* most are placed, or have no name yet */
    upload_free(take(&in->form));
    own_close(take_fd(&in->archive));
    own_close(take_fd(&in->dest));
    if (in->staging >= 0 && unlinkat(in->above, in->staging_name, AT_REMOVEDIR) < 0)
        log_warn("upload left a directory behind", KV("name", in->staging_name),
                 KV("errno", errno));
    own_close(take_fd(&in->staging));
    own_close(take_fd(&in->above));
}

/* Errors without an upstream word are its 500; limits and refusals of ours keep their status. */
static struct err *as_answer(struct err *e)
{
    enum err_code code = err_code(e);
    bool own_status = code == ERR_TOO_LARGE || code == ERR_FORBIDDEN || code == ERR_NO_MEMORY;

    return own_status ? e : err_recode(e, ERR_IO);
}

static void upload_finish(struct incoming *in, struct err *e)
{
    struct http_req *req = in->req;
    own_done(buf) body;
    struct jw w;

    buf_init(&body, 64u << 10);
    jw_init(&w, &body, JW_WEB);
    if (!e) {
        wire_put_upload(&w, &(struct wire_upload){.filename = in->file->name,
                                                  .destination = in->destination,
                                                  .recursive = in->recursive});
        e = buf_check(&body);
    }
    clean_up(in);
    req->on_gone = NULL;
    if (e)
        http_reply_err(req, e);
    else
        http_reply_json(req, 200, buf_str(&body));
}

/* The destination is made only now: an archive that is refused, or damaged, changes nothing. */
static fallible ready_to_place(struct incoming *in)
{
    if (in->dest < 0)
        TRY(place_dirs(in->above, in->rest, owner_of(in), &in->dest));
    zip_in_set_dir(in->zip, in->dest);
    return NULL;
}

static void on_upload_gone(struct http_req *req)
{
    struct incoming *in = req->user;
    bool done = false;
    struct err *e = NULL;

    if (in->zip && zip_in_placing(in->zip)) { /* renames only: better all of them than some */
        e = ready_to_place(in);
        while (!e && !done)
            e = zip_in_step(in->zip, &done);
    }
    err_free(e);
    clean_up(in);
    http_reply_abort(req);
}

/* --- the form is whole --- */

static void on_unpack_step(struct loop_later *l)
{
    struct incoming *in = container_of(l, struct incoming, step);
    bool done = false;
    struct err *e = zip_in_placing(in->zip) ? ready_to_place(in) : NULL;

    if (!e)
        e = zip_in_step(in->zip, &done);
    if (e)
        upload_finish(in, as_answer(err_wrap(e, "%s", in->file->name.p)));
    else if (done)
        upload_finish(in, NULL);
    else
        loop_later(in->loop, l, on_unpack_step);
}

static fallible begin_unpack(struct incoming *in)
{
    struct zip_in_config config = {.dir = -1,
                                   .staging = in->staging,
                                   .uid = in->t->uid,
                                   .gid = in->t->gid,
                                   .skip_unsafe = true,
                                   .exact = in->exact,
                                   .limits = in->t->limits};

    in->archive = openat(in->staging, in->file->name.p, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (in->archive < 0)
        return err_sys("open '%s'", in->file->name.p);
    if (!in->rest.len) { /* what is there may be in the way */
        TRY(place_dirs(in->above, in->rest, owner_of(in), &in->dest));
        config.dir = in->dest;
    }
    TRY_WRAP(zip_in_new(in->archive, &config, &in->zip), "%s", in->file->name.p);
    loop_later(in->loop, &in->step, on_unpack_step);
    return NULL;
}

/* A file that is replaced lends its mode and owner to the new one. */
static fallible place_single(struct incoming *in)
{
    const char *name = in->file->name.p;
    struct stat st;
    own_fd fd = openat(in->staging, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

    if (fd < 0)
        return err_sys("open '%s'", name);
    TRY(place_dirs(in->above, in->rest, owner_of(in), &in->dest));
    if (fstatat(in->dest, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
        if (fchown(fd, st.st_uid, st.st_gid) < 0 || fchmod(fd, st.st_mode & 07777) < 0)
            return err_sys("keep the owner of '%s'", name);
    } else {
        TRY(place_own(fd, owner_of(in)));
    }
    TRY_WRAP(place_file(in->staging, name, in->dest, name), "'%s'", name);
    upload_finish(in, NULL);
    return NULL;
}

static const struct upload_file *find_file(const struct incoming *in)
{
    const struct upload_file *found = NULL;

    for (const struct upload_file *f = upload_files(in->form); f; f = f->next)
        if (str_eq(f->field, STR("file")))
            found = f; /* the last one, as a form's dict has it */
    return found;
}

static fallible on_form_end(struct incoming *in)
{
    TRY(upload_end(in->form));
    in->file = find_file(in);
    if (!in->file) {
        clean_up(in);
        in->req->on_gone = NULL;
        transfer_reply_problem(in->req, wire_problem_missing("body", "file", NULL));
        return NULL;
    }
    if (in->recursive && !str_ends(in->file->name, STR(".zip")))
        return err_new(ERR_INVALID, "Recursive uploads must be zip files");
    bool zip = str_ends(in->file->name, STR(".zip"));
    struct err *e = zip ? begin_unpack(in) : place_single(in);
    return e ? as_answer(e) : NULL;
}

/* Errors returned are answered by the server; the form's own keep their status (400, 413). */
static fallible on_upload_body(struct http_req *req, struct str piece)
{
    struct incoming *in = req->user;
    struct err *e = piece.len ? upload_feed(in->form, piece) : on_form_end(in);

    if (!e)
        return NULL;
    clean_up(in);
    req->on_gone = NULL;
    return err_code(e) == ERR_NO_SPACE ? as_answer(e) : e;
}

/* --- the head --- */

static fallible make_staging(struct incoming *in)
{
    struct err *e = transfer_open_above(in->t, in->destination, &in->above, &in->rest);

    if (e)
        return as_answer(err_wrap(e, "destination"));
    char name[sizeof in->staging_name] = STALE_UPLOAD;
    rng_hex(rng_system(), name + strlen(name));
    memcpy(in->staging_name, name, sizeof name);
    if (mkdirat(in->above, name, 0700) < 0)
        return as_answer(err_sys("destination '" STR_FMT "'", STR_ARG(in->destination)));
    in->staging = openat(in->above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (in->staging >= 0) {
        stale_hold(in->staging);
        return NULL;
    }
    e = err_sys("destination '" STR_FMT "'", STR_ARG(in->destination));
    unlinkat(in->above, name, AT_REMOVEDIR);
    return e;
}

/* False when it is answered. */
static bool read_query(struct http_req *req, struct incoming *in)
{
    struct str recursive = http_req_query(req, "recursive");

    in->destination = http_req_query(req, "destination");
    if (!in->destination.p)
        in->destination = STR("/");
    wire_parse_bool(http_req_query(req, "exact"), &in->exact);
    if (recursive.p && !wire_parse_bool(recursive, &in->recursive)) {
        const struct json sent = {.type = JSON_STR, .s = str_first(recursive, 1000)};
        transfer_reply_problem(req, wire_problem_not_bool("query", "recursive", &sent));
        return false;
    }
    return true;
}

fallible transfer_upload_file(struct http_req *req)
{
    struct incoming *in = arena_new(&req->arena, struct incoming);
    struct str type = http_req_header(req, STR("content-type"));

    if (!in)
        return arena_check(&req->arena);
    *in = (struct incoming){.req = req,
                            .t = req->owner,
                            .loop = net_loop(http_server_net(req->server)),
                            .above = -1,
                            .staging = -1,
                            .dest = -1,
                            .archive = -1};
    if (!read_query(req, in))
        return NULL;
    if (!str_starts(in->destination, STR("/")))
        return err_new(ERR_INVALID, "Destination must be an absolute path");
    if (!type.p || !str_eq_nocase(str_first(type, 10), STR("multipart/"))) {
        transfer_reply_problem(req, wire_problem_missing("body", "file", NULL));
        return NULL;
    }
    struct err *e = make_staging(in);
    if (!e)
        e = upload_new(type, &(struct upload_config){.dir = in->staging}, &in->form);
    if (e) {
        clean_up(in);
        return e;
    }
    req->user = in;
    req->on_body = on_upload_body;
    req->on_gone = on_upload_gone;
    return NULL;
}
