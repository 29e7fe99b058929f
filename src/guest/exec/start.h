// SPDX-License-Identifier: Apache-2.0
/* start.h — what happens before the first request is answered, in the order clients can see:
 * user, working directory, environment. An error names the argument and what to do. */
#pragma once

#include "base/arena.h"
#include "base/passwd.h"
#include "guest/account/account.h"
#include "guest/exec/exec.h"
#include "guest/proc/proc.h"

struct start {
    struct account_place place;
    struct arena arena; /* of all below that is not in the struct */
    /* user.c */
    struct passwd_user account; /* owner of the files, named in the environment */
    bool known;                 /* there is such an account */
    bool asked;                 /* by --username: the environment names it, whatever it said */
    bool other;                 /* commands run as another user than we */
    bool give;                  /* the working directory becomes the account's */
    gid_t group;                /* and that group's */
    struct proc_user user;      /* if other */
    /* workdir.c */
    const char *dir;
    bool foreign_dir; /* it belongs to another user, all the same */
    /* environ.c */
    const char *const *env;
};

/* Zero *s but for place first. On failure too, start_done. */
fallible start_all(struct start *s, const struct exec_config *config);
void start_done(struct start *s);

/* The steps. */
fallible start_user(struct start *s, const struct exec_config *config);
fallible start_workdir(struct start *s, const struct exec_config *config);
fallible start_environ(struct start *s, const struct exec_config *config);
fallible start_git(struct start *s, const struct exec_config *config);

/* Appends to kept the directories of a list with ':' that its user may enter. */
fallible start_enterable(const struct start *s, const char *list, struct buf *kept);

/* 1, true, t, yes, y, on in any case; `otherwise` where the variable is missing or empty. */
bool start_flag(const char *const *envp, const char *name, bool otherwise);
