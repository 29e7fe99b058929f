// SPDX-License-Identifier: Apache-2.0
/* output.h — what one cell said: its text, bounded, and its images.
 *
 * Text over the limit loses its middle, as a shell command's does; the two ends are kept. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define OUTPUT_DEFAULT_SIZE (4u << 20)
#define OUTPUT_IMAGES_MAX   64
#define OUTPUT_IMAGE_BYTES  (64u << 20) /* of all images of a cell */

struct output {
    struct buf head, tail;
    size_t half_bytes;
    uint64_t dropped_bytes;
    bool any; /* some text came, if only an empty one */
    struct buf images;
    size_t ends[OUTPUT_IMAGES_MAX];
    unsigned image_count;
};

void output_init(struct output *o, size_t limit_bytes); /* 0: OUTPUT_DEFAULT_SIZE */
void output_done(struct output *o);
void output_add(struct output *o, struct str text);
void output_end_line(struct output *o); /* what follows starts a line */
/* Base64 of a PNG, stored as a data URL. One too large is replaced by a word in the text. */
void output_add_png(struct output *o, struct str base64);
struct str output_image(const struct output *o, unsigned i);

/* All of it, valid UTF-8, without colours, right-trimmed; a sentence when there was no text. */
void output_content(const struct output *o, struct buf *into);

/* Copies text without SGR sequences: ESC [ digits, up to two more numbers, m. */
void output_add_plain(struct buf *into, struct str text);
/* Without the white space at its end, as Python's str.rstrip() sees it. */
struct str output_rstrip(struct str text);
