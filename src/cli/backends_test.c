// SPDX-License-Identifier: Apache-2.0
/* A backend is offered because it has a row, and by nothing else. */
#include <stdio.h>

#include "cli/cli.h"
#include "host/config/settings.h"
#include "host/server/backing.h"
#include "sandbox/backend.h"
#include "test/test.h"

/* What the settings make of --backend WORD, and of --remote-url. */
static fallible choose(struct settings *s, const char *word, const char *url)
{
    char name[100], backend[] = "--backend", remote[] = "--remote-url", at[100] = "";
    char *argv[] = {backend, name, remote, at, NULL};
    int argc = url ? 4 : 2;

    snprintf(name, sizeof name, "%s", word);
    snprintf(at, sizeof at, "%s", url ? url : "");
    TRY(settings_begin(s, NULL, &argc, argv));
    return settings_load(s, (struct str){0}, NULL);
}

TEST(every_backend_with_a_row_is_offered_and_listed)
{
    own_done(buf) help;
    struct settings s;
    const struct sbx_backend *b;
    size_t i;

    buf_init(&help, 1u << 20);
    cli_put_help(cli_command_find("serve"), &help);
    struct err *unknown = choose(&s, "no-such-backend", NULL);
    settings_done(&s);
    for (i = 0; (b = sbx_backend_at(i)); i++) {
        CHECK_OK(choose(&s, b->name, NULL));
        CHECK(backing_row(&s) == b);
        settings_done(&s);
        CHECK_HAS(str_of(err_text(unknown)), b->name);
        ptrdiff_t at = str_find(buf_str(&help), STR("\n  --backend "));
        CHECK(at >= 0);
        struct str line, rest = str_from(buf_str(&help), (size_t)at + 1);
        str_cut(&rest, '\n', &line);
        CHECK_HAS(line, b->name);
    }
    CHECK(i >= 3);
    CHECK_ERR(unknown, ERR_INVALID, "is not one of");
}

TEST(a_flag_of_one_backend_is_refused_with_another)
{
    struct settings s;
    const struct sbx_backend *b;

    CHECK_OK(choose(&s, "remote", "http://127.0.0.1:1/"));
    CHECK_OK(backing_check(&s));
    settings_done(&s);
    for (size_t i = 0; (b = sbx_backend_at(i)); i++) {
        if (str_eq(str_of(b->name), STR("remote")))
            continue;
        CHECK_OK(choose(&s, b->name, "http://127.0.0.1:1"));
        CHECK_ERR(backing_check(&s), ERR_INVALID, "--remote-url is for --backend remote");
        settings_done(&s);
    }
}

/* Its calls show what it can do; the rest it has to claim. */
TEST(every_backend_has_the_calls_of_all_and_whole_groups)
{
    const struct sbx_backend *b;

    for (size_t i = 0; (b = sbx_backend_at(i)); i++) {
        CHECK(b->name && b->summary && b->size);
        CHECK(b->open && b->close && b->create && b->let_go && b->start && b->stop && b->remove &&
              b->inspect);
        CHECK(!b->pauses || (b->pauses->pause && b->pauses->resume));
        CHECK(!b->claims || b->claims->bind);
        CHECK(!b->survivors || b->survivors->adopt);
        CHECK(!b->logs || (b->logs->newest &&
                           (b->logs->open ? b->logs->next && b->logs->close
                                          : b->logs->read && b->logs->end && b->logs->watch)));
        CHECK(!b->snapshots || (b->snapshots->make && b->snapshots->fork && b->snapshots->list &&
                                b->snapshots->remove));
        CHECK(!b->images || (b->images->find && b->images->import));
        CHECK(!b->files || (b->files->diff && b->files->apply && b->files->rollback));
        CHECK(!b->ports || b->ports->expose);
        CHECK_INT(b->depends & ~sbx_backend_caps(b), 0);
    }
}
