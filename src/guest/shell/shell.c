// SPDX-License-Identifier: Apache-2.0
/* shell.c — requests: what is typed, waited for and answered.
 *
 * At most one request waits. Its command may outlive it (timeouts, shell_forget); the next request
 * then continues, is refused, or finds the command ended. An answer goes out after the turn it was
 * decided in; what happens meanwhile, the end of the command above all, is for the next request. */
#include "guest/shell/shell.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "guest/shell/shell_inner.h"
#include "guest/shell/shell_keys.h"
#include "guest/shell/shell_text.h"
#include "guest/shell/split.h"

#define START_FAILURES_MAX 3u

/* --- answers --- */

static void stop_waiting(struct shell *s)
{
    s->waiting = false;
    loop_timer_stop(&s->soft);
    loop_timer_stop(&s->hard);
}

/* By a request without an answer yet. */
static bool is_asked(const struct shell *s)
{
    return s->waiting && !s->answer.waiting;
}

static void shell_deliver(struct shell *s)
{
    struct shell_result r = s->due;
    own(err) e = take(&s->error); /* the callback may ask for more at once */

    r.command = buf_str(&s->request_command);
    r.is_input = s->request.is_input;
    r.key = s->request_key;
    r.error = e;
    if (r.status == SHELL_COMPLETED) /* now: a shell that died meanwhile may have moved the words */
        r.meta = shell_meta_view(&s->meta);
    stop_waiting(s);
    if (s->request.done)
        s->request.done(s->request.arg, &r);
    buf_done(&s->due_text);
}

static void on_answer_due(struct loop_later *l)
{
    struct shell *s = container_of(l, struct shell, answer);

    if (s->waiting && s->sm.now != SH_CLOSED)
        shell_deliver(s);
}

static void shell_answer(struct shell *s, enum shell_status status)
{
    s->due = s->result;
    s->due.status = status;
    s->due.previous = buf_str(&s->previous);
    loop_timer_stop(&s->soft);
    loop_timer_stop(&s->hard);
    loop_later(s->loop, &s->answer, on_answer_due);
}

static void shell_fail(struct shell *s, struct err *e)
{
    err_free(s->error);
    s->error = e;
    shell_answer(s, SHELL_FAILED);
}

/* The output not reported yet goes into the result. */
static void take_text(struct shell *s)
{
    size_t dropped = term_dropped_lines(s->term);

    buf_reset(&s->text);
    term_text(s->term, &s->text);
    s->result.dropped_lines = dropped > s->since_dropped ? dropped - s->since_dropped : 0;
    s->result.text =
        shell_text_since(buf_str(&s->since), buf_str(&s->text), s->result.dropped_lines);
    s->result.continued = s->reported;
}

/* Notes the text just taken, so that it is not reported again. The result stays valid: it lies in
 * text. */
static void keep_reported(struct shell *s)
{
    buf_reset(&s->since);
    buf_add(&s->since, buf_str(&s->text));
    s->since_dropped = term_dropped_lines(s->term);
    s->reported = true;
}

static void forget_output(struct shell *s)
{
    term_reset(s->term);
    s->last_newline = true;
    buf_done(&s->since);
    s->since_dropped = 0;
    s->reported = false;
}

/* Output written before the question belongs to the answer, though the loop has not turned. A
 * report read here that is not the answer is for the next request. */
static void answer_running(struct shell *s, enum shell_status status)
{
    shell_drain(s);
    if (!s->lost_report || status == SHELL_NOT_EXECUTED) {
        take_text(s);
        keep_reported(s);
        shell_answer(s, status);
    }
    if (s->lost_report)
        shell_on_report(s, NULL);
}

static void answer_completed(struct shell *s)
{
    s->result.happened = s->happened;
    s->happened = 0;
    sm_move(&s->command, CMD_NONE, s->id);
    shell_answer(s, SHELL_COMPLETED);
}

/* --- what the process tells --- */

static void note_memory(struct shell *s)
{
    if (s->config.oom_kills && s->config.oom_kills(s->config.arg) != s->oom_before)
        s->happened |= SHELL_OOM;
}

static void on_soft_timeout(struct loop_timer *t)
{
    struct shell *s = container_of(t, struct shell, soft);

    s->result.timeout_s = (double)s->request.soft_timeout_ms / 1000.0;
    answer_running(s, SHELL_NO_CHANGE);
}

static void on_hard_timeout(struct loop_timer *t)
{
    struct shell *s = container_of(t, struct shell, hard);

    s->result.timeout_s = s->request.hard_timeout_s;
    answer_running(s, SHELL_HARD_TIMEOUT);
}

void shell_on_output(struct shell *s)
{
    uint64_t version = term_version(s->term);

    if (version == s->term_seen)
        return;
    s->term_seen = version;
    if (s->waiting && s->soft.loop)
        loop_timer_start(s->loop, &s->soft, s->request.soft_timeout_ms, on_soft_timeout);
}

static void end_command(struct shell *s)
{
    loop_timer_stop(&s->interrupt);
    buf_done(&s->early);
    s->early_interrupt = false;
    if (s->answer.waiting) { /* the text of that is not ours to write over */
        struct buf text = s->text;
        s->text = s->due_text;
        s->due_text = text;
    }
    take_text(s);
    forget_output(s);
    note_memory(s);
    sm_move(&s->command, CMD_ENDED, s->id);
    shell_held_save(s);
    if (is_asked(s))
        answer_completed(s);
}

/* Jobs that changed state: bash would have said so before its next prompt. */
static void feed_jobs(struct shell *s)
{
    struct buf b;
    struct str jobs, line;

    buf_init(&b, 65536);
    err_free(fd_read_file(s->files.jobs, &b)); /* a shell of another user cannot write it */
    jobs = buf_str(&b);
    for (bool more = jobs.len > 0; more;) {
        more = str_cut(&jobs, '\n', &line);
        if (line.len == 0 || str_find(line, STR("Running")) >= 0)
            continue;
        if (!s->last_newline)
            term_feed(s->term, STR("\r\n"));
        term_feed(s->term, line);
        term_feed(s->term, STR("\r\n"));
        s->last_newline = true;
    }
    unlink(s->files.jobs);
    buf_done(&b);
}

static void type_command(struct shell *s)
{
    if (s->config.oom_kills)
        s->oom_before = s->config.oom_kills(s->config.arg);
    struct err *e = shell_begin(s, buf_str(&s->held));
    if (!e) {
        sm_move(&s->command, CMD_RUNNING, s->id);
        shell_held_save(s);
        return;
    }
    sm_move(&s->command, CMD_NONE, s->id);
    if (is_asked(s))
        shell_fail(s, e);
    else
        err_free(e);
}

void shell_on_started(struct shell *s, const struct shell_report *r)
{
    int exit_code = s->meta.exit_code, pid = s->meta.pid;

    s->start_failures = 0;
    sm_move(&s->sm, SH_READY, s->id);
    if (!s->awaiting_mark)
        loop_timer_stop(&s->start);
    if (r)
        shell_meta_take(&s->meta, r);
    if (s->had_env) { /* these belong to the last command, not to the start of a shell */
        s->meta.exit_code = exit_code;
        s->meta.pid = pid;
    }
    shell_held_save(s);
    if (s->command.now == CMD_QUEUED)
        type_command(s);
}

void shell_on_report(struct shell *s, const struct shell_report *r)
{
    bool start = r && shell_is_start(s, r);

    s->plain = r && r->exit_code == 0 && str_find_char(r->options, 'a') < 0 &&
               str_find_char(r->options, 'x') < 0;
    if (s->sm.now == SH_STARTING)
        shell_on_started(s, r);
    if (start)
        return;
    shell_give_up_mark(s);
    s->lost_report = false;
    if (s->command.now == CMD_RUNNING) {
        if (r) {
            if (r->background > 0)
                feed_jobs(s);
            shell_meta_take(&s->meta, r);
        }
        end_command(s);
    }
}

/* The last directory of the shell. False: it could not report it any more. */
static bool read_last_cwd(struct shell *s)
{
    struct buf b;

    buf_init(&b, 65536);
    struct err *e = fd_read_file(s->files.cwd, &b);
    bool told = !e;
    if (told && b.len && b.p[0] == '/') {
        buf_reset(&s->meta.working_dir);
        buf_add(&s->meta.working_dir, buf_str(&b));
    }
    err_free(e); /* killed: the last report is all we know */
    unlink(s->files.cwd);
    buf_done(&b);
    return told;
}

static void lose_shell(struct shell *s, struct err *e)
{
    shell_io_stop(s);
    sm_move(&s->sm, SH_DEAD, s->id);
    log_warn("shell lost", KV("shell", s->id), KV_ERR(e));
    bool queued = s->command.now == CMD_QUEUED;
    if (queued)
        sm_move(&s->command, CMD_NONE, s->id);
    if (queued && is_asked(s))
        shell_fail(s, e);
    else
        err_free(e);
}

static void shell_respawn(struct shell *s)
{
    if (s->sm.now != SH_STARTING)
        sm_move(&s->sm, SH_STARTING, s->id);
    struct err *e = shell_spawn(s);
    if (e)
        lose_shell(s, e);
}

static void on_start_failed(struct shell *s, int exit_code)
{
    if (++s->start_failures < START_FAILURES_MAX) {
        s->had_env = s->had_env && s->start_failures < 2; /* perhaps a restored variable kills it */
        shell_respawn(s);
        return;
    }
    s->start_failures = 0;
    lose_shell(s, err_new(ERR_UNSUPPORTED, "'%s' does not start: exit status %d", s->config.bash,
                          exit_code));
}

/* A missing mark alone proves nothing: the kernel throws away what is on its way through a terminal
 * whose session ends. A bash that left by itself has noted the number of its last command. Of one
 * that was killed nothing is known, and no command may run twice. */
static bool never_began(const struct shell *s, bool told)
{
    return s->awaiting_mark && (s->stuck || (told && !shell_dump_is_of_line(s)));
}

void shell_on_death(struct shell *s, int exit_code)
{
    if (s->sm.now == SH_STARTING) {
        if (s->command.now == CMD_RUNNING)
            sm_move(&s->command, CMD_QUEUED, s->id); /* typed ahead */
        on_start_failed(s, exit_code);
        return;
    }
    bool told = read_last_cwd(s);
    s->had_env = access(s->files.env, R_OK) == 0;
    s->happened |= SHELL_RESPAWNED;
    if (s->command.now == CMD_RUNNING && never_began(s, told) && !s->retried) {
        s->retried = true;
        sm_move(&s->command, CMD_QUEUED, s->id);
    } else if (s->command.now == CMD_RUNNING) {
        shell_give_up_mark(s);
        s->meta.exit_code = exit_code;
        s->meta.pid = -1;
        end_command(s);
    }
    shell_respawn(s);
}

/* --- requests --- */

static void start_timers(struct shell *s)
{
    const struct shell_request *r = &s->request;

    if (!r->blocking)
        loop_timer_start(s->loop, &s->soft, r->soft_timeout_ms, on_soft_timeout);
    if (r->hard_timeout_s > 0)
        loop_timer_start(s->loop, &s->hard, (uint64_t)(r->hard_timeout_s * 1000.0 + 0.999),
                         on_hard_timeout);
}

/* The text in held goes to bash, now or once it has started. */
static void start_command(struct shell *s)
{
    s->retried = false;
    start_timers(s);
    if (s->command.now != CMD_QUEUED)
        sm_move(&s->command, CMD_QUEUED, s->id);
    if (shell_takes_line(s))
        type_command(s);
    else if (s->sm.now == SH_DEAD)
        shell_respawn(s);
}

static void shell_hold(struct shell *s)
{
    if (s->command.now != CMD_HELD)
        sm_move(&s->command, CMD_HELD, s->id);
    start_timers(s);
}

/* A command that needs no bash to end. */
static void end_at_once(struct shell *s, int exit_code, struct str text)
{
    sm_move(&s->command, CMD_QUEUED, s->id);
    sm_move(&s->command, CMD_RUNNING, s->id);
    s->meta.exit_code = exit_code;
    term_feed(s->term, text);
    end_command(s);
}

static void key_at_prompt(struct shell *s)
{
    if (s->request_key == 'c') { /* bash would only give another prompt */
        end_at_once(s, 130, STR("^C"));
    } else if (s->request_key == 'd') {
        buf_reset(&s->held);
        buf_add(&s->held, STR("exit"));
        start_command(s);
    } else {
        end_at_once(s, s->meta.exit_code, STR(""));
    }
}

static void new_command(struct shell *s, const struct split *split)
{
    if (s->command.now == CMD_ENDED) { /* its rest comes first, then what the new one says */
        buf_add(&s->previous, s->result.text);
        s->result.text = STR("");
        sm_move(&s->command, CMD_NONE, s->id);
    }
    if (s->request_key) {
        key_at_prompt(s);
        return;
    }
    buf_reset(&s->held);
    buf_add(&s->held, buf_str(&s->request_command));
    if (buf_failed(&s->held))
        shell_fail(s, buf_check(&s->held));
    else if (split->verdict == SPLIT_INCOMPLETE)
        shell_hold(s);
    else
        start_command(s);
}

/* More of a text that bash has not seen yet. */
static void more_held(struct shell *s)
{
    struct split split = {.verdict = SPLIT_ONE};

    if (s->request_key == 'c') {
        end_at_once(s, 130, STR("^C"));
        return;
    }
    if (s->request_key != 'd') { /* C-d: end of input, bash says what it thinks of it */
        buf_add_char(&s->held, '\n');
        buf_add(&s->held, buf_str(&s->request_command));
        struct err *e = buf_check(&s->held);
        if (!e)
            e = split_commands(&s->arena, buf_str(&s->held), &split);
        if (e) {
            shell_fail(s, e);
            return;
        }
    }
    if (split.verdict == SPLIT_INCOMPLETE)
        shell_hold(s);
    else
        start_command(s);
}

/* Input, or a look at the output, for a command that was begun before. */
static void continue_command(struct shell *s)
{
    struct buf keys;

    if (s->command.now == CMD_ENDED) {
        answer_completed(s);
        return;
    }
    if (s->command.now == CMD_HELD && s->request_command.len) {
        more_held(s);
        return;
    }
    start_timers(s);
    if (s->command.now == CMD_HELD || s->request_command.len == 0)
        return;
    if (s->request_key == 'c') {
        shell_interrupt(s);
        return;
    }
    buf_init(&keys, SHELL_INPUT_MAX);
    shell_keys_bytes(&keys, buf_str(&s->request_command), s->config.named_keys, s->slave);
    shell_input(s, buf_str(&keys));
    buf_done(&keys);
}

/* The client of a server that died asks again for the command that runs, or ended, since then. */
static bool is_asked_again(struct shell *s)
{
    bool again = loop_now_ns(s->loop) < s->adopted_until_ns && !s->request.is_input &&
                 (shell_is_running(s) || s->command.now == CMD_ENDED) &&
                 str_eq(buf_str(&s->held), buf_str(&s->request_command));

    if (!s->request.is_input && s->request_command.len)
        s->adopted_until_ns = 0;
    return again;
}

static void split_and_run(struct shell *s)
{
    bool begun = s->command.now != CMD_NONE, empty = s->request_command.len == 0;
    struct split split = {.verdict = SPLIT_ONE};

    if (!begun && (empty || s->request.is_input)) {
        shell_answer(s, SHELL_NOTHING_RUNS);
        return;
    }
    if (is_asked_again(s)) {
        if (s->command.now == CMD_ENDED)
            answer_completed(s);
        else
            start_timers(s);
        return;
    }
    struct err *e = split_commands(&s->arena, buf_str(&s->request_command), &split);
    if (e) {
        shell_fail(s, e);
    } else if (split.verdict == SPLIT_SEVERAL) {
        s->result.parts = split.parts;
        s->result.parts_count = split.count;
        shell_answer(s, SHELL_SEVERAL);
    } else if (empty || s->request.is_input) {
        continue_command(s);
    } else if (begun && s->command.now != CMD_ENDED) {
        answer_running(s, SHELL_NOT_EXECUTED);
    } else {
        new_command(s, &split);
    }
}

fallible shell_run(struct shell *s, const struct shell_request *request)
{
    struct str command = shell_text_strip(request->command);

    if (s->sm.now == SH_CLOSED)
        return err_new(ERR_CLOSED, "the shell is closed");
    if (s->waiting)
        return err_new(ERR_BUSY, "the shell is busy with another request");
    if (command.len > SHELL_COMMAND_MAX)
        return err_new(ERR_TOO_LARGE, "a command of %zu bytes is too long", command.len);
    if (str_find_char(command, '\0') >= 0)
        return err_new(ERR_INVALID, "embedded null byte");
    buf_reset(&s->request_command);
    buf_add(&s->request_command, command);
    TRY(buf_check(&s->request_command));
    s->request = *request;
    s->request.command = STR("");
    if (s->request.soft_timeout_ms == 0)
        s->request.soft_timeout_ms = s->config.soft_timeout_ms;
    s->request_key = shell_keys_control(command);
    struct str ended = s->command.now == CMD_ENDED ? s->result.text : STR("");
    size_t ended_dropped = ended.len ? s->result.dropped_lines : 0;
    bool ended_continued = s->command.now == CMD_ENDED && s->result.continued;
    s->result = (struct shell_result){.text = ended,
                                      .dropped_lines = ended_dropped,
                                      .continued = ended_continued,
                                      .meta = {.exit_code = -1, .pid = -1}};
    buf_reset(&s->previous);
    arena_reset(&s->arena);
    s->waiting = true;
    split_and_run(s);
    return NULL;
}

void shell_forget(struct shell *s)
{
    stop_waiting(s);
    loop_later_cancel(&s->answer);
}

void shell_interrupt(struct shell *s)
{
    s->interrupts = 0;
    if (s->command.now == CMD_QUEUED || (s->command.now == CMD_RUNNING && s->awaiting_mark))
        s->early_interrupt = true;
    else if (s->command.now == CMD_RUNNING)
        shell_interrupt_now(s);
}

bool shell_is_running(const struct shell *s)
{
    return s->command.now == CMD_RUNNING || s->command.now == CMD_QUEUED;
}

struct str shell_cwd(const struct shell *s)
{
    return s->meta.working_dir.len ? buf_str(&s->meta.working_dir) : str_of(s->config.cwd);
}

pid_t shell_pid(const struct shell *s)
{
    return s->pid;
}
