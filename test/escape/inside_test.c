// SPDX-License-Identifier: Apache-2.0
/* The corpus, tried inside: through croft run, as an ordinary user, and through the launcher. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/contract/contract.h"
#include "test/escape/escape.h"
#include "test/native/kit.h"
#include "test/program.h"

#define LIMIT_S 240

/* The host looks first: the control does outside what nobody may have done until then. */
static void judge(struct escape_bait *b, struct watch *w, struct str printed)
{
    own_done(buf) inside;
    own_done(buf) control;

    buf_init(&inside, 1u << 20);
    buf_init(&control, 1u << 20);
    escape_verdicts(b, w, printed, &inside);
    escape_control(b, &control);
    unsigned doors = escape_judge(buf_str(&control), buf_str(&inside));
    printf("%u doors open outside, none inside\n", doors);
    CHECK(doors >= ESCAPE_ATTEMPTS);
}

/* "run" and its flags, then the probe and its words. */
static void run_args(const struct escape_bait *b, const char *dir, const char **argv)
{
    const char *const args[] = {"run", "--discard", "--workspace",
                                dir,   "--",        "/workspace/escape-probe"};

    memcpy(argv, args, sizeof args);
    memcpy(argv + ARRAY_LEN(args), b->words, sizeof b->words);
}

TEST_LIMIT(no_door_of_the_escape_corpus_is_open_in_croft_run, LIMIT_S)
{
    const char *argv[40];
    char state[4200], dir[300];
    struct escape_bait b;
    own_done(buf) out;

    kit_need_root();
    buf_init(&out, 1u << 20);
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("CROFT_SERVER_STATE_DIR", state, 1);
    kit_share_layers(state);
    escape_place_probe(dir);
    escape_bait_lay(&b, 0);
    argv[0] = test_program("croft");
    run_args(&b, dir, argv + 1);
    struct watch *w = escape_watch(&b);
    CHECK_INT(program_run(argv, &out), 0);
    kit_settle();
    judge(&b, w, buf_str(&out));
    escape_bait_take_up(&b);
    kit_check_empty("state/box");
}

TEST_LIMIT(no_door_of_the_escape_corpus_is_open_to_an_ordinary_users_sandbox, LIMIT_S)
{
    const char *argv[40];
    char dir[300];
    struct escape_bait b;
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    kit_be_nobody();
    escape_own_mounts();
    escape_place_probe(dir);
    escape_bait_lay(&b, KIT_NOBODY);
    run_args(&b, dir, argv);
    struct watch *w = escape_watch(&b);
    CHECK_INT(kit_as_nobody(argv, &out), 0);
    judge(&b, w, buf_str(&out));
    escape_bait_take_up(&b);
    kit_check_empty("state/box");
}

/* Root inside, who is nobody outside, and one who is nothing but a number there. */
static void try_in_range(const char *user)
{
    const char *argv[44];
    char dir[300], state[4200];
    struct escape_bait b;
    own_done(buf) out;

    buf_init(&out, 1u << 20);
    kit_be_nobody();
    kit_sub_ids(KIT_SUB_IDS);
    snprintf(state, sizeof state, "%s/state", test_dir());
    kit_share_layers_as(state, "test-state-range", KIT_NOBODY);
    escape_place_probe(dir);
    escape_bait_lay(&b, KIT_NOBODY);
    run_args(&b, dir, argv + 2);
    argv[0] = "run";
    argv[1] = "--user";
    argv[2] = user;
    struct watch *w = escape_watch(&b);
    CHECK_INT(kit_as_nobody(argv, &out), 0);
    judge(&b, w, buf_str(&out));
    escape_bait_take_up(&b);
    kit_check_empty("state/box");
}

TEST_LIMIT(no_door_of_the_escape_corpus_is_open_to_a_sandbox_with_a_range, LIMIT_S)
{
    try_in_range("root");
}

TEST_LIMIT(no_door_of_the_escape_corpus_is_open_to_a_user_of_a_range, LIMIT_S)
{
    try_in_range("openhands");
}

/* Its output goes to a file: an observation has room for a part of it only. */
static void try_through_launcher(struct contract *c)
{
    char dir[300], path[400];
    struct escape_bait b;
    own_done(buf) command;
    own_done(buf) out;

    buf_init(&command, 1u << 16);
    buf_init(&out, 1u << 20);
    escape_place_probe(dir);
    escape_bait_lay(&b, 0);
    buf_add(&command, STR("./escape-probe"));
    for (unsigned i = 0; i < b.count; i++)
        buf_addf(&command, " '%s'", b.words[i]);
    buf_addf(&command, " >lines%c", '\0');
    struct sbx *s = contract_started(c, &(struct sbx_spec){.workspace = dir});
    struct watch *w = escape_watch(&b);
    CHECK_INT(contract_command(c, s, NULL, command.p).exit_code, 0);
    contract_end(c, s);
    snprintf(path, sizeof path, "%s/lines", dir);
    CHECK_OK(fd_read_file(path, &out));
    judge(&b, w, buf_str(&out));
    escape_bait_take_up(&b);
}

TEST_LIMIT(no_door_of_the_escape_corpus_is_open_behind_the_launcher, LIMIT_S)
{
    contract_run(&contract_native, 0, try_through_launcher);
}
