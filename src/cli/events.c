// SPDX-License-Identifier: Apache-2.0
/* events.c — croft events verify FILE: is a conversation's log whole? Reads only. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "cli/cli.h"
#include "event/verify.h"

struct events_options {
    bool json;
};

static const struct cfg_row rows[] = {
    CFG_BOOL(events_options, json, "json", false, "Print a JSON object."),
};

static fallible verify_path(struct arena *a, const char *path, struct event_verdict *ret_verdict)
{
    struct str index_path = arena_printf(a, "%s.idx", path);
    own_fd log = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (log < 0)
        return err_sys("open '%s'", path);
    if (!index_path.p)
        return err_no_memory();
    own_fd index = open(index_path.p, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* -1: none */
    TRY_WRAP(event_verify(log, index, ret_verdict), "verify '%s'", path);
    return NULL;
}

static const char *advice(const struct event_verdict *v)
{
    switch (v->state) {
    case EVENT_OK:
        break;
    case EVENT_TORN:
        return "a commit was not finished; opening the log cuts these bytes and goes on, copy the "
               "file first if you want to keep them";
    case EVENT_CORRUPT:
        return "nothing was changed; copy the file, then put back a backup, or give up what "
               "follows by cutting the file at this offset and removing its .idx";
    case EVENT_BAD_INDEX:
        return "the log itself is whole; remove the .idx file, it is made again when the log is "
               "opened";
    }
    return "";
}

static void put_json(struct buf *out, const struct event_verdict *v, const char *head)
{
    struct jw w;

    jw_init(&w, out, JW_SPACED);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "verdict", event_state_word(v->state));
        jw_uint(&w, "records", v->records);
        jw_uint(&w, "bytes", v->bytes);
        jw_uint(&w, "first_id", v->first_seq);
        jw_uint(&w, "last_id", v->last_seq);
        jw_cstr(&w, "head", head);
        jw_cstr(&w, "index", event_index_word(v->index));
        if (v->state != EVENT_OK) {
            jw_uint(&w, "bad_offset", v->bad_offset);
            jw_uint(&w, "bad_id", v->bad_seq);
            jw_uint(&w, "bytes_after", v->after_bytes);
            jw_cstr(&w, "why", v->why);
            jw_cstr(&w, "advice", advice(v));
        }
    }
    buf_add_char(out, '\n');
}

static void put_text(struct buf *out, const struct event_verdict *v, const char *head)
{
    buf_addf(out, "records  %" PRIu64 "\nbytes    %" PRIu64 "\n", v->records, v->bytes);
    buf_addf(out, "ids      %" PRIu64 " to %" PRIu64 "\n", v->first_seq, v->last_seq);
    buf_addf(out, "head     %s\nindex    %s\nverdict  %s\n", head, event_index_word(v->index),
             event_state_word(v->state));
}

static int verify(struct cli *cli, struct arena *a, const char *path, bool json)
{
    struct event_verdict v = {0};
    char head[2 * SHA256_LEN + 1];
    own_done(buf) out;
    struct err *e = verify_path(a, path, &v);

    buf_init(&out, 1u << 16);
    if (e)
        return cli_fail(cli, e);
    hash_hex(v.head, sizeof v.head, head);
    if (json)
        put_json(&out, &v, head);
    else
        put_text(&out, &v, head);
    int code = cli_put(cli, &out);
    if (v.state == EVENT_OK)
        return code;
    return cli_fail(cli, err_new(ERR_CORRUPT,
                                 "'%s': record %" PRIu64 " at offset %" PRIu64 " %s, %" PRIu64
                                 " bytes from there on: %s",
                                 path, v.bad_seq, v.bad_offset, v.why, v.after_bytes, advice(&v)));
}

static int run(struct cli *cli, int argc, char **argv)
{
    own_done(arena) a;
    struct events_options o;

    arena_init(&a, 1u << 20);
    struct err *e = cli_flags(cli, &a, &o, &argc, argv);
    if (!e && (argc != 2 || strcmp(argv[0], "verify") != 0))
        e = err_new(ERR_INVALID, "wanted: verify FILE");
    if (e)
        return cli_misuse(cli, e);
    return verify(cli, &a, argv[1], o.json);
}

CLI_COMMAND(events) = {
    .name = "events",
    .summary = "check the event log of a conversation",
    .usage = "verify FILE [--json]",
    .help = "Walks the log from its first record: lengths, ids, the chain of SHA-256 hashes, and\n"
            "the index FILE.idx beside it. Exits with 1 if anything is wrong and says at which\n"
            "offset and what to do. Changes nothing; a log in use may seem torn for a moment.",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = run,
};
