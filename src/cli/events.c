// SPDX-License-Identifier: Apache-2.0
/* events.c — croft events verify FILE: is a conversation's log whole, or a journal with all its
 * logs? Reads only. follow is in events_follow.c. */
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/events_follow.h"
#include "host/ops/trail_verify.h"

static const struct cfg_row rows[] = {
    CFG_STR(events_follow, since, "since", NULL,
            "For follow: begin after the event of this number; 0: the oldest; default: now."),
    CFG_STR(events_follow, kind, "kind", NULL, "For follow: only status, or only audit."),
    CFG_BOOL(events_follow, json, "json", false, "Print JSON; for follow, an object a line."),
};

static const char *events_advice(const struct event_verdict *v)
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
            jw_cstr(&w, "advice", events_advice(v));
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

/* --- several logs --- */

static const char *whole_word(const struct trail_verdict *t)
{
    if (!t->bad)
        return "ok";
    return t->bad->verdict.state != EVENT_OK ? event_state_word(t->bad->verdict.state)
                                             : trail_seal_word(t->bad->seal);
}

static void put_part(struct jw *w, const struct trail_part *p)
{
    char head[2 * SHA256_LEN + 1];

    hash_hex(p->verdict.head, sizeof p->verdict.head, head);
    JW_OBJECT(w, NULL) {
        jw_cstr(w, "log", p->name);
        jw_cstr(w, "verdict", event_state_word(p->verdict.state));
        jw_cstr(w, "seal", trail_seal_word(p->seal));
        if (p->sealed_in[0])
            jw_cstr(w, "sealed_in", p->sealed_in);
        jw_uint(w, "records", p->verdict.records);
        jw_uint(w, "bytes", p->verdict.bytes);
        jw_uint(w, "first_id", p->base + p->verdict.first_seq);
        jw_uint(w, "last_id", p->base + p->verdict.last_seq);
        jw_cstr(w, "head", head);
        jw_cstr(w, "index", event_index_word(p->verdict.index));
        if (p->verdict.state != EVENT_OK) {
            jw_uint(w, "bad_offset", p->verdict.bad_offset);
            jw_uint(w, "bad_id", p->base + p->verdict.bad_seq);
            jw_uint(w, "bytes_after", p->verdict.after_bytes);
            jw_cstr(w, "why", p->verdict.why);
            jw_cstr(w, "advice", events_advice(&p->verdict));
        }
    }
}

static void put_all(struct buf *out, const struct trail_verdict *t, bool json)
{
    struct jw w;

    if (json) {
        jw_init(&w, out, JW_SPACED);
        JW_OBJECT(&w, NULL) {
            jw_cstr(&w, "verdict", whole_word(t));
            JW_ARRAY(&w, "logs")
                for (const struct trail_part *p = t->parts; p; p = p->next)
                    put_part(&w, p);
        }
        buf_add_char(out, '\n');
        return;
    }
    buf_add_cstr(out, "LOG\tRECORDS\tBYTES\tIDS\tSEAL\tVERDICT\n");
    for (const struct trail_part *p = t->parts; p; p = p->next)
        buf_addf(out, "%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 " to %" PRIu64 "\t%s%s%s\t%s\n",
                 p->name, p->verdict.records, p->verdict.bytes, p->base + p->verdict.first_seq,
                 p->base + p->verdict.last_seq, trail_seal_word(p->seal),
                 p->sealed_in[0] ? " in " : "", p->sealed_in, event_state_word(p->verdict.state));
    buf_addf(out, "verdict  %s\n", whole_word(t));
}

static const char *seal_advice(const struct trail_part *p)
{
    switch (p->seal) {
    case TRAIL_UNSEALED:
        return "its last records could be taken away unnoticed; the server was killed before it "
               "wrote the seal, and writes it when it starts";
    case TRAIL_REWRITTEN:
        return "records of it were changed, taken away or added after the seal; put back a backup";
    default:
        return "put back a backup";
    }
}

static fallible events_tell(const struct trail_verdict *t, const char *path)
{
    const struct trail_part *p = t->bad;

    if (!p)
        return NULL;
    const struct event_verdict *v = &p->verdict;
    if (v->state == EVENT_OK)
        return err_new(ERR_CORRUPT, "'%s' (%" PRIu64 " to %" PRIu64 ") %s: %s", p->name,
                       p->base + v->first_seq, p->base + v->last_seq, t->why, seal_advice(p));
    return err_new(ERR_CORRUPT,
                   "'%s': record %" PRIu64 " at offset %" PRIu64 " %s, %" PRIu64
                   " bytes from there on: %s",
                   t->count > 1 ? p->name : path, v->bad_seq, v->bad_offset, v->why, v->after_bytes,
                   events_advice(v));
}

static fallible events_look(struct arena *a, const char *path, struct trail_verdict *ret)
{
    own_free char *of_dir = mem_dup_cstr(path), *of_name = mem_dup_cstr(path);
    own_fd dir = open(dirname(of_dir), O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return err_sys("open '%s'", path);
    TRY_WRAP(trail_verify(dir, basename(of_name), a, ret), "'%s'", path);
    return NULL;
}

static int events_verify(struct cli *cli, struct arena *a, const char *path, bool json)
{
    struct trail_verdict t;
    char head[2 * SHA256_LEN + 1];
    own_done(buf) out;
    struct err *e = events_look(a, path, &t);

    buf_init(&out, 16u << 20);
    if (e)
        return cli_fail(cli, e);
    const struct event_verdict *v = &t.parts->verdict;
    hash_hex(v->head, sizeof v->head, head);
    if (t.count > 1)
        put_all(&out, &t, json);
    else if (json)
        put_json(&out, v, head);
    else
        put_text(&out, v, head);
    int code = cli_put(cli, &out);
    e = events_tell(&t, path);
    return e ? cli_fail(cli, e) : code;
}

static int events_run(struct cli *cli, int argc, char **argv)
{
    own_done(arena) a;
    struct events_follow o = {0};

    arena_init(&a, 1u << 20);
    struct err *e = cli_flags(cli, &a, &o, &argc, argv);
    bool follows = argc == 1 && strcmp(argv[0], "follow") == 0;
    if (!e && !follows && (argc != 2 || strcmp(argv[0], "verify") != 0))
        e = err_new(ERR_INVALID, "wanted: follow, or verify FILE");
    if (!e && follows)
        e = events_follow_check(&o);
    if (e)
        return cli_misuse(cli, e);
    return follows ? events_follow(cli, &o) : events_verify(cli, &a, argv[1], o.json);
}

CLI_COMMAND(events) = {
    .name = "events",
    .group = CLI_SERVER,
    .summary = "follow what happens at a server, or check an event log",
    .usage = "follow | verify FILE",
    .help =
        "follow prints a line for each change of a sandbox's state and each request that\n"
        "changed something, from now on or from --since on: those of one's own key, of all\n"
        "keys for a key with the scope admin.\n"
        "\n"
        "verify walks the log from its first record: lengths, ids, the chain of SHA-256\n"
        "hashes, and the index FILE.idx beside it. Of a server's journal\n"
        "(STATE/server/journal) all logs are read, the oldest first, and each must be sealed\n"
        "by its hash in a later one, but for the newest. Exits with 1 if anything is wrong and\n"
        "says where and what to do. Changes nothing; a log in use may seem torn or unsealed\n"
        "for a moment.",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = events_run,
};
