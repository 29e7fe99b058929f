// SPDX-License-Identifier: Apache-2.0
/* cp.c — croft cp: files and directories into a server's sandbox and out of it, of any size.
 *
 * Directories travel as archives; in memory there is one piece of them at a time. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/rng.h"
#include "cli/ask.h"
#include "guest/zip/zip.h"
#include "loop/loop.h"
#include "net/client.h"
#include "net/stream.h"
#include "net/url.h"

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
    uint64_t bytes; /* that travelled: of a tree, its archive's */
    struct str url, key;
    /* of an upload */
    struct http_call *call;
    int file;             /* -1: a tree */
    struct zip_out *tree; /* NULL: a file */
    struct buf answer;
    struct str head;
    int status;
    bool sent, done;
    struct err *failed;
};

/* "SANDBOX:PATH", or a path here; "./a:b" is one of ours. */
static struct place place_of(const char *text)
{
    struct str all = str_of(text), before = all;
    ptrdiff_t colon = str_find_char(all, ':');

    if (colon > 0)
        before = str_first(all, (size_t)colon);
    if (colon <= 0 || str_find_char(before, '/') >= 0)
        return (struct place){.path = all};
    return (struct place){before, str_from(all, (size_t)colon + 1)};
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

static struct str query(struct copy *c, const char *before, struct str value)
{
    own_done(buf) b;

    buf_init(&b, 1u << 16);
    buf_add_cstr(&b, before);
    url_encode(&b, value, true);
    return arena_copy(&c->k.arena, buf_str(&b));
}

static fallible ask_inside(struct copy *c, const char *method, struct str path, struct str body,
                           bool (*each)(void *arg, struct str piece), void *arg, int *ret_status)
{
    return ask_stream(&c->k,
                      &(struct ask_stream){.method = method,
                                           .url = c->url,
                                           .path = path,
                                           .key_name = STR("X-Session-API-Key"),
                                           .key = c->key,
                                           .body = body,
                                           .each = each,
                                           .arg = arg},
                      ret_status);
}

static fallible told(struct copy *c, int status, const struct buf *answer)
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
    TRY(ask_inside(c, "POST", STR("/list_files"), buf_str(&body), ask_keep, &text, &status));
    TRY(told(c, status, &text));
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

static fallible next_piece(struct copy *c, char *page, size_t *ret_len)
{
    if (c->tree)
        return zip_out_next(c->tree, page, PIECE, ret_len);
    ssize_t n = read(c->file, page, PIECE);
    if (n < 0)
        return err_sys("read");
    *ret_len = (size_t)n;
    return NULL;
}

static void pump(struct copy *c)
{
    own_free char *page = malloc(PIECE);
    size_t n = 1;

    while (page && !c->sent && !c->done && http_call_pending(c->call) < STREAM_HIGH) {
        struct err *e = next_piece(c, page, &n);
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
    pump(http_call_owner(call));
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

static fallible upload(struct copy *c, struct str path, struct str name)
{
    static const struct http_call_events events = {on_head, on_body, on_drain, on_done};
    const struct http_header headers[] = {
        {STR("X-Session-API-Key"), c->key},
        {STR("Content-Type"), STR("multipart/form-data; boundary=" BOUNDARY)},
    };
    struct str url = arena_printf(&c->k.arena, STR_FMT STR_FMT, STR_ARG(c->url), STR_ARG(path));
    struct str head =
        arena_printf(&c->k.arena,
                     "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"file\"; "
                     "filename=\"" STR_FMT "\"\r\nContent-Type: "
                     "application/octet-stream\r\n\r\n",
                     STR_ARG(name));

    if (str_find_char(name, '"') >= 0 || str_find_char(name, '\r') >= 0 ||
        str_find_char(name, '\n') >= 0)
        return err_new(ERR_UNSUPPORTED,
                       "'" STR_FMT "': a name with quotes or line ends cannot be "
                       "sent alone; copy its directory",
                       STR_ARG(name));
    TRY(arena_check(&c->k.arena));
    TRY(http_call_start(c->k.client,
                        &(struct http_call_spec){.method = STR("POST"),
                                                 .url = url,
                                                 .headers = headers,
                                                 .header_count = ARRAY_LEN(headers),
                                                 .stream_body = true,
                                                 .idle_ms = IDLE_MS},
                        &events, c, &c->call));
    http_call_write(c->call, head);
    pump(c);
    while (!c->done)
        TRY(loop_turn(c->k.loop, -1));
    if (c->failed)
        return c->failed;
    return told(c, c->status, &c->answer);
}

static fallible copy_in(struct copy *c, struct str from, struct str to)
{
    const char *path = arena_cstr(&c->k.arena, from);
    struct str name = last_part(from);
    struct stat st;
    bool dir;
    own_fd fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys("open '" STR_FMT "'", STR_ARG(from));
    TRY(is_dir_inside(c, to, &dir));
    if (S_ISDIR(st.st_mode)) {
        bool dot = str_eq(name, STR(".")) || str_eq(name, STR(".."));
        struct str into =
            dir && !dot ? arena_printf(&c->k.arena, STR_FMT "/" STR_FMT, STR_ARG(to), STR_ARG(name))
                        : to;
        TRY(zip_out_tree(take_fd(&fd), &(struct zip_out_config){.dirs = true}, &c->tree));
        return upload(c, query(c, "/upload_file?recursive=true&destination=", into),
                      STR("tree.zip"));
    }
    c->file = fd;
    struct str into = dir ? to : parent_of(to);
    return upload(c, query(c, "/upload_file?recursive=false&destination=", into),
                  dir ? name : last_part(to));
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

static fallible unpack(int archive, int dir)
{
    char name[40] = ".croft-cp-";
    own(zip_in) z = NULL;
    bool done = false;

    rng_token(rng_system(), name + 10, 16);
    if (mkdirat(dir, name, 0700) < 0)
        return err_sys("make a directory beside the target");
    own_fd staging = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err *e = staging < 0 ? err_sys("open '%s'", name) : NULL;
    if (!e)
        e = zip_in_new(archive,
                       &(struct zip_in_config){
                           .dir = dir, .staging = staging, .uid = (uid_t)-1, .gid = (gid_t)-1},
                       &z);
    while (!e && !done)
        e = zip_in_step(z, &done);
    zip_in_free(take(&z));
    if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && !e)
        e = err_sys("remove '%s'", name);
    return e;
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
    own_fd dir = -1;

    TRY(make_target(c, into ? to : parent_of(to), &dir));
    TRY(unpack(archive, dir));
    struct str wanted = last_part(to);
    if (into || str_eq(wanted, name))
        return NULL;
    if (renameat(dir, arena_cstr(&c->k.arena, name), dir, arena_cstr(&c->k.arena, wanted)) < 0)
        return err_sys("name it '" STR_FMT "'", STR_ARG(wanted));
    return NULL;
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
    if (archive < 0)
        return err_sys("make a temporary file in '%s'", beside ? beside : "");
    a.fd = archive;
    buf_init(&a.start, 16384);
    TRY(is_dir_inside(c, from, &is_dir));
    struct err *e = ask_inside(c, "GET", query(c, "/download_files?path=", from), (struct str){0},
                               write_archive, &a, &status);
    if (!e)
        e = a.failed ? take(&a.failed) : told(c, status, &a.start);
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
    return unpack(archive, dir);
}

static fallible copy(struct copy *c, int argc, char **argv)
{
    struct json *sandbox;

    if (argc != 2)
        return cli_wrong(c->k.cli, "wanted FROM and TO, one of them as SANDBOX:PATH");
    struct place from = place_of(argv[0]), to = place_of(argv[1]);
    if (!from.sandbox.p == !to.sandbox.p)
        return cli_wrong(c->k.cli, "one of FROM and TO is SANDBOX:PATH, the other a path here");
    struct str name = from.sandbox.p ? from.sandbox : to.sandbox;
    if (!from.path.len || !to.path.len)
        return cli_wrong(c->k.cli, "SANDBOX: needs a path behind it");
    TRY(ask_sandbox(&c->k, arena_cstr(&c->k.arena, name), &sandbox));
    c->url = json_get_str(sandbox, "url", STR(""));
    c->key = json_get_str(sandbox, "session_api_key", STR(""));
    TRY_WRAP(from.sandbox.p ? copy_out(c, from.path, to.path) : copy_in(c, from.path, to.path),
             "'%s' to '%s'", argv[0], argv[1]);
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

static int run(struct cli *cli, int argc, char **argv)
{
    struct copy c = {.file = -1};
    struct err *e = ask_open(&c.k, cli);

    buf_init(&c.answer, 1u << 20);
    if (!e)
        e = cli_flags(cli, &c.k.arena, &c.o, &argc, argv);
    if (!e)
        e = copy(&c, argc, argv);
    int code = e ? cli_fail(cli, e) : c.o.json ? put_json(&c, argv) : CLI_OK;
    zip_out_free(c.tree);
    buf_done(&c.answer);
    ask_close(&c.k);
    return code;
}

CLI_COMMAND(cp) = {
    .name = "cp",
    .summary = "copy files into a server's sandbox, or out of it",
    .usage = "FROM TO",
    .help =
        "One of them is SANDBOX:PATH. A directory that is there gets the copy inside it, as cp -r\n"
        "does; 'dir/.' copies what is in dir.\n"
        "\n"
        "  croft cp src demo:/workspace           croft cp demo:/workspace/out.txt .\n",
    .options = {.rows = rows, .count = ARRAY_LEN(rows)},
    .run = run,
};
