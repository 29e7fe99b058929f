// SPDX-License-Identifier: Apache-2.0
/* names.c — croft names: prints what may come next on a command line, one name a line.
 *
 * Names with other than plain characters are left out: a shell may expand what it is offered, and
 * any client chooses the name of its sandbox. */
#include "cli/names.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/ask.h"
#include "cli/state.h"
#include "host/snaps/snaps.h"

#define PATIENCE_MS 2000 /* a person has pressed a key and waits */

struct names {
    struct ask k;
    struct buf out;
};

static bool is_plain(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.p[i]) && !memchr("._-@+", name.p[i], 5))
            return false;
    return name.len && name.p[0] != '-';
}

static void names_put(struct names *n, struct str name, const char *after)
{
    if (is_plain(name))
        buf_addf(&n->out, STR_FMT "%s\n", STR_ARG(name), after);
}

static fallible put_list(struct names *n, const char *path, const char *list, const char *name,
                         const char *unless)
{
    struct ask_answer r;

    TRY(ask_json(&n->k, "GET", str_of(path), (struct str){0}, &r));
    const struct json *all = json_get(r.body, str_of(list));
    for (const struct json *one = all ? all->first : NULL; one; one = one->next)
        if (!unless || !json_get_str(one, unless, (struct str){0}).p)
            names_put(n, json_get_str(one, name, STR("")), "");
    return NULL;
}

static fallible put_sandboxes_with(struct names *n, const char *after)
{
    struct ask_answer r;

    TRY(ask_json(&n->k, "GET", STR("/croft/v1/sandboxes"), (struct str){0}, &r));
    const struct json *all = json_get(r.body, STR("sandboxes"));
    for (const struct json *one = all ? all->first : NULL; one; one = one->next) {
        names_put(n, json_get_str(one, "session_id", STR("")), after);
        names_put(n, json_get_str(one, "runtime_id", STR("")), after);
    }
    return NULL;
}

static fallible put_sandboxes(struct names *n)
{
    return put_sandboxes_with(n, "");
}

static fallible put_places(struct names *n)
{
    return put_sandboxes_with(n, ":");
}

static fallible put_snapshots_here(struct names *n)
{
    struct str path;
    struct snap *snaps;
    size_t count;
    own_fd state = -1;

    TRY(cli_state_path(n->k.cli, &n->k.arena, &path));
    if (access(path.p, F_OK) < 0) /* not made for a look at it */
        return NULL;
    TRY(cli_open_state(n->k.cli, &state));
    TRY(snaps_list(state, &n->k.arena, &snaps, &count));
    for (size_t i = 0; i < count; i++)
        names_put(n, snaps[i].name, "");
    return NULL;
}

static fallible put_snapshots(struct names *n)
{
    err_free(put_snapshots_here(n)); /* then those of a server */
    return put_list(n, "/croft/v1/snapshots", "snapshots", "name", NULL);
}

static fallible put_pools(struct names *n)
{
    return put_list(n, "/croft/v1/pool", "pools", "name", NULL);
}

static fallible put_keys(struct names *n)
{
    return put_list(n, "/croft/v1/tokens", "tokens", "name", "revoked_at");
}

/* The first that is there counts. */
static const struct kind {
    const char *word; /* of a usage */
    fallible (*put)(struct names *n);
} kinds[] = {
    {"SANDBOX:", put_places}, {"SANDBOX", put_sandboxes}, {"SNAPSHOT", put_snapshots},
    {"POOL", put_pools},      {"KEY", put_keys},
};

static const struct kind *kind_in(struct str usage)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (str_find(usage, str_of(kinds[i].word)) >= 0)
            return &kinds[i];
    return NULL;
}

bool names_are_wanted(const struct cli_command *c)
{
    return c->usage && kind_in(str_of(c->usage));
}

bool places_are_wanted(const struct cli_command *c)
{
    return c->usage && kind_in(str_of(c->usage)) == &kinds[0];
}

/* "take [SANDBOX] | ls | rm SNAPSHOT ...": what follows the word that was typed. */
static const struct kind *kind_after(const struct cli_command *c, struct str typed)
{
    struct str rest = str_of(c->usage ? c->usage : ""), one, word;

    for (bool more = true; more;) {
        more = str_cut(&rest, '|', &one);
        one = str_trim(one);
        if (str_starts(one, STR("[")))
            one = str_from(one, 1);
        struct str of = one;
        str_cut(&of, ' ', &word);
        if (word.len && (isupper((unsigned char)word.p[0]) || str_eq(word, typed)))
            return kind_in(one);
    }
    return NULL;
}

static struct str first_word(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (argv[i][0] != '-')
            return str_of(argv[i]);
    return STR("");
}

static int names_run(struct cli *cli, int argc, char **argv)
{
    struct names n = {0};

    if (argc && strcmp(argv[0], "--") == 0) {
        argc--;
        argv++;
    }
    const struct cli_command *c = argc ? cli_command_find(argv[0]) : NULL;
    const struct kind *kind = c ? kind_after(c, first_word(argc - 1, argv + 1)) : NULL;
    if (!kind)
        return CLI_OK;
    buf_init(&n.out, 16u << 20);
    struct err *e = ask_open(&n.k, cli);
    n.k.wait_ms = PATIENCE_MS;
    n.k.tells = false;
    if (!e)
        e = kind->put(&n);
    int code = cli_put(cli, &n.out); /* also before a failure */
    buf_done(&n.out);
    ask_close(&n.k);
    return e ? cli_fail(cli, e) : code;
}

CLI_COMMAND(names) = {
    .name = "names",
    .group = CLI_HIDDEN,
    .summary = "what may come next on a command line",
    .usage = "-- COMMAND [WORD ...]",
    .run = names_run,
};
