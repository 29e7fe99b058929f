// SPDX-License-Identifier: Apache-2.0
/* shell_io.c — the terminal's master side and the report FIFO.
 *
 * Whatever is read before the START mark is the echo of our own line and what background jobs said
 * meanwhile. A read of the master that says EAGAIN has seen every byte written before it was
 * called, so after a report one drain gives the whole output. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/rng.h"
#include "guest/shell/shell_inner.h"

#define READ_BYTES     65536
#define TURN_READS     8  /* per turn of the loop, so that a flood starves no other */
#define DRAIN_READS    64 /* a pty holds far less; a background flood must not keep us here */
#define PRE_MAX        (1u << 20)
#define PRE_KEEP       256u
#define QUIET_MS       2
#define START_QUIET_MS 20
#define REST_AFTER     (64u << 10)
#define REST_MS        50
#define BEHIND_MS      5

/* Only a program that reads key by key waits for an answer of the terminal; otherwise it would be
 * echoed and end up in the input of a program. */
static bool reads_keys(const struct shell *s)
{
    struct termios t;

    return tcgetattr(s->slave, &t) == 0 && !(t.c_lflag & ICANON);
}

static __attribute__((noinline)) bool is_behind(const struct shell *s, struct str bytes)
{
    return s->config.on_output && s->config.on_output(s->config.arg, bytes);
}

static void shell_feed(struct shell *s, struct str bytes)
{
    if (bytes.len == 0)
        return;
    term_feed(s->term, bytes);
    s->last_newline = bytes.p[bytes.len - 1] == '\n';
    struct str reply = term_replies(s->term);
    if (reply.len && s->command.now == CMD_RUNNING && reads_keys(s))
        shell_type(s, reply);
    s->behind = is_behind(s, bytes);
}

/* Bytes before the mark without the echo of the typed line; unknown echo: nothing is kept. */
static void feed_before_mark(struct shell *s, struct str before)
{
    ptrdiff_t at = s->echo_known ? str_find(before, buf_str(&s->typed)) : -1;

    if (at < 0)
        return;
    if (!s->fresh)
        shell_feed(s, str_first(before, (size_t)at));
    shell_feed(s, str_from(before, (size_t)at + s->typed.len));
}

/* Types the input that came while bash was still reading our line. */
static void type_early(struct shell *s)
{
    shell_type(s, buf_str(&s->early));
    buf_done(&s->early);
    if (s->early_interrupt)
        shell_interrupt(s);
    s->early_interrupt = false;
}

/* A control character would wipe our own line out of the terminal's queue: wait for the mark. */
void shell_input(struct shell *s, struct str bytes)
{
    s->keys_typed = true;
    if (s->awaiting_mark || s->command.now != CMD_RUNNING)
        buf_add(&s->early, bytes);
    else
        shell_type(s, bytes);
}

static void take_marked(struct shell *s, struct str bytes)
{
    char space[96];
    struct buf mark;

    buf_add(&s->pre, bytes);
    buf_init(&mark, sizeof space);
    shell_script_mark(&mark, s->sequence);
    ptrdiff_t at = str_find(buf_str(&s->pre), buf_str(&mark));
    if (at >= 0) {
        bool fresh = s->fresh;
        s->awaiting_mark = s->fresh = false;
        if (s->sm.now == SH_STARTING) { /* the report of that waits in the FIFO */
            s->owes_start = true;
            shell_on_started(s, NULL);
        }
        shell_held_save(s);
        loop_timer_stop(&s->start);
        s->term_seen = UINT64_MAX; /* the soft timeout counts from here */
        if (!fresh)
            feed_before_mark(s, str_first(buf_str(&s->pre), (size_t)at));
        shell_feed(s, str_from(buf_str(&s->pre), (size_t)at + mark.len));
        buf_done(&s->pre);
        type_early(s);
    } else if (s->pre.len > PRE_MAX / 2) {
        buf_consume(&s->pre, s->pre.len - PRE_KEEP);
        s->echo_known = false;
    }
    buf_done(&mark);
}

/* The FIFO was removed under the shell: it then reports in the output, the number says that it is
 * no fake. Nothing can follow it. */
static bool is_lost_report(struct shell *s, struct str bytes)
{
    char want[96];
    size_t keep = sizeof s->tail - (bytes.len < sizeof s->tail ? bytes.len : sizeof s->tail);

    memmove(s->tail, s->tail + sizeof s->tail - keep, keep);
    memcpy(s->tail + keep, bytes.p + bytes.len - (sizeof s->tail - keep), sizeof s->tail - keep);
    if (s->command.now != CMD_RUNNING || s->tail[sizeof s->tail - 1] != '\a')
        return false;
    int n = snprintf(want, sizeof want, "\033]7771;%s;", s->sequence);
    const char *at = memmem(s->tail, sizeof s->tail, want, (size_t)n);
    const char *end = s->tail + sizeof s->tail - 1; /* there the bell is */
    int64_t code;
    if (!at || !str_to_i64(str_n(at + n, (size_t)(end - at) - (size_t)n), &code))
        return false;
    s->meta.exit_code = (int)code;
    return true;
}

/* A shell without /dev/tty cannot print its mark; the echo of our line divides the text as well. */
void shell_give_up_mark(struct shell *s)
{
    if (!s->awaiting_mark)
        return;
    s->awaiting_mark = false;
    loop_timer_stop(&s->start);
    feed_before_mark(s, buf_str(&s->pre));
    s->fresh = false;
    buf_done(&s->pre);
}

static void take_bytes(struct shell *s, struct str bytes)
{
    s->lost_report |= is_lost_report(s, bytes);
    if (s->awaiting_mark)
        take_marked(s, bytes);
    else if (!s->fresh)
        shell_feed(s, bytes);
}

static size_t read_master(struct shell *s, int reads)
{
    char bytes[READ_BYTES];
    size_t sum = 0;

    s->behind = false; /* which a drain does not mind: a pty holds little */
    while (reads-- > 0 && s->master >= 0 && (!s->behind || reads > TURN_READS)) {
        ssize_t n = read(s->master, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n < 0 && errno == EIO) /* hung up: bash has gone, its pidfd says the rest */
                loop_io_stop(&s->master_io);
            break;
        }
        take_bytes(s, str_n(bytes, (size_t)n));
        sum += (size_t)n;
    }
    return sum;
}

void shell_drain(struct shell *s)
{
    read_master(s, DRAIN_READS);
}

static void watch_master(struct shell *s)
{
    uint32_t want = (s->quiet.loop ? 0 : EPOLLIN) | (s->out.len ? EPOLLOUT : 0);

    if (s->master_io.loop)
        err_free(loop_io_want(&s->master_io, want)); /* modifying takes no memory */
}

static void on_quiet_end(struct loop_timer *t)
{
    struct shell *s = container_of(t, struct shell, quiet);

    if (is_behind(s, STR("")))
        loop_timer_start(s->loop, t, BEHIND_MS, on_quiet_end);
    else
        watch_master(s);
}

static void write_master(struct shell *s)
{
    while (s->out.len && s->master >= 0) {
        ssize_t n = write(s->master, s->out.p, s->out.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        buf_consume(&s->out, (size_t)n);
    }
    watch_master(s);
}

/* Lets the terminal fill and its writer wait, for output that no request waits for. Threads of the
 * kernel carry these bytes, and no limit of a sandbox holds those. */
static void shell_rest(struct shell *s, size_t read)
{
    s->unasked = s->waiting ? 0 : s->unasked + read;
    if (s->unasked < REST_AFTER && !s->behind)
        return;
    loop_timer_start(s->loop, &s->quiet, s->behind ? BEHIND_MS : REST_MS, on_quiet_end);
    s->unasked = s->behind = 0;
    watch_master(s);
}

static void on_master_ready(struct loop_io *io)
{
    struct shell *s = container_of(io, struct shell, master_io);

    if (io->ready & EPOLLOUT)
        write_master(s);
    shell_rest(s, read_master(s, TURN_READS));
    if (s->lost_report)
        shell_on_report(s, NULL);
    else
        shell_on_output(s);
}

void shell_type(struct shell *s, struct str bytes)
{
    s->stray = true;
    buf_add(&s->out, bytes);
    write_master(s);
}

/* A shell inside this one (bash, su) reports when it owns the terminal; one that merely inherited
 * the environment, on a terminal of its own, does not. */
static bool owns_terminal(const struct shell *s, pid_t pid)
{
    return shell_foreground(s) == getpgid(pid);
}

/* Without a number: its start-up files unset that. */
bool shell_is_start(const struct shell *s, const struct shell_report *r)
{
    return s->sm.now == SH_STARTING &&
           (r->sequence.len == 0 || str_eq(r->sequence, str_of(s->first)));
}

static bool report_counts(struct shell *s, const struct shell_report *r)
{
    bool mine = str_eq(r->sequence, str_of(s->sequence)), owed = s->owes_start;
    bool first = r->sequence.len == 0; /* of a shell inside ours, or one that lost its number */
    bool start = str_eq(r->sequence, str_of(s->first));

    s->owes_start = false;
    if (start || (first && owed))
        return s->sm.now == SH_STARTING;
    if (r->pid == s->report_pid) /* `exec bash` changes no number */
        return mine || (first && owns_terminal(s, r->pid));
    if (getpgid(r->pid) < 0) /* not of our pid namespace */
        return mine || first;
    return owns_terminal(s, r->pid);
}

void shell_read_reports(struct shell *s)
{
    char *p = buf_reserve(&s->report, 16384);
    ssize_t n = p ? read(s->files.report_fd, p, 16384) : -1;

    if (!p)
        buf_reset(&s->report); /* no report is that long */
    if (n <= 0)
        return;
    buf_commit(&s->report, (size_t)n);
    for (;;) {
        struct shell_report r;
        bool ok;
        size_t used = shell_report_parse(buf_str(&s->report), &r, &ok);
        if (used == 0)
            return;
        if (ok && report_counts(s, &r)) {
            s->report_pid = r.pid;
            if (!shell_is_start(s, &r)) { /* else what is read is of a command typed ahead */
                shell_await_echo(s);
                shell_drain(s);
            }
            shell_on_report(s, &r);
            if (s->sm.now == SH_CLOSED)
                return;
        }
        buf_consume(&s->report, used);
    }
}

static void on_report_readable(struct loop_io *io)
{
    shell_read_reports(container_of(io, struct shell, report_io));
}

/* A program may have left the terminal raw; a line could then not be typed. */
static void mend_terminal(struct shell *s)
{
    struct termios t;

    if (s->stray) /* what the last program did not read is not for the shell */
        tcflush(s->slave, TCIFLUSH);
    s->stray = false;
    buf_reset(&s->out);
    if (tcgetattr(s->slave, &t) < 0)
        return;
    tcflag_t l = ICANON | ISIG | IEXTEN, i = ICRNL, o = OPOST | ONLCR;
    if ((t.c_lflag & l) != l || (t.c_iflag & i) != i || (t.c_oflag & o) != o) {
        t.c_lflag |= l | ECHO | ECHOE | ECHOK;
        t.c_iflag |= i;
        t.c_oflag |= o;
        t.c_iflag &= ~(tcflag_t)(IGNCR | INLCR | ISTRIP);
        tcsetattr(s->slave, TCSANOW, &t);
    }
    /* a shell inside ours may edit lines: it then draws the line in a way of its own */
    s->echo_known = (t.c_lflag & ECHO) != 0 && s->report_pid == s->pid;
}

static void on_start_timeout(struct loop_timer *t)
{
    struct shell *s = container_of(t, struct shell, start);

    log_warn("shell does not begin a command", KV("shell", s->id), KV("pid", (int)s->pid));
    s->stuck = true;
    if (s->pid > 0)
        kill(s->pid, SIGKILL); /* its death starts another */
}

fallible shell_watch_files(struct shell *s, bool command)
{
    if (!shell_files_whole(&s->files, command)) {
        loop_io_stop(&s->report_io);
        TRY(shell_files_mend(&s->files));
        shell_held_put(s);
    }
    if (s->report_io.loop)
        return NULL;
    return loop_io_start(s->loop, &s->report_io, s->files.report_fd, EPOLLIN, on_report_readable);
}

static enum shell_line line_for(const struct shell *s, struct str command)
{
    if (s->report_pid != s->pid || !shell_script_fits(command))
        return SHELL_LINE_FILE;
    return s->plain && s->sm.now == SH_READY ? SHELL_LINE_PLAIN : SHELL_LINE_INLINE;
}

static void await_start(struct shell *s)
{
    loop_timer_start(s->loop, &s->start, s->config.start_timeout_ms, on_start_timeout);
}

/* For the line of this sequence number, typed now or by the server before us. */
static fallible await_mark(struct shell *s, struct str command)
{
    buf_reset(&s->typed);
    shell_script_line(&s->typed, line_for(s, command), s->sequence, command);
    if (!buf_failed(&s->typed))
        s->typed.len--; /* the echo ends in CR LF */
    buf_add_cstr(&s->typed, "\r\n");
    TRY(buf_check(&s->typed));
    s->awaiting_mark = true;
    s->stuck = false;
    await_start(s);
    return NULL;
}

/* For bash, or the next server: it ends in NUL. */
static fallible write_command(struct shell *s, struct str command)
{
    own_done(buf) text;

    buf_init(&text, SHELL_COMMAND_MAX + 4096);
    buf_add(&text, command);
    buf_add_char(&text, '\0');
    TRY(buf_check(&text));
    return shell_files_command(&s->files, buf_str(&text));
}

/* A bash that starts takes what is typed meanwhile when it has a prompt. One that did not start is
 * not trusted again: its start-up files may read the terminal. */
bool shell_takes_line(const struct shell *s)
{
    return s->sm.now == SH_READY ||
           (s->sm.now == SH_STARTING && s->pid > 0 && s->out.len == 0 && s->start_failures == 0);
}

void shell_number(struct shell *s, char out[48])
{
    snprintf(out, sizeof s->sequence, "%llu.%016llx", (unsigned long long)++s->number,
             (unsigned long long)rng_u64(s->config.rng));
}

fallible shell_begin(struct shell *s, struct str command)
{
    bool in_file = line_for(s, command) == SHELL_LINE_FILE, ahead = s->sm.now == SH_STARTING;

    TRY(shell_watch_files(s, in_file));
    if (in_file || s->page)
        TRY(write_command(s, command));
    s->echo_known = ahead;
    if (!ahead) {
        shell_drain(s);
        mend_terminal(s);
    }
    shell_number(s, s->sequence);
    s->lost_report = false;
    s->interrupts = 0;
    s->keys_typed = false;
    TRY(await_mark(s, command));
    shell_held_save(s);
    /* Its echo, mark and output need not wake us one by one: a short command is read in one go. */
    if (!ahead)
        loop_timer_start(s->loop, &s->quiet, QUIET_MS, on_quiet_end);
    buf_add(&s->out, str_first(buf_str(&s->typed), s->typed.len - 2));
    buf_add_char(&s->out, '\n');
    write_master(s);
    return NULL;
}

/* With a report, and when it leaves, bash writes its variables down, the number among them. */
bool shell_dump_is_of_line(const struct shell *s)
{
    own_done(buf) dump;
    char want[80];

    buf_init(&dump, 4u << 20);
    snprintf(want, sizeof want, "CROFT_Q=\"%s\"", s->sequence);
    err_free(fd_read_file(s->files.env, &dump)); /* none: it runs */
    return str_find(buf_str(&dump), str_of(want)) >= 0;
}

/* The server before us may have died between reading a report and keeping what it said. */
static bool report_was_taken(const struct shell *s)
{
    struct pollfd report = {.fd = s->files.report_fd, .events = POLLIN};

    return poll(&report, 1, 0) == 0 && shell_dump_is_of_line(s);
}

/* Everything else bash has from its environment. */
static void type_sure(struct shell *s)
{
    await_start(s);
    shell_script_sure(&s->out, &s->files);
    write_master(s);
}

/* The next server inside begins here: bytes may have been typed, read or reported since. */
fallible shell_io_resume(struct shell *s)
{
    TRY(shell_watch_files(s, true));
    s->stray = true;
    TRY(loop_io_start(s->loop, &s->master_io, s->master, EPOLLIN, on_master_ready));
    if (s->awaiting_mark)
        return await_mark(s, buf_str(&s->held));
    if (s->sm.now == SH_STARTING) { /* perhaps its report was read */
        type_sure(s);
        shell_type(s, shell_script_probe);
    }
    if (s->command.now == CMD_RUNNING && report_was_taken(s)) {
        s->meta.exit_code = -1;
        shell_drain(s);
        shell_on_report(s, NULL);
    }
    return NULL;
}

fallible shell_io_start(struct shell *s)
{
    term_reset(s->term);
    s->last_newline = true;
    s->stray = false;
    s->fresh = true;
    s->owes_start = false;
    TRY(loop_io_start(s->loop, &s->master_io, s->master, EPOLLIN, on_master_ready));
    loop_timer_start(s->loop, &s->quiet, START_QUIET_MS, on_quiet_end);
    type_sure(s);
    return NULL;
}

void shell_io_stop(struct shell *s)
{
    loop_timer_stop(&s->start);
    loop_timer_stop(&s->interrupt);
    loop_timer_stop(&s->quiet);
    loop_io_stop(&s->master_io);
    own_close(s->master);
    own_close(s->slave);
    s->master = s->slave = -1;
    buf_done(&s->pre);
    buf_done(&s->out);
    s->awaiting_mark = false;
}
