// SPDX-License-Identifier: Apache-2.0
/* job.c — see job.h: how a cell's answer is put together. */
#include "guest/jupyter/job.h"

#include "base/json.h"
#include "base/mem.h"

#define CODE_MAX    (16u << 20)
#define CWD_MAX     (64u << 10)
#define EXTRA_BYTES (256u << 10) /* the lines after a cell's text */

static void kernel_job_free(struct kernel_job *job)
{
    job_free(job);
}
OWNABLE(kernel_job)

static char *job_copy(struct str s)
{
    char *p = mem_try(s.len + 1);

    if (p && s.len)
        memcpy(p, s.p, s.len);
    return p;
}

fallible job_new(const struct kernel_cell *cell, size_t output_bytes, struct kernel_job **ret_job)
{
    if (cell->code.len > CODE_MAX || cell->cwd.len > CWD_MAX)
        return err_new(ERR_TOO_LARGE, "a cell of %zu bytes; the limit is %u", cell->code.len,
                       CODE_MAX);
    own(kernel_job) job = mem_try(sizeof *job);
    if (!job)
        return err_no_memory();
    output_init(&job->output, output_bytes);
    list_init(&job->link);
    job->code = job_copy(cell->code);
    job->cwd = job_copy(cell->cwd);
    if (!job->code || !job->cwd)
        return err_no_memory();
    job->code_len = cell->code.len;
    job->cwd_len = cell->cwd.len;
    job->timeout_s = cell->timeout_s;
    job->include_extra = cell->include_extra;
    job->on_text = cell->on_text;
    job->done = cell->done;
    job->owner = cell->owner;
    *ret_job = take(&job);
    return NULL;
}

void job_free(struct kernel_job *job)
{
    if (!job)
        return;
    loop_timer_stop(&job->deadline);
    list_del(&job->link);
    output_done(&job->output);
    free(job->code);
    free(job->cwd);
    free(job);
}

static void put_timeout(const struct kernel_job *job, struct buf *content)
{
    char seconds[JSON_DOUBLE_MAX];

    size_t n = json_format_double(job->timeout_s, seconds);
    buf_addf(content, "[Execution timed out (%.*s seconds).]", (int)n, seconds);
}

static void put_extra(const struct kernel_job *job, struct str interpreter, struct buf *content)
{
    buf_add_cstr(content, "\n[Jupyter current working directory: ");
    buf_add(content, job_cwd(job));
    buf_add_cstr(content, "]\n[Jupyter Python interpreter: ");
    buf_add(content, interpreter);
    buf_add_cstr(content, "]");
}

void job_finish(struct kernel_job *job, enum job_end end, struct str interpreter,
                const struct err *why)
{
    own(kernel_job) j = job;
    own_done(buf) content;
    struct str images[OUTPUT_IMAGES_MAX];
    struct kernel_result r = {.timed_out = end == JOB_TIMED_OUT, .died = end == JOB_DIED};

    list_del(&j->link);
    loop_timer_stop(&j->deadline);
    buf_init(&content, 24 * j->output.half_bytes + EXTRA_BYTES);
    if (end == JOB_FAILED) {
        r.failed = why;
        j->done(j->owner, &r);
        return;
    }
    if (end == JOB_TIMED_OUT)
        put_timeout(j, &content);
    else
        output_content(&j->output, &content);
    if (j->include_extra)
        put_extra(j, interpreter, &content);
    for (unsigned i = 0; i < j->output.image_count && end != JOB_TIMED_OUT; i++)
        images[r.image_count++] = output_image(&j->output, i);
    r.images = images;
    r.content = buf_str(&content);
    own(err) failed = buf_check(&content);
    if (failed)
        r = (struct kernel_result){.failed = failed};
    j->done(j->owner, &r);
}
