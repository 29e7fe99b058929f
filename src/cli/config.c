// SPDX-License-Identifier: Apache-2.0
/* config.c — croft config: every setting with its value and where that came from.
 *
 * The text is TOML: it can be saved and read back, but for secrets and variables, shown as ***. */
#include "cli/cli.h"
#include "host/config/settings.h"

struct config_options {
    bool json, check;
    struct str config;
};

static const struct cfg_row rows[] = {
    CFG_STR(config_options, config, "config", NULL,
            "Read this file as well: TOML, or YAML or JSON by its name."),
    CFG_BOOL(config_options, check, "check", false, "Print nothing unless something is wrong."),
    CFG_BOOL(config_options, json, "json", false, "Print a JSON object."),
};

static struct str config_field(const struct json *note, const char *key)
{
    return json_get_str(note, key, STR(""));
}

static void put_json(const struct settings *s, struct buf *out)
{
    own_done(buf) values;
    struct jw w;

    buf_init(&values, 4u << 20);
    cfg_put_values(&s->cfg, &values, true);
    jw_init(&w, out, JW_SPACED);
    JW_OBJECT(&w, NULL) {
        jw_value(&w, "files", s->files);
        jw_raw(&w, "settings", buf_str(&values));
        jw_value(&w, "notes", s->cfg.notes);
    }
    buf_add_char(out, '\n');
}

static void put_notes(const struct json *notes, struct buf *out)
{
    for (const struct json *n = notes->first; n; n = n->next)
        buf_addf(out, "# " STR_FMT " (" STR_FMT "): " STR_FMT "\n", STR_ARG(config_field(n, "key")),
                 STR_ARG(config_field(n, "source")), STR_ARG(config_field(n, "note")));
}

static void put_text(const struct settings *s, struct buf *out)
{
    for (const struct json *f = s->files->first; f; f = f->next)
        buf_addf(out, "# read " STR_FMT "\n", STR_ARG(f->s));
    cfg_put_values(&s->cfg, out, false);
    if (s->cfg.notes->count)
        buf_add_cstr(out, "\n");
    put_notes(s->cfg.notes, out);
}

static int config_run(struct cli *cli, int argc, char **argv)
{
    own_done(settings) s = {0};
    own_done(buf) out;
    struct config_options o;
    struct cfg_table options = {rows, ARRAY_LEN(rows), &o};

    buf_init(&out, 16u << 20);
    struct err *e = settings_begin(&s, &options, &argc, argv);
    if (!e)
        e = cli_no_more(argc, argv);
    if (e)
        return cli_misuse(cli, e);
    e = settings_load(&s, o.config, cli->envp);
    if (e)
        return cli_fail(cli, e);
    if (o.check)
        return CLI_OK;
    if (o.json)
        put_json(&s, &out);
    else
        put_text(&s, &out);
    return cli_put(cli, &out);
}

CLI_COMMAND(config) = {
    .name = "config",
    .group = CLI_SERVER,
    .summary = "show every setting and where it came from",
    .usage = "[--json | --check] [--config FILE] [--SETTING VALUE ...]",
    .help = "Settings come from, later wins: what is built in, /etc/croft/croft.toml,\n"
            "$XDG_CONFIG_HOME/croft/croft.toml, --config FILE, the environment, flags.\n"
            "Sections and keys of an OpenHands config.toml are accepted; those that croft\n"
            "does not use are listed at the end.\n",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .takes_settings = true,
    .run = config_run,
};
