// SPDX-License-Identifier: Apache-2.0
/* env.c — see env.h. */
#include "guest/proc/env.h"

#include <string.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const char *proc_env_get(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

static bool named_in(char *const *more, const char *var)
{
    size_t n = strcspn(var, "=");

    for (; *more; more++)
        if (strcspn(*more, "=") == n && strncmp(*more, var, n) == 0)
            return true;
    return false;
}

char **proc_env_with(struct arena *a, char *const *env, char *const *more)
{
    size_t count = 1, at = 0;

    for (char *const *v = env; v && *v; v++)
        count++;
    for (char *const *v = more; *v; v++)
        count++;
    char **all = arena_alloc(a, count * sizeof *all);
    if (!all)
        return NULL;
    for (char *const *v = more; *v; v++)
        all[at++] = *v;
    for (char *const *v = env; v && *v; v++)
        if (!named_in(more, *v))
            all[at++] = *v;
    all[at] = NULL;
    return all;
}

fallible proc_find_program(struct arena *a, const char *name, char *const *env,
                           const char **ret_path)
{
    const char *path = proc_env_get(env, "PATH");
    struct str rest = str_of(path && *path ? path : DEFAULT_PATH), dir;

    if (strchr(name, '/')) {
        if (access(name, X_OK) < 0)
            return err_sys("run '%s'", name);
        *ret_path = name;
        return NULL;
    }
    while (rest.len) {
        str_cut(&rest, ':', &dir);
        struct str full = arena_printf(a, "%.*s/%s", STR_ARG(dir), name);
        if (dir.len && full.p && access(full.p, X_OK) == 0) {
            *ret_path = full.p;
            return NULL;
        }
    }
    return err_new(ERR_NOT_FOUND, "there is no '%s' in PATH", name);
}
