// SPDX-License-Identifier: Apache-2.0
/* job.h — a cell in the queue of a kernel; only the kernel's files include it. */
#pragma once

#include "base/list.h"
#include "guest/jupyter/kernel.h"
#include "guest/jupyter/output.h"
#include "loop/loop.h"

struct kernel_job {
    struct kernel *kernel;
    struct list link;
    char *code, *cwd;
    size_t code_len, cwd_len;
    double timeout_s;
    bool include_extra;
    bool again; /* its first kernel was gone before it began */
    void (*on_text)(void *owner, struct str text);
    void (*done)(void *owner, const struct kernel_result *result);
    void *owner;
    struct output output;
    struct loop_timer deadline;
};

fallible job_new(const struct kernel_cell *cell, size_t output_bytes, struct kernel_job **ret_job);
void job_free(struct kernel_job *job);

static inline struct str job_code(const struct kernel_job *job)
{
    return str_n(job->code, job->code_len);
}
static inline struct str job_cwd(const struct kernel_job *job)
{
    return str_n(job->cwd, job->cwd_len);
}

enum job_end { JOB_DONE, JOB_TIMED_OUT, JOB_DIED, JOB_FAILED };
/* Tells the owner; the job is freed. why is borrowed, for JOB_FAILED. */
void job_finish(struct kernel_job *job, enum job_end end, struct str interpreter,
                const struct err *why);
