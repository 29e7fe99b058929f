// SPDX-License-Identifier: Apache-2.0
/* doctor.c — croft doctor: which isolation is real here, and how to get the rest. */
#include "host/doctor/doctor.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/state.h"
#include "host/launcher/drop.h"
#include "host/launcher/layers.h"
#include "sandbox/backend.h"

struct doctor_options {
    bool json;
};

static const struct cfg_row rows[] = {
    CFG_BOOL(doctor_options, json, "json", false, "Print a JSON object."),
};

static const char *const verdicts[] = {
    [DOCTOR_HELD] = "refused", [DOCTOR_OPEN] = "POSSIBLE", [DOCTOR_UNKNOWN] = "unknown"};

/* The user as which a server would run if it started now. NULL: the user that starts it. */
static const struct launcher_user *server_user(const struct box_host *h, const char *state,
                                               struct launcher_user *room)
{
    own_fd dir = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC); /* none: no server was there */
    struct err *e = h->user ? NULL : launcher_find_user(launcher_user_before(dir), room);

    bool found = !h->user && !e;
    err_free(e); /* then the server says so */
    return found ? room : NULL;
}

static void put_json(struct buf *out, const struct box_host *h, const struct launcher_user *server,
                     const struct doctor_report *r)
{
    struct utsname u;
    struct jw w;

    uname(&u);
    jw_init(&w, out, JW_SPACED);
    JW_OBJECT(&w, NULL) {
        jw_cstr(&w, "kernel", u.release);
        jw_bool(&w, "root", !h->user);
        if (server)
            jw_cstr(&w, "server_user", server->shared ? "nobody" : "croft");
        jw_bool(&w, "works", !r->trouble);
        jw_cstr(&w, "trouble", r->trouble ? err_text(r->trouble) : NULL);
        jw_double(&w, "start_ms", r->start_ms);
        JW_OBJECT(&w, "layers") {
            for (size_t i = 0; i < layers_len; i++)
                JW_OBJECT(&w, layers[i].name) {
                    jw_bool(&w, "there", layers[i].there(h));
                    jw_cstr(&w, "how", layers[i].how(h));
                    jw_cstr(&w, "remedy", layers[i].there(h) ? NULL : layers[i].remedy);
                }
        }
        JW_OBJECT(&w, "warnings") {
            const struct sbx_backend *b;
            for (size_t i = 0; (b = sbx_backend_at(i)); i++)
                if (b->warning)
                    jw_cstr(&w, b->name, b->warning);
        }
        JW_OBJECT(&w, "acts") {
            for (size_t i = 0; i < doctor_acts_len; i++)
                jw_cstr(&w, doctor_acts[i].name, verdicts[r->acts[i]]);
        }
    }
    buf_add_char(out, '\n');
}

static void put_text(struct buf *out, const struct box_host *h, const struct launcher_user *server,
                     const struct doctor_report *r)
{
    struct utsname u;

    uname(&u);
    buf_addf(out, "Linux %s, %s\n\nLayers of a native sandbox here:\n", u.release,
             h->user ? "not root" : "root");
    for (size_t i = 0; i < layers_len; i++) {
        bool there = layers[i].there(h);
        buf_addf(out, "  %-4s %-10s %-56s %s\n", there ? "yes" : "NO", layers[i].name,
                 layers[i].means, layers[i].how(h));
        if (!there)
            buf_addf(out, "       %10s to get it: %s\n", "", layers[i].remedy);
    }
    const struct sbx_backend *b;
    for (size_t i = 0; (b = sbx_backend_at(i)); i++)
        if (b->warning)
            buf_addf(out, "\nBackend '%s' has none of these: %s.\n", b->name, b->warning);
    if (server && server->shared)
        buf_addf(out, "\nA server would be 'nobody' here: " LAUNCHER_OWN_USER ".\n");
    if (r->trouble) {
        buf_addf(out, "\nNo sandbox could be started: %s\n", err_text(r->trouble));
        return;
    }
    buf_addf(out, "\nTried from inside a sandbox, which took %.1f ms to start:\n", r->start_ms);
    for (size_t i = 0; i < doctor_acts_len; i++)
        buf_addf(out, "  %-8s  %s\n", verdicts[r->acts[i]], doctor_acts[i].what);
}

static bool all_held(const struct doctor_report *r)
{
    for (size_t i = 0; i < doctor_acts_len; i++)
        if (r->acts[i] == DOCTOR_OPEN)
            return false;
    return !r->trouble;
}

static int doctor_examine_machine(struct cli *cli, const char *state, bool json)
{
    struct launcher_user room;
    struct doctor_report r;
    struct box_host h;
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    box_host_look(&h, state); /* first: as an ordinary user the rest changes our namespaces */
    doctor_examine(state, &r);
    const struct launcher_user *server = server_user(&h, state, &room);
    (json ? put_json : put_text)(&out, &h, server, &r);
    box_host_close(&h);
    int code = cli_put(cli, &out);
    bool held = all_held(&r);
    err_free(r.trouble);
    return held ? code : CLI_FAILED;
}

static int doctor_run(struct cli *cli, int argc, char **argv)
{
    own_done(arena) a = {0};
    struct doctor_options o = {0};
    struct str state;

    /* Not for people: what croft starts in the sandbox. */
    if (argc > 1 && strcmp(argv[0], "--inside") == 0 && strcmp(argv[1], "--") == 0)
        return doctor_inside(argc - 2, argv + 2);
    arena_init(&a, 1u << 20);
    struct err *e = cli_flags(cli, &a, &o, &argc, argv);
    if (!e)
        e = cli_no_more(argc, argv);
    if (e)
        return cli_misuse(cli, e);
    e = cli_state_path(cli, &a, &state);
    return e ? cli_fail(cli, e) : doctor_examine_machine(cli, state.p, o.json);
}

CLI_COMMAND(doctor) = {
    .name = "doctor",
    .group = CLI_HERE,
    .summary = "say which isolation is real on this machine",
    .usage = "[--json]",
    .help =
        "Starts a sandbox and tries, from inside, what must not be possible; each act that can\n"
        "be tried outside without harm is, so that a wall is not imagined. Lists the layers a\n"
        "sandbox has here, by what means, and how to get those that are missing. Exits with 1\n"
        "when no sandbox can be started or anything forbidden was possible.",
    .options = {rows, ARRAY_LEN(rows), NULL},
    .run = doctor_run,
};
