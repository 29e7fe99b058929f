// SPDX-License-Identifier: Apache-2.0
/* start.c — see start.h. */
#include "guest/exec/start.h"

#include "base/cfg.h"

#define ARENA_BYTES (16u << 20) /* the environment is the largest part */

bool start_flag(const char *const *envp, const char *name, bool otherwise)
{
    const char *value = cfg_env_get(envp, name);

    if (!value || !value[0])
        return otherwise;
    return str_fits(str_of(value), "1 true t yes y on", str_eq_nocase);
}

fallible start_all(struct start *s, const struct exec_config *config)
{
    arena_init(&s->arena, ARENA_BYTES);
    TRY(start_user(s, config));
    TRY(start_workdir(s, config));
    TRY_WRAP(start_environ(s, config), "environment of commands");
    TRY_WRAP(start_git(s, config), "--git-user-name, --git-user-email");
    return NULL;
}

void start_done(struct start *s)
{
    arena_done(&s->arena);
}
