// SPDX-License-Identifier: Apache-2.0
/* start.h — from what a client asks for to a runtime that starts. */
#pragma once

#include "host/runtime/inner.h"

/* --- spec.c --- */
struct spec {
    struct sbx_spec sbx;
    struct arena arena;
    const char *note; /* for status_detail; NULL: none */
};
void spec_done(struct spec *s);
#define SPEC_IMAGE 256
/* The backend's name of an image; ERR_UNPROCESSABLE: there is none. */
fallible spec_image(struct str image, char ret_known[SPEC_IMAGE]);
/* The spec that the sandbox gets. */
fallible spec_make(const struct runtime *r, const struct wire_start *start, const char *image,
                   struct spec *ret);

/* --- start.c --- */
/* The first operation of one that ended, by a resume; and after a restart of the server, or when
 * its image is there, from its row, with op.spec made of that. */
void start_again(struct runtime *r);
void start_from_row(struct runtime *r);
fallible start_make_spec(struct runtime *r, const struct wire_start *start, const char *image);
fallible start_new_sandbox(struct runtime *r, const struct wire_start *start); /* of op.spec */
/* Its turn has come. An error returned: nothing was begun. */
fallible start_now(struct manager *m, const struct start_place *p);
bool start_is_there(struct manager *m, const struct start_place *p); /* its session has one */
void runtime_drop_spec(struct runtime *r);
/* To be answered when its row is on disk and, if that takes a moment only, it can be reached. */
void start_watch(struct runtime *r, struct runtime_ask *ask);
void start_tell_watchers(struct runtime *r); /* if there is something to tell */
void start_answer_watchers(struct runtime *r, const struct err *e);
/* The pool need not wait for this claim any more. */
void runtime_claim_over(struct runtime *r);
void runtime_on_listens(void *arg, struct sbx *s);
void runtime_is_ready(struct runtime *r);

/* --- line.c --- */
void line_go_on(struct manager *m); /* the backend is ready for one more */
void line_refuse_all(struct manager *m, const struct err *why);

/* --- wants.c --- */
/* From a row's text; what it holds was checked when it was written. */
fallible wants_read(struct arena *a, struct str text, const struct wire_wants **ret_wants);
char *wants_text(const struct wire_wants *wants); /* the caller's; NULL stays NULL */
/* Limits, host name and mounts into a spec made without. */
fallible wants_apply(const struct wire_wants *wants, struct spec *s);
/* May its key still have its mounts? By the settings of now. */
fallible runtime_check_mounts(const struct runtime *r);
/* More than the machine has is refused by the name of the field. */
fallible wants_check_factor(const struct manager *m, const struct wire_start *start);
/* No warm sandbox has, or can still get, this. */
bool wants_need_a_new_one(const struct manager *m, const struct wire_start *start);

/* --- await.c --- */
/* For a new runtime, without a sandbox and a spec; await_begin() follows its row. */
void await_new(struct runtime *r, struct builds *builds);
void await_begin(struct runtime *r); /* looks for the image, and waits if it has to */
void await_drop(struct runtime *r);  /* it is not waited for any more, if it was */
void await_free_all(struct manager *m);

/* --- adopt.c --- */
/* op.spec, of what its row says and of the record of its image; NULL: what the row has of that. */
fallible adopt_make_spec(struct runtime *r, struct wire_start *start, const struct json *record);
