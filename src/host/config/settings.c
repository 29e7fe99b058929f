// SPDX-License-Identifier: Apache-2.0
/* settings.c — the files, the environment and the flags, in order; see settings.h. */
#include "host/config/settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/toml.h"
#include "host/config/yaml.h"

#define SYSTEM_FILE "/etc/croft/croft.toml"
#define ARENA_LIMIT (64u << 20)

ROWS_OF(cfg_tables, struct cfg_table)
ROWS_OF(cfg_families, struct cfg_family)

struct state_settings {
    struct str dir; /* unset: by XDG, see settings_state_dir */
};

static const struct cfg_row state_rows[] = {
    CFG_STR(state_settings, dir, "server.state_dir", NULL,
            "Where conversations, sandboxes and keys are kept; by XDG when unset.",
            .at_start = true),
};
CFG_TABLE(state) = {state_rows, ARRAY_LEN(state_rows), .size = sizeof(struct state_settings),
                    .first = true};

static const char *dir_from(const char *const *envp, const char *name)
{
    const char *dir = cfg_env_get(envp, name);

    return dir && *dir ? dir : NULL;
}

/* --- files --- */

static fallible settings_parse(struct arena *a, struct str name, struct str text,
                               struct json **ret_tree)
{
    if (str_ends(name, STR(".yaml")) || str_ends(name, STR(".yml")))
        return yaml_parse(a, text, ret_tree);
    if (str_ends(name, STR(".json")))
        return json_parse(a, text, NULL, ret_tree);
    return toml_parse(a, text, ret_tree);
}

fallible settings_load_file(struct settings *s, const char *path)
{
    own_done(buf) file;
    struct json *tree;

    buf_init(&file, TOML_MAX_SIZE);
    TRY_WRAP(fd_read_file(path, &file), "configuration");
    struct str text = arena_copy(&s->arena, buf_str(&file)); /* the tree points into it */
    struct str source = arena_printf(&s->arena, "file:%s", path);
    json_push(s->files, json_new_str(&s->arena, arena_copy(&s->arena, str_of(path))));
    TRY(arena_check(&s->arena));
    TRY_WRAP(settings_parse(&s->arena, str_of(path), text, &tree), "%s", path);
    s->cfg.text = text;
    struct err *e = cfg_load_tree(&s->cfg, tree, source.p);
    s->cfg.text = (struct str){0};
    return e;
}

/* A file that need not be there. */
static fallible load_if_there(struct settings *s, const char *path)
{
    return access(path, F_OK) == 0 ? settings_load_file(s, path) : NULL;
}

static fallible load_user_file(struct settings *s, const char *const *envp)
{
    const char *xdg = dir_from(envp, "XDG_CONFIG_HOME"), *home = dir_from(envp, "HOME");
    struct str path;

    if (!xdg && !home)
        return NULL;
    path = xdg ? arena_printf(&s->arena, "%s/croft/croft.toml", xdg)
               : arena_printf(&s->arena, "%s/.config/croft/croft.toml", home);
    TRY(arena_check(&s->arena));
    return load_if_there(s, path.p);
}

/* --- the tables of all modules --- */

/* Sections in the order they are printed; others follow, and those of OpenHands come last. */
static size_t section_place(const struct cfg_row *row)
{
    static const char *const sections[] = {"log.",     "server.",    "limits.", "idle.",
                                           "journal.", "telemetry.", "tenant."};
    size_t i = 0;

    if (row->foreign)
        return ARRAY_LEN(sections) + 1;
    while (i < ARRAY_LEN(sections) && !str_starts(str_of(row->key), str_of(sections[i])))
        i++;
    return i;
}

static int compare_slices(const void *left, const void *right)
{
    const struct cfg_table *a = left, *b = right;
    size_t x = section_place(a->rows), y = section_place(b->rows);

    if (x != y)
        return x < y ? -1 : 1;
    return a->first != b->first ? b->first - a->first : strcmp(a->rows->key, b->rows->key);
}

static bool same_section(const struct cfg_row *a, const struct cfg_row *b)
{
    size_t n = strcspn(a->key, ".") + 1;

    return strncmp(a->key, b->key, n) == 0;
}

/* Tables cut where another section begins, and sorted: the linker has no order. NULL: no memory. */
static struct cfg_table *cut_tables(struct arena *a, void *const *into, size_t *ret_count)
{
    size_t rows = 0, count = 0;

    for (size_t t = 0; t < ROWS_LEN(cfg_tables); t++)
        rows += ROWS_AT(cfg_tables, t)->count;
    struct cfg_table *slices = arena_alloc(a, (rows + 1) * sizeof *slices); /* one for options */
    for (size_t t = 0; slices && t < ROWS_LEN(cfg_tables); t++) {
        const struct cfg_table *from = ROWS_AT(cfg_tables, t);
        for (size_t i = 0; i < from->count; i++)
            if (i && same_section(&from->rows[i - 1], &from->rows[i]))
                slices[count - 1].count++;
            else
                slices[count++] = (struct cfg_table){&from->rows[i], 1, into ? into[t] : NULL,
                                                     .first = from->first};
    }
    if (slices)
        qsort(slices, count, sizeof *slices, compare_slices);
    *ret_count = count;
    return slices;
}

struct cfg_table settings_rows(struct arena *a)
{
    size_t count, at = 0, rows = 0;
    struct cfg_table *slices = cut_tables(a, NULL, &count);

    for (size_t i = 0; slices && i < count; i++)
        rows += slices[i].count;
    struct cfg_row *all = arena_alloc(a, (rows + 1) * sizeof *all);
    for (size_t i = 0; slices && all && i < count; i++) {
        memcpy(all + at, slices[i].rows, slices[i].count * sizeof *all);
        at += slices[i].count;
    }
    return (struct cfg_table){all, at, NULL};
}

static int compare_families(const void *left, const void *right)
{
    const struct cfg_family *const *a = left, *const *b = right;

    return strcmp((*a)->section, (*b)->section);
}

const struct cfg_family *const *settings_families(struct arena *a, size_t *ret_count)
{
    size_t count = ROWS_LEN(cfg_families);
    const struct cfg_family **all = arena_alloc(a, (count + 1) * sizeof *all);

    *ret_count = all ? count : 0;
    for (size_t i = 0; i < *ret_count; i++)
        all[i] = ROWS_AT(cfg_families, i);
    if (all)
        qsort(all, count, sizeof *all, compare_families);
    return all;
}

const void *settings_of(const struct settings *s, const struct cfg_table *table)
{
    size_t i = 0;

    while (ROWS_AT(cfg_tables, i) != table)
        i++;
    return s->tables[i];
}

const void *settings_named(const struct settings *s, const struct cfg_family *family,
                           size_t *ret_count)
{
    size_t i = 0;

    while (ROWS_AT(cfg_families, i) != family)
        i++;
    *ret_count = s->families[i].count;
    return s->families[i].at;
}

/* --- all of it --- */

static fallible settings_alloc(struct settings *s)
{
    s->files = json_new(&s->arena, JSON_ARRAY);
    s->tables = arena_zalloc(&s->arena, (ROWS_LEN(cfg_tables) + 1) * sizeof *s->tables);
    s->families = arena_zalloc(&s->arena, (ROWS_LEN(cfg_families) + 1) * sizeof *s->families);
    TRY(arena_check(&s->arena));
    for (size_t i = 0; i < ROWS_LEN(cfg_tables); i++)
        s->tables[i] = arena_zalloc(&s->arena, ROWS_AT(cfg_tables, i)->size);
    return arena_check(&s->arena);
}

fallible settings_begin(struct settings *s, const struct cfg_table *options, int *argc, char **argv)
{
    size_t count;

    *s = (struct settings){0};
    arena_init(&s->arena, ARENA_LIMIT);
    TRY(settings_alloc(s));
    struct cfg_table *slices = cut_tables(&s->arena, s->tables, &count);
    TRY(arena_check(&s->arena));
    if (options)
        slices[count++] = *options;
    TRY(cfg_init(&s->cfg, &s->arena, slices, count));
    s->cfg.families = settings_families(&s->arena, &s->cfg.family_count);
    s->cfg.foreign = settings_foreign;
    s->cfg.foreign_count = settings_foreign_count;
    TRY(arena_check(&s->arena));
    return cfg_load_flags(&s->cfg, argc,
                          argv); /* first, to learn --config; they win all the same */
}

static fallible collect_family(struct settings *s, const struct cfg_family *f,
                               struct settings_array *all)
{
    struct err *mistakes = NULL;

    all->at = arena_zalloc(&s->arena, f->most * f->size);
    TRY(arena_check(&s->arena));
    for (const struct cfg_named *n = s->cfg.named; n; n = n->next) {
        if (n->family != f)
            continue;
        if (f->check)
            mistakes = err_join(mistakes, f->check(&s->cfg, n));
        memcpy((char *)all->at + all->count++ * f->size, n->into, f->size);
    }
    return mistakes;
}

static fallible settings_check(struct settings *s)
{
    struct err *mistakes = NULL;

    for (size_t i = 0; i < ROWS_LEN(cfg_families); i++)
        mistakes = err_join(mistakes, collect_family(s, ROWS_AT(cfg_families, i), &s->families[i]));
    for (size_t i = 0; i < ROWS_LEN(cfg_tables); i++)
        if (ROWS_AT(cfg_tables, i)->check)
            mistakes = err_join(mistakes, ROWS_AT(cfg_tables, i)->check(&s->cfg, s->tables[i]));
    return err_join(mistakes, arena_check(&s->arena));
}

fallible settings_load(struct settings *s, struct str config_file, const char *const *envp)
{
    struct err *mistakes = load_if_there(s, SYSTEM_FILE);

    mistakes = err_join(mistakes, load_user_file(s, envp));
    const char *path = config_file.p ? arena_cstr(&s->arena, config_file) : NULL;
    if (path)
        mistakes = err_join(mistakes, settings_load_file(s, path));
    mistakes = err_join(mistakes, cfg_load_env(&s->cfg, envp));
    return err_join(mistakes, settings_check(s));
}

void settings_done(struct settings *s)
{
    arena_done(&s->arena);
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

    const struct state_settings *own = settings_of(s, CFG_TABLE_OF(state));

    if (own->dir.p)
        *ret_path = own->dir;
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
