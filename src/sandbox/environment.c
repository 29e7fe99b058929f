// SPDX-License-Identifier: Apache-2.0
/* environment.c — see environment.h. */
#include "sandbox/environment.h"

#include <string.h>

#include "base/cfg.h"

static void environment_add(struct buf *env, const char *name, const char *value)
{
    buf_addf(env, "%s=%s", name, value);
    buf_add_char(env, '\0');
}

unsigned environment_count(const struct buf *env)
{
    unsigned n = 0;

    for (size_t at = 0; at < env->len; at += strlen(env->p + at) + 1)
        n++;
    return n;
}

fallible environment_make(struct buf *env, const struct sbx_host *host, const char *const *kept,
                          const struct sbx_spec *spec)
{
    buf_reset(env);
    for (; *kept; kept++) {
        const char *value = cfg_env_get(host->envp, *kept);
        if (value)
            environment_add(env, *kept, value);
    }
    for (size_t i = 0; spec->env && spec->env[i]; i++) {
        if (spec->env[i][0] == '=' || !strchr(spec->env[i], '='))
            return err_new(ERR_INVALID, "environment: '%.80s' is not NAME=value", spec->env[i]);
        buf_add_mem(env, spec->env[i], strlen(spec->env[i]) + 1);
    }
    if (spec->session_key)
        environment_add(env, "SESSION_API_KEY", spec->session_key);
    TRY_WRAP(buf_check(env), "environment");
    if (environment_count(env) > ENVIRONMENT_MAX)
        return err_new(ERR_LIMIT, "environment: more than %u variables", ENVIRONMENT_MAX);
    return NULL;
}
