// SPDX-License-Identifier: Apache-2.0
/* aes_git_test.c — the commands of the git panel against real repositories: what they print is
 * what the scripts of the client's image would print. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test/aes_run.h"

#define SCRIPTS "python3 /openhands/code/openhands/runtime/utils/"

static struct str panel_in(struct aes *a, const char *cwd, const char *command, int64_t code)
{
    struct json *o = aes_act(
        a, "run",
        aes_text(a, "'command':'%s','is_static':true,'hidden':true,'cwd':'%s'", command, cwd));
    const struct json *meta = json_get(json_get(o, STR("extras")), STR("metadata"));

    CHECK_STR(json_get_str(o, "observation", STR("")), "run");
    CHECK_INT(json_get_int(meta, "exit_code", -99), code);
    CHECK_STR(json_get_str(meta, "working_dir", STR("")), cwd);
    CHECK(json_get_bool(json_get(o, STR("extras")), "hidden", false));
    return json_get_str(o, "content", STR(""));
}

static struct str changes(struct aes *a)
{
    return panel_in(a, a->dir, SCRIPTS "git_changes.py", 0);
}

static struct str diff(struct aes *a, const char *file, int64_t code)
{
    return panel_in(a, a->dir, aes_text(a, SCRIPTS "git_diff.py \\'%s\\'", file), code);
}

/* A script in the workspace that must succeed. */
static void sh(struct aes *a, const char *script)
{
    aes_put(a, "../script", str_of(script));
    struct run_answer r = aes_run_plain(a, aes_text(a, "bash -e %s/../script", a->dir));
    if (r.rc != 0)
        FAIL("%s: " STR_FMT, script, STR_ARG(r.content));
}

static void open_in(struct aes *a, const char *program)
{
    aes_open_plain(a, program);
    sh(a, "git config --global user.name n\ngit config --global user.email e@x\n"
          "git config --global init.defaultBranch main\n");
}

#define CHANGE(status, path) "{\"status\": \"" status "\", \"path\": \"" path "\"}"

AES_TEST(git_panel_lists_changes_since_the_last_commit_where_there_is_no_remote)
{
    struct aes a;

    open_in(&a, program);
    CHECK_STR(changes(&a), "[]"); /* no repository */
    CHECK_HAS(diff(&a, "x", 1), "not in a repository");
    sh(&a, "git init -q\n: > f\n");
    CHECK_STR(changes(&a), "[]"); /* no commit yet */
    sh(&a, "seq 50 > old; echo 1 > m; echo 2 > d; printf ig > .gitignore; git add .\n"
           "git commit -qm one\n");
    CHECK_STR(changes(&a), "[]");
    sh(&a, "echo more >> m; rm d; git mv old new; echo s > 'a \"b'; git add 'a \"b'\n"
           "echo u > 'u\xc3\xa4'; : > ig; mkdir dir; : > dir/x\n");
    CHECK_STR(
        changes(&a),
        "[" CHANGE("A", "a \\\"b") ", " CHANGE("D", "d") ", " CHANGE("A", "dir/x") ", " CHANGE(
            "M", "m") ", " CHANGE("A", "new") ", " CHANGE("D", "old") ", " CHANGE("A",
                                                                                  "u\\u00e4") "]");
    CHECK_STR(diff(&a, "m", 0), "{\"modified\": \"1\\nmore\", \"original\": \"1\"}");
    CHECK_STR(diff(&a, "d", 0), "{\"modified\": \"\", \"original\": \"2\"}");
    CHECK_STR(diff(&a, "dir/x", 0), "{\"modified\": \"\", \"original\": \"\"}");
    CHECK_STR(diff(&a, aes_path(&a, "m"), 0), "{\"modified\": \"1\\nmore\", \"original\": \"1\"}");
    aes_close(&a);
}

AES_TEST(git_panel_counts_from_the_remote)
{
    struct aes a;

    open_in(&a, program);
    sh(&a, "git init -q --bare ../up; git clone -q ../up seed 2>&1; cd seed; echo 1 > f\n"
           "git add f; git commit -qm one; git push -q origin HEAD:main; cd ..; rm -rf seed\n"
           "git -C ../up symbolic-ref HEAD refs/heads/main; git clone -q ../up r; mv r/.git r/f .\n"
           "rmdir r\n");
    CHECK_STR(changes(&a), "[]");
    sh(&a, "echo 2 > f; git commit -qam two\n"); /* not pushed: changed since origin/main */
    CHECK_STR(changes(&a), "[" CHANGE("M", "f") "]");
    CHECK_STR(diff(&a, "f", 0), "{\"modified\": \"2\", \"original\": \"1\"}");
    sh(&a, "git checkout -qb side; echo 3 > g; git add g; git commit -qm g\n"); /* no upstream */
    CHECK_STR(changes(&a), "[" CHANGE("M", "f") ", " CHANGE("A", "g") "]");
    sh(&a, "git push -q origin side; echo 4 > g\n"); /* its own branch is nearer */
    CHECK_STR(changes(&a), "[" CHANGE("M", "g") "]");
    sh(&a, "git checkout -q --detach\n"); /* then from the remote's default branch */
    CHECK_STR(changes(&a), "[" CHANGE("M", "f") ", " CHANGE("A", "g") "]");
    sh(&a, "git checkout -q side; git update-ref -d refs/remotes/origin/side\n"
           "git update-ref -d refs/remotes/origin/main; git remote set-head origin -d\n");
    CHECK_STR(changes(&a), /* nothing of the remote is known: all is new */
              "[" CHANGE("A", "f") ", " CHANGE("A", "g") "]");
    aes_close(&a);
}

AES_TEST(git_panel_tells_repositories_apart)
{
    struct aes a;

    open_in(&a, program);
    sh(&a, "git init -q; git init -q lib; cd lib; echo 1 > x; git add x; git commit -qm x; cd ..\n"
           "echo 1 > library.c; git add library.c; git commit -qm one\n"
           "git -c protocol.file.allow=always submodule --quiet add ./lib mod 2>&1\n"
           "git commit -qm mod; git init -q bare-of-commits\n"
           "echo 2 > lib/x; echo 2 > mod/x; echo 2 > library.c; : > bare-of-commits/y\n");
    CHECK_STR(changes(&a),
              "[" CHANGE("M", "lib/x") ", " CHANGE("M", "library.c") ", " CHANGE("M", "mod/x") "]");
    CHECK_STR(diff(&a, "lib/x", 0), "{\"modified\": \"2\", \"original\": \"1\"}");
    CHECK_STR(diff(&a, "mod/x", 0), "{\"modified\": \"2\", \"original\": \"1\"}");
    CHECK_STR(diff(&a, "library.c", 0), "{\"modified\": \"2\", \"original\": \"1\"}");
    aes_close(&a);
}

AES_TEST(git_panel_refuses_what_it_cannot_show)
{
    struct aes a;

    open_in(&a, program);
    sh(&a, "git init -q; : > e; git add e; git commit -qm e\n"
           "printf '\\377\\376\\0' > bin; head -c 1048577 /dev/zero | tr '\\0' x > big\n"
           "head -c 1048576 /dev/zero | tr '\\0' x > fits\n");
    CHECK_HAS(diff(&a, "bin", 1), "not text");
    CHECK_HAS(diff(&a, "big", 1), "larger than 1 MiB");
    CHECK_INT(diff(&a, "fits", 0).len, 1048576 + 32);
    CHECK_HAS(diff(&a, "/etc/hostname", 1), "not in a repository");
    aes_put(&a, "../bin/git", STR("#!/bin/sh\nexit 127\n")); /* as if there were none */
    CHECK_INT(chmod(aes_text(&a, "%s/bin/git", test_dir()), 0755), 0);
    CHECK_STR(changes(&a), "[]");
    CHECK_STR(diff(&a, "e", 0), "{\"modified\": \"\", \"original\": \"\"}");
    aes_close(&a);
}

AES_TEST(git_panel_answers_in_other_ways_it_is_asked)
{
    struct aes a;

    open_in(&a, program);
    sh(&a, "mkdir 's p'; cd 's p'; git init -q; : > e; git add e; git commit -qm e; echo 1 > e\n");
    CHECK_STR(panel_in(&a, a.dir, "cd \\'s p\\' && " SCRIPTS "git_changes.py", 0),
              "[" CHANGE("M", "e") "]");
    aes_run_plain(&a, "cd 's p'");
    struct run_answer r = aes_run_plain(&a, SCRIPTS "git_changes.py"); /* in the default shell */
    CHECK_STR(r.content, "[" CHANGE("M", "e") "]");
    CHECK_STR(r.suffix, "\n[The command completed with exit code 0.]");
    CHECK_STR(r.command, SCRIPTS "git_changes.py");
    CHECK_STR(r.username, a.user);
    CHECK_HAS(r.python, "/bin/python");
    CHECK_STR(panel_in(&a, aes_path(&a, "s p"), "git branch --show-current", 0), "main");
    aes_close(&a);
}

AES_TEST(git_panel_lists_very_many_changes)
{
    struct aes a;

    open_in(&a, program);
    sh(&a, "git init -q; : > e; git add e; git commit -qm e; mkdir many; cd many\n"
           "seq -f 'a-file-with-a-name-%06g' 20000 | xargs touch\n");
    struct json *list = aes_json(&a, changes(&a));
    CHECK_INT(list->count, 20000);
    CHECK_STR(json_get_str(json_at(list, 19999), "path", STR("")),
              "many/a-file-with-a-name-020000");
    aes_close(&a);
}
