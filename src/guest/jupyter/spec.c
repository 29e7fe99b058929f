// SPDX-License-Identifier: Apache-2.0
/* spec.c — see spec.h. */
#include "guest/jupyter/spec.h"

#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "guest/proc/env.h"

#define SPEC_SIZE (256u << 10)

static const char *spec_replace(struct arena *a, struct str word, struct str what, const char *with)
{
    ptrdiff_t at = str_find(word, what);

    if (at < 0)
        return arena_cstr(a, word);
    return arena_printf(a, "%.*s%s%.*s", (int)at, word.p, with,
                        STR_ARG(str_from(word, (size_t)at + what.len)))
        .p;
}

static bool is_python_word(struct str s)
{
    return str_eq(s, STR("python")) || str_eq(s, STR("python3"));
}

static fallible fill_argv(struct arena *a, const struct json *argv, const char *python,
                          const char *dir, const char *file, char *const *env, struct spec *spec)
{
    unsigned at = 0;

    if (!argv || argv->type != JSON_ARRAY || argv->count == 0)
        return err_new(ERR_INVALID, "'argv' must be a list");
    spec->argv = arena_zalloc(a, (argv->count + 1) * sizeof *spec->argv);
    if (!spec->argv)
        return arena_check(a);
    for (const struct json *v = argv->first; v; v = v->next) {
        if (v->type != JSON_STR)
            return err_new(ERR_INVALID, "'argv' must hold strings");
        const char *word = spec_replace(a, v->s, STR("{connection_file}"), file);
        if (word)
            word = spec_replace(a, str_of(word), STR("{resource_dir}"), dir);
        if (!word)
            return arena_check(a);
        spec->argv[at++] = (char *)word;
    }
    const char *program = python;
    if (!is_python_word(str_of(spec->argv[0])))
        TRY(proc_find_program(a, spec->argv[0], env, &program));
    spec->argv[0] = (char *)program;
    return NULL;
}

static fallible fill_env(struct arena *a, const struct json *vars, char *const *env,
                         struct spec *spec)
{
    unsigned count = vars && vars->type == JSON_OBJECT ? vars->count : 0, at = 0;
    char **more = arena_zalloc(a, (count + 1) * sizeof *more);

    if (!more)
        return arena_check(a);
    for (const struct json *v = count ? vars->first : NULL; v; v = v->next)
        if (v->type == JSON_STR)
            more[at++] = (char *)arena_printf(a, "%.*s=%.*s", STR_ARG(v->key), STR_ARG(v->s)).p;
    TRY(arena_check(a));
    spec->env = proc_env_with(a, env, more);
    return arena_check(a);
}

static fallible read_spec(struct arena *a, const char *dir, struct str text, const char *python,
                          char *const *env, const char *file, struct spec *ret_spec)
{
    struct json *root;

    struct str copy = arena_copy(a, text);
    TRY(arena_check(a));
    TRY(json_parse(a, copy, NULL, &root));
    TRY(fill_argv(a, json_get(root, STR("argv")), python, dir, file, env, ret_spec));
    TRY(fill_env(a, json_get(root, STR("env")), env, ret_spec));
    ret_spec->python = str_eq(json_get_str(root, "language", STR("")), STR("python"));
    ret_spec->interrupt_message =
        str_eq(json_get_str(root, "interrupt_mode", STR("signal")), STR("message"));
    return NULL;
}

/* Tries one folder of kernels; *ret_found says whether the name is there. */
static fallible try_dir(struct arena *a, struct str base, const char *name, const char *python,
                        char *const *env, const char *file, bool *ret_found, struct spec *ret_spec)
{
    own_done(buf) text;
    struct str dir = arena_printf(a, "%.*s/kernels/%s", STR_ARG(base), name);
    struct str path = arena_printf(a, "%.*s/kernels/%s/kernel.json", STR_ARG(base), name);

    buf_init(&text, SPEC_SIZE);
    TRY(arena_check(a));
    if (!base.len || access(path.p, R_OK) < 0)
        return NULL;
    TRY(fd_read_file(path.p, &text));
    TRY_WRAP(read_spec(a, dir.p, buf_str(&text), python, env, file, ret_spec), "'%s'", path.p);
    *ret_found = true;
    return NULL;
}

/* All places, in Jupyter's order, joined by ':'. */
static struct str spec_places(struct arena *a, const char *python, char *const *env)
{
    const char *path = proc_env_get(env, "JUPYTER_PATH"), *home = proc_env_get(env, "HOME");
    const char *data = proc_env_get(env, "JUPYTER_DATA_DIR");
    struct str prefix = str_of(python); /* <prefix>/bin/python3 */

    for (unsigned up = 0; up < 2; up++)
        while (prefix.len && prefix.p[--prefix.len] != '/')
            ;
    struct str user =
        data ? str_of(data) : arena_printf(a, "%s/.local/share/jupyter", home ? home : "");
    return arena_printf(a, "%s:%.*s:%.*s/share/jupyter:/usr/local/share/jupyter:/usr/share/jupyter",
                        path ? path : "", STR_ARG(user), STR_ARG(prefix));
}

static fallible own_spec(struct arena *a, const char *python, char *const *env, const char *file,
                         struct spec *ret_spec)
{
    static const char *const words[] = {"-m", "ipykernel_launcher", "-f"};
    char **argv = arena_zalloc(a, (ARRAY_LEN(words) + 3) * sizeof *argv);

    TRY(arena_check(a));
    argv[0] = (char *)python;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        argv[i + 1] = (char *)words[i];
    argv[ARRAY_LEN(words) + 1] = (char *)file;
    *ret_spec = (struct spec){.argv = argv, .python = true};
    ret_spec->env = (char **)env;
    return NULL;
}

fallible spec_find(struct arena *a, const char *name, const char *python, char *const *env,
                   const char *connection_file, struct spec *ret_spec)
{
    bool found = false;
    struct str base;

    if (!name)
        return own_spec(a, python, env, connection_file, ret_spec);
    if (!*name || *name == '.' || strchr(name, '/'))
        return err_new(ERR_INVALID, "'%s' is no name of a kernel", name);
    struct str rest = spec_places(a, python, env);
    TRY(arena_check(a));
    while (rest.len && !found) {
        str_cut(&rest, ':', &base);
        TRY(try_dir(a, base, name, python, env, connection_file, &found, ret_spec));
    }
    return found ? NULL : err_new(ERR_NOT_FOUND, "no kernel named '%s' is installed", name);
}
