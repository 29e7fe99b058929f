// SPDX-License-Identifier: Apache-2.0
/* shell_kit.h — drives a shell in a test: ask, run the loop until the answer, look at its words.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "guest/shell/shell.h"
#include "guest/shell/shell_text.h"
#include "loop/loop.h"

struct kit {
    struct loop *loop;
    struct shell *shell;
    const char *home; /* also where it starts */
    bool answered, closed;
    /* the last answer */
    enum shell_status status;
    int exit_code, pid;
    unsigned happened;
    size_t live_bytes;
    char *content, *prefix, *suffix, *working_dir, *username, *python, *command;
};

#define KIT_SOFT_MS 1000 /* bash must have said what it says by then */

static inline void kit_set(char **slot, struct str s)
{
    free(*slot);
    *slot = malloc(s.len + 1);
    memcpy(*slot, s.len ? s.p : "", s.len);
    (*slot)[s.len] = '\0';
}

static inline bool kit_on_output(void *arg, struct str bytes)
{
    struct kit *k = arg;

    k->live_bytes += bytes.len;
    return false;
}

static inline void kit_on_closed(void *arg)
{
    struct kit *k = arg;

    k->closed = true;
}

static inline void kit_on_done(void *arg, const struct shell_result *r)
{
    struct kit *k = arg;
    struct buf b;

    buf_init(&b, 64u << 20);
    shell_text_content(&b, r, SHELL_TEXT_LIMIT);
    kit_set(&k->content, buf_str(&b));
    buf_reset(&b);
    shell_text_prefix(&b, r);
    kit_set(&k->prefix, buf_str(&b));
    buf_reset(&b);
    shell_text_suffix(&b, r);
    kit_set(&k->suffix, buf_str(&b));
    buf_done(&b);
    kit_set(&k->working_dir, r->meta.working_dir);
    kit_set(&k->username, r->meta.username);
    kit_set(&k->python, r->meta.python);
    kit_set(&k->command, r->command);
    k->status = r->status;
    k->exit_code = r->meta.exit_code;
    k->pid = r->meta.pid;
    k->happened = r->happened;
    k->answered = true;
}

static inline void kit_open_with(struct kit *k, struct shell_config config)
{
    static const char *env[8];
    static char home[300], path[300];

    *k = (struct kit){.home = test_dir()};
    snprintf(home, sizeof home, "HOME=%s", k->home);
    snprintf(path, sizeof path, "PATH=/usr/local/bin:/usr/bin:/bin");
    env[0] = home;
    env[1] = path;
    env[2] = "LANG=C.UTF-8";
    env[3] = "PAGER=cat";
    env[4] = NULL;
    if (!config.env)
        config.env = env;
    if (!config.cwd)
        config.cwd = k->home;
    if (!config.soft_timeout_ms)
        config.soft_timeout_ms = KIT_SOFT_MS;
    if (!config.state_dir)
        config.state_dir = k->home;
    config.on_output = kit_on_output;
    config.on_closed = kit_on_closed;
    config.arg = k;
    CHECK_OK(loop_new(&clock_system, &k->loop));
    CHECK_OK(shell_new(k->loop, &config, &k->shell));
}

static inline void kit_open(struct kit *k)
{
    kit_open_with(k, (struct shell_config){0});
}

static inline void kit_wait(struct kit *k)
{
    uint64_t end = clock_mono_ns(&clock_system) + 100 * NS_PER_S;

    while (!k->answered) {
        CHECK_OK(loop_turn(k->loop, 1000));
        if (clock_mono_ns(&clock_system) > end)
            FAIL("no answer in 100 s");
    }
}

static inline void kit_ask(struct kit *k, struct shell_request r)
{
    r.done = kit_on_done;
    r.arg = k;
    k->answered = false;
    CHECK_OK(shell_run(k->shell, &r));
    kit_wait(k);
}

/* A command that should complete: it may take as long as it likes. */
static inline void kit_run(struct kit *k, const char *command)
{
    kit_ask(k, (struct shell_request){.command = str_of(command), .blocking = true});
}

static inline void kit_soft(struct kit *k, const char *command)
{
    kit_ask(k, (struct shell_request){.command = str_of(command)});
}

static inline void kit_hard(struct kit *k, const char *command, double seconds)
{
    kit_ask(k, (struct shell_request){
                   .command = str_of(command), .blocking = true, .hard_timeout_s = seconds});
}

/* Hard, and time enough to say something before; goes on when kit_let() is told this name. */
#define KIT_UNTIL(name) "until [ -e " name " ]; do sleep 0.01; done; "
#define KIT_HARD_S      1.5
static inline void kit_let(struct kit *k, const char *name)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", k->home, name);
    FILE *f = fopen(path, "we");
    CHECK(f && fclose(f) == 0);
}

static inline void kit_input(struct kit *k, const char *text)
{
    kit_ask(k, (struct shell_request){.command = str_of(text), .is_input = true});
}

/* Input after which the command should complete. */
static inline void kit_finish(struct kit *k, const char *text)
{
    kit_ask(k, (struct shell_request){.command = str_of(text), .is_input = true, .blocking = true});
}

static inline void kit_expect(struct kit *k, const char *command, const char *content,
                              int exit_code)
{
    kit_run(k, command);
    CHECK_STR(k->content, content);
    CHECK_INT(k->exit_code, exit_code);
    CHECK_INT(k->status, SHELL_COMPLETED);
    CHECK_STR(k->prefix, "");
}

static inline void kit_close_one(struct kit *k)
{
    shell_close(k->shell);
    while (!k->closed)
        CHECK_OK(loop_turn(k->loop, 1000));
    loop_free(k->loop);
    char *const all[] = {k->content,  k->prefix, k->suffix, k->working_dir,
                         k->username, k->python, k->command};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        free(all[i]);
}

static inline void kit_close(struct kit *k)
{
    kit_close_one(k);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1); /* no child left, not even a zombie */
}
