// SPDX-License-Identifier: Apache-2.0
/* claim_rows.c — what the contract says of warm sandboxes and of what they are bound to; see
 * contract.h. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "test/contract/contract.h"

static struct sbx *warm(struct contract *c)
{
    struct sbx *s = contract_create(c, &(struct sbx_spec){.warm = true});

    CHECK_OK(contract_start(c, s));
    CHECK_INT(s->state.now, SBX_WARM);
    return s;
}

void contract_claims_a_warm_one(struct contract *c)
{
    static const char *const env[] = {"BOUND=at claim", NULL};
    struct sbx *s = warm(c);
    struct sbx_info info;

    CHECK_OK(contract_claim(
        c, s,
        &(struct sbx_spec){
            .env = env, .session_key = "k", .hostname = "field", .working_dir = "/srv/work"}));
    CHECK_INT(s->state.now, SBX_RUNNING);
    CHECK_STR(
        contract_command(c, s, "k", "echo $BOUND; pwd; hostname; grep -c field /etc/hosts").text,
        "at claim\n/srv/work\nfield\n1");
    CHECK_INT(contract_command(c, s, "wrong", "true").http_status, 403);
    CHECK_STR(contract_command(c, s, "k", "env | grep -c SESSION_API_KEY").text, "0");
    sbx_inspect(s, &info);
    CHECK(info.phase_ns[SBX_PHASE_EXEC] > 0 && info.phase_ns[SBX_PHASE_READY] > 0);
    contract_end(c, s);
}

void contract_starts_a_claimed_one_again(struct contract *c)
{
    static const char *const env[] = {"BOUND=once", NULL};
    struct sbx *s = warm(c);

    CHECK_OK(contract_claim(c, s, &(struct sbx_spec){.env = env, .session_key = "k"}));
    contract_command(c, s, "k", "echo kept > /root/file");
    CHECK_OK(contract_stop(c, s));
    CHECK_OK(contract_start(c, s));
    CHECK_INT(s->state.now, SBX_RUNNING);
    CHECK_STR(contract_command(c, s, "k", "echo $BOUND; cat /root/file").text, "once\nkept");
    contract_end(c, s);
}

static void never(void *arg, struct sbx *s, const struct err *e)
{
    (void)arg, (void)s, (void)e;
    FAIL("it was refused, so nobody is told");
}

void contract_claims_only_what_is_warm_and_once(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);
    const struct sbx_spec plain = {0};

    CHECK_ERR(sbx_claim(s, &plain, never, NULL), ERR_CONFLICT, "is running");
    contract_end(c, s);
    s = warm(c);
    CHECK_OK(contract_claim(c, s, &plain));
    CHECK_ERR(sbx_claim(s, &plain, never, NULL), ERR_CONFLICT, "is running");
    contract_end(c, s);
}

void contract_leaves_a_warm_one_alone(struct contract *c)
{
    struct sbx *s = warm(c);
    struct sbx_address address;

    CHECK_ERR(sbx_start(s, never, NULL), ERR_CONFLICT, "is warm");
    CHECK_ERR(sbx_expose(s, 80, &address), ERR_CONFLICT, "is warm");
    if (c->driver->caps & SBX_CAN_PAUSE)
        CHECK_ERR(sbx_pause(s, never, NULL), ERR_CONFLICT, "is warm");
    if (c->driver->caps & SBX_CAN_SNAPSHOT)
        CHECK_ERR(sbx_snapshot(s, STR("x"), never, NULL), ERR_CONFLICT, "is warm");
    contract_end(c, s);
}

void contract_stays_warm_when_a_claim_is_refused(struct contract *c)
{
    static const char *const bad_env[] = {"no equals sign", NULL}, *const none[] = {NULL};
    static const char *const here[] = {"HERE=1", NULL};
    const struct {
        struct sbx_spec spec;
        enum err_code code;
        const char *part;
    } cases[] = {
        {{.env = bad_env}, ERR_INVALID, "is not NAME=value"},
        {{.hostname = "a b"}, ERR_INVALID, "hostname 'a b'"},
        {{.working_dir = "relative"}, ERR_INVALID, "working_dir 'relative'"},
        {{.command = none}, ERR_INVALID, "command: it is empty"},
        {{.face = SBX_FACE_COMMAND}, ERR_INVALID, "command: it is empty"},
        {{.workspace = "/nowhere"}, ERR_FORBIDDEN, "workspace '/nowhere'"},
        {{.limits.memory_bytes = UINT64_MAX}, ERR_FORBIDDEN, "ceiling"},
    };
    struct sbx *s = warm(c);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (cases[i].spec.limits.memory_bytes && !(c->driver->caps & SBX_LIMITS_MEMORY))
            continue;
        CHECK_ERR(contract_claim(c, s, &cases[i].spec), cases[i].code, cases[i].part);
        CHECK_INT(s->state.now, SBX_WARM);
    }
    CHECK_OK(contract_claim(c, s, &(struct sbx_spec){.env = here}));
    CHECK_STR(contract_command(c, s, NULL, "echo $HERE").text, "1");
    contract_end(c, s);
}

void contract_mounts_at_the_claim(struct contract *c)
{
    char dir[300], file[400];
    own_done(buf) text;

    buf_init(&text, 100);
    snprintf(dir, sizeof dir, "%s/project", test_dir());
    snprintf(file, sizeof file, "%s/made", dir);
    CHECK(mkdir(dir, 0777) == 0 && chmod(dir, 0777) == 0);
    const struct sbx_mount mounts[] = {{dir, "/mnt/ro", SBX_MOUNT_RO},
                                       {dir, "/new/over/lay", SBX_MOUNT_OVERLAY}};
    struct sbx *s = warm(c);
    CHECK_OK(contract_claim(
        c, s, &(struct sbx_spec){.workspace = dir, .mounts = mounts, .mount_count = 2}));
    CHECK_STR(contract_command(c, s, NULL,
                               "pwd; echo inside > made; cat /mnt/ro/made; touch /mnt/ro/x "
                               "2>/dev/null; echo $?; echo over > /new/over/lay/made; cat made")
                  .text,
              "/workspace\ninside\n1\ninside");
    contract_end(c, s);
    CHECK_OK(fd_read_file(file, &text));
    CHECK_STR(buf_str(&text), "inside\n");
}

void contract_limits_at_the_claim(struct contract *c)
{
    struct sbx *s = warm(c);

    CHECK_OK(contract_claim(c, s, &(struct sbx_spec){.limits = {.pids = 20, .open_files = 100}}));
    CHECK_STR(contract_command(c, s, NULL, "ulimit -n").text, "100");
    struct answer a =
        contract_command(c, s, NULL, "(for i in $(seq 40); do sleep 5 & done) 2>&1 | head -1");
    CHECK_HAS(a.text, "Resource temporarily unavailable");
    contract_end(c, s);
    if (c->driver->caps & SBX_LIMITS_MEMORY) {
        s = warm(c);
        CHECK_OK(contract_claim(c, s, &(struct sbx_spec){.limits.memory_bytes = 64u << 20}));
        contract_check_64_mib(c, s);
        contract_end(c, s);
    }
    if (c->driver->caps & SBX_LIMITS_CPU) {
        s = warm(c);
        CHECK_OK(contract_claim(c, s, &(struct sbx_spec){.limits.cpu_permille = 100}));
        contract_check_a_tenth(c, s);
        contract_end(c, s);
    }
}

void contract_runs_as_the_user_of_the_spec(struct contract *c)
{
    struct sbx *s =
        contract_started(c, &(struct sbx_spec){.has_user = true, .uid = 10001, .gid = 10002});

    CHECK_STR(contract_command(c, s, NULL, "id -u; id -g; touch x; stat -c %u x").text,
              "10001\n10002\n10001");
    contract_end(c, s);
}

/* --- commands as given --- */

/* Tells its port in a file of the workspace, as a command cannot know a free one before. */
#define WEB                                                                                        \
    "import http.server, os\n"                                                                     \
    "h = http.server.HTTPServer((\"127.0.0.1\", 0), http.server.SimpleHTTPRequestHandler)\n"       \
    "open(\"/workspace/new\", \"w\").write(f\"{h.server_port} {os.getcwd()} {os.getuid()} \"\n"    \
    "    + os.environ[\"TOLD\"])\n"                                                                \
    "os.rename(\"/workspace/new\", \"/workspace/port\")\n"                                         \
    "print(\"it speaks\", flush=True)\n"                                                           \
    "h.serve_forever()\n"

static void check_command(struct contract *c, struct sbx *s, const char *dir)
{
    char file[400], page[2000], cwd[64], told[64];
    struct sbx_address address;
    own_done(buf) text, log;
    unsigned port, uid;

    buf_init(&text, 1000);
    buf_init(&log, 1u << 20);
    snprintf(file, sizeof file, "%s/port", dir);
    for (uint64_t end = loop_now_ns(c->loop) + 60 * NS_PER_S; access(file, F_OK) < 0;) {
        CHECK_OK(loop_turn(c->loop, 5));
        if (loop_now_ns(c->loop) > end)
            FAIL("the command never listened");
    }
    CHECK_OK(fd_read_file(file, &text));
    CHECK(sscanf(buf_cstr(&text), "%u %63s %u %63s", &port, cwd, &uid, told) == 4);
    CHECK_STR(str_of(cwd), "/srv/site");
    CHECK_INT(uid, 10001);
    CHECK_STR(str_of(told), "yes");
    CHECK_OK(sbx_expose(s, (uint16_t)port, &address));
    contract_get(c, &address, page, sizeof page);
    CHECK_HAS(str_of(page), "Directory listing");
    CHECK_OK(contract_stop(c, s));
    CHECK_OK(sbx_logs(s, &log));
    CHECK_HAS(buf_str(&log), "it speaks");
    CHECK(unlink(file) == 0);
}

void contract_runs_a_command_as_given(struct contract *c)
{
    static const char *const web[] = {"python3", "-c", WEB, NULL}, *const env[] = {"TOLD=yes",
                                                                                   NULL};
    char dir[300];

    snprintf(dir, sizeof dir, "%s/project", test_dir());
    CHECK(mkdir(dir, 0777) == 0 && chmod(dir, 0777) == 0);
    const struct sbx_spec spec = {.face = SBX_FACE_COMMAND,
                                  .command = web,
                                  .env = env,
                                  .working_dir = "/srv/site",
                                  .workspace = dir,
                                  .has_user = true,
                                  .uid = 10001,
                                  .gid = 10001};
    struct sbx *s = contract_started(c, &spec);
    check_command(c, s, dir);
    contract_end(c, s);
    s = warm(c);
    CHECK_OK(contract_claim(c, s, &spec));
    check_command(c, s, dir);
    CHECK_OK(contract_start(c, s));
    check_command(c, s, dir);
    contract_end(c, s);
}

void contract_tells_how_a_command_ended(struct contract *c)
{
    static const char *const leave[] = {"sh", "-c", "exit 7", NULL};
    const struct sbx_spec spec = {.face = SBX_FACE_COMMAND, .command = leave};
    struct sbx *s = contract_create(c, &spec);
    struct sbx_info info;

    err_free(contract_start(c, s)); /* it may end before it is told of */
    while (s->state.now != SBX_STOPPED)
        CHECK_OK(loop_turn(c->loop, 1000));
    sbx_inspect(s, &info);
    CHECK_STR(str_of(info.failure), "the command left with exit status 7");
    contract_end(c, s);
}

void contract_starts_where_the_spec_says(struct contract *c)
{
    char dir[300];

    snprintf(dir, sizeof dir, "/tmp/%.200s", strrchr(test_dir(), '/') + 1);
    static const char *const line[] = {
        "python", "-u", "-m", "openhands.runtime.action_execution_server", "60000", NULL};
    struct sbx *s = contract_started(c, &(struct sbx_spec){.working_dir = dir, .command = line});
    CHECK_STR(contract_command(c, s, NULL, "pwd").text, dir);
    contract_command(c, s, NULL, "cd /; rmdir \"$OLDPWD\"");
    contract_end(c, s);
}

/* --- lists --- */

struct listing {
    bool done;
    char text[400];
};

static void on_list(void *arg, const struct sbx_listed *all, size_t count, const struct err *e)
{
    struct listing *l = arg;
    size_t at = 0;

    CHECK(!e);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(l->text + at, sizeof l->text - at, "%s %d\n", all[i].id,
                               (int)all[i].state);
    l->done = true;
}

void contract_lists_what_is_there(struct contract *c)
{
    struct listing l = {.done = false};
    struct sbx *a = contract_create(c, &(struct sbx_spec){.id = "b-warm", .warm = true});
    struct sbx *b = contract_started(c, &(struct sbx_spec){.id = "a-runs"});
    char want[100];

    CHECK_OK(contract_start(c, a));
    CHECK_OK(sbx_list(c->driver, on_list, &l));
    contract_turns_until(c, &l.done);
    snprintf(want, sizeof want, "a-runs %d\nb-warm %d\n", SBX_RUNNING, SBX_WARM);
    CHECK_STR(str_of(l.text), want);
    contract_end(c, a);
    contract_end(c, b);
}
