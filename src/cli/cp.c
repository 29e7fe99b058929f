// SPDX-License-Identifier: Apache-2.0
/* cp.c — croft cp: files and directories into a server's sandbox and out of it, of any size.
 *
 * All travels as archives, exact ones: links go as links, for what they lead to was not asked for
 * and may be a secret. In memory there is one piece of them at a time. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/plain.h"
#include "base/rng.h"
#include "cli/ask.h"
#include "guest/zip/zip.h"
#include "host/tree/tree.h"
#include "loop/loop.h"
#include "net/stream.h"
#include "net/url.h"
#include "out/client.h"

#define PIECE    (256u << 10)
#define IDLE_MS  (10 * 60 * 1000)
#define BOUNDARY "croft-cp-0b7e4f2a91"

struct place {          /* one side of a copy */
    struct str sandbox; /* .p NULL: here */
    struct str path;
};

struct copy_options {
    bool json;
};

static const struct cfg_row rows[] = {
    CFG_BOOL(copy_options, json, "json", false, "Print what was copied as JSON."),
};

struct copy {
    struct ask k;
    struct copy_options o;
    uint64_t bytes;    /* of the archive that travelled */
    unsigned too_long; /* entries that were left out */
    struct ask_inside inside;
    /* of an upload */
    struct http_call *call;
    struct zip_out *zip;
    struct buf answer;
    int status;
    bool sent, done;
    struct err *failed;
};

/* A sandbox of another key, and not a directory here: for that there is "./". */
static bool is_key_and_name(struct str before, struct str path)
{
    struct str rest = before, key;

    return str_cut(&rest, '/', &key) && key.len && rest.len && str_find_char(rest, '/') < 0 &&
           key.p[0] != '.' && key.p[0] != '~' && str_starts(path, STR("/"));
}

/* "SANDBOX:PATH" or "KEY/NAME:PATH", or a path here; "./a:b" is one of ours. */
static struct place place_of(const char *text)
{
    struct str all = str_of(text), before = all;
    ptrdiff_t colon = str_find_char(all, ':');

    if (colon > 0)
        before = str_first(all, (size_t)colon);
    struct str path = str_from(all, colon < 0 ? all.len : (size_t)colon + 1);
    if (colon <= 0 || (str_find_char(before, '/') >= 0 && !is_key_and_name(before, path)))
        return (struct place){.path = all};
    return (struct place){before, path};
}

static struct str last_part(struct str path)
{
    while (path.len > 1 && path.p[path.len - 1] == '/')
        path.len--;
    for (size_t i = path.len; i > 0; i--)
        if (path.p[i - 1] == '/')
            return str_from(path, i);
    return path;
}

static struct str parent_of(struct str path)
{
    while (path.len > 1 && path.p[path.len - 1] == '/')
        path.len--;
    size_t n = path.len - last_part(path).len;
    return n > 1 ? str_first(path, n - 1) : n == 1 ? STR("/") : STR(".");
}

static struct str cp_query(struct copy *c, const char *before, struct str value)
{
    own_done(buf) b;

    buf_init(&b, 1u << 16);
    buf_add_cstr(&b, before);
    url_encode(&b, value, true);
    return arena_copy(&c->k.arena, buf_str(&b));
}

static fallible ask_there(struct copy *c, const char *method, struct str path, struct str body,
                          bool (*each)(void *arg, struct str piece), void *arg, int *ret_status)
{
    return ask_stream(&c->k,
                      &(struct ask_stream){.method = method,
                                           .inside = &c->inside,
                                           .path = path,
                                           .body = body,
                                           .each = each,
                                           .arg = arg},
                      ret_status);
}

static fallible cp_told(struct copy *c, int status, const struct buf *answer)
{
    return ask_refused(&c->k, status, buf_str(answer));
}

/* Directories are listed with a slash at their end. */
static fallible is_dir_inside(struct copy *c, struct str path, bool *ret_dir)
{
    own_done(buf) text;
    own_done(buf) body;
    struct json *list = NULL;
    struct str name = last_part(path);
    struct jw w;
    int status;

    buf_init(&text, 64u << 20);
    buf_init(&body, 1u << 16);
    *ret_dir = str_ends(path, STR("/")) || str_eq(name, STR(".")) || str_eq(name, STR(".."));
    if (*ret_dir)
        return NULL;
    jw_init(&w, &body, JW_WEB);
    JW_OBJECT(&w, NULL)
        jw_str(&w, "path", parent_of(path));
    TRY(ask_there(c, "POST", STR("/list_files"), buf_str(&body), ask_keep, &text, &status));
    TRY(cp_told(c, status, &text));
    TRY(json_parse(&c->k.arena, arena_copy(&c->k.arena, buf_str(&text)), NULL, &list));
    for (const struct json *at = list->first; at; at = at->next)
        if (at->type == JSON_STR && at->s.len == name.len + 1 && str_starts(at->s, name) &&
            at->s.p[name.len] == '/')
            *ret_dir = true;
    return NULL;
}

/* --- in --- */

static void give_up(struct copy *c, struct err *e)
{
    http_call_cancel(c->call);
    c->failed = e;
    c->done = true;
}

static void cp_pump(struct copy *c)
{
    own_free char *page = malloc(PIECE);
    size_t n = 1;

    while (page && !c->sent && !c->done && http_call_pending(c->call) < STREAM_HIGH) {
        struct err *e = zip_out_next(c->zip, page, PIECE, &n);
        if (e) {
            give_up(c, e);
            return;
        }
        if (n) {
            c->bytes += n;
            http_call_write(c->call, str_n(page, n));
            continue;
        }
        http_call_write(c->call, STR("\r\n--" BOUNDARY "--\r\n"));
        http_call_write_end(c->call);
        c->sent = true;
    }
    if (!page)
        give_up(c, err_no_memory());
}

static void on_drain(struct http_call *call)
{
    cp_pump(http_call_owner(call));
}

static void on_head(struct http_call *call, const struct http_head *head)
{
    ((struct copy *)http_call_owner(call))->status = head->status;
}

static void on_body(struct http_call *call, struct str piece)
{
    buf_add(&((struct copy *)http_call_owner(call))->answer, piece);
}

static void on_done(struct http_call *call, struct err *e)
{
    struct copy *c = http_call_owner(call);

    c->failed = e;
    c->done = true;
}

/* Into a directory inside, which is made if it is missing. */
static fallible cp_upload(struct copy *c, struct str into)
{
    static const struct http_call_events events = {on_head, on_body, on_drain, on_done};
    static const struct http_call_spec spec = {
        .method = STR_INIT("POST"), .stream_body = true, .idle_ms = IDLE_MS};

    TRY(ask_inside_start(
        &c->k, &c->inside, cp_query(c, "/upload_file?recursive=true&exact=true&destination=", into),
        STR("multipart/form-data; boundary=" BOUNDARY), &spec, &events, c, &c->call));
    http_call_write(c->call, STR("--" BOUNDARY "\r\nContent-Disposition: form-data; "
                                 "name=\"file\"; filename=\"tree.zip\"\r\nContent-Type: "
                                 "application/octet-stream\r\n\r\n"));
    cp_pump(c);
    while (!c->done)
        TRY(loop_turn(c->k.loop, -1));
    if (c->failed && c->status < 400)
        return take(&c->failed);
    err_free(take(&c->failed)); /* it would not hear us out: what it said is why */
    return cp_told(c, c->status, &c->answer);
}

/* Only files, directories and links are copied, and of paths those that an archive can hold. */
static void tell_left_out(void *arg, struct str path)
{
    struct copy *c = arg;
    own_done(buf) line;
    bool too_long = path.len > ZIP_PATH_MAX;

    c->too_long += too_long;
    buf_init(&line, 1u << 17);
    buf_add_cstr(&line, too_long ? "croft cp: left out, for its path is over 4096 bytes long: "
                                 : "croft cp: left out, for it is no file, directory or link: ");
    plain_put_name(&line, path);
    buf_add_char(&line, '\n');
    err_free(fd_write_all(c->k.cli->err, buf_str(&line))); /* nowhere left to report it */
}

static fallible copy_in(struct copy *c, struct str from, struct str to)
{
    const char *path = arena_cstr(&c->k.arena, from);
    struct str name = last_part(from);
    struct zip_out_config config = {.exact = true, .left_out = tell_left_out, .arg = c};
    struct stat st;
    bool dir;
    own_fd fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys("open '" STR_FMT "'", STR_ARG(from));
    TRY(is_dir_inside(c, to, &dir));
    if (S_ISREG(st.st_mode)) {
        TRY(zip_out_file(take_fd(&fd), dir ? name : last_part(to), &config, &c->zip));
        return cp_upload(c, dir ? to : parent_of(to));
    }
    if (!S_ISDIR(st.st_mode))
        return err_new(ERR_INVALID, "'" STR_FMT "' is neither a file nor a directory",
                       STR_ARG(from));
    bool dot = str_eq(name, STR(".")) || str_eq(name, STR(".."));
    config.no_top = dot;
    TRY(zip_out_tree(take_fd(&fd), &config, &c->zip));
    return cp_upload(
        c, dir && !dot ? arena_printf(&c->k.arena, STR_FMT "/" STR_FMT, STR_ARG(to), STR_ARG(name))
                       : to);
}

/* --- out --- */

struct archive {
    int fd;
    uint64_t bytes;
    struct buf start; /* of the answer: an error, if it is one */
    struct err *failed;
};

static bool write_archive(void *arg, struct str piece)
{
    struct archive *a = arg;

    if (a->start.len < 4096)
        buf_add(&a->start, str_first(piece, 4096));
    a->bytes += piece.len;
    a->failed = fd_write_all(a->fd, piece);
    return !a->failed;
}

struct aside { /* a directory of our own in another, for as long as we work */
    char name[40];
    int fd;
};

static fallible aside_make(int dir, struct aside *ret)
{
    *ret = (struct aside){.name = ".croft-cp-"};
    rng_token(rng_system(), ret->name + 10, 16);
    if (mkdirat(dir, ret->name, 0700) < 0)
        return err_sys("make a directory beside the target");
    ret->fd = openat(dir, ret->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return ret->fd < 0 ? err_sys("open '%s'", ret->name) : NULL;
}

static fallible aside_remove(int dir, struct aside *a, struct err *e)
{
    own_close(a->fd);
    struct err *left = tree_remove(dir, a->name); /* a refused archive may have put some into it */
    if (!e)
        return left;
    err_free(left);
    return e;
}

static fallible cp_unpack(struct copy *c, int archive, int dir, bool top)
{
    struct aside staging;
    own(zip_in) z = NULL;
    bool done = false;

    TRY(aside_make(dir, &staging));
    struct err *e = zip_in_new(archive,
                               &(struct zip_in_config){.dir = dir,
                                                       .staging = staging.fd,
                                                       .uid = (uid_t)-1,
                                                       .gid = (gid_t)-1,
                                                       .exact = true,
                                                       .no_top = !top,
                                                       .left_out = tell_left_out,
                                                       .arg = c},
                               &z);
    while (!e && !done)
        e = zip_in_step(z, &done);
    zip_in_free(take(&z));
    return aside_remove(dir, &staging, e);
}

static fallible make_target(struct copy *c, struct str path, int *ret_dir)
{
    const char *p = arena_cstr(&c->k.arena, path);

    if (p && mkdir(p, 0777) < 0 && errno != EEXIST)
        return err_sys("make '%s'", p);
    int dir = p ? open(p, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir < 0)
        return err_sys("open '" STR_FMT "'", STR_ARG(path));
    *ret_dir = dir;
    return NULL;
}

static bool is_dir_here(struct copy *c, struct str path)
{
    struct stat st;
    const char *p = arena_cstr(&c->k.arena, path);

    return p && stat(p, &st) == 0 && S_ISDIR(st.st_mode);
}

static fallible place_file(struct copy *c, int archive, struct str name, struct str to)
{
    bool into = is_dir_here(c, to) || str_ends(to, STR("/"));
    struct aside there;
    own_fd dir = -1;

    TRY(make_target(c, into ? to : parent_of(to), &dir));
    const char *called = arena_cstr(&c->k.arena, name);
    const char *wanted = arena_cstr(&c->k.arena, into ? name : last_part(to));
    TRY(arena_check(&c->k.arena));
    TRY(aside_make(dir, &there)); /* its own name may be another file's here */
    struct err *e = cp_unpack(c, archive, there.fd, false);
    if (!e && renameat(there.fd, called, dir, wanted) < 0)
        e = err_sys("name it '%s'", wanted);
    return aside_remove(dir, &there, e);
}

static fallible copy_out(struct copy *c, struct str from, struct str to)
{
    struct archive a = {.fd = -1};
    struct str name = last_part(from);
    own_fd archive = -1, dir = -1;
    bool is_dir, dot = str_eq(name, STR(".")) || str_eq(name, STR(".."));
    int status;

    const char *beside = arena_cstr(&c->k.arena, is_dir_here(c, to) ? to : parent_of(to));
    archive = beside ? open(beside, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    if (archive < 0 && errno == ENOENT)
        return err_sys("there is no directory '%s' here; make it first", beside ? beside : "");
    if (archive < 0)
        return err_sys("make a temporary file in '%s'", beside ? beside : "");
    a.fd = archive;
    buf_init(&a.start, 16384);
    TRY(is_dir_inside(c, from, &is_dir));
    struct err *e = ask_there(c, "GET", cp_query(c, "/download_files?exact=true&path=", from),
                              (struct str){0}, write_archive, &a, &status);
    if (!e)
        e = a.failed ? take(&a.failed) : cp_told(c, status, &a.start);
    buf_done(&a.start);
    if (e)
        return e;
    c->bytes = a.bytes;
    if (!is_dir)
        return place_file(c, archive, name, to);
    struct str into = is_dir_here(c, to) && !dot ? arena_printf(&c->k.arena, STR_FMT "/" STR_FMT,
                                                                STR_ARG(to), STR_ARG(name))
                                                 : to;
    TRY(make_target(c, into, &dir));
    return cp_unpack(c, archive, dir, !dot);
}

static fallible cp_copy(struct copy *c, int argc, char **argv)
{
    struct json *sandbox;

    if (argc != 2)
        return cli_wrong(c->k.cli, "wanted FROM and TO, one of them as SANDBOX:PATH");
    if (strcmp(argv[0], "-") == 0 || strcmp(argv[1], "-") == 0)
        return cli_wrong(c->k.cli,
                         "'-' is no path (./- is): 'croft exec SANDBOX -- cat FILE' writes "
                         "a file out, 'croft exec --interactive SANDBOX -- sh -c \"cat > "
                         "FILE\"' reads one in");
    struct place from = place_of(argv[0]), to = place_of(argv[1]);
    if (!from.sandbox.p == !to.sandbox.p)
        return cli_wrong(c->k.cli, "one of FROM and TO is SANDBOX:PATH, the other a path here");
    struct str name = from.sandbox.p ? from.sandbox : to.sandbox;
    if (!from.path.len || !to.path.len)
        return cli_wrong(c->k.cli, "SANDBOX: needs a path behind it");
    if (!str_starts(from.sandbox.p ? from.path : to.path, STR("/")))
        return cli_wrong(c->k.cli, "the path behind SANDBOX: is absolute, such as /workspace/out");
    TRY(ask_sandbox(&c->k, arena_cstr(&c->k.arena, name), &sandbox));
    TRY(ask_inside(&c->k, sandbox, &c->inside));
    TRY_WRAP(from.sandbox.p ? copy_out(c, from.path, to.path) : copy_in(c, from.path, to.path),
             "'%s' to '%s'", argv[0], argv[1]);
    if (c->too_long)
        return err_new(ERR_TOO_LARGE,
                       "%u with paths of over 4096 bytes were left out; the rest is "
                       "copied",
                       c->too_long);
    return NULL;
}

static int put_json(const struct copy *c, char **argv)
{
    own_done(buf) out;
    struct jw w;

    buf_init(&out, 1u << 20);
    jw_init(&w, &out, JW_SPACED);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "from", argv[0]);
        jw_cstr(&w, "to", argv[1]);
        jw_uint(&w, "transferred_bytes", c->bytes);
    }
    buf_add_char(&out, '\n');
    return cli_put(c->k.cli, &out);
}

static int cp_run(struct cli *cli, int argc, char **argv)
{
    struct copy c = {0};
    struct err *e = ask_open(&c.k, cli);

    buf_init(&c.answer, 1u << 20);
    if (!e)
        e = cli_flags(cli, &c.k.arena, &c.o, &argc, argv);
    if (!e && argc > 0 && strcmp(argv[0], "--") == 0) {
        argc--;
        argv++;
    }
    if (!e)
        e = cp_copy(&c, argc, argv);
    int code = e ? cli_fail(cli, e) : c.o.json ? put_json(&c, argv) : CLI_OK;
    zip_out_free(c.zip);
    buf_done(&c.answer);
    ask_close(&c.k);
    return code;
}

CLI_COMMAND(cp) = {
    .name = "cp",
    .group = CLI_SANDBOXES,
    .summary = "copy files into a server's sandbox, or out of it",
    .usage = "SANDBOX:PATH PATH | PATH SANDBOX:PATH",
    .help =
        "One of them is SANDBOX:PATH or KEY/NAME:PATH, its path absolute; './a:b' is a path here.\n"
        "A directory that is there gets the copy\n"
        "inside it, as cp -r does; 'dir/.' copies what is in dir. Permissions and times (to the\n"
        "second) are kept, set-id bits and owners are not. Links below what is copied go as "
        "links;\n"
        "fifos, sockets and devices are left out, and named. So are paths of over 4096 bytes, and\n"
        "then the exit code is 1.\n"
        "\n"
        "  croft cp src demo:/workspace           croft cp demo:/workspace/out.txt .\n",
    .options = {.rows = rows, .count = ARRAY_LEN(rows)},
    .run = cp_run,
};
