// SPDX-License-Identifier: Apache-2.0
/* settings.c — the files, the environment and the flags, in order; see settings.h. */
#include "host/config/settings.h"

#include <unistd.h>

#include "base/fd.h"
#include "base/toml.h"
#include "host/config/yaml.h"
#include "net/url.h"

#define SYSTEM_FILE "/etc/croft/croft.toml"
#define ARENA_LIMIT (64u << 20)

/* Keys of OpenHands' that no part of croft reads. */
static const char *const core_keys[] = {
    "cli_multiline_input",
    "daytona_api_key",
    "daytona_api_url",
    "daytona_target",
    "disable_color",
    "e2b_api_key",
    "enable_cli_session",
    "enable_default_condenser",
    "file_store_web_hook_batch",
    "file_store_web_hook_headers",
    "file_store_web_hook_url",
    "max_budget_per_task",
    "modal_api_token_id",
    "modal_api_token_secret",
    "replay_trajectory_path",
    "runloop_api_key",
    "save_screenshots_in_trajectory",
    "save_trajectory_path",
    "search_api_key",
    NULL,
};
static const char *const sandbox_keys[] = {"box_type", "container_image", "persist_sandbox", NULL};
static const char *const security_keys[] = {"enable_security_analyzer", NULL};
static const struct cfg_foreign foreign[] = {
    {"core", core_keys},
    {"sandbox", sandbox_keys},
    {"security", security_keys},
    {"llm", NULL},
    {"agent", NULL},
    {"extended", NULL},
    {"condenser", NULL},
    {"mcp", NULL},
    {"model_routing", NULL},
    {"cli", NULL},
    {"eval", NULL},
    {"evaluation", NULL},
    {"router_config", NULL},
};

static const char *dir_from(const char *const *envp, const char *name)
{
    const char *dir = cfg_env_get(envp, name);

    return dir && *dir ? dir : NULL;
}

/* --- files --------------------------------------------------------------------------------------
 */

static fallible settings_parse(struct arena *a, struct str name, struct str text,
                               struct json **ret_tree)
{
    if (str_ends(name, STR(".yaml")) || str_ends(name, STR(".yml")))
        return yaml_parse(a, text, ret_tree);
    if (str_ends(name, STR(".json")))
        return json_parse(a, text, NULL, ret_tree);
    return toml_parse(a, text, ret_tree);
}

fallible settings_load_file(struct settings_loaded *l, const char *path)
{
    own_done(buf) file;
    struct json *tree;

    buf_init(&file, TOML_MAX_SIZE);
    TRY_WRAP(fd_read_file(path, &file), "configuration");
    struct str text = arena_copy(&l->arena, buf_str(&file)); /* the tree points into it */
    struct str source = arena_printf(&l->arena, "file:%s", path);
    json_push(l->files, json_new_str(&l->arena, arena_copy(&l->arena, str_of(path))));
    TRY(arena_check(&l->arena));
    TRY_WRAP(settings_parse(&l->arena, str_of(path), text, &tree), "%s", path);
    return cfg_load_tree(&l->cfg, tree, source.p, foreign, ARRAY_LEN(foreign));
}

/* A file that need not be there. */
static fallible load_if_there(struct settings_loaded *l, const char *path)
{
    return access(path, F_OK) == 0 ? settings_load_file(l, path) : NULL;
}

static fallible load_user_file(struct settings_loaded *l, const char *const *envp)
{
    const char *xdg = dir_from(envp, "XDG_CONFIG_HOME"), *home = dir_from(envp, "HOME");
    struct str path;

    if (!xdg && !home)
        return NULL;
    path = xdg ? arena_printf(&l->arena, "%s/croft/croft.toml", xdg)
               : arena_printf(&l->arena, "%s/.config/croft/croft.toml", home);
    TRY(arena_check(&l->arena));
    return load_if_there(l, path.p);
}

/* --- the environment ----------------------------------------------------------------------------
 */

/* SANDBOX_ENV_<X>=v sets X in every sandbox. */
static fallible collect_env(struct settings *s, struct arena *a, const char *const *envp)
{
    s->sandbox.env = json_new(a, JSON_OBJECT);
    for (; envp && *envp; envp++) {
        struct str value = str_of(*envp), name;
        if (!str_starts(value, STR("SANDBOX_ENV_")))
            continue;
        value = str_from(value, sizeof "SANDBOX_ENV_" - 1);
        if (!str_cut(&value, '=', &name) || !name.len)
            continue;
        json_set(s->sandbox.env, arena_copy(a, name), json_new_str(a, arena_copy(a, value)));
    }
    return arena_check(a);
}

/* --- pools and mounts ---------------------------------------------------------------------------
 */

static fallible add_pool(struct settings_loaded *l, const struct cfg_named *n)
{
    struct settings *s = l->settings;
    struct settings_pool *p = n->into;

    p->name = n->name;
    if (!p->ceiling)
        p->ceiling = p->target;
    if (p->ceiling < p->target) {
        struct str key = arena_printf(&l->arena, "pool." STR_FMT ".ceiling", STR_ARG(n->name));
        return err_new(ERR_INVALID, STR_FMT " (%s): it is %llu, and the target is %llu",
                       STR_ARG(key), cfg_source(&l->cfg, key.p), (unsigned long long)p->ceiling,
                       (unsigned long long)p->target);
    }
    s->pools[s->pool_count++] = *p;
    return NULL;
}

static unsigned mode_bit(const struct json *word)
{
    static const struct {
        const char *word;
        unsigned may;
    } modes[] = {{"ro", SETTINGS_RO},
                 {"overlay", SETTINGS_OVERLAY},
                 {"apply", SETTINGS_APPLY | SETTINGS_OVERLAY},
                 {"rw", SETTINGS_RW}};

    for (size_t i = 0; word->type == JSON_STR && i < ARRAY_LEN(modes); i++)
        if (str_eq(word->s, str_of(modes[i].word)))
            return modes[i].may;
    return 0;
}

static fallible add_mount(struct settings_loaded *l, const struct cfg_named *n)
{
    struct settings *s = l->settings;
    struct settings_mount *m = n->into;

    m->name = n->name;
    while (m->path.len > 1 && m->path.p[m->path.len - 1] == '/')
        m->path.len--;
    if (m->path.len < 2 || m->path.len > SETTINGS_MOUNT_PATH || m->path.p[0] != '/' ||
        str_find(m->path, STR("/../")) >= 0 || str_find(m->path, STR("//")) >= 0 ||
        str_find(m->path, STR("\n")) >= 0)
        return err_new(ERR_INVALID,
                       "mount." STR_FMT ".path: wanted an absolute, plain path of at most %d bytes",
                       STR_ARG(n->name), SETTINGS_MOUNT_PATH);
    m->path = str_of(arena_cstr(&l->arena, m->path));
    for (const struct json *word = m->modes->first; word; word = word->next) {
        if (!mode_bit(word))
            return err_new(ERR_INVALID, "mount." STR_FMT ".modes: wanted ro, overlay, apply, rw",
                           STR_ARG(n->name));
        m->may |= mode_bit(word);
    }
    for (const struct json *key = m->keys->first; key; key = key->next)
        if (key->type != JSON_STR)
            return err_new(ERR_INVALID, "mount." STR_FMT ".keys: wanted names of keys",
                           STR_ARG(n->name));
    s->mounts[s->mount_count++] = *m;
    return arena_check(&l->arena);
}

static fallible collect_named(struct settings_loaded *l)
{
    struct settings *s = l->settings;

    s->pools = arena_alloc(&l->arena, SETTINGS_POOLS * sizeof *s->pools);
    s->mounts = arena_alloc(&l->arena, SETTINGS_MOUNTS * sizeof *s->mounts);
    TRY(arena_check(&l->arena));
    for (const struct cfg_named *n = l->cfg.named; n; n = n->next)
        TRY(strcmp(n->family->section, "mount") == 0 ? add_mount(l, n) : add_pool(l, n));
    return NULL;
}

/* --- how clients reach us -----------------------------------------------------------------------
 */

static bool is_domain(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i], before = i ? s.p[i - 1] : 0;
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || str_is_digit(c);
        if (!letter && c != '-' && !(c == '.' && before && before != '.'))
            return false;
    }
    return s.len <= SETTINGS_DOMAIN && !str_ends(s, STR(".")) && !str_ends(s, STR("-"));
}

/* A port in it would be compared with names, and no sandbox be found by them. */
static fallible check_names(const struct settings_loaded *l)
{
    struct settings *s = l->settings;
    struct url u;

    if (!s->public_url.len) /* a variable that is there and empty */
        s->public_url = (struct str){0};
    if (s->domain.len && !is_domain(s->domain))
        return err_new(ERR_INVALID,
                       "server.domain (%s): '" STR_FMT "': wanted a name like run.example.com, "
                       "without scheme and port; urls get the port of server.listen, or scheme and "
                       "port of server.public_url where that is set",
                       cfg_source(&l->cfg, "server.domain"), STR_ARG(str_first(s->domain, 300)));
    if (!s->public_url.p)
        return NULL;
    struct err *e = url_parse(s->public_url, &u);
    if (!e && (str_eq(u.scheme, STR("http")) || str_eq(u.scheme, STR("https"))))
        return NULL;
    err_free(e);
    return err_new(ERR_INVALID,
                   "server.public_url (%s): wanted an address like https://croft.example.com",
                   cfg_source(&l->cfg, "server.public_url"));
}

/* --- all of it ----------------------------------------------------------------------------------
 */

fallible settings_begin(struct settings_loaded *l, struct settings *s,
                        const struct cfg_table *options, int *argc, char **argv)
{
    size_t count = 1;

    *l = (struct settings_loaded){.settings = s};
    *s = (struct settings){0};
    arena_init(&l->arena, ARENA_LIMIT);
    l->tables[0] = settings_table(s);
    if (options)
        l->tables[count++] = *options;
    l->files = json_new(&l->arena, JSON_ARRAY);
    TRY(arena_check(&l->arena));
    TRY(cfg_init(&l->cfg, &l->arena, l->tables, count));
    l->cfg.families = settings_families;
    l->cfg.family_count = settings_family_count;
    return cfg_load_flags(&l->cfg, argc,
                          argv); /* first, to learn --config; they win all the same */
}

fallible settings_load(struct settings_loaded *l, struct str config_file, const char *const *envp)
{
    TRY(load_if_there(l, SYSTEM_FILE));
    TRY(load_user_file(l, envp));
    if (config_file.p) {
        const char *path = arena_cstr(&l->arena, config_file);
        TRY(arena_check(&l->arena));
        TRY(settings_load_file(l, path));
    }
    TRY(cfg_load_env(&l->cfg, envp));
    TRY(collect_named(l));
    TRY(check_names(l));
    return collect_env(l->settings, &l->arena, envp);
}

void settings_loaded_done(struct settings_loaded *l)
{
    arena_done(&l->arena);
}

/* So that what is below "/" begins with one, too. */
static struct str without_slash(const char *dir)
{
    struct str s = str_of(dir);

    while (str_ends(s, STR("/")))
        s.len--;
    return s;
}

fallible settings_state_dir(const struct settings *s, struct arena *a, const char *const *envp,
                            bool root, struct str *ret_path)
{
    const char *xdg = dir_from(envp, "XDG_STATE_HOME"), *home = dir_from(envp, "HOME");

    if (s->state_dir.p)
        *ret_path = s->state_dir;
    else if (root && !xdg)
        *ret_path = STR("/var/lib/croft");
    else if (xdg)
        *ret_path = arena_printf(a, STR_FMT "/croft", STR_ARG(without_slash(xdg)));
    else if (home)
        *ret_path = arena_printf(a, STR_FMT "/.local/state/croft", STR_ARG(without_slash(home)));
    else
        return err_new(ERR_INVALID, "server.state_dir is not set and there is no HOME to derive it "
                                    "from; set CROFT_SERVER_STATE_DIR");
    return arena_check(a);
}
