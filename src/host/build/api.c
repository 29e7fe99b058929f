// SPDX-License-Identifier: Apache-2.0
/* api.c — GET /image_exists, POST /build, GET /build_status. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "host/build/form.h"
#include "host/build/inner.h"
#include "net/server.h"

static fallible api_check(struct http_req *req, unsigned scope, struct builds **ret_builds,
                          const struct key **ret_key)
{
    *ret_builds = req->owner;
    return keys_check((*ret_builds)->config.keys, req, scope, ret_key);
}

/* --- is there such an image? --- */

/* The machine's own system exists without a record. */
static void answer_exists(struct http_req *req, bool exists, const struct json *record)
{
    struct jw *w = http_reply_writer(req);
    char text[CLOCK_ISO_MAX];
    uint64_t made = (uint64_t)json_get_int(record, "made_wall_ns", 0);

    JW_OBJECT(w, NULL) {
        jw_bool(w, "exists", exists);
        if (exists) {
            JW_OBJECT(w, "image") {
                jw_str(w, "upload_time", str_n(text, clock_format_iso(made, true, text)));
                jw_int(w, "image_size_bytes", json_get_int(record, "bytes", 0));
            }
        } else {
            jw_null(w, "image");
        }
    }
    http_reply_written(req, 200);
}

static void on_found(void *arg, const char *text, size_t count, const struct err *e)
{
    struct http_req *req = arg;
    struct json *record = NULL;
    struct err *bad = NULL;

    if (e && (err_code(e) == ERR_NOT_FOUND || err_code(e) == ERR_INVALID))
        answer_exists(req, false, NULL);
    else if (e)
        http_reply_err(req, err_copy(e));
    else if ((bad = json_parse(&req->arena, count ? str_of(text) : STR(""), NULL, &record)))
        http_reply_err(req, bad);
    else
        answer_exists(req, true, record);
}

static fallible handle_exists(struct http_req *req)
{
    struct builds *b;
    const struct key *key;
    struct str image = http_req_query(req, "image");

    TRY(api_check(req, KEY_RUNTIME | KEY_READ, &b, &key));
    if (!image.len)
        return err_new(ERR_UNPROCESSABLE, "image: name one, as in ?image=debian:12");
    if (str_eq(image, STR("host"))) {
        answer_exists(req, true, NULL);
        return NULL;
    }
    return sbx_image_ask(b->config.driver, image, on_found, req);
}

/* --- how is a build? --- */

static void on_status(void *arg, const struct build_row *row, struct err *e)
{
    struct http_req *req = arg;

    if (e) {
        http_reply_err(req, e);
        return;
    }
    struct jw *w = http_reply_writer(req);
    JW_OBJECT(w, NULL) {
        jw_cstr(w, "status", row->status);
        jw_cstr(w, "image", row->image);
        if (row->error)
            jw_cstr(w, "error", row->error);
    }
    http_reply_written(req, 200);
}

static fallible handle_status(struct http_req *req)
{
    struct builds *b;
    const struct key *key;

    TRY(api_check(req, KEY_RUNTIME | KEY_READ, &b, &key));
    struct str id = http_req_query(req, "build_id");
    if (!id.len)
        return err_new(ERR_UNPROCESSABLE, "build_id: it is missing");
    build_row_read(b, id, key, on_status, req);
    return NULL;
}

/* --- a new build --- */

struct posting {
    struct http_req *req;
    struct build *build; /* NULL once it is queued */
    struct form *form;
    char id[BUILD_ID_LEN + 1];
    unsigned tag; /* that is looked for */
};

static void posting_free(struct posting *p)
{
    form_free(p->form);
    if (p->build)
        build_drop(p->build);
    free(p);
}

static void on_queued(void *arg, struct err *e)
{
    struct posting *p = arg;

    if (e) {
        http_reply_err(p->req, e);
    } else {
        struct jw *w = http_reply_writer(p->req);
        JW_OBJECT(w, NULL)
            jw_cstr(w, "build_id", p->id);
        http_reply_written(p->req, 200);
    }
    posting_free(p);
}

static fallible look_for_tag(struct posting *p);

static void on_target(void *arg, const char *record, size_t count, const struct err *missing)
{
    struct posting *p = arg;
    struct err *e = build_check_owner(p->build, p->tag, missing);

    (void)record, (void)count;
    if (!e && ++p->tag < p->build->tag_count) {
        e = look_for_tag(p);
        if (!e)
            return;
    }
    if (!e)
        e = build_check_others(p->build);
    if (e) {
        http_reply_err(p->req, e);
        posting_free(p);
        return;
    }
    build_queue(take(&p->build), on_queued, p);
}

static fallible look_for_tag(struct posting *p)
{
    struct build *b = p->build;

    return sbx_image_ask(b->builds->config.driver, str_of(b->tags[p->tag]), on_target, p);
}

static void on_peer_gone(struct http_req *req)
{
    struct posting *p = req->user;

    posting_free(p);
    http_reply_err(req, err_new(ERR_CLOSED, "the client went away"));
}

/* Names such as "debian:12" are the administrator's. A tenant may not give its images such a name,
 * even while it is free: others would take it for the administrator's. */
static fallible check_name(const struct posting *p, const char *field, struct str name)
{
    struct str prefix = p->build->builds->config.registry_prefix;

    while (str_ends(prefix, STR("/")))
        prefix.len--;
    if (str_eq(name, STR("host")) || str_eq(name, STR("host:latest")))
        return err_new(ERR_UNPROCESSABLE, "%s: 'host' is this machine's own system", field);
    if (p->build->admin || !prefix.len ||
        (str_starts(name, prefix) && str_starts(str_from(name, prefix.len), STR("/"))))
        return NULL;
    return err_new(ERR_FORBIDDEN,
                   "%s: key '%s' may build images called '" STR_FMT
                   "/…' only (server.registry_prefix), not '" STR_FMT "'",
                   field, p->build->key_name, STR_ARG(prefix), STR_ARG(name));
}

static fallible take_body(struct posting *p, struct str piece)
{
    if (piece.len)
        return form_feed(p->form, piece);
    TRY(form_end(p->form));
    for (unsigned i = 0; i < p->build->tag_count; i++)
        TRY(check_name(p, i ? "tags" : "target_image", str_of(p->build->tags[i])));
    p->req->on_gone = NULL; /* from now on it is answered */
    return look_for_tag(p);
}

static fallible on_body(struct http_req *req, struct str piece)
{
    struct posting *p = req->user;
    struct err *e = take_body(p, piece);

    if (e) {
        req->on_gone = NULL;
        posting_free(p);
    }
    return e;
}

bool builds_possible(void)
{
    static const char *const paths[] = {"/usr/bin/buildah", "/usr/local/bin/buildah"};

    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (access(paths[i], X_OK) == 0)
            return true;
    return false;
}

static fallible handle_build(struct http_req *req)
{
    struct builds *b;
    const struct key *key;
    struct posting *p;

    TRY(api_check(req, KEY_RUNTIME, &b, &key));
    if (!builds_possible())
        return err_new(ERR_UNSUPPORTED,
                       "images cannot be built here: buildah is not installed "
                       "(package 'buildah'); 'croft image import' takes ready ones");
    TRY(build_check_room(b, key_tenant(key)));
    p = mem_try(sizeof *p);
    if (!p)
        return err_no_memory();
    *p = (struct posting){.req = req};
    struct err *e = build_new(b, key_tenant(key), &p->build);
    if (!e)
        e = form_new(http_req_header(req, STR("Content-Type")), p->build, &p->form);
    if (e) {
        posting_free(p);
        return e;
    }
    p->build->admin = key->scopes & KEY_ADMIN;
    snprintf(p->build->request, sizeof p->build->request, STR_FMT, STR_ARG(http_req_id(req)));
    memcpy(p->id, p->build->id, sizeof p->id);
    req->user = p;
    req->on_body = on_body;
    req->on_gone = on_peer_gone;
    return NULL;
}

const struct route build_routes[BUILD_ROUTES] = {
    {"GET", "/image_exists", handle_exists, 0, 0},
    {"POST", "/build", handle_build, ROUTE_STREAM, BUILDS_CONTEXT / 3 * 4 + (1u << 20)},
    {"GET", "/build_status", handle_status, 0, 0},
};
