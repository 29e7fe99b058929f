// SPDX-License-Identifier: Apache-2.0
/* image.c — croft image import, ls and rm: root file systems other than this machine's own. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/plain.h"
#include "cli/cli.h"
#include "cli/state.h"
#include "cli/things.h"
#include "host/images/images.h"
#include "host/overlay/overlay.h"

struct image_options {
    bool json;
    struct str name;
    uint64_t max_size;
};

static const struct cfg_row rows[] = {
    CFG_STR(image_options, name, "name", NULL,
            "What to call it; default: as the archive says, such as debian:12."),
    CFG_SIZE(image_options, max_size, "max-size", "32G", "Most bytes it may unpack to."),
    CFG_BOOL(image_options, json, "json", false, "Print JSON."),
};

struct job {
    struct cli *cli;
    struct image_options o;
    struct arena *a;
    int state;
    struct buf out;
};

static void put_image(struct jw *w, const struct image *i)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "id", i->id);
        jw_str(w, "name", i->name);
        JW_ARRAY(w, "aliases") {
            for (size_t k = 0; k < i->alias_count; k++)
                jw_str(w, NULL, i->aliases[k]);
        }
        jw_uint(w, "layers", i->layer_count);
        jw_uint(w, "bytes", i->bytes);
        jw_value(w, "config", i->config);
    }
}

static void put_one(struct job *j, const struct image *i)
{
    struct jw w;

    jw_init(&w, &j->out, JW_SPACED);
    if (j->o.json)
        put_image(&w, i);
    else
        buf_addf(&j->out, "%.12s " STR_FMT, i->id.p, STR_ARG(i->name));
    buf_add_char(&j->out, '\n');
}

/* --- import --- */

static void on_progress(void *arg, size_t done, size_t count, bool shared)
{
    const struct job *j = arg;
    own_done(buf) line;

    buf_init(&line, 256);
    buf_addf(&line, "croft image: layer %zu of %zu%s\n", done, count,
             shared ? ", already here" : "");
    if (count > 1)
        err_free(fd_write_all(j->cli->err, buf_str(&line))); /* nowhere left to report it */
}

static fallible image_import_archive(void *arg, const char *path)
{
    struct job *j = arg;
    struct image_import how = {
        .name = j->o.name.p, .limit_bytes = j->o.max_size, .progress = on_progress, .arg = j};
    struct image image;
    bool pipe = strcmp(path, "-") == 0;
    own_fd file = pipe ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (!pipe && file < 0)
        return err_sys("open '%s'", path);
    TRY_WRAP(images_import(j->state, pipe ? STDIN_FILENO : file, &how, j->a, &image), "import '%s'",
             path);
    put_one(j, &image);
    if (image.no_bash)
        err_free(fd_write_all(
            j->cli->err, STR("croft image: there is no /bin/bash in it: 'croft run --image' and "
                             "commands run as given work, the shells of agents and of 'croft "
                             "exec' do not\n"))); /* nowhere left to report it */
    return NULL;
}

/* --- ls --- */

static void put_size(struct buf *out, uint64_t bytes)
{
    static const char units[] = "BKMGT";
    size_t unit = 0;
    double n = (double)bytes;

    for (; n >= 1000 && unit + 2 < sizeof units; unit++)
        n /= 1024;
    buf_addf(out, n < 10 && unit ? "%.1f%c" : "%.0f%c", n, units[unit]);
}

static fallible image_list(void *arg)
{
    struct job *j = arg;
    struct image *all;
    size_t count;
    struct jw w;

    TRY(images_list(j->state, j->a, &all, &count));
    if (j->o.json) {
        jw_init(&w, &j->out, JW_SPACED);
        JW_ARRAY(&w, NULL) {
            for (size_t i = 0; i < count; i++)
                put_image(&w, &all[i]);
        }
        buf_add_char(&j->out, '\n');
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        buf_addf(&j->out, "%.12s  ", all[i].id.p);
        put_size(&j->out, all[i].bytes);
        buf_add_char(&j->out, '\t');
        plain_put_name(&j->out, all[i].name.len ? all[i].name : STR("-"));
        for (size_t k = 0; k < all[i].alias_count; k++) {
            buf_add_char(&j->out, ' ');
            plain_put_name(&j->out, all[i].aliases[k]);
        }
        buf_add_char(&j->out, '\n');
    }
    return NULL;
}

/* --- rm --- */

static bool in_use(void *arg, struct str id)
{
    const struct job *j = arg;

    return overlay_image_in_use(j->state, id);
}

static fallible remove_one(void *arg, const char *which)
{
    struct job *j = arg;
    struct image image;

    TRY(images_drop(j->state, which, in_use, j, j->a, &image));
    put_one(j, &image);
    return NULL;
}

static const struct cli_things things = {.make = "import",
                                         .of = "FILE",
                                         .thing = "IMAGE",
                                         .list = image_list,
                                         .create = image_import_archive,
                                         .remove = remove_one};

static fallible image_act(struct job *j, int argc, char **argv)
{
    TRY(cli_open_state(j->cli, &j->state));
    return cli_things_do(&things, j, argc, argv);
}

static int image_run(struct cli *cli, int argc, char **argv)
{
    own_done(arena) a = {0};
    struct job j = {.cli = cli, .a = &a, .state = -1};

    arena_init(&a, 256u << 20);
    struct err *e = cli_flags(cli, &a, &j.o, &argc, argv);
    if (!e)
        e = cli_things_check(&things, argc, argv);
    if (e)
        return cli_misuse(cli, e);
    buf_init(&j.out, 64u << 20);
    e = image_act(&j, argc, argv);
    int code = cli_put(cli, &j.out); /* what was done is said, also before a failure */
    buf_done(&j.out);
    own_close(j.state);
    return e ? cli_fail(cli, e) : code;
}

CLI_COMMAND(image) = {
    .name = "image",
    .group = CLI_HERE,
    .summary = "bring in, list and remove root file systems",
    .usage = "import FILE | ls | rm IMAGE ...",
    .help = "FILE is what 'docker save' or 'skopeo copy … oci-archive:' writes, or the tar of a\n"
            "root file system; plain or with gzip, zstd or xz; '-' reads it from standard input.\n"
            "It is unpacked by a process that can reach nothing but the new layer. Layers that\n"
            "several images have are kept once. IMAGE is a name or the first digits of an id.\n"
            "'rm' of a name takes only that away from an image that has others; 'rm' of an id\n"
            "takes the image with all its names.",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = image_run,
};
