// SPDX-License-Identifier: Apache-2.0
/* git.c — see git.h. git.sh asks git, here is what it says in JSON. */
#include "guest/exec/actions/run/git.h"

#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/json.h"
#include "base/utf8.h"
#include "guest/exec/inner.h"
#include "guest/shell/shell_text.h"
#include "guest/tool/tool.h"
#include "wire/api.h"

EMBED(git, "src/guest/exec/actions/run/git.sh");

#define SCRIPTS "python3 /openhands/code/openhands/runtime/utils/git_"

/* --- the command --- */

/* A word in double or single quotes, or without any, up to the end or to `until`. The client writes
 * the name of a file between quotes as it is, so it is taken as it is. */
static bool take_word(struct str *s, struct str until, struct str *ret_word)
{
    ptrdiff_t at = until.len ? str_find(*s, until) : (ptrdiff_t)s->len;

    if (at < 0)
        return false;
    struct str word = str_first(*s, (size_t)at);
    *s = str_from(*s, (size_t)at + until.len);
    if (word.len >= 2 && (word.p[0] == '"' || word.p[0] == '\'') &&
        word.p[word.len - 1] == word.p[0]) {
        char quote = word.p[0];
        word = str_n(word.p + 1, word.len - 2);
        *ret_word = word;
        return str_find_char(word, quote) < 0;
    }
    *ret_word = word;
    for (size_t i = 0; i < word.len; i++)
        if (strchr(" \t\n\"'\\$`;&|<>()*?[]{}#!", word.p[i]))
            return false;
    return word.len > 0;
}

bool git_parse(struct str command, struct git_ask *ret_ask)
{
    struct git_ask ask = {0};
    struct str s = shell_text_strip(command);

    if (str_starts(s, STR("cd "))) {
        s = str_from(s, 3);
        if (!take_word(&s, STR(" && "), &ask.cwd))
            return false;
    }
    if (!str_starts(s, STR(SCRIPTS)))
        return false;
    s = str_from(s, sizeof SCRIPTS - 1);
    if (str_starts(s, STR("diff.py "))) {
        s = str_from(s, sizeof "diff.py " - 1);
        if (!take_word(&s, STR(""), &ask.file))
            return false;
    } else if (!str_eq(s, STR("changes.py"))) {
        return false;
    }
    *ret_ask = ask;
    return true;
}

/* --- changes --- */

struct change {
    struct str status, prefix, path;
};

static int git_compare(const void *x, const void *y)
{
    const struct change *a = x, *b = y;
    size_t n = a->prefix.len, m = b->prefix.len;

    for (size_t i = 0;; i++) { /* as one path each */
        bool a_ends = i == n + a->path.len, b_ends = i == m + b->path.len;
        if (a_ends || b_ends)
            return b_ends - a_ends;
        unsigned char c = (unsigned char)(i < n ? a->prefix.p[i] : a->path.p[i - n]);
        unsigned char d = (unsigned char)(i < m ? b->prefix.p[i] : b->path.p[i - m]);
        if (c != d)
            return c < d ? -1 : 1;
    }
}

static void put_changes(struct buf *out, const struct change *list, size_t count)
{
    struct jw w;

    jw_init(&w, out, JW_PYTHON);
    JW_ARRAY(&w, NULL) {
        for (size_t i = 0; i < count; i++) {
            own_done(buf) path;
            buf_init(&path, GIT_PRINT_BYTES);
            buf_add(&path, list[i].prefix);
            buf_add(&path, list[i].path);
            wire_put_git_change(&w, list[i].status, buf_str(&path));
        }
    }
}

/* R and a prefix; statuses and paths in turn; "?"; paths; "." */
static bool read_changes(struct str records, struct change *list, size_t *ret_count)
{
    struct str record, prefix = STR(""), status = STR("");
    enum { OUTSIDE, CHANGED, UNTRACKED } in = OUTSIDE;
    size_t count = 0;

    while (str_cut(&records, '\0', &record)) {
        if (in == OUTSIDE) {
            prefix = str_from(record, 1);
            in = CHANGED;
        } else if (in == CHANGED && status.len) {
            list[count++] = (struct change){status, prefix, record};
            status = STR("");
        } else if (in == CHANGED && str_eq(record, STR("?"))) {
            in = UNTRACKED;
        } else if (in == CHANGED) {
            status = str_eq(record, STR("T")) ? STR("M") : record;
        } else if (str_eq(record, STR("."))) {
            in = OUTSIDE;
        } else {
            list[count++] = (struct change){STR("A"), prefix, record};
        }
    }
    *ret_count = count;
    return in == OUTSIDE;
}

fallible git_print_changes(struct arena *a, struct str records, struct str *ret_printed)
{
    size_t count = 1;
    own_done(buf) out;

    buf_init(&out, GIT_PRINT_BYTES);
    for (size_t i = 0; i < records.len; i++)
        count += records.p[i] == '\0';
    struct change *list = arena_alloc(a, count * sizeof *list);
    if (!list)
        return arena_check(a);
    if (!read_changes(records, list, &count)) {
        *ret_printed = STR("{\"error\": \"git ended before it had told all changes\"}");
        return NULL;
    }
    qsort(list, count, sizeof *list, git_compare);
    put_changes(&out, list, count);
    *ret_printed = arena_copy(a, buf_str(&out));
    TRY(buf_check(&out));
    return arena_check(a);
}

/* --- one file --- */

/* '\n'.join(text.splitlines()) */
static void add_lines(struct buf *b, struct str text)
{
    uint32_t cp;

    for (size_t at = 0, n; at < text.len; at += n) {
        struct str rest = str_from(text, at);
        n = utf8_decode(rest, &cp);
        bool ends = (cp >= '\n' && cp <= '\r') || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 ||
                    cp == 0x2028 || cp == 0x2029;
        n += cp == '\r' && str_starts(rest, STR("\r\n"));
        if (!ends)
            buf_add(b, str_first(rest, n));
        else if (at + n < text.len)
            buf_add_char(b, '\n');
    }
}

bool git_print_diff(struct arena *a, struct str texts, struct str *ret_printed)
{
    struct str number, modified = texts;
    uint64_t size;
    own_done(buf) lines;
    own_done(buf) out;
    struct jw w;

    buf_init(&lines, 2 * GIT_FILE_BYTES);
    buf_init(&out, GIT_PRINT_BYTES);
    *ret_printed = STR("git_diff: the file is not in a repository");
    if (!str_cut(&modified, '\n', &number) || !str_to_u64(number, &size) || size > modified.len)
        return false;
    struct str original = str_first(modified, size);
    modified = str_from(modified, size);
    *ret_printed = STR("git_diff: the file is larger than 1 MiB");
    if (modified.len > GIT_FILE_BYTES)
        return false;
    *ret_printed = STR("git_diff: the file is not text");
    if (!utf8_valid(original) || !utf8_valid(modified))
        return false;
    add_lines(&lines, modified);
    jw_init(&w, &out, JW_PYTHON);
    wire_put_git_diff(&w, lines.len ? buf_str(&lines) : STR(""), shell_text_strip(original));
    *ret_printed = arena_copy(a, buf_str(&out));
    return !buf_failed(&out) && !a->failed;
}

/* --- asking git --- */

static void on_git_done(void *arg, const struct tool_result *r)
{
    struct git_job *job = arg;
    struct str printed = STR("git_changes: the directory cannot be entered");
    int code = r->exit_code;

    job->tool = NULL;
    if (r->timed_out || r->cut) {
        printed = r->cut ? STR("{\"error\": \"more changes than can be shown\"}")
                         : STR("{\"error\": \"git did not answer in time\"}");
        code = job->diff;
    } else if (job->diff) {
        code = !git_print_diff(job->arena, r->output, &printed);
    } else if (code == 0) {
        struct err *e = git_print_changes(job->arena, r->output, &printed);
        code = e != NULL;
        err_free(e);
    }
    job->done(job, code, printed);
}

fallible git_start(struct git_job *job, struct exec *e, const struct git_ask *ask, struct str cwd)
{
    own_done(buf) script;
    const char *argv[] = {"sh", "-c", NULL, "sh", NULL, NULL, NULL};
    struct tool_config config = {
        .argv = argv,
        .env = e->env,
        .user = e->run_as,
        .spawner = e->spawner,
        .limit_ms = GIT_LIMIT_MS,
        .output_bytes = 8 * GIT_FILE_BYTES,
        .done = on_git_done,
        .arg = job,
    };

    buf_init(&script, 64u << 10);
    TRY(inflate_all(EMBEDDED(git), &script));
    job->diff = ask->file.p != NULL;
    argv[2] = buf_cstr(&script);
    config.cwd = arena_cstr(job->arena, cwd);
    argv[4] = ask->cwd.len ? arena_cstr(job->arena, ask->cwd) : config.cwd;
    argv[5] = job->diff ? arena_cstr(job->arena, ask->file) : NULL;
    TRY(arena_check(job->arena));
    TRY(buf_check(&script));
    return tool_run(e->loop, &config, &job->tool);
}
