// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "host/ops/trail.h"
#include "test/event_kit.h"
#include "test/program.h"

/* Runs "croft events verb path flag" with output and errors in one; gives the exit code. */
static int croft_events(struct buf *into, const char *verb, const char *path, const char *flag)
{
    buf_reset(into);
    return program_run(ARGS(test_program("croft"), "events", verb, path, flag), into);
}

/* flag NULL: none. */
static int verify_in(const char *flag, struct buf *into)
{
    char path[300];

    snprintf(path, sizeof path, "%s/log", test_dir());
    return croft_events(into, "verify", path, flag);
}

static void make_log(struct kit *k)
{
    kit_init(k);
    kit_open(k);
    kit_fill(k, 3);
    kit_close(k);
}

TEST(events_verify_says_what_a_whole_log_holds)
{
    struct kit k;
    own_done(buf) got = {.limit_bytes = 4096};

    make_log(&k);
    CHECK_INT(verify_in(NULL, &got), 0);
    CHECK_HAS(buf_str(&got), "records  3\nbytes    391\nids      1 to 3\nhead     ");
    CHECK_HAS(buf_str(&got), "index    ok\nverdict  ok\n");
    CHECK_INT(verify_in("--json", &got), 0);
    CHECK_HAS(buf_str(&got),
              "{\"verdict\": \"ok\", \"records\": 3, \"bytes\": 391, \"first_id\": 1, "
              "\"last_id\": 3, \"head\": \"");
    kit_done(&k);
}

TEST(events_verify_names_the_offset_and_what_to_do)
{
    struct kit k;
    own_done(buf) got = {.limit_bytes = 4096};

    make_log(&k);
    own_done(buf) log = kit_slurp(&k, "log");
    kit_put(&k, "log", str_first(buf_str(&log), log.len - 1));
    CHECK_INT(verify_in(NULL, &got), 1);
    CHECK_HAS(buf_str(&got), "verdict  torn\n");
    CHECK_HAS(buf_str(&got), "record 3 at offset 282 is cut short");
    CHECK_HAS(buf_str(&got), "opening the log cuts these bytes");
    log.p[100] ^= 1;
    kit_put(&k, "log", buf_str(&log));
    CHECK_INT(verify_in("--json", &got), 1);
    CHECK_HAS(buf_str(&got), "\"verdict\": \"corrupt\", \"records\": 0");
    CHECK_HAS(buf_str(&got), "\"bad_offset\": 64, \"bad_id\": 1");
    CHECK_HAS(buf_str(&got), "cutting the file at this offset");
    kit_done(&k);
}

TEST(events_verify_finds_a_wrong_index)
{
    struct kit k;
    own_done(buf) got = {.limit_bytes = 4096};

    make_log(&k);
    own_done(buf) index = kit_slurp(&k, "log.idx");
    kit_put(&k, "log.idx", str_first(buf_str(&index), 64 + 16));
    CHECK_INT(verify_in(NULL, &got), 0);
    CHECK_HAS(buf_str(&got), "index    short\nverdict  ok\n");
    index.p[64 + 16] ^= 1;
    kit_put(&k, "log.idx", buf_str(&index));
    CHECK_INT(verify_in(NULL, &got), 1);
    CHECK_HAS(buf_str(&got), "record 2 at offset 173 does not match its index entry");
    CHECK_HAS(buf_str(&got), "remove the .idx file");
    CHECK(unlinkat(k.dir, "log.idx", 0) == 0);
    CHECK_INT(verify_in(NULL, &got), 0);
    CHECK_HAS(buf_str(&got), "index    missing");
    kit_done(&k);
}

static void make_history(struct kit *k)
{
    static char filler[200];
    struct trail *t;

    kit_init(k);
    const struct trail_config c = {.loop = k->loop,
                                   .dir = k->dir,
                                   .name = "log",
                                   .keep_bytes = 64000,
                                   .options = {.inline_sync = true}};
    CHECK_OK(trail_open(&c, &t));
    memset(filler, 'f', sizeof filler);
    for (int i = 0; i < 60; i++) {
        const struct event_record r = {.kind = STR("note"),
                                       .payload = str_n(filler, sizeof filler)};
        CHECK_OK(trail_append(t, &r));
        kit_turns(k, 20);
    }
    trail_free(t);
    kit_turns(k, 20);
}

TEST(events_verify_reads_all_logs_of_a_journal_and_their_seals)
{
    struct kit k;
    own_done(buf) got = {.limit_bytes = 1u << 16};

    make_history(&k);
    CHECK_INT(verify_in(NULL, &got), 0);
    CHECK_HAS(buf_str(&got), "sealed in log.000000");
    CHECK_HAS(buf_str(&got), "\topen\tok\nverdict  ok\n");
    CHECK_INT(verify_in("--json", &got), 0);
    CHECK_HAS(buf_str(&got), "{\"verdict\": \"ok\", \"logs\": [{\"log\": \"log\", \"verdict\": "
                             "\"ok\", \"seal\": \"sealed\", \"sealed_in\": \"log.000000");
    own_done(buf) log = kit_slurp(&k, "log");
    own_done(buf) index = kit_slurp(&k, "log.idx");
    CHECK(unlinkat(k.dir, "log.idx", 0) == 0);
    kit_put(&k, "log", str_first(buf_str(&log), 64)); /* whole, and empty */
    CHECK_INT(verify_in(NULL, &got), 1);
    CHECK_HAS(buf_str(&got), "rewritten in log.000000");
    CHECK_HAS(buf_str(&got), "'log' (0 to 0) is not what it was when it was sealed");
    CHECK(unlinkat(k.dir, "log", 0) == 0); /* the oldest may go */
    CHECK_INT(verify_in(NULL, &got), 0);
    kit_done(&k);
}

TEST(events_without_a_file_is_used_wrongly)
{
    own_done(buf) got = {.limit_bytes = 4096};

    CHECK_INT(croft_events(&got, "verify", NULL, NULL), 2);
    CHECK_HAS(buf_str(&got), "verify FILE");
    CHECK_INT(croft_events(&got, "show", "x", NULL), 2);
    CHECK_INT(croft_events(&got, "verify", "/nonexistent/log", NULL), 1);
    CHECK_HAS(buf_str(&got), "No such file");
    CHECK_INT(croft_events(&got, "verify", "/etc/passwd", NULL), 1);
    CHECK_HAS(buf_str(&got), "is not an event log");
}
