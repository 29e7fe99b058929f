// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"
#include "base/wrap.h"
#include "cli/cli.h"
#include "test/test.h"

static void check_columns(const char *name, const struct buf *text)
{
    struct str rest = buf_str(text), line;

    CHECK(rest.len > 0);
    while (str_cut(&rest, '\n', &line) || line.len)
        if (utf8_count(line) > WRAP_COLUMNS)
            FAIL("croft %s --help: over %d columns: " STR_FMT, name, WRAP_COLUMNS, STR_ARG(line));
}

TEST(help_has_no_line_over_80_columns)
{
    const struct cli_command *c;

    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        own_done(buf) text;
        buf_init(&text, 1u << 20);
        cli_put_help(c, &text);
        check_columns(c->name, &text);
    }
    own_done(buf) list;
    buf_init(&list, 1u << 20);
    cli_put_list(&list);
    check_columns("", &list);
}

TEST(help_lists_each_command_in_a_group)
{
    own_done(buf) list, entry;
    const struct cli_command *c;

    buf_init(&list, 1u << 20);
    buf_init(&entry, 100);
    cli_put_list(&list);
    for (size_t i = 0; (c = cli_command_at(i)); i++) {
        buf_reset(&entry);
        buf_addf(&entry, "\n  %s  ", c->name);
        bool listed = str_find(buf_str(&list), buf_str(&entry)) >= 0;
        if (c->group < CLI_HERE || c->group > CLI_HIDDEN || listed != (c->group != CLI_HIDDEN))
            FAIL("croft %s: .group is %d", c->name, (int)c->group);
    }
}
