// SPDX-License-Identifier: Apache-2.0
/* aes_run.c — see aes_run.h. The texts here are the contract's, not taken from the program. */
#include "test/aes_run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define POLLS_MAX 60
#define TAIL                                                                                       \
    "You may wait longer to see additional output by sending empty command '', send other "        \
    "commands to interact with the current process, send keys (\"C-c\", \"C-z\", \"C-d\") to "     \
    "interrupt/kill the previous command before sending your new command, or use the timeout "     \
    "parameter in execute_bash for future commands."
#define CONTINUES "[Below is the output of the previous command.]\n"

static void put_request(struct buf *out, const struct run_step *s)
{
    struct jw w;

    jw_init(&w, out, JW_WEB);
    JW_OBJECT(&w, NULL) {
        JW_OBJECT(&w, "action") {
            jw_cstr(&w, "action", "run");
            JW_OBJECT(&w, "args") {
                jw_cstr(&w, "command", s->command);
                jw_bool(&w, "is_input", s->in);
                jw_bool(&w, "blocking", s->blocking || s->end == RAN || s->end == HARD);
                jw_bool(&w, "is_static", s->is_static);
                jw_cstr(&w, "cwd", s->cwd);
                jw_bool(&w, "hidden", s->hidden);
            }
            if (s->timeout > 0)
                jw_double(&w, "timeout", s->timeout);
        }
    }
}

static struct run_answer ask(struct aes *a, const struct run_step *s)
{
    own_done(buf) body;

    buf_init(&body, 64u << 20);
    put_request(&body, s);
    struct aes_answer got =
        aes_ask(a, "POST", "/execute_action", "Content-Type: application/json\r\n", buf_str(&body));
    if (got.status != 200)
        FAIL("row %d: `%.200s`: %d " STR_FMT, s->row, s->command, got.status, STR_ARG(got.body));
    struct json *o = aes_json(a, got.body);
    const struct json *extras = json_get(o, STR("extras"));
    const struct json *meta = json_get(extras, STR("metadata"));
    struct run_answer r = {
        .json = o,
        .kind = json_get_str(o, "observation", STR("")),
        .content = json_get_str(o, "content", STR("(none)")),
        .command = json_get_str(extras, "command", STR("(none)")),
        .prefix = json_get_str(meta, "prefix", STR("(none)")),
        .suffix = json_get_str(meta, "suffix", STR("(none)")),
        .working_dir = json_get_str(meta, "working_dir", STR("")),
        .username = json_get_str(meta, "username", STR("")),
        .hostname = json_get_str(meta, "hostname", STR("")),
        .python = json_get_str(meta, "py_interpreter_path", STR("")),
        .rc = json_get_int(meta, "exit_code", -99),
        .pid = json_get_int(meta, "pid", -99),
        .hidden = json_get_bool(extras, "hidden", false),
    };
    return r;
}

/* --- what must come --- */

static bool holds(struct str content, const char *want)
{
    struct str part = str_of(want + 1);

    switch (want[0]) {
    case '=':
        return str_eq(content, part);
    case '~':
        return str_find(content, part) >= 0;
    case '!':
        return str_find(content, part) < 0;
    case '^':
        return str_starts(content, part);
    case '$':
        return str_ends(content, part);
    default:
        FAIL("a want begins with one of = ~ ! ^ $: %s", want);
    }
}

static bool all_hold(const struct run_step *s, struct str content)
{
    for (size_t i = 0; i < ARRAY_LEN(s->want) && s->want[i]; i++)
        if (!holds(content, s->want[i]))
            return false;
    return true;
}

static const char *want_suffix(struct aes *a, const struct run_step *s, const char *command)
{
    char seconds[JSON_DOUBLE_MAX + 1];
    bool key = strlen(command) == 3 && command[0] == 'C' && command[1] == '-';

    seconds[json_format_double(s->timeout, seconds)] = '\0';
    switch (s->end) {
    case RAN:
        if (!key)
            return aes_text(a, "\n[The command completed with exit code %d.]", s->rc);
        return aes_text(a, "\n[The command completed with exit code %d. CTRL+%c was sent.]", s->rc,
                        command[2] & ~0x20);
    case SOFT:
        return aes_text(a, "\n[The command has no new output after %u seconds. " TAIL "]",
                        a->soft_s);
    case HARD:
        return aes_text(a, "\n[The command timed out after %s seconds. " TAIL "]", seconds);
    case REFUSED:
        return aes_text(
            a,
            "\n[Your command \"%s\" is NOT executed. The previous command is still running - You "
            "CANNOT send new commands until the previous command is completed. By setting "
            "`is_input` to `true`, you can interact with the current process: " TAIL "]",
            command);
    default:
        return "";
    }
}

static void put_whole(struct jw *w, const struct run_step *s, const struct run_answer *r,
                      const char *command, const char *prefix, const char *suffix)
{
    struct json *none = NULL;
    bool ran = s->end == RAN;

    JW_OBJECT(w, NULL) {
        own_done(buf) message;
        buf_init(&message, 64u << 20);
        buf_addf(&message, "Command `%s` executed with exit code %d.", command, ran ? s->rc : -1);
        jw_str(w, "message", buf_str(&message));
        jw_cstr(w, "observation", "run");
        jw_str(w, "content", r->content);
        JW_OBJECT(w, "extras") {
            jw_cstr(w, "command", command);
            JW_OBJECT(w, "metadata") {
                jw_int(w, "exit_code", ran ? s->rc : -1);
                jw_int(w, "pid", ran ? r->pid : -1);
                if (ran) {
                    jw_str(w, "username", r->username);
                    jw_str(w, "hostname", r->hostname);
                    jw_str(w, "working_dir", r->working_dir);
                    jw_str(w, "py_interpreter_path", r->python);
                } else {
                    jw_value(w, "username", none);
                    jw_value(w, "hostname", none);
                    jw_value(w, "working_dir", none);
                    jw_value(w, "py_interpreter_path", none);
                }
                jw_cstr(w, "prefix", prefix);
                jw_cstr(w, "suffix", suffix);
            }
            jw_bool(w, "hidden", s->hidden);
        }
        jw_bool(w, "success", ran && s->rc == 0);
    }
}

static void put_error(struct jw *w, const struct run_answer *r)
{
    JW_OBJECT(w, NULL) {
        jw_str(w, "message", r->content);
        jw_cstr(w, "observation", "error");
        jw_str(w, "content", r->content);
        JW_OBJECT(w, "extras")
            jw_cstr(w, "error_id", "");
    }
}

/* The whole observation, to the byte, from the row and what only the machine knows. */
static bool is_whole(struct aes *a, const struct run_step *s, const struct run_answer *r)
{
    struct str typed = str_trim(str_of(s->command));
    const char *command = s->end == NOTHING ? "" : arena_cstr(&a->arena, typed);
    const char *suffix = want_suffix(a, s, command), *prefix = s->more ? CONTINUES : "";
    own_done(buf) want;
    struct jw w;

    if (s->note && str_find(r->suffix, str_of(s->note)) >= 0)
        suffix = arena_cstr(&a->arena, r->suffix);
    if (s->prefix && str_find(r->prefix, str_of(s->prefix)) >= 0)
        prefix = arena_cstr(&a->arena, r->prefix);
    buf_init(&want, 64u << 20);
    jw_init(&w, &want, JW_WEB);
    if (s->end == ERROR)
        put_error(&w, r);
    else
        put_whole(&w, s, r, command, prefix, suffix);
    if (str_eq(aes_print(a, r->json), buf_str(&want)))
        return true;
    printf("  want " STR_FMT "\n", STR_ARG(buf_str(&want)));
    return false;
}

/* --- a step --- */

static void meet(struct aes *a, const char *dir, const char *what)
{
    for (; what && *what; what++) {
        bool gate = *what == 'g';
        const char *path = aes_text(a, "%s/%s", dir, gate ? "gate" : "seen");
        own_fd fd = open(path, (gate ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
        if (fd < 0 || (gate && write(fd, "\n", 1) != 1))
            FAIL("%s: %m", path);
    }
}

static void check(struct aes *a, const struct run_step *s, const struct run_step *given,
                  const struct run_answer *r)
{
    struct str got = aes_print(a, r->json);

    for (size_t i = 0; i < ARRAY_LEN(s->want) && s->want[i]; i++)
        if (!holds(r->content, s->want[i]))
            FAIL("row %d: `%s`: the content is not %s\n  got  " STR_FMT, s->row, given->command,
                 s->want[i], STR_ARG(got));
    if (!is_whole(a, s, r))
        FAIL("row %d: `%s`: another observation\n  got  " STR_FMT, s->row, given->command,
             STR_ARG(got));
    if (s->dir && !str_eq(r->working_dir, str_of(s->dir)))
        FAIL("row %d: `%s` ended in " STR_FMT ", not in %s", s->row, given->command,
             STR_ARG(r->working_dir), s->dir);
}

static struct run_answer run_in(struct aes *a, const struct run_step *given, const char *dir)
{
    struct run_step s = *given;

    s.command = aes_fill(a, s.command, "{D}", dir);
    s.dir = s.dir ? aes_fill(a, s.dir, "{D}", dir) : NULL;
    for (size_t i = 0; i < ARRAY_LEN(s.want) && s.want[i]; i++)
        s.want[i] = aes_fill(a, s.want[i], "{D}", dir);
    meet(a, dir, s.first);
    struct run_answer r = ask(a, &s);
    for (int i = 0; i < POLLS_MAX && !all_hold(&s, r.content); i++) {
        bool again = (s.end == SOFT || s.end == HARD || s.end == REFUSED) && !r.content.len;
        if (!again)
            break;
        if (s.end != REFUSED)
            s.command = "";
        s.in = false;
        r = ask(a, &s);
    }
    check(a, &s, given, &r);
    return r;
}

struct run_answer aes_run(struct aes *a, const struct run_step *step)
{
    return run_in(a, step, a->dir);
}

void aes_meet(struct aes *a, const char *what)
{
    meet(a, a->dir, what);
}

struct run_answer aes_run_plain(struct aes *a, const char *command)
{
    return ask(a, &(struct run_step){.command = command});
}

void aes_run_here(struct aes *a, const struct run_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        run_in(a, &steps[i], a->dir);
}

void aes_run_rows(struct aes *a, const struct run_step *steps, size_t count)
{
    const char *dir = a->dir;

    for (size_t i = 0; i < count; i++) {
        if (i == 0 || (steps[i].row != steps[i - 1].row && !steps[i].then)) {
            dir = aes_text(a, "%s/row-%d", a->dir, steps[i].row);
            const char *enter = aes_text(a, "mkdir -p %s && cd %s", dir, dir);
            CHECK_INT(aes_run_plain(a, enter).rc, 0);
        }
        run_in(a, &steps[i], dir);
    }
}
