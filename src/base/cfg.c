// SPDX-License-Identifier: Apache-2.0
/* cfg.c — rows filled from built-in values, trees, variables and flags; see cfg.h.
 *
 * Every value is judged, also one that a stronger source overrides: a broken file does not hide
 * behind a flag. */
#include "base/cfg.h"

#include <stdio.h>

#include "base/cfg_family.h"
#include "base/cfg_row.h"

#define ACCEPTED   STR("accepted, not used by croft")
#define NOTE_DEPTH 3 /* parts of a foreign key that are listed; deeper tables count as one */

struct where {
    const struct cfg_row *row; /* NULL: not found */
    void *into;
    size_t index; /* over all tables */
};

/* --- rows and their names --- */

bool cfg_row_is_option(const struct cfg_row *row)
{
    return strchr(row->key, '.') == NULL;
}

static void put_upper(char *out, const char *prefix, const char *key)
{
    int n = snprintf(out, CFG_NAME_MAX, "%s%s", prefix, key);

    for (int i = 0; i < n && i < CFG_NAME_MAX; i++) {
        if (out[i] >= 'a' && out[i] <= 'z')
            out[i] -= 'a' - 'A';
        else if (out[i] == '.' || out[i] == '-')
            out[i] = '_';
    }
}

bool cfg_row_env(const struct cfg_row *row, char *out)
{
    if (cfg_row_is_option(row))
        return false;
    if (row->env) {
        snprintf(out, CFG_NAME_MAX, "%s", row->env);
        return row->env[0] != '\0';
    }
    bool core = row->foreign && strncmp(row->key, "core.", 5) == 0;
    put_upper(out, row->foreign ? "" : "CROFT_", core ? row->key + 5 : row->key);
    return true;
}

bool cfg_row_flag(const struct cfg_row *row, char *out)
{
    if (!row->flag && row->foreign)
        return false;
    const char *last = strrchr(row->key, '.');
    snprintf(out, CFG_NAME_MAX, "%s", row->flag ? row->flag : last ? last + 1 : row->key);
    for (char *p = out; *p; p++)
        if (*p == '_')
            *p = '-';
    return out[0] != '\0';
}

static bool each_row(const struct cfg *c, struct where *w, size_t n)
{
    *w = (struct where){.index = n};
    for (size_t t = 0; t < c->table_count; t++) {
        if (n < c->tables[t].count) {
            w->row = &c->tables[t].rows[n];
            w->into = c->tables[t].into;
            return true;
        }
        n -= c->tables[t].count;
    }
    return false;
}

static struct where find_key(const struct cfg *c, struct str key)
{
    struct where w;

    for (size_t n = 0; each_row(c, &w, n); n++)
        if (str_eq(str_of(w.row->key), key))
            break;
    return w;
}

const char *cfg_source(const struct cfg *c, const char *key)
{
    struct where w = find_key(c, str_of(key));

    return w.row ? c->sources[w.index] : NULL;
}

/* --- setting --- */

static int cfg_rank(const char *source)
{
    switch (source[0]) {
    case 'd':
        return 0; /* default */
    case 'e':
        return 2; /* env: */
    case 'f':
        return source[1] == 'l' ? 3 : 1; /* flag:, file: */
    default:
        return 1;
    }
}

static void cfg_set(struct cfg *c, const struct where *w, const union cfg_value *v,
                    const char *source)
{
    if (cfg_rank(c->sources[w->index]) > cfg_rank(source))
        return;
    cfg_value_store(w->row, w->into, v);
    c->sources[w->index] = source;
}

static fallible set_text(struct cfg *c, const struct where *w, struct str text, const char *source)
{
    union cfg_value v;

    TRY_WRAP(cfg_value_from_text(c->arena, w->row, text, &v), "%s (%s)", w->row->key, source);
    cfg_set(c, w, &v, source);
    return NULL;
}

static fallible cfg_note(struct cfg *c, struct str key, const char *source, struct str text)
{
    struct json *n = json_new(c->arena, JSON_OBJECT);

    json_set(n, STR("key"), json_new_str(c->arena, key));
    json_set(n, STR("source"), json_new_str(c->arena, str_of(source)));
    json_set(n, STR("note"), json_new_str(c->arena, text));
    json_push(c->notes, n);
    return arena_check(c->arena);
}

static fallible set_defaults(struct cfg *c, size_t from)
{
    struct where w;

    for (size_t n = from; each_row(c, &w, n); n++) {
        union cfg_value v = {0};
        c->sources[n] = "default";
        if (!w.row->otherwise) {
            cfg_value_store(w.row, w.into, &v);
            continue;
        }
        TRY(set_text(c, &w, str_of(w.row->otherwise), "default"));
    }
    return NULL;
}

fallible cfg_init(struct cfg *c, struct arena *a, const struct cfg_table *tables, size_t count)
{
    size_t rows = 0;

    for (size_t i = 0; i < count; i++)
        rows += tables[i].count;
    *c = (struct cfg){.arena = a, .tables = tables, .table_count = count};
    c->notes = json_new(a, JSON_ARRAY);
    c->sources = arena_alloc(a, (rows + 1) * sizeof *c->sources);
    TRY(arena_check(a));
    return set_defaults(c, 0);
}

/* --- tables that come by name --- */

static const struct cfg_family *find_family(const struct cfg *c, struct str section)
{
    for (size_t i = 0; i < c->family_count; i++)
        if (str_eq(str_of(c->families[i]->section), section))
            return c->families[i];
    return NULL;
}

static fallible check_name(const struct cfg *c, const struct cfg_family *f, struct str name)
{
    unsigned count = 0;
    bool good = name.len > 0 && name.len < 64;

    for (size_t i = 0; i < name.len && good; i++) {
        char low = (char)(name.p[i] | 0x20);
        good = (low >= 'a' && low <= 'z') || str_is_digit(name.p[i]) || name.p[i] == '_' ||
               name.p[i] == '-';
    }
    if (!good)
        return err_new(ERR_INVALID, "names are 1 to 63 letters, digits, '-' and '_'");
    for (const struct cfg_named *n = c->named; n; n = n->next)
        count += n->family == f;
    if (count >= f->most)
        return err_new(ERR_INVALID, "there may be %u of these", f->most);
    return NULL;
}

static void link_last(struct cfg *c, struct cfg_named *n)
{
    struct cfg_named **at = &c->named;

    while (*at)
        at = &(*at)->next;
    *at = n;
}

/* One more table at the end: the rows there are keep their places. */
static fallible add_named(struct cfg *c, const struct cfg_family *f, struct str name)
{
    size_t rows = 0;

    for (size_t i = 0; i < c->table_count; i++)
        rows += c->tables[i].count;
    struct cfg_row *own = arena_alloc(c->arena, f->count * sizeof *own);
    struct cfg_table *tables = arena_alloc(c->arena, (c->table_count + 1) * sizeof *tables);
    const char **sources = arena_alloc(c->arena, (rows + f->count + 1) * sizeof *sources);
    struct cfg_named *n = arena_alloc(c->arena, sizeof *n);
    void *into = arena_alloc(c->arena, f->size);
    TRY(arena_check(c->arena));
    memset(into, 0, f->size);
    memcpy(tables, c->tables, c->table_count * sizeof *tables);
    memcpy(sources, c->sources, rows * sizeof *sources);
    *n = (struct cfg_named){f, arena_copy(c->arena, name), into, NULL};
    for (size_t i = 0; i < f->count; i++) {
        own[i] = f->rows[i];
        own[i].key =
            arena_printf(c->arena, "%s." STR_FMT ".%s", f->section, STR_ARG(name), own[i].key).p;
        own[i].env = own[i].flag = ""; /* a name in a variable would be ambiguous */
        TRY(arena_check(c->arena));
    }
    tables[c->table_count] = (struct cfg_table){own, f->count, into};
    c->tables = tables;
    c->table_count++;
    c->sources = sources;
    link_last(c, n);
    return set_defaults(c, rows);
}

static fallible meet_name(struct cfg *c, struct str section, struct str name, const char *source)
{
    const struct cfg_family *f = find_family(c, section);

    for (const struct cfg_named *n = f ? c->named : NULL; n; n = n->next)
        if (n->family == f && str_eq(n->name, name))
            return NULL;
    if (!f)
        return NULL;
    TRY_WRAP(check_name(c, f, name), STR_FMT "." STR_FMT " (%s)", STR_ARG(section),
             STR_ARG(str_first(name, 80)), source);
    return add_named(c, f, name);
}

/* --- near misses --- */

struct nearest {
    struct str wanted, best;
    unsigned distance;
};

static void cfg_consider(struct nearest *n, struct str name)
{
    unsigned d = str_distance(n->wanted, name);
    const char *dot = memrchr(n->wanted.p, '.', n->wanted.len);

    /* The right word in the wrong section is a near miss too. */
    if (d > 1 && dot) {
        struct str tail = str_from(n->wanted, (size_t)(dot - n->wanted.p));
        if (str_ends(name, tail))
            d = 1;
    }
    if (d < n->distance) {
        n->distance = d;
        n->best = name;
    }
}

static struct nearest start_search(struct str wanted)
{
    unsigned most = (unsigned)(wanted.len < 64 ? wanted.len : 64) / 3;

    return (struct nearest){.wanted = wanted, .distance = (most < 2 ? 2 : most) + 1};
}

struct load {
    struct cfg *c;
    const char *source;
    struct err *mistakes; /* all so far */
};

/* Where the key stands: its name lies in the text, unless it was written with escapes. */
static const char *source_of(const struct load *l, struct str key)
{
    const struct str *text = &l->c->text;
    size_t line = 1;

    if (!text->p || key.p < text->p || key.p >= text->p + text->len)
        return l->source;
    for (const char *p = text->p; p < key.p; p++)
        line += *p == '\n';
    struct str source = arena_printf(l->c->arena, "%s line %zu", l->source, line);
    return source.p ? source.p : l->source;
}

static fallible unknown_key(const struct load *l, struct str key, const char *source)
{
    struct nearest n = start_search(key);
    bool section = memchr(key.p, '.', key.len) == NULL;
    struct where w;

    for (size_t i = 0; each_row(l->c, &w, i); i++) {
        if (cfg_row_is_option(w.row))
            continue;
        size_t len = section ? strcspn(w.row->key, ".") : strlen(w.row->key);
        cfg_consider(&n, str_n(w.row->key, len));
    }
    for (size_t i = 0; section && i < l->c->family_count; i++)
        cfg_consider(&n, str_of(l->c->families[i]->section));
    for (size_t i = 0; i < l->c->foreign_count; i++) {
        if (section)
            cfg_consider(&n, str_of(l->c->foreign[i].section));
        for (const char *const *k = l->c->foreign[i].keys; k && *k && !section; k++) {
            struct str full = arena_printf(l->c->arena, "%s.%s", l->c->foreign[i].section, *k);
            if (full.p)
                cfg_consider(&n, full);
        }
    }
    struct str shown = str_first(key, 80);
    if (n.best.p)
        return err_new(ERR_INVALID, STR_FMT " (%s): no such %s; did you mean '" STR_FMT "'?",
                       STR_ARG(shown), source, section ? "section" : "key", STR_ARG(n.best));
    return err_new(ERR_INVALID, STR_FMT " (%s): no such %s; 'croft config' lists them all",
                   STR_ARG(shown), source, section ? "section" : "key");
}

/* --- trees --- */

static bool is_foreign(const struct load *l, struct str key)
{
    for (size_t i = 0; i < l->c->foreign_count; i++) {
        struct str section = str_of(l->c->foreign[i].section);
        if (!str_starts(key, section))
            continue;
        struct str rest = str_from(key, section.len);
        if (!l->c->foreign[i].keys && (rest.len == 0 || rest.p[0] == '.'))
            return true;
        if (!l->c->foreign[i].keys || rest.len == 0 || rest.p[0] != '.')
            continue;
        for (const char *const *k = l->c->foreign[i].keys; *k; k++)
            if (str_eq(str_from(rest, 1), str_of(*k)))
                return true;
    }
    return false;
}

static bool is_section(const struct load *l, struct str key)
{
    struct where w;

    for (size_t i = 0; each_row(l->c, &w, i); i++) {
        struct str row = str_of(w.row->key);
        if (row.len > key.len && row.p[key.len] == '.' && str_starts(row, key))
            return true;
    }
    for (size_t i = 0; i < l->c->foreign_count; i++)
        if (str_eq(str_of(l->c->foreign[i].section), key))
            return true;
    return find_family(l->c, key) != NULL;
}

static struct str cfg_join(const struct load *l, struct str path, struct str key)
{
    return path.len ? arena_printf(l->c->arena, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(key))
                    : key;
}

static fallible note_foreign(struct load *l, const struct json *v, struct str key, unsigned parts)
{
    if (v->type != JSON_OBJECT || parts >= NOTE_DEPTH)
        return cfg_note(l->c, key, l->source, ACCEPTED);
    for (const struct json *m = v->first; m; m = m->next) {
        struct str full = cfg_join(l, key, m->key);
        TRY(arena_check(l->c->arena));
        TRY(note_foreign(l, m, full, parts + 1));
    }
    return NULL;
}

static fallible load_member(struct load *l, const struct where *w, const struct json *m)
{
    const char *source = source_of(l, m->key);
    union cfg_value v;
    bool unset;

    TRY_WRAP(cfg_value_from_json(l->c->arena, w->row, m, &v, &unset), "%s (%s)", w->row->key,
             source);
    if (!unset)
        cfg_set(l->c, w, &v, source);
    return NULL;
}

static void load_table(struct load *l, const struct json *table, struct str path, unsigned parts);

static fallible load_key(struct load *l, const struct json *m, struct str path, unsigned parts)
{
    struct str key = cfg_join(l, path, m->key);

    TRY(arena_check(l->c->arena));
    TRY(meet_name(l->c, path, m->key, source_of(l, m->key)));
    struct where w = find_key(l->c, key);
    if (w.row && parts > 0)
        return load_member(l, &w, m);
    if (is_foreign(l, key))
        return note_foreign(l, m, key, parts + 1);
    if (!is_section(l, key))
        return unknown_key(l, key, source_of(l, m->key));
    if (m->type == JSON_OBJECT)
        load_table(l, m, key, parts + 1);
    else if (m->type != JSON_NULL)
        return err_new(ERR_INVALID, STR_FMT " (%s): this is a section; write [" STR_FMT "]",
                       STR_ARG(key), source_of(l, m->key), STR_ARG(key));
    return NULL;
}

static void load_table(struct load *l, const struct json *table, struct str path, unsigned parts)
{
    for (const struct json *m = table->first; m; m = m->next)
        l->mistakes = err_join(l->mistakes, load_key(l, m, path, parts));
}

fallible cfg_load_tree(struct cfg *c, const struct json *tree, const char *source)
{
    struct str kept = arena_copy(c->arena, str_of(source));
    struct load l = {.c = c, .source = kept.p};

    TRY(arena_check(c->arena));
    if (tree->type == JSON_NULL)
        return NULL; /* an empty YAML file */
    if (tree->type != JSON_OBJECT)
        return err_new(ERR_INVALID, "(%s): sections should be here, not a value of type %s", source,
                       json_type_word(tree));
    load_table(&l, tree, STR(""), 0);
    return l.mistakes;
}

/* --- variables --- */

const char *cfg_env_get(const char *const *envp, const char *name)
{
    size_t n = strlen(name);

    for (; envp && *envp; envp++)
        if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
            return *envp + n + 1;
    return NULL;
}

/* OpenHands ignores such a value. So does croft, and lists it. */
static fallible skip_foreign(struct cfg *c, const struct where *w, const char *name,
                             const char *source, struct err *e)
{
    struct str text = arena_printf(c->arena, "skipped: %s; check that %s is of the right type",
                                   err_text(e), name);

    err_free(e);
    TRY(arena_check(c->arena));
    return cfg_note(c, str_of(w->row->key), source, text);
}

/* CROFT_SERVER_PROT is no variable of croft's, but close to one: listed, and not an error. */
static fallible note_near_misses(struct cfg *c, const char *const *envp)
{
    char name[CFG_NAME_MAX], best[CFG_NAME_MAX];
    struct where w;

    for (; envp && *envp; envp++) {
        struct str var = str_n(*envp, strcspn(*envp, "="));
        unsigned distance = 3;
        if (!str_starts(var, STR("CROFT_")))
            continue;
        for (size_t n = 0; each_row(c, &w, n); n++) {
            size_t len = cfg_row_env(w.row, name) ? strlen(name) : 0;
            if (len + distance <= var.len || var.len + distance <= len)
                continue; /* the lengths say it already */
            unsigned d = str_distance(var, str_n(name, len));
            if (d >= distance)
                continue;
            distance = d;
            memcpy(best, name, sizeof best);
        }
        if (distance == 0 || distance == 3)
            continue;
        struct str text = arena_printf(c->arena, "no such variable; did you mean '%s'?", best);
        TRY(cfg_note(c, arena_copy(c->arena, var), "env", text));
    }
    return arena_check(c->arena);
}

void cfg_foreign_env(const struct cfg_foreign *f, const char *key, char *out)
{
    char full[CFG_NAME_MAX];
    bool core = strcmp(f->section, "core") == 0;

    snprintf(full, sizeof full, "%s%s%s", core ? "" : f->section, core ? "" : ".", key);
    put_upper(out, "", full);
}

static fallible note_foreign_env(struct cfg *c, const char *const *envp)
{
    char name[CFG_NAME_MAX];

    for (size_t i = 0; i < c->foreign_count; i++)
        for (const char *const *k = c->foreign[i].keys; k && *k; k++) {
            cfg_foreign_env(&c->foreign[i], *k, name);
            const char *value = cfg_env_get(envp, name);
            if (!value || !*value)
                continue;
            struct str key = arena_printf(c->arena, "%s.%s", c->foreign[i].section, *k);
            struct str source = arena_printf(c->arena, "env:%s", name);
            TRY(arena_check(c->arena));
            TRY(cfg_note(c, key, source.p, ACCEPTED));
        }
    return NULL;
}

fallible cfg_load_env(struct cfg *c, const char *const *envp)
{
    struct err *mistakes = NULL;
    char name[CFG_NAME_MAX];
    struct where w;

    for (size_t n = 0; each_row(c, &w, n); n++) {
        const char *value = cfg_row_env(w.row, name) ? cfg_env_get(envp, name) : NULL;
        if (!value || !*value)
            continue;
        struct str source = arena_printf(c->arena, "env:%s", name);
        if (!source.p)
            break;
        struct err *e = set_text(c, &w, str_of(value), source.p);
        if (e && w.row->foreign)
            e = skip_foreign(c, &w, name, source.p, e);
        mistakes = err_join(mistakes, e);
    }
    mistakes = err_join(mistakes, note_foreign_env(c, envp));
    return err_join(mistakes, note_near_misses(c, envp));
}

/* --- flags --- */

static struct where find_flag(const struct cfg *c, struct str name)
{
    char flag[CFG_NAME_MAX];
    struct where w;

    for (size_t n = 0; each_row(c, &w, n); n++)
        if (cfg_row_flag(w.row, flag) && str_eq(str_of(flag), name))
            break;
    return w;
}

static fallible unknown_flag(const struct cfg *c, struct str name)
{
    struct nearest n = start_search(name);
    char flag[CFG_NAME_MAX], best[CFG_NAME_MAX];
    struct where w;

    for (size_t i = 0; each_row(c, &w, i); i++) {
        unsigned before = n.distance;
        if (!cfg_row_flag(w.row, flag))
            continue;
        cfg_consider(&n, str_of(flag));
        if (n.distance < before)
            memcpy(best, flag, sizeof best);
    }
    struct str shown = str_first(name, 80);
    if (n.best.p)
        return err_new(ERR_INVALID, "--" STR_FMT ": no such option; did you mean '--%s'?",
                       STR_ARG(shown), best);
    return err_new(ERR_INVALID, "--" STR_FMT ": no such option; --help lists them", STR_ARG(shown));
}

/* argv[*at] is a flag; takes its value with it where it has one. */
static fallible load_flag(struct cfg *c, int argc, char **argv, int *at)
{
    struct str value = str_of(argv[*at] + 2), name;
    bool has_value = str_cut(&value, '=', &name);
    struct where w = find_flag(c, name);
    bool no = !w.row && str_starts(name, STR("no-"));

    if (no)
        w = find_flag(c, str_from(name, 3));
    if (!w.row || (no && w.row->type != CFG_TYPE_BOOL))
        return unknown_flag(c, name);
    struct str source = arena_printf(c->arena, "flag:--" STR_FMT, STR_ARG(name));
    TRY(arena_check(c->arena));
    if (no && has_value)
        return err_new(ERR_INVALID, "--" STR_FMT " takes no value", STR_ARG(name));
    if (w.row->type == CFG_TYPE_BOOL && !has_value)
        return set_text(c, &w, no ? STR("false") : STR("true"), source.p);
    if (!has_value && *at + 1 >= argc)
        return err_new(ERR_INVALID, "--" STR_FMT " needs a value", STR_ARG(name));
    return set_text(c, &w, has_value ? value : str_of(argv[++*at]), source.p);
}

fallible cfg_load_flags(struct cfg *c, int *argc, char **argv)
{
    int kept = 0, at = 0;

    for (; at < *argc && strcmp(argv[at], "--") != 0; at++) {
        if (strncmp(argv[at], "--", 2) == 0)
            TRY(load_flag(c, *argc, argv, &at));
        else
            argv[kept++] = argv[at];
    }
    while (at < *argc)
        argv[kept++] = argv[at++];
    *argc = kept;
    return NULL;
}
