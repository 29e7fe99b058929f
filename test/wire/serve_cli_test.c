// SPDX-License-Identifier: Apache-2.0
/* serve_cli_test.c — commands against a server, as a person types them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/program.h"
#include "test/serve_kit.h"
#include "test/test.h"

static const char *at_server(struct serve *s)
{
    setenv("D", test_dir(), 1);
    setenv("CROFT_HOST", serve_text(s, "unix:%s/server/api.sock", s->state), 1);
    const char *program = test_program("croft");
    setenv(
        "PATH",
        serve_text(s, "%.*s:%s", (int)(strrchr(program, '/') - program), program, getenv("PATH")),
        1);
    return serve_start(s, "demo", "") ? "demo" : NULL;
}

/* What a line of shell prints, and its exit code. */
static int sh(const char *line, struct buf *out)
{
    buf_init(out, 1u << 20);
    return program_run((const char *const[]){"bash", "-c", line, NULL}, out);
}

static void check(const char *line, int code, const char *want)
{
    own_done(buf) out;
    int got = sh(line, &out);

    if (got != code)
        FAIL("%s: exit code %d, want %d: %.*s", line, got, code, (int)out.len, out.p);
    CHECK_STR(buf_str(&out), want);
}

static void check_has(const char *line, const char *part)
{
    own_done(buf) out;

    sh(line, &out);
    CHECK_HAS(buf_str(&out), part);
}

TEST(serve_cli_runs_commands_and_gives_their_exit_codes)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("croft exec demo -- sh -c 'echo hello; exit 3'", 3, "hello\n");
    check("croft exec demo -- echo \"it's\" '$HOME' 'a b'", 0, "it's $HOME a b\n");
    check("croft exec demo -- /etc/passwd >$D/out 2>&1", 126, "");
    check("croft exec demo -- no-such-command >$D/out 2>&1", 127, "");
    check("croft exec demo -- sh -c 'kill -TERM $$' >$D/out", 128 + 15, "");
    check("croft exec demo -- sh -c 'kill -KILL $$' >$D/out", 128 + 9, "");
    check("croft exec --workdir /usr demo -- pwd", 0, "/usr\n");
    check("croft exec --workdir /usr -- demo pwd", 0, "/usr\n");
    check("echo typed | croft exec --interactive demo -- sed 's/typed/got it/'", 0, "got it\n");
    check("croft exec nobody -- true 2>&1", 125,
          "croft exec: no sandbox 'nobody' ('croft ps --all' lists them)\n");
    check("croft exec demmo -- true 2>&1", 125,
          "croft exec: no sandbox 'demmo'; did you mean 'demo'? (croft ps)\n");
    check("croft exec 2>/dev/null", 2, "");
    check("echo x | croft exec -it demo -- cat", 0, "x\n");
    check("croft exec -w /usr demo pwd; croft exec demo echo -i --help", 0, "/usr\n-i --help\n");
    check("croft exec -x demo -- true 2>&1", 2,
          "croft exec: -x: no such option; --help lists them\ntry: croft exec --help\n");
    check("croft stop -f demo 2>&1 | head -1", 0,
          "croft stop: -f: no such option; --help lists them\n");
    check("croft ps -aq | wc -l", 0, "1\n");
    serve_ask_inside(&s, serve_start(&s, "demo", ""), "GET", "/nowhere", NULL); /* is counted */
    check(serve_text(&s,
                     "curl -s http://127.0.0.1:%u/metrics | grep 'face=\"sandbox\".*code=\"404\"' "
                     "| grep -o '[^ ]*$'",
                     s.wire.port),
          0, "1\n"); /* and nothing else is asked for in vain */
    check("croft rm demo | grep -c .", 0, "1\n");
    serve_close(&s);
}

TEST(serve_cli_says_as_json_what_it_ran_and_copied)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("croft exec --json demo -- sh -c 'echo \"a b\"; exit 3' 2>/dev/null", 3,
          "{\"sandbox\": \"demo\", \"exit_code\": 3, \"output\": \"a b\\n\", \"truncated\": "
          "false}\n");
    check("croft exec demo -- echo --json", 0, "--json\n"); /* the command's own */
    check("echo 'exit 4' | croft shell --json demo | python3 -c "
          "'import json,sys; print(json.load(sys.stdin)[\"exit_code\"])'",
          0, "4\n");
    check("croft exec --json nobody -- true 2>/dev/null", 125, ""); /* nothing but data */
    check("croft exec --json nobody -- true 2>&1 | python3 -c "
          "'import json,sys; print(json.load(sys.stdin)[\"command\"])'",
          0, "exec\n");
    check("cd $HOME && printf 12345 > five && croft cp --json five demo:/workspace/5 | sed "
          "'s/[0-9]*}/N}/'",
          0, "{\"from\": \"five\", \"to\": \"demo:/workspace/5\", \"transferred_bytes\": N}\n");
    check("cd $HOME && croft cp --json demo:/workspace/5 back >out && cmp five back && python3 -c "
          "'import json; print(json.load(open(\"out\"))[\"to\"])'",
          0, "back\n");
    check("croft cp --json demo:/none here 2>&1 >/dev/null | python3 -c "
          "'import json,sys; print(json.load(sys.stdin)[\"command\"])'",
          0, "cp\n");
    serve_close(&s);
}

TEST(serve_cli_reaches_a_session_with_a_slash_by_its_id_only)
{
    struct serve s = {0};

    s.key = "first-key-that-is-long-enough";
    setenv("CROFT_API_KEY", s.key, 1);
    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    const char *ours = s.key;
    s.key = serve_make_key(&s, "{'name':'ta','scopes':['runtime']}");
    serve_exec(&s, serve_start(&s, "squat", ""), "echo theirs > /workspace/who");
    s.key = ours;
    struct json *r = serve_start(&s, "ta/squat", "");
    serve_exec(&s, r, "echo ours > /workspace/who");
    check("croft exec ta/squat -- cat /workspace/who", 0, "theirs\n");
    check("cd $D && croft cp ta/squat:/workspace/who who && cat who", 0, "theirs\n");
    check("cd $D && croft cp who ta/squat:/workspace/again && croft exec ta/squat -- ls /workspace",
          0, "again  who\n");
    check(serve_text(&s, "croft exec %s -- cat /workspace/who", serve_field(&s, r, "runtime_id")),
          0, "ours\n");
    check_has("cd $D && croft cp who ./ta:/x 2>&1", "one of FROM and TO is SANDBOX:PATH");
    serve_close(&s);
}

TEST(serve_cli_copies_all_but_paths_that_are_too_long_and_names_them)
{
    static const char deep[] =
        "i=0; while [ $i -lt 24 ]; do d=$(printf %200s | tr ' ' d); mkdir $d; "
        "cd -P $d; i=$((i+1)); done";
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check(serve_text(&s,
                     "croft exec --interactive demo -- sh <<'E'\nmkdir /workspace/far\n"
                     "cd /workspace/far\necho b >zz\n%s\nE\n",
                     deep),
          0, "");
    check("cd $D && croft cp demo:/workspace/far . 2>err; echo $?; "
          "grep -c '^croft cp: left out, for its path is over 4096 bytes long: ' err; cat far/zz",
          0, "1\n1\nb\n");
    serve_close(&s);
}

TEST(serve_cli_leaves_nothing_of_its_own_when_a_copy_is_refused)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("croft exec demo -- sh -c 'mkdir -p /workspace/t/e; echo 1 >/workspace/t/e/f; echo 2 "
          ">/workspace/t/g'",
          0, "");
    check(
        "mkdir -p $D/to/t && echo mine >$D/to/t/e && croft cp demo:/workspace/t $D/to 2>/dev/null; "
        "echo $?; find $D/to -name '.croft-*'; cat $D/to/t/e",
        0, "1\nmine\n");
    serve_close(&s);
}

TEST(serve_cli_copies_files_and_trees_both_ways)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("mkdir -p $D/t/e && cd $D && echo one > t/a && echo two > t/e/b && "
          "head -c 5000000 /dev/urandom > big && croft cp t demo:/workspace && "
          "croft exec demo -- sh -c 'cd /workspace; find t -type f | sort | xargs cat'",
          0, "one\ntwo\n");
    check("cd $D && croft cp demo:/workspace/t out && diff -r t out && croft cp demo:/workspace/t "
          "out && diff -r t out/t && echo same",
          0, "same\n");
    check("cd $D && croft cp big demo:/workspace/other && croft cp demo:/workspace/other . && cmp "
          "big other && echo same",
          0, "same\n");
    check("cd $D && croft cp demo:/proc/self/status st && grep -c ^Pid: st && croft cp "
          "/proc/self/status demo:/tmp/st && croft exec demo -- grep -c ^Pid: /tmp/st",
          0, "1\n1\n"); /* whose size is said to be 0 */
    check(
        "cd $D && >none && croft cp none demo:/tmp/none && croft cp demo:/tmp/none no && wc -c <no",
        0, "0\n");
    check_has("croft cp demo:/nowhere/x $D/y 2>&1", "croft cp:");
    check_has("croft cp a b 2>&1", "one of FROM and TO is SANDBOX:PATH");
    serve_close(&s);
}

/* What a link leads to was not asked for: a tree of a stranger's could name anybody's secret. */
TEST(serve_cli_copies_links_as_links_and_names_what_it_leaves_out)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check(
        "cd $D && echo secret > s && mkdir -p t/empty t/shut && ln -s $D/s t/link && ln -s nowhere "
        "t/dangling && ln -s empty t/dirlink && mkfifo t/fifo && echo x > t/$'\\xff' && echo y > "
        "t/'a\"b' && echo run > t/prog && chmod 750 t/prog && chmod 700 t/shut && touch -d "
        "@1000000000 t/prog t/empty && croft cp t demo:/workspace 2>&1",
        0, "croft cp: left out, for it is no file, directory or link: fifo\n");
    check("croft exec demo -- grep -r secret /workspace; croft exec demo -- readlink "
          "/workspace/t/link",
          0, serve_text(&s, "%s/s\n", test_dir()));
    check("croft exec demo -- sh -c 'mkfifo /workspace/t/out' && cd $D && rm t/fifo && croft cp "
          "demo:/workspace/t back 2>&1",
          0, "croft cp: left out, for it is no file, directory or link: out\n");
    check("list() { (cd $D/$1 && find . -mindepth 1 ! -type l -printf '%P %m %T@\\n' | sed "
          "'s/[.][0-9]*$//' | LC_ALL=C sort); }; cmp <(list t) <(list back) && list t | wc -l",
          0, "5\n");
    check("stat -c %a $D/back/shut $D/back/prog && cat $D/back/$'\\xff' && test -L $D/back/link && "
          "ls -A $D/back | wc -l",
          0, "700\n750\nx\n8\n");
    serve_close(&s);
}

TEST(serve_cli_copies_single_files_whatever_they_are_called)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("cd $D && echo one > a.zip && echo two > 'q\"' && croft cp a.zip demo:/tmp && croft cp "
          "'q\"' demo:/tmp/q && croft exec demo -- cat /tmp/a.zip /tmp/q",
          0, "one\ntwo\n");
    check("cd $D && echo mine > q && croft cp demo:/tmp/q other && cat q other", 0, "mine\ntwo\n");
    check(
        "cd $D && echo dash > ./-x && croft cp -- -x demo:/tmp/d && croft exec demo -- cat /tmp/d",
        0, "dash\n");
    check("cd $D && head -c 5000000 /dev/zero > big && croft cp big demo:relative 2>&1 | head -1",
          0, "croft cp: the path behind SANDBOX: is absolute, such as /workspace/out\n");
    check_has("cd $D && croft cp big demo:/etc/passwd/x 2>&1", "passwd");
    check_has("cd $D && croft cp demo:/tmp/q none/here/q 2>&1", "no directory 'none/here' here");
    check_has("cd $D && mkfifo p && croft cp p demo:/tmp/ 2>&1", "neither a file nor a directory");
    serve_close(&s);
}

/* Typed bytes that a command leaves unread are the shell's, which would run them. */
TEST(serve_cli_passes_input_by_a_pipe_and_nothing_of_it_to_the_shell)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("printf 'first\ntouch /tmp/INJECTED\n' | croft exec --interactive demo -- head -1", 0,
          "first\n");
    check(
        "b() { printf 'a\\003\\ntouch /tmp/INJECTED\\n\\004b\\032\\r'; }; b | croft exec "
        "--interactive "
        "demo -- od -An -c | cmp - <(b | od -An -c) && croft exec demo -- ls /tmp/INJECTED 2>&1 | "
        "grep -c No",
        0, "1\n");
    check("echo 'print(6 * 7)' | croft exec --interactive demo -- python3", 0, "42\n");
    check("echo 'echo $((6 * 7)); exit 5' | croft shell demo", 5, "42\n");
    check("cd $D && head -c 3000000 /dev/urandom > r && croft exec --interactive demo -- md5sum < "
          "r | "
          "cmp - <(md5sum < r) && cat r | croft exec --interactive demo -- md5sum | cmp - <(md5sum "
          "< r)",
          0, "");
    check("croft exec demo -- cat < /etc/passwd", 0, "");
    check("croft exec --interactive demo -- wc -c < /dev/null", 0, "0\n");
    check("croft exec demo -- sh -c 'ls -A /tmp | grep croft-'", 1, "");
    serve_close(&s);
}

TEST(serve_cli_gives_output_as_it_was_written)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("croft exec demo -- seq 1 300000 | cmp - <(seq 1 300000) && echo same", 0, "same\n");
    check("croft exec demo -- seq 1 300000 | (dd bs=1 count=30000 status=none | wc -c; tail -1)", 0,
          "30000\n300000\n");
    check("croft exec demo -- printf 'a\\r\\nb\\rc\\r' | od -An -c | tr -d ' '", 0,
          "a\\r\\nb\\rc\\r\n");
    serve_close(&s);
}

/* Whoever has to tell the command of it may be gone without a word. */
TEST(serve_cli_ends_what_runs_when_it_ends_itself)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("croft exec demo -- sh -c 'echo $$ > /tmp/1; exec yes' | head -1", 0, "y\n");
    check(
        "croft exec demo -- sh -c 'while kill -0 $(cat /tmp/1) 2>/dev/null; do :; done; echo over'",
        0, "over\n");
    check("croft exec demo -- sh -c 'echo $$ > /tmp/2; echo go; exec sleep 1000' > $D/f & p=$!; "
          "until "
          "grep -qs go $D/f; do :; done; kill -9 $p; wait $p 2>$D/e; croft exec demo -- sh -c "
          "'while kill -0 $(cat "
          "/tmp/2) 2>/dev/null; do :; done; echo over'; rm $D/f $D/e",
          0, "over\n");
    serve_close(&s);
}

/* Who started a sandbox named it; the terminal is another's. */
TEST(serve_cli_writes_no_names_that_a_terminal_acts_on)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    serve_want(&s, 200, "POST", "/start", "{'image': 'host', 'session_id': 'a\\u001b[2J\\nfake'}");
    check("(croft ps; croft inspect $'a\\e[2J\\nfake'; croft stop nobody$'\\e[2J') 2>&1 | grep -c "
          "$'\\e'",
          1, "0\n");
    check_has("croft ps", "\"a\\033[2J\\nfake\"");
    check("script -qec 'croft ps --json' /dev/null | grep -c $'\\e'", 1, "0\n");
    serve_close(&s);
}

TEST(serve_cli_lists_inspects_pauses_and_resumes)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("croft ps --quiet | wc -l", 0, "1\n");
    check_has("croft ps", "running");
    check("croft ps | python3 -c 'import sys; h, r = sys.stdin; print(h.index(\"SESSION\") == "
          "r.index(\"demo\"), h.index(\"URL\") == r.index(\"http\"))'",
          0, "True True\n");
    check_has("croft inspect demo", "timeline");
    check("croft stats --json demo | python3 -c 'import json, sys; d = json.load(sys.stdin); "
          "print(d[\"memory_bytes\"] > 10000, d[\"pids\"] > 0, d[\"oom_kills\"])'",
          0, "True True 0\n");
    check("croft inspect --json demo | python3 -c 'import json, sys; d = json.load(sys.stdin); "
          "print(d[\"session_id\"], d[\"image\"])'",
          0, "demo host\n");
    check("croft pause demo >/dev/null && croft exec demo -- true 2>&1", 125,
          "croft exec: sandbox 'demo' is paused; 'croft resume demo' first\n");
    check("croft resume dem >/dev/null && croft exec demo -- echo back", 0, "back\n");
    check_has("croft pool", "default");
    check_has("croft pool set default --target 1 --ceiling 2", "default");
    check_has("croft pool set nosuch --target 1 2>&1", "nosuch");
    check("croft exec demo -- sh -c 'echo stays > /workspace/kept'", 0, "");
    check("croft stop demo nobody 2>&1 >/dev/null | grep -c nobody", 0, "1\n");
    check_has("croft inspect demo", "its files are kept");
    check("croft resume demo >/dev/null && croft exec demo -- cat /workspace/kept", 0, "stays\n");
    serve_tell(&s, "/stop", serve_start(&s, "demo", ""));
    check_has("croft exec demo -- true 2>&1", "'demo' has ended and its files are gone; start a");
    check("croft rm demo >/dev/null && croft ps --quiet", 0, "");
    serve_close(&s);
}

TEST(serve_cli_says_what_was_wrong_where_errors_belong)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("croft logs --tail x demo 2>/dev/null", 1, "");
    check_has("croft logs --tail x demo 2>&1", "tail");
    check("croft logs 2>/dev/null", 2, "");
    check("croft ps --nosuch 2>/dev/null", 2, "");
    check("croft pool what 2>/dev/null", 2, "");
    check("croft cp a b 2>/dev/null", 2, "");
    check("croft cp demo:/etc/hostname - 2>/dev/null", 2, "");
    check_has("croft cp - demo:/tmp/x 2>&1", "'-' is no path");
    check("croft stats 2>/dev/null", 2, "");
    check_has("croft pool set default --target x 2>&1", "5000");
    check_has("croft pool set default --target 5001 2>&1", "5000");
    check_has("croft pool set default --target 2 --ceiling 1 2>&1", "target 2, ceiling 1");
    check_has("croft cp demo:/nowhere $D/. 2>&1", "'demo:/nowhere' to ");
    check("croft inspect --json nobody 2>&1", 1,
          "{\"error\": \"no sandbox 'nobody' ('croft ps --all' lists them)\", \"code\": "
          "\"not_found\", \"command\": \"inspect\"}\n");
    serve_want(&s, 200, "POST", "/start",
               "{'image': 'host', 'session_id': 'web', 'command': ['python3', '-m', 'http.server', "
               "'60000']}");
    check_has("croft exec web -- true 2>&1", "runs a command of its own and no croft server");
    check_has("croft exec web -- true 2>&1", "start one without 'command' and run it by");
    check_has("croft cp /etc/hostname web:/tmp/ 2>&1", "runs a command of its own");
    serve_close(&s);
}

TEST(serve_forks_share_files_and_nothing_else)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("croft exec demo -- sh -c 'echo old > /workspace/f; echo word > /root/g'", 0, "");
    check("croft fork demo -n 3 | wc -l", 0, "3\n");
    check("croft ps --quiet | wc -l", 0, "4\n");
    check("for i in 1 2 3; do croft exec $(croft ps --quiet | sed -n $((i + 1))p) -- sh -c "
          "\"cat /workspace/f /root/g; echo $i > /workspace/f\"; done",
          0, "old\nword\nold\nword\nold\nword\n");
    check("croft exec demo -- cat /workspace/f", 0, "old\n");
    serve_close(&s);
}

/* bash offers for the words of a line, the last of them half typed. */
static void check_offers(struct serve *s, const char *words, const char *want)
{
    check(serve_text(s,
                     "cd $HOME && source <(croft completion bash); COMP_WORDS=(croft %s); "
                     "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _croft; (IFS=,; echo "
                     "\"${COMPREPLY[*]}\")",
                     words),
          0, serve_text(s, "%s\n", want));
}

TEST(serve_cli_is_completed_by_names_of_what_there_is)
{
    struct serve s = {.key = "one-key-that-is-long-enough"};

    setenv("CROFT_API_KEY", s.key, 1);
    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    serve_start(&s, "job-1", "");
    serve_want(&s, 200, "POST", "/start", "{'image':'host','session_id':'job-$(touch ran)'}");
    const char *id = serve_field(&s, serve_start(&s, "demo", ""), "runtime_id");
    check("croft snapshot take demo --name sn-1 >$D/out && croft token create k-1 2>$D/out "
          ">$D/out && mkdir $D/job-dir",
          0, "");
    check_offers(&s, "exec job-", "job-1"); /* ids have letters only */
    check_offers(&s, serve_text(&s, "stop job-1 %.9s", id), id);
    check_offers(&s, "cp job-", "job-1:,job-dir");
    check_offers(&s, "cp --json job-dir job-1", "job-1:");
    check_offers(&s, "snapshot rm sn-", "sn-1");
    check_offers(&s, "snapshot take job-", "job-1");
    check_offers(&s, "pool set d", "default");
    check_offers(&s, "pool d", "");
    check_offers(&s, "token rm k-", "k-1");
    check_offers(&s, "token create k-", "");
    check("cd $HOME; ls ran 2>$D/out", 2, ""); /* what a stranger called his own */
    serve_close(&s);
}

TEST(serve_snapshots_are_gone_on_from_and_belong_to_their_tenant)
{
    struct serve s = {.key = "one-key-that-is-long-enough"};

    setenv("CROFT_API_KEY", s.key, 1);
    serve_open(&s);
    struct json *a = serve_start(&s, "a", "");
    const char *id = serve_field(&s, a, "runtime_id");
    serve_exec(&s, a, "echo before > /workspace/f");
    const char *path = serve_text(&s, "/croft/v1/sandboxes/%s/snapshot", id);
    serve_want(&s, 200, "POST", path, "{'name': 'good'}");
    serve_refused(&s, 409, "good", "POST", path, "{'name': 'good'}");
    serve_refused(&s, 422, "name", "POST", path, "{'name': 'a/b'}");
    serve_exec(&s, a, "echo after > /workspace/f");
    serve_want(&s, 200, "POST", "/croft/v1/sandboxes",
               "{'image': 'host', 'session_id': 'b', 'from': 'good'}");
    struct json *b = serve_start(&s, "b", "");
    CHECK_HAS(serve_exec(&s, b, "cat /workspace/f"), "before");
    serve_refused(&s, 404, "nosuch", "POST", "/croft/v1/sandboxes",
                  "{'image': 'host', 'session_id': 'c', 'from': 'nosuch'}");
    struct json *made = serve_want(&s, 201, "POST", "/croft/v1/tokens",
                                   "{'name': 'other', 'scopes': ['runtime', 'read']}");
    s.key = serve_field(&s, made, "secret");
    CHECK_HAS(serve_get(&s, "/croft/v1/snapshots").body, "{\"snapshots\":[]}");
    serve_refused(&s, 404, "good", "POST", "/croft/v1/sandboxes",
                  "{'image': 'host', 'session_id': 'c', 'from': 'good'}");
    serve_refused(&s, 404, id, "GET", serve_text(&s, "/croft/v1/sandboxes/%s", id), NULL);
    serve_refused(&s, 404, "good", "DELETE", "/croft/v1/snapshots/good", NULL);
    s.key = "one-key-that-is-long-enough";
    CHECK_INT(serve_ask(&s, "DELETE", "/croft/v1/snapshots/good", NULL).status, 204);
    CHECK_HAS(serve_exec(&s, b, "cat /workspace/f"), "before");
    serve_close(&s);
}

/* To an administrator names are not unique: nothing is ended that he may not have meant. */
TEST(serve_cli_wants_to_know_whose_when_tenants_share_a_name)
{
    struct serve s = {.key = "one-key-that-is-long-enough"};

    setenv("CROFT_API_KEY", s.key, 1);
    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    const char *mine = serve_field(&s, serve_start(&s, "demo", ""), "runtime_id");
    struct json *made = serve_want(&s, 201, "POST", "/croft/v1/tokens",
                                   "{'name': 'other', 'scopes': ['runtime', 'read']}");
    const char *admin = s.key;
    s.key = serve_field(&s, made, "secret");
    const char *id = serve_field(&s, serve_start(&s, "demo", ""), "runtime_id");
    serve_want(&s, 200, "POST", serve_text(&s, "/croft/v1/sandboxes/%s/snapshot", id),
               "{'name': 'v1'}");
    s.key = admin;
    serve_want(&s, 200, "POST", serve_text(&s, "/croft/v1/sandboxes/%s/snapshot", mine),
               "{'name': 'v1'}");
    check_has("croft rm demo 2>&1", "2 sandboxes of several keys are called 'demo': ");
    check_has("croft rm demo 2>&1", "(key 'other')");
    check("croft ps -q | wc -l", 0, "2\n");
    serve_refused(&s, 409, "'other'", "DELETE", "/croft/v1/snapshots/v1", NULL);
    serve_refused(&s, 409, "'other'", "POST", "/croft/v1/sandboxes",
                  "{'image': 'host', 'session_id': 'c', 'from': 'v1'}");
    serve_refused(&s, 404, "v1", "DELETE", "/croft/v1/snapshots/v1?key=nobody", NULL);
    check("croft snapshot rm other/v1 >/dev/null && croft snapshot ls | grep -c v1", 0, "1\n");
    check(
        serve_text(&s, "croft rm other/demo | grep -c %s && croft rm demo | grep -c %s", id, mine),
        0, "1\n1\n");
    serve_close(&s);
}

/* As behind a proxy that ends TLS, on a machine where a sandbox's own url leads nowhere. */
TEST(serve_cli_needs_nothing_but_the_servers_address)
{
    static const char *const proxy =
        "import socket, ssl, sys, threading\n"
        "def move(a, b):\n"
        "    try:\n"
        "        while d := a.recv(65536): b.sendall(d)\n"
        "        b.shutdown(socket.SHUT_WR)\n"
        "    except OSError: pass\n"
        "tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
        "tls.load_cert_chain('cert', 'key')\n"
        "l = socket.create_server(('127.0.0.1', 0))\n"
        "open('port.new', 'w').write(str(l.getsockname()[1]))\n"
        "import os; os.rename('port.new', 'port')\n"
        "while True:\n"
        "    try: c = tls.wrap_socket(l.accept()[0], server_side=True)\n"
        "    except OSError: continue\n"
        "    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "    for p in ((c, s), (s, c)): threading.Thread(target=move, args=p, "
        "daemon=True).start()\n";
    struct serve s = {0};

    serve_prepare(&s);
    setenv("D", test_dir(), 1);
    check("printf '[server]\\npublic_url = \"https://nowhere.invalid\"\\n' > $D/c.toml", 0, "");
    serve_run(&s, (const char *const[]){"--config", serve_text(&s, "%s/c.toml", test_dir()), NULL});
    CHECK_STR(at_server(&s), "demo");
    setenv("PROXY", proxy, 1);
    check("cd $D && openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 -subj "
          "/CN=x -addext subjectAltName=IP:127.0.0.1 2>log && "
          "exec python3 -c \"$PROXY\" ${CROFT_HOST#unix:} 2>log & p=$!; cd $D; until test -f port; "
          "do "
          "kill -0 $p || exit 9; done; export CROFT_CA_FILE=$D/cert "
          "CROFT_HOST=https://127.0.0.1:$(cat "
          "port); croft exec demo -- echo in && echo f > f && croft cp f demo:/tmp/f && croft cp "
          "demo:/tmp/f g && cat g; env -u CROFT_CA_FILE croft ps 2>&1 | grep -c certificate; kill "
          "$p; "
          "wait $p 2>log; true",
          0, "in\nf\n1\n");
    serve_close(&s);
}

TEST(serve_halted_sandboxes_outlive_the_server)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("croft exec demo -- sh -c 'echo stays > /workspace/kept' && croft stop demo >/dev/null",
          0, "");
    serve_kill(&s);
    serve_run(&s, NULL);
    check_has("croft ps", " halted ");
    check("croft resume demo >/dev/null && croft exec demo -- cat /workspace/kept", 0, "stays\n");
    serve_close(&s);
}

/* Ended by a signal, not killed: what nobody works in is not thrown away. */
TEST(serve_paused_and_halted_sandboxes_keep_their_files_over_a_restart)
{
    struct serve s = {0};

    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check("croft exec demo -- sh -c 'echo stays > /workspace/kept' && croft pause demo >/dev/null",
          0, "");
    CHECK_INT(wire_stop(&s.wire), 0);
    serve_run(&s, NULL);
    check("croft resume demo >/dev/null && croft exec demo -- cat /workspace/kept", 0, "stays\n");
    check("croft stop demo >/dev/null", 0, "");
    CHECK_INT(wire_stop(&s.wire), 0);
    serve_run(&s, NULL);
    check("croft resume demo >/dev/null && croft exec demo -- cat /workspace/kept", 0, "stays\n");
    serve_close(&s);
}

TEST(serve_metrics_are_read_by_promtool)
{
    struct serve s = {0};

    if (system("command -v promtool >/dev/null") != 0)
        SKIP("no promtool here (package prometheus)");
    serve_open(&s);
    CHECK_STR(at_server(&s), "demo");
    check_has(serve_text(&s, "curl -s http://127.0.0.1:%u/metrics", s.wire.port),
              "croft_http_requests_total{face=\"runtime\",method=\"POST\",code=\"200\"} 1");
    check(
        serve_text(&s, "curl -s http://127.0.0.1:%u/metrics | promtool check metrics", s.wire.port),
        0, "");
    check_has(serve_text(&s,
                         "timeout 5 curl -sN http://127.0.0.1:%u/croft/v1/events | grep -m 1 READY",
                         s.wire.port),
              "STATUS$READY");
    serve_close(&s);
}

/* What a sandbox of a server changed, as a person asks for it; ids of the host's own come first. */
TEST(serve_cli_shows_takes_over_and_undoes_changes)
{
    struct serve s = {0};

    serve_prepare(&s);
    setenv("D", test_dir(), 1);
    check("mkdir $D/p && echo old > $D/p/f && printf '[mount.p]\npath = \"%s/p\"\nmodes = "
          "[\"apply\"]\n' $D > $D/c.toml",
          0, "");
    serve_run(&s, (const char *const[]){"--config", serve_text(&s, "%s/c.toml", test_dir()), NULL});
    serve_want(&s, 200, "POST", "/croft/v1/sandboxes",
               serve_text(&s,
                          "{'image':'host','session_id':'demo','pids':64,'mounts':[{'source':"
                          "'%s/p','target':'/work'}]}",
                          test_dir()));
    CHECK_STR(at_server(&s), "demo");
    check("croft inspect demo | grep -c -e '^pids  *64$' -e 'target  /work'", 0, "2\n");
    check("croft exec demo -- sh -c 'echo new > /work/f; mkdir /work/d; ln -s a /work/l; rm -r "
          "/workspace; chmod 700 /root'",
          0, "");
    check("croft diff demo | grep -v /tmp", 0,
          "A  /work/d/\nM  /work/f\nA  /work/l -> a\nD  /workspace/\n");
    check("croft diff demo --json | python3 -c 'import json, sys; d = json.load(sys.stdin); "
          "print([c[\"path\"] for c in d[\"changes\"] if c[\"kind\"] == \"modified\"])'",
          0, "['/work/f']\n");
    check("croft apply demo /work/f && cat $D/p/f && ls $D/p", 0,
          "applied 1 to the directory of '/work'\nnew\nf\n");
    check("croft apply demo work 2>&1", 1,
          "croft apply: paths[0]: wanted an absolute, plain path\n");
    check("croft snapshot take demo --name one && croft snapshot ls | grep -c '^one.sandbox'", 0,
          "one\tsandbox demo\n1\n");
    check("croft snapshot ls --json | python3 -c 'import json, sys; d = json.load(sys.stdin); "
          "print(d[0][\"name\"], len(d))'",
          0, "one 1\n");
    check("croft exec demo -- sh -c 'mkdir /workspace; echo 2 > /work/f' && croft rollback demo "
          "2>&1 | grep -c 'stop it first'",
          0, "1\n");
    check("croft stop demo > $D/out && croft rollback demo --to one && croft resume demo > $D/out "
          "&& croft exec demo -- sh -c 'cat /work/f; ls -d /workspace' 2>&1 | head -1",
          0, "'demo' is as it was in the snapshot; 'croft resume demo' goes on from there\nnew\n");
    check("croft snapshot rm one && croft snapshot rm one 2>&1", 1,
          "one\ncroft snapshot: snapshot 'one' not found\n");
    check("croft diff nobody 2>&1", 1,
          "croft diff: no sandbox 'nobody' ('croft ps --all' lists them)\n");
    check("env -u CROFT_HOST XDG_STATE_HOME=$D/x croft diff nobody 2>&1", 1,
          "croft diff: no sandbox has left changes; 'croft run' makes one\n");
    serve_close(&s);
}
