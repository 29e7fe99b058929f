// SPDX-License-Identifier: Apache-2.0
/* changes.c — what a sandbox changed: listed, taken over, or undone. The work is the launcher's; a
 * child of its wrote the answers, which go out as they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "host/ops/body.h"
#include "host/runtime/asking.h"
#include "host/runtime/snapshots.h"
#include "host/v1/inner.h"
#include "wire/files.h"
#include "wire/known.h"

#define ASKED_BYTES (8u << 20)

static void on_said(struct runtime_ask *ask, struct runtime *r, struct err *e)
{
    struct http_req *req = container_of(ask, struct asking, ask)->req;
    own_free char *said = !e && r->sbx ? take(&r->sbx->report) : NULL;

    if (!e && !said)
        e = err_new(ERR_INTERNAL, "nobody said what it changed");
    if (e)
        http_reply_err(req, e);
    else
        http_reply_json(req, 200, str_of(said));
}

static fallible changes_begin(struct http_req *req, struct runtime *r, enum sbx_files files,
                              struct str text)
{
    struct asking *a = NULL;

    TRY(asking_new(v1_api(req), req, v1_put, &a));
    if (files != SBX_FILES_ROLLBACK)
        a->ask.done = on_said;
    a->ask.files = files;
    a->ask.text = text;
    manager_ask(r, RUNTIME_FILES, &a->ask);
    return NULL;
}

static fallible begin_asked(struct http_req *req, struct runtime *r, enum sbx_files files,
                            const struct json *asked)
{
    own_done(buf) text;
    struct wire_files f;
    struct jw w;

    buf_init(&text, ASKED_BYTES);
    TRY(wire_decode_files(asked, &f));
    jw_init(&w, &text, JW_WEB);
    wire_put_files(&w, &f);
    TRY(buf_check(&text));
    struct str copy = arena_copy(&req->arena, buf_str(&text));
    TRY(arena_check(&req->arena));
    return changes_begin(req, r, files, copy);
}

/* --- diff --- */

static fallible take_number(struct http_req *req, const char *name, struct json *into)
{
    struct str text = http_req_query(req, name);
    uint64_t n = 0;

    if (!text.p)
        return NULL;
    if (!str_to_u64(text, &n) || n > INT32_MAX)
        return err_new(ERR_UNPROCESSABLE, "%s: wanted a number", name);
    json_set(into, str_of(name), json_new_int(&req->arena, (int64_t)n));
    return arena_check(&req->arena);
}

fallible v1_handle_diff(struct http_req *req)
{
    struct json *asked = json_new(&req->arena, JSON_OBJECT);
    struct runtime *r;

    TRY(arena_check(&req->arena));
    TRY(v1_find(req, KEY_RUNTIME | KEY_READ, &r));
    TRY(take_number(req, "offset", asked));
    TRY(take_number(req, "limit", asked));
    return begin_asked(req, r, SBX_FILES_DIFF, asked);
}

/* --- apply --- */

fallible v1_take_body(struct http_req *req, struct json **ret)
{
    if (req->head.framing == HTTP_NO_BODY || !req->body.len) {
        *ret = json_new(&req->arena, JSON_OBJECT);
        return arena_check(&req->arena);
    }
    return body_json(req, ret);
}

fallible v1_handle_apply(struct http_req *req)
{
    static const char *const known[] = {"offset", "limit", "force", "paths", NULL};
    const struct key *key;
    struct runtime *r;
    struct json *body;
    struct wire_files asked;

    TRY(v1_find(req, KEY_RUNTIME, &r));
    TRY(v1_check(req, KEY_RUNTIME, &key));
    TRY(v1_take_body(req, &body));
    TRY(wire_check_known(body, "", known));
    TRY(wire_decode_files(body, &asked));
    TRY(manager_check_apply(r, key, asked.paths));
    return begin_asked(req, r, SBX_FILES_APPLY, body);
}

/* --- rollback --- */

/* Rolls back to the image alone, or to the snapshot it began from, which must still be there. */
static fallible roll_to_beginning(struct http_req *req, const struct wire_start *start)
{
    struct runtime *r;

    if (start->from.p && !manager_has_snapshot(v1_api(req)->manager, start->from))
        return err_new(
            ERR_CONFLICT,
            "the snapshot it began from is gone; name another with 'to' ('croft snapshot "
            "ls' lists them)");
    TRY(v1_find(req, KEY_RUNTIME, &r)); /* it may have gone meanwhile */
    return changes_begin(req, r, SBX_FILES_ROLLBACK, start->from.p ? start->from : STR(""));
}

static void on_spec(void *arg, struct wire_start *start, struct err *e)
{
    struct http_req *req = arg;

    if (!e)
        e = roll_to_beginning(req, start);
    if (e)
        http_reply_err(req, e);
}

fallible v1_handle_rollback(struct http_req *req)
{
    const struct key *key;
    struct runtime *r;
    struct json *body;
    struct str to = {0}, id;

    TRY(v1_find(req, KEY_RUNTIME, &r));
    TRY(v1_check(req, KEY_RUNTIME, &key));
    TRY(v1_take_body(req, &body));
    TRY(json_take_str(body, "to", &to));
    if (!to.p) {
        runtime_read_spec(r, &req->arena, on_spec, req);
        return NULL;
    }
    struct key owner = {.scopes = 0}; /* the sandbox's tenant, also when an administrator asks */
    snprintf(owner.name, sizeof owner.name, "%s", runtime_key_name(r));
    const struct snapshot *s = manager_find_snapshot(v1_api(req)->manager, &owner, to);
    if (!s)
        return err_new(ERR_NOT_FOUND, "snapshot '" STR_FMT "' not found",
                       STR_ARG(str_first(to, 100)));
    id = arena_copy(&req->arena, str_of(s->id));
    TRY(arena_check(&req->arena));
    return changes_begin(req, r, SBX_FILES_ROLLBACK, id);
}
