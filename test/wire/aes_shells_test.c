// SPDX-License-Identifier: Apache-2.0
/* aes_shells_test.c — shells by name below /croft/v1/shells, and what a long command must not hold
 * up. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/sse.h"
#include "test/aes_run.h"

#define SHELLS "/croft/v1/shells"

static struct aes_answer post(struct aes *a, const char *target, const char *quoted, int status)
{
    struct aes_answer got = aes_ask_post(a, target, quoted);

    if (got.status != status)
        FAIL("%s %s: %d " STR_FMT, target, quoted, got.status, STR_ARG(got.body));
    return got;
}

static struct str run_in(struct aes *a, const char *name, const char *quoted)
{
    struct aes_answer got = post(a, aes_text(a, SHELLS "/%s/run", name),
                                 aes_text(a, "{%s,'blocking':true}", quoted), 200);

    return json_get_str(aes_json(a, got.body), "content", STR("(none)"));
}

static const struct json *look(struct aes *a, const char *name)
{
    struct aes_answer got = aes_ask_get(a, aes_text(a, SHELLS "/%s", name));

    CHECK_INT(got.status, 200);
    return aes_json(a, got.body);
}

/* Opens {ws}/name for writing once a command has it open for reading. */
static int gate_of(struct aes *a, const char *name)
{
    int fd = open(aes_path(a, name), O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

static void open_gate(int fd)
{
    CHECK_INT(write(fd, "\n", 1), 1);
    close(fd);
}

AES_TEST(shells_have_a_directory_variables_and_a_size_of_their_own)
{
    struct aes a;

    aes_open_plain(&a, program);
    CHECK_INT(mkdir(aes_path(&a, "sub"), 0755), 0);
    struct aes_answer made =
        post(&a, SHELLS,
             aes_text(&a,
                      "{'name':'side','cwd':'%s/sub','env':{'X':'a b','HOME':'/h'},'columns':90,"
                      "'rows':30}",
                      a.dir),
             201);
    const struct json *s = aes_json(&a, made.body);
    CHECK_STR(json_get_str(s, "name", STR("")), "side");
    CHECK(json_get_int(s, "pid", 0) > 1);
    CHECK_STR(run_in(&a, "side", "'command':'echo $X $HOME; stty size; basename $PWD; X=2'"),
              "a b /h\n30 90\nsub");
    CHECK_STR(run_in(&a, "default", "'command':'echo [$X]; stty size; basename $PWD'"),
              "[]\n1000 1000\nws");
    CHECK_STR(run_in(&a, "side", "'command':'echo $X; cd ..; false'"), "2");
    CHECK_STR(json_get_str(look(&a, "side"), "cwd", STR("")), a.dir);
    post(&a, SHELLS "/side/resize", "{'columns':70,'rows':20}", 200);
    CHECK_STR(run_in(&a, "side", "'command':'stty size'"), "20 70");
    CHECK_INT(json_get_int(look(&a, "side"), "columns", 0), 70);
    CHECK_STR(json_get_str(aes_json(&a, post(&a, SHELLS, "{}", 201).body), "name", STR("")),
              "shell-1");
    aes_close(&a);
}

AES_TEST(shells_are_listed_with_what_they_run_and_end_with_it)
{
    struct aes a;

    aes_open_plain(&a, program);
    CHECK_INT(mkfifo(aes_path(&a, "gate"), 0600), 0);
    post(&a, SHELLS, "{'name':'one'}", 201);
    int fd = aes_send(&a, "POST", SHELLS "/one/run", "",
                      aes_quoted(&a, "{'command':'echo $$; read x < gate','blocking':true}"));
    int gate = gate_of(&a, "gate");
    const struct json *list = json_get(aes_json(&a, aes_ask_get(&a, SHELLS).body), STR("shells"));
    CHECK_INT(list->count, 2);
    CHECK_STR(json_get_str(json_at(list, 0), "name", STR("")), "default");
    CHECK(!json_get_bool(json_at(list, 0), "running", true));
    const struct json *one = json_at(list, 1);
    CHECK_STR(json_get_str(one, "name", STR("")), "one");
    CHECK(json_get_bool(one, "running", false));
    CHECK_STR(json_get_str(one, "command", STR("")), "echo $$; read x < gate");
    pid_t pid = (pid_t)json_get_int(one, "pid", 0);
    CHECK_INT(aes_ask(&a, "DELETE", SHELLS "/one", "", STR("")).status, 204);
    struct aes_answer cut = aes_take(&a, fd); /* what waited is answered */
    CHECK_INT(cut.status, 200);
    CHECK_HAS(cut.body, "the shell was closed");
    CHECK_INT(aes_ask_get(&a, SHELLS "/one").status, 404);
    post(&a, SHELLS, "{'name':'one'}", 201); /* the name is free again */
    CHECK(json_get_int(look(&a, "one"), "pid", 0) != pid);
    close(gate);
    aes_close(&a);
    CHECK(kill(pid, 0) < 0);
}

AES_TEST(shells_the_default_one_is_started_anew_when_it_is_deleted)
{
    struct aes a;

    aes_open_plain(&a, program);
    CHECK_INT(mkfifo(aes_path(&a, "gate"), 0600), 0);
    aes_act(&a, "run", "'command':'X=1'");
    int stuck =
        aes_send(&a, "POST", "/execute_action", "",
                 aes_quoted(&a, "{'action':{'action':'run','args':{'command':'trap \\'\\' INT; "
                                "read x < gate','blocking':true}}}"));
    int gate = gate_of(&a, "gate");
    int next = aes_send(&a, "POST", "/execute_action", "",
                        aes_quoted(&a, "{'action':{'action':'run','args':{'command':'echo "
                                       "[$X]','blocking':true}}}"));
    CHECK_INT(aes_ask_get(&a, "/alive").status, 200);
    CHECK_INT(aes_ask(&a, "DELETE", SHELLS "/default", "", STR("")).status, 204);
    CHECK_HAS(aes_take(&a, stuck).body, "the shell was closed");
    CHECK_HAS(aes_take(&a, next).body, "\"content\":\"[]\"");
    close(gate);
    aes_close(&a);
}

AES_TEST(shells_a_long_command_holds_up_nothing_but_its_own_shell)
{
    struct aes a;

    aes_open_plain(&a, program);
    CHECK_INT(mkfifo(aes_path(&a, "gate"), 0600), 0);
    aes_put(&a, "f", STR("text\n"));
    post(&a, SHELLS, "{'name':'side'}", 201);
    int slow = aes_send(&a, "POST", "/execute_action", "",
                        aes_quoted(&a, "{'action':{'action':'run','args':{'command':'read x < "
                                       "gate; echo slow','blocking':true},'timeout':600}}"));
    int gate = gate_of(&a, "gate");
    int queued = aes_send(&a, "POST", "/execute_action", "",
                          aes_quoted(&a, "{'action':{'action':'run','args':{'command':'echo "
                                         "queued','blocking':true},'timeout':600}}"));
    CHECK_INT(aes_ask_get(&a, "/alive").status, 200);
    CHECK_INT(aes_ask_get(&a, "/server_info").status, 200);
    CHECK_HAS(aes_print(&a, aes_act(&a, "read", "'path':'f'")), "\"content\":\"text\\n\"");
    aes_act(&a, "write", "'path':'g','content':'x'");
    CHECK_HAS(aes_print(&a, aes_act(&a, "edit",
                                    aes_text(&a,
                                             "'path':'%s/g','command':'str_replace','old_str':"
                                             "'x','new_str':'y'",
                                             a.dir))),
              "has been edited");
    CHECK_HAS(post(&a, "/list_files", "{}", 200).body, "\"f\"");
    CHECK_INT(aes_ask_get(&a, aes_text(&a, "/download_files?path=%s", a.dir)).status, 200);
    CHECK_STR(run_in(&a, "side", "'command':'echo side'"), "side");
    CHECK_HAS(aes_print(&a, aes_act(&a, "run", "'command':'echo st','is_static':true")),
              "\"content\":\"st\"");
    open_gate(gate);
    CHECK_HAS(aes_take(&a, slow).body, "\"content\":\"slow\"");
    CHECK_HAS(aes_take(&a, queued).body, "\"content\":\"queued\"");
    aes_close(&a);
}

AES_TEST(shells_take_input_and_keys_while_a_command_runs)
{
    struct aes a;

    aes_open_plain(&a, program);
    CHECK_INT(mkfifo(aes_path(&a, "gate"), 0600), 0);
    int fd = aes_send(&a, "POST", SHELLS "/default/run", "",
                      aes_quoted(&a, "{'command':'read x < gate; read a; read b; echo "
                                     "got-$a-$b; sleep 600','blocking':true}"));
    open_gate(gate_of(&a, "gate"));
    post(&a, SHELLS "/default/input", "{'text':'one\\r'}", 200);
    post(&a, SHELLS "/default/input", "{'base64':'dHdv'}", 200);
    post(&a, SHELLS "/default/keys", "{'keys':['ENTER']}", 200);
    struct aes_answer polled;
    int watch = aes_send(&a, "GET", SHELLS "/default/output?encoding=text", "", STR(""));
    char bytes[4096];
    size_t len = 0;
    while (!memmem(bytes, len, "got-one-two", 11)) {
        ssize_t n = read(watch, bytes + len, sizeof bytes - len);
        CHECK(n > 0);
        len += (size_t)n;
    }
    close(watch);
    post(&a, SHELLS "/default/keys", "{'keys':['C-c']}", 200);
    polled = aes_take(&a, fd);
    CHECK_HAS(polled.body, "got-one-two");
    CHECK_HAS(polled.body, "\"exit_code\":130");
    aes_close(&a);
}

AES_TEST(shells_refuse_bad_input_by_name)
{
    static const struct {
        const char *target, *quoted;
        int status;
        const char *part;
    } rows[] = {
        {SHELLS, "{'name':'a/b'}", 422, "'name' must be"},
        {SHELLS, "{'name':3}", 422, "name"},
        {SHELLS, "{'name':'default'}", 409, "shell 'default' is there already"},
        {SHELLS, "{'cwd':'relative'}", 422, "'cwd' must be"},
        {SHELLS, "{'cwd':'/nowhere'}", 422, "'cwd' must be"},
        {SHELLS, "{'cwd':'/etc/passwd'}", 422, "'cwd' must be"},
        {SHELLS, "{'env':['A=1']}", 422, "'env' must be"},
        {SHELLS, "{'env':{'A B':'x'}}", 422, "'A B'"},
        {SHELLS, "{'env':{'A':1}}", 422, "'A'"},
        {SHELLS, "{'columns':0}", 422, "columns"},
        {SHELLS, "{'rows':5000}", 422, "rows"},
        {SHELLS, "[]", 422, "object"},
        {SHELLS, "{", 422, ""},
        {SHELLS "/nobody/run", "{'command':'ls'}", 404, "no shell 'nobody'"},
        {SHELLS "/nobody/input", "{'text':'x'}", 404, "no shell 'nobody'"},
        {SHELLS "/default/run", "{}", 400, "command"},
        {SHELLS "/default/run", "{'command':7}", 400, "command"},
        {SHELLS "/default/run", "[]", 422, "object"},
        {SHELLS "/default/input", "{'text':'x'}", 409, "no command runs"},
        {SHELLS "/default/input", "{}", 422, "'text' or 'base64'"},
        {SHELLS "/default/input", "{'base64':'?'}", 422, "base64"},
        {SHELLS "/default/keys", "{'keys':'C-c'}", 422, "'keys' must be"},
        {SHELLS "/default/keys", "{'keys':['C-c']}", 409, "no command runs"},
        {SHELLS "/default/resize", "{'columns':80}", 422, "rows"},
    };
    struct aes a;

    aes_open_plain(&a, program);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_HAS(post(&a, rows[i].target, rows[i].quoted, rows[i].status).body, rows[i].part);
    CHECK_INT(aes_ask_get(&a, SHELLS "/nobody").status, 404);
    CHECK_INT(aes_ask_get(&a, SHELLS "/nobody/output").status, 404);
    CHECK_INT(aes_ask(&a, "DELETE", SHELLS "/nobody", "", STR("")).status, 404);
    for (int i = 0; i < 16; i++)
        post(&a, SHELLS, "{}", 201);
    CHECK_HAS(post(&a, SHELLS, "{}", 429).body,
              "16 shells are open, each 'croft exec' has one: wait");
    aes_close(&a);
}

AES_TEST(shells_of_static_commands_end_with_them) /* DEF-38 */
{
    struct aes a;
    struct run_answer r;

    aes_open_plain(&a, program);
    for (int i = 0; i < 5; i++) {
        struct json *o = aes_act(&a, "run", "'command':'echo $$','is_static':true");
        struct str pid = json_get_str(o, "content", STR(""));
        do /* its end is under way when the answer comes */
            r = aes_run_plain(&a, aes_text(&a, "kill -0 " STR_FMT " 2>/dev/null", STR_ARG(pid)));
        while (r.rc == 0);
        CHECK_INT(r.rc, 1);
    }
    aes_close(&a);
}

/* --- live output --- */

struct heard {
    struct buf text;
    char last_id[32];
    bool ended;
};

static void on_event(void *ctx, const struct sse_event *e)
{
    struct heard *h = ctx;

    snprintf(h->last_id, sizeof h->last_id, STR_FMT, STR_ARG(e->id));
    if (str_eq(e->event, STR("output")))
        buf_add(&h->text, e->data);
    h->ended |= str_eq(e->event, STR("end"));
}

/* Reads events until `until` was heard; the chunk lines between them are of no concern to a parser
 * that takes them for fields it does not know. */
static void listen_for(int fd, struct heard *h, const char *until)
{
    struct sse_parser p;
    char bytes[4096];

    buf_init(&h->text, 1u << 20);
    sse_parser_init(&p, 1u << 20, on_event, h);
    while (until ? str_find(buf_str(&h->text), str_of(until)) < 0 : !h->ended) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        CHECK(n > 0);
        CHECK_OK(sse_parser_feed(&p, str_n(bytes, (size_t)n)));
    }
    sse_parser_done(&p);
}

AES_TEST(shells_show_output_as_it_is_written_and_again_by_id)
{
    struct aes a;
    struct heard h = {0};

    aes_open_plain(&a, program);
    CHECK_INT(mkfifo(aes_path(&a, "gate"), 0600), 0);
    post(&a, SHELLS, "{'name':'s'}", 201);
    int watch = aes_send(&a, "GET", SHELLS "/s/output?encoding=text", "", STR(""));
    int fd = aes_send(&a, "POST", SHELLS "/s/run", "",
                      aes_quoted(&a, "{'command':'echo early; read x < gate; echo late',"
                                     "'blocking':true}"));
    listen_for(watch, &h, "early"); /* while it runs */
    close(watch);
    open_gate(gate_of(&a, "gate"));
    CHECK_HAS(aes_take(&a, fd).body, "early\\nlate");
    watch = aes_send(&a, "GET", SHELLS "/s/output?encoding=text",
                     aes_text(&a, "Last-Event-ID: %s\r\n", h.last_id), STR(""));
    buf_done(&h.text);
    listen_for(watch, &h, "late");
    CHECK(str_find(buf_str(&h.text), STR("early")) < 0);
    buf_done(&h.text);
    CHECK_INT(aes_ask(&a, "DELETE", SHELLS "/s", "", STR("")).status, 204);
    listen_for(watch, &h, NULL); /* the end is said */
    buf_done(&h.text);
    close(watch);
    aes_close(&a);
}
