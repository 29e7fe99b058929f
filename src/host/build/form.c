// SPDX-License-Identifier: Apache-2.0
/* form.c — see form.h. */
#include "host/build/form.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/b64.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/multipart.h"
#include "sandbox/native/msg.h"

enum field { FIELD_OTHER, FIELD_CONTEXT, FIELD_TARGET, FIELD_TAGS };

/* Base64 in pieces, white space between allowed */
struct form_b64 {
    char held[4];
    unsigned count;
    bool ended; /* padding was there */
};

struct form {
    struct multipart *parser;
    struct build *build;
    enum field field; /* that is read now */
    struct form_b64 b64;
    struct buf decoded;
    int context; /* -1: has not come */
    bool has_target;
    struct buf text; /* of a name */
};

/* --- base64 --- */

static fallible decode_held(struct form_b64 *d, struct buf *out)
{
    TRY(b64_decode(str_n(d->held, 4), out));
    d->ended = d->held[3] == '=';
    d->count = 0;
    return NULL;
}

/* Whole quanta in one go; what is split, or near the end, by fours. */
static fallible form_b64_add(struct form_b64 *d, struct str text, struct buf *out)
{
    while (text.len) {
        size_t run = 0, most = d->count ? 0 : text.len & ~(size_t)3;
        while (run < most && text.p[run] != '=' && (unsigned char)text.p[run] > ' ')
            run++;
        run &= ~(size_t)3;
        if (run && !d->ended) {
            TRY(b64_decode(str_first(text, run), out));
            text = str_from(text, run);
            continue;
        }
        char c = text.p[0];
        text = str_from(text, 1);
        if (c == '\r' || c == '\n' || c == ' ' || c == '\t')
            continue;
        if (d->ended)
            return err_new(ERR_INVALID, "base64: there is more after its end");
        d->held[d->count++] = c;
        if (d->count == 4)
            TRY(decode_held(d, out));
    }
    return buf_check(out);
}

static fallible form_b64_end(const struct form_b64 *d)
{
    return d->count ? err_new(ERR_INVALID, "base64: it ends in the middle") : NULL;
}

/* --- parts --- */

static fallible on_part(void *ctx, const struct multipart_part *part)
{
    struct form *f = ctx;

    f->field = str_eq(part->name, STR("context"))        ? FIELD_CONTEXT
               : str_eq(part->name, STR("target_image")) ? FIELD_TARGET
               : str_eq(part->name, STR("tags"))         ? FIELD_TAGS
                                                         : FIELD_OTHER;
    buf_reset(&f->text);
    if (f->field != FIELD_CONTEXT)
        return NULL;
    if (f->context >= 0)
        return err_new(ERR_UNPROCESSABLE, "context: it is there twice");
    f->context =
        openat(f->build->dir, "context.tar.gz", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return f->context < 0 ? err_sys("make a file for the context") : NULL;
}

/* ERR_LIMIT: it is the others' that are too many. */
static fallible add_bytes(struct build *b, size_t count)
{
    struct builds *all = b->builds;
    uint64_t room = all->config.context_bytes;
    uint64_t most = room < BUILDS_CONTEXT ? room : BUILDS_CONTEXT;

    /* The sum may be over the limit already: settings may have changed since. */
    if (b->bytes > most || count > most - b->bytes)
        return err_new(ERR_TOO_LARGE, "context: more than %llu bytes", (unsigned long long)most);
    if (all->bytes > room || count > room - all->bytes)
        return err_again(err_new(ERR_LIMIT,
                                 "context: with those of other builds it is more than %llu bytes "
                                 "(server.build_bytes): try again when one has ended",
                                 (unsigned long long)room),
                         BUILD_AGAIN_S);
    b->bytes += count;
    all->bytes += count;
    return NULL;
}

static fallible on_data(void *ctx, struct str piece)
{
    struct form *f = ctx;

    if (f->field == FIELD_TARGET || f->field == FIELD_TAGS)
        buf_add(&f->text, piece);
    if (f->field != FIELD_CONTEXT)
        return NULL;
    buf_reset(&f->decoded);
    TRY_WRAP(err_recode(form_b64_add(&f->b64, piece, &f->decoded), ERR_UNPROCESSABLE), "context");
    TRY(add_bytes(f->build, f->decoded.len));
    return err_wrap(fd_write_all(f->context, buf_str(&f->decoded)), "keep the context");
}

/* The target is the first of the tags, wherever it stands. */
static fallible take_name(struct form *f, struct str name)
{
    struct build *b = f->build;
    bool target = f->field == FIELD_TARGET;
    const char *what = target ? "target_image" : "tags";
    char text[BUILD_NAME] = "";

    if (buf_failed(&f->text) || name.len >= sizeof text || memchr(name.p, '\0', name.len))
        return err_new(ERR_UNPROCESSABLE, "%s: more than %zu characters", what, sizeof text - 1);
    memcpy(text, name.p, name.len);
    TRY_WRAP(err_recode(native_image_check(text), ERR_UNPROCESSABLE), "%s", what);
    if (strcmp(text, "host") == 0)
        return err_new(ERR_UNPROCESSABLE, "%s: 'host' is this machine's own system", what);
    if (target && f->has_target)
        return err_new(ERR_UNPROCESSABLE, "target_image: it is there twice");
    if (target) {
        f->has_target = true;
        memcpy(b->tags[0], text, sizeof text);
        return NULL;
    }
    if (b->tag_count + 1 >= BUILD_TAGS)
        return err_new(ERR_UNPROCESSABLE, "tags: more than %d", BUILD_TAGS - 1);
    memcpy(b->tags[++b->tag_count], text, sizeof text);
    return NULL;
}

static fallible on_part_end(void *ctx)
{
    struct form *f = ctx;

    if (f->field == FIELD_CONTEXT)
        return err_wrap(err_recode(form_b64_end(&f->b64), ERR_UNPROCESSABLE), "context");
    if (f->field == FIELD_OTHER)
        return NULL;
    return take_name(f, str_trim(f->text.len ? buf_str(&f->text) : STR("")));
}

fallible form_new(struct str content_type, struct build *b, struct form **ret_form)
{
    static const struct multipart_events events = {on_part, on_data, on_part_end};
    own(form) f = mem_try(sizeof *f);

    if (!f)
        return err_no_memory();
    *f = (struct form){.build = b, .context = -1};
    buf_init(&f->text, 4096);
    buf_init(&f->decoded, 1u << 20);
    TRY(multipart_new(content_type, &events, f, &f->parser));
    *ret_form = take(&f);
    return NULL;
}

void form_free(struct form *f)
{
    if (!f)
        return;
    multipart_free(f->parser);
    own_close_p(&f->context);
    buf_done(&f->text);
    buf_done(&f->decoded);
    free(f);
}

fallible form_feed(struct form *f, struct str piece)
{
    return multipart_feed(f->parser, piece);
}

fallible form_end(struct form *f)
{
    TRY(multipart_end(f->parser));
    if (f->context < 0 || !f->build->bytes)
        return err_new(ERR_UNPROCESSABLE, "context: it is missing; wanted base64 text of a tar.gz");
    if (!f->has_target)
        return err_new(ERR_UNPROCESSABLE, "target_image: it is missing");
    f->build->tag_count++; /* with the target */
    return NULL;
}
