// SPDX-License-Identifier: Apache-2.0
/* config.h — the configuration of an image: environment, directory and user for its programs.
 *
 * The image's maker wrote it, so it is input. The wants of a start go first. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct json;

#define IMAGE_TEXT_MAX ((128u << 10) - 1) /* of a variable: the kernel takes no longer one */
#define IMAGE_USER_MAX 128

struct image_config {
    const struct json *env; /* an array; NULL: none */
    struct str working_dir; /* absolute, or to be seen from "/"; .p NULL: none */
    struct str user;        /* USER[:GROUP], names or numbers of the image; .p NULL: root */
};

/* config is the record's, or NULL; the result points into it. An error names the member. */
fallible image_config_read(const struct json *config, struct image_config *ret);
/* The next variable from *at on, "NAME=VALUE"; what is none is passed over. False: no more. */
bool image_config_next(const struct json **at, struct str *ret_pair);
