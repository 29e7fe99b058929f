// SPDX-License-Identifier: Apache-2.0
/* run_say.c — see run_say.h. */
#include "cli/run_say.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/own.h"
#include "host/changes/changes.h"
#include "host/run/run.h"

/* 0 is none. */
static void put_limit(struct jw *w, const char *key, uint64_t limit)
{
    if (limit)
        jw_uint(w, key, limit);
    else
        jw_null(w, key);
}

static void put_limits(struct jw *w, const struct native_limits *l)
{
    put_limit(w, "memory_bytes", l->memory_bytes);
    put_limit(w, "disk_bytes", l->disk_bytes);
    put_limit(w, "pids", l->pids);
    put_limit(w, "cpu_milli", l->cpu_milli);
    put_limit(w, "nofile", l->nofile);
}

void run_say_json(int fd, const struct run_spec *s, const struct run_result *r,
                  const struct changes *sum)
{
    own_done(buf) out;
    struct jw w;

    buf_init(&out, 1u << 16);
    jw_init(&w, &out, JW_SPACED);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "id", s->id);
        jw_int(&w, "exit_code", r->exit_code);
        jw_double(&w, "start_ms", (double)r->start_ns / 1e6);
        jw_double(&w, "run_ms", (double)r->run_ns / 1e6);
        jw_uint(&w, "oom_kills", r->oom_kills);
        jw_uint(&w, "pids_denied", r->pids_denied);
        jw_bool(&w, "disk_full", r->disk_full);
        jw_cstr(&w, "disk_limit", native_disk_word(r->disk));
        JW_OBJECT(&w, "limits")
            put_limits(&w, &r->limits);
        jw_bool(&w, "kept", r->kept);
        if (!sum)
            jw_null(&w, "changes"); /* thrown away unseen, or more than can be listed */
        else
            JW_OBJECT(&w, "changes")
                for (size_t i = 0; i < CHANGE_KINDS; i++)
                    jw_uint(&w, change_words[i], sum->kinds[i]);
    }
    buf_add_char(&out, '\n');
    err_free(err_wrap(fd_write_all(fd, buf_str(&out)), "say")); /* nowhere left to report it */
}

static void put_changes(struct buf *out, const char *id, const struct changes *sum)
{
    buf_add_cstr(out, "croft run: ");
    if (sum)
        changes_put_summary(out, sum);
    else
        buf_add_cstr(out, "files changed");
    buf_addf(
        out,
        " in the copy; nothing changed here. See them: croft diff %s   keep them: croft apply %s"
        "   drop them: croft rollback %s\n",
        id, id, id);
}

static void put_hits(struct buf *out, const struct run_result *r)
{
    if (r->oom_kills)
        buf_addf(out,
                 "croft run: the kernel killed a process inside: out of memory (limit %llu MiB); "
                 "try --memory\n",
                 (unsigned long long)(r->limits.memory_bytes >> 20));
    if (r->pids_denied)
        buf_addf(out,
                 "croft run: a process could not be started inside, %llu times: too many "
                 "(limit %u); try --pids\n",
                 (unsigned long long)r->pids_denied, (unsigned)r->limits.pids);
    if (r->disk_full)
        buf_addf(out, "croft run: no disk space was left inside (limit %llu MiB); try --disk\n",
                 (unsigned long long)(r->limits.disk_bytes >> 20));
}

void run_say(int fd, const struct run_spec *s, const struct run_result *r,
             const struct changes *sum)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    if (r->unlimited)
        buf_add_cstr(&out, "croft run: no limits on memory and processes here; with them: "
                           "systemd-run --user --scope -p Delegate=yes croft run\n");
    put_hits(&out, r);
    if (r->kept)
        put_changes(&out, s->id, sum);
    err_free(fd_write_all(fd, buf_str(&out))); /* nowhere left to report it */
}
