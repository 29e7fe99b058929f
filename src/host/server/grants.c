// SPDX-License-Identifier: Apache-2.0
/* grants.c — see grants.h. */
#include "host/server/grants.h"

#include "host/config/settings.h"

static const struct cfg_row rows[] = {
    CFG_STR(grant, path, "path", NULL,
            "A directory of this machine that sandboxes may mount, or parts of it. Taken over by "
            "a launcher when it starts: with sandboxes alive, a change comes with the next.",
            .at_start = true),
    CFG_LIST(grant, modes, "modes", "['ro', 'overlay']",
             "How: ro, overlay (copy-on-write), apply (and changes of an overlay may be put into "
             "the directory), rw (the directory itself)."),
    CFG_LIST(grant, keys, "keys", "[]",
             "Names of keys that may; empty is every key with the scope 'mount'."),
};

static unsigned mode_bit(const struct json *word)
{
    static const struct {
        const char *word;
        unsigned may;
    } modes[] = {{"ro", GRANT_RO},
                 {"overlay", GRANT_OVERLAY},
                 {"apply", GRANT_APPLY | GRANT_OVERLAY},
                 {"rw", GRANT_RW}};

    for (size_t i = 0; word->type == JSON_STR && i < ARRAY_LEN(modes); i++)
        if (str_eq(word->s, str_of(modes[i].word)))
            return modes[i].may;
    return 0;
}

static fallible grant_check(const struct cfg *c, const struct cfg_named *n)
{
    struct grant *m = n->into;

    m->name = n->name;
    while (m->path.len > 1 && m->path.p[m->path.len - 1] == '/')
        m->path.len--;
    if (m->path.len < 2 || m->path.len > GRANTS_PATH_MAX || m->path.p[0] != '/' ||
        str_find(m->path, STR("/../")) >= 0 || str_find(m->path, STR("//")) >= 0 ||
        str_find(m->path, STR("\n")) >= 0)
        return err_new(ERR_INVALID,
                       "mount." STR_FMT ".path: wanted an absolute, plain path of at most %d bytes",
                       STR_ARG(n->name), GRANTS_PATH_MAX);
    m->path = str_of(arena_cstr(c->arena, m->path));
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
    return arena_check(c->arena);
}

CFG_FAMILY(mount) = {"mount",     rows,       ARRAY_LEN(rows), sizeof(struct grant),
                     GRANTS_MOST, grant_check};

const struct grant *grants_of(const struct settings *s, size_t *ret_count)
{
    return settings_named(s, CFG_FAMILY_OF(mount), ret_count);
}
