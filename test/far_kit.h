// SPDX-License-Identifier: Apache-2.0
/* far_kit.h — two servers, of which the near one has its sandboxes at the far one. */
#pragma once

#include "test/serve_kit.h"

#define FAR_KEY  "a-key-of-the-far-server"
#define NEAR_KEY "a-key-of-the-near-server"

struct two {
    struct serve far, near;
    char keys[2][300]; /* files */
};

void two_put_key(struct two *t, int i, const char *name, const char *key);
void two_run_far(struct two *t, unsigned port); /* 0: any */
/* The same with another first key. */
void two_run_far_as(struct two *t, unsigned port, const char *key_file);
void two_run_near(struct two *t, const char *config);
void two_open(struct two *t, const char *config); /* of the near one, TOML */
void two_close(struct two *t);                    /* nothing is left at the far one */
/* The far server's object of a near runtime. */
struct json *two_far_of(struct two *t, const struct json *r);
/* A far server that is slow to tell what it has is not waited for. */
void two_wait_answers(struct two *t, const struct json *r);
