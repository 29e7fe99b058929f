// SPDX-License-Identifier: Apache-2.0
/* A live action server as a way out: uploads and archives whose path changes under them, and
 * programs that make the runtime run itself (CVE-2019-5736). The verdict is the host's. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/contract/contract.h"
#include "test/native/kit.h"
#include "test/program.h"

#define LIMIT_S 240
#define ROUNDS  3

/* --- uploads --- */

/* One that climbs is refused as a whole; one that is plain races against the link. */
static const char make_zips[] =
    "import sys, zipfile\n"
    "out = sys.argv[2]\n"
    "names = [['ok'], ['d/in'], ['d/in', '../outside/up'], [out + '/abs'], ['link/in'], "
    "['rel/in']]\n"
    "for n, some in enumerate(names):\n"
    "    z = zipfile.ZipFile(f'{sys.argv[1]}{n}.zip', 'w')\n"
    "    for name in some: z.writestr(name, 'from outside')\n"
    "    if n == 4:\n"
    "        i = zipfile.ZipInfo('way'); i.external_attr = 0o120777 << 16; z.writestr(i, out)\n"
    "        z.writestr('way/in', 'from outside')\n"
    "    z.close()\n";
#define ZIPS 6

static void upload(const char *socket, const char *file, const char *query)
{
    char form[600], url[200];
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    snprintf(form, sizeof form, "file=@%s", file);
    snprintf(url, sizeof url, "http://localhost/upload_file?%s", query);
    CHECK_INT(
        program_run(ARGS("curl", "-s", "-m", "30", "--unix-socket", socket, "-F", form, url), &out),
        0);
}

static bool is_bare(const char *dir)
{
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    CHECK_INT(program_run(ARGS("ls", "-A", dir), &out), 0);
    return out.len == 0;
}

/* <dir>/ws is the workspace, <dir>/outside what the links lead to. */
static void race_uploads(struct contract *c)
{
    char ws[300], outside[300], file[300], zip[300], command[900];
    struct sbx_info info;
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    snprintf(ws, sizeof ws, "%s/ws", test_dir());
    snprintf(outside, sizeof outside, "%s/outside", test_dir());
    snprintf(file, sizeof file, "%s/file", test_dir());
    snprintf(zip, sizeof zip, "%s/f", test_dir());
    CHECK(mkdir(ws, 0777) == 0 && mkdir(outside, 0777) == 0);
    CHECK(chmod(ws, 0777) == 0 && chmod(outside, 0777) == 0);
    CHECK_INT(program_run(ARGS("sh", "-c", "echo from outside >\"$0\"", file), &out), 0);
    CHECK_INT(program_run(ARGS("python3", "-c", make_zips, zip, outside), &out), 0);
    struct sbx *s = contract_started(c, &(struct sbx_spec){.workspace = ws});
    snprintf(command, sizeof command,
             "mkdir real; ln -s '%s' link; ln -s ../outside rel;"
             "(while :; do ln -sfn '%s' d; ln -sfn ../outside d; ln -sfn real d; done)"
             " >/dev/null 2>&1 &",
             outside, outside);
    contract_command(c, s, NULL, command);
    sbx_inspect(s, &info);
    for (unsigned i = 0; i < ROUNDS * ZIPS; i++) {
        char nth[320];
        snprintf(nth, sizeof nth, "%s%u.zip", zip, i % ZIPS);
        upload(info.address.unix_path, file, "destination=/workspace/d");
        upload(info.address.unix_path, nth, "destination=/workspace&recursive=true");
    }
    upload(info.address.unix_path, file, "destination=/workspace/link");
    upload(info.address.unix_path, file, "destination=/workspace/rel");
    upload(info.address.unix_path, file, "destination=/workspace/../outside");
    CHECK(is_bare(outside));
    contract_command(c, s, NULL, "kill %1");
    contract_end(c, s);
    snprintf(command, sizeof command, "%s/ws/link/control", test_dir());
    CHECK_INT(program_run(ARGS("cp", file, command), &out), 0);
    CHECK(!is_bare(outside)); /* the door is there for who stands outside */
    snprintf(command, sizeof command, "%s/ws/ok", test_dir());
    CHECK_INT(access(command, F_OK), 0); /* and the archive was unpacked */
}

TEST_LIMIT(uploads_and_archives_do_not_follow_links_out, LIMIT_S)
{
    contract_run(&contract_native, 0, race_uploads);
}

TEST_LIMIT(an_ordinary_users_uploads_and_archives_do_not_follow_links_out, LIMIT_S)
{
    contract_run(&contract_native_user, 0, race_uploads);
}

/* --- the runtime's own program --- */

static const char take_over[] =
    "printf '#!/proc/self/exe\\n' >again; chmod 755 again; ./again; ./again init; echo ran $?\n"
    "for e in /proc/self/exe /proc/1/exe /proc/[0-9]*/exe; do\n"
    "  (exec 9>>$e) 2>/dev/null && case $(readlink $e) in *guest*) echo OPEN $e;; esac\n"
    "  (printf x >$e) 2>/dev/null && case $(readlink $e) in *guest*) echo OPEN $e;; esac\n"
    "done; true\n"
    "for f in $(sed 's/.*-//;/^\\//!d' /proc/1/maps /proc/self/maps 2>/dev/null | sort -u); do\n"
    "  case $f in *guest*) printf x >$f && echo OPEN $f;; esac\n"
    "done 2>/dev/null; true";

static void hash_guests(const char *state, struct buf *out)
{
    char script[4400];

    snprintf(script, sizeof script, "sha256sum '%s'/guest-*", state);
    buf_reset(out);
    CHECK_INT(program_run(ARGS("sh", "-c", script), out), 0);
}

/* Outside: who holds the program of a process by its link may write to it once nobody runs it. */
static void check_door_is_there(void)
{
    char copy[300], link[64];
    own_done(buf) out;

    buf_init(&out, 1u << 16);
    snprintf(copy, sizeof copy, "%s/sleep", test_dir());
    CHECK_INT(program_run(ARGS("cp", "/usr/bin/sleep", copy), &out), 0);
    pid_t pid = program_start(&(struct program){.argv = ARGS(copy, "1000")});
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    char target[300] = "";
    while (strcmp(target, copy) != 0) { /* it is exec'd in a moment */
        ssize_t n = readlink(link, target, sizeof target - 1);
        CHECK(n >= 0);
        target[n] = '\0';
        sched_yield();
    }
    own_fd held = open(link, O_PATH | O_CLOEXEC);
    CHECK(held >= 0);
    program_stop(pid);
    snprintf(link, sizeof link, "/proc/self/fd/%d", held);
    own_fd written = open(link, O_WRONLY | O_TRUNC | O_CLOEXEC);
    CHECK(written >= 0);
    CHECK_INT(write(written, "#!", 2), 2);
}

static void run_itself(struct contract *c)
{
    own_done(buf) before, after;

    buf_init(&before, 1u << 16);
    buf_init(&after, 1u << 16);
    struct sbx *s = contract_started(c, NULL);
    hash_guests(c->state_dir, &before);
    for (unsigned i = 0; i < 3; i++) {
        char text[2048];
        snprintf(text, sizeof text, "{ %s\n}", take_over);
        struct answer a = contract_command(c, s, NULL, text);
        CHECK(strstr(a.text, "ran ") != NULL);
        CHECK(strstr(a.text, "OPEN") == NULL);
    }
    hash_guests(c->state_dir, &after);
    CHECK_STR(buf_str(&after), buf_str(&before));
    contract_end(c, s);
    if (geteuid() == 0)
        check_door_is_there();
}

TEST_LIMIT(a_script_that_runs_the_runtime_itself_cannot_change_it, LIMIT_S)
{
    contract_run(&contract_native, 0, run_itself);
}

TEST_LIMIT(an_ordinary_users_script_that_runs_the_runtime_cannot_change_it, LIMIT_S)
{
    contract_run(&contract_native_user, 0, run_itself);
}

/* --- programs left for the host --- */

static void leave_set_id(struct contract *c)
{
    char ws[300], path[320], events[4096];
    struct stat st;

    snprintf(ws, sizeof ws, "%s/ws", test_dir());
    snprintf(path, sizeof path, "%s/id", ws);
    CHECK_INT(mkdir(ws, 0777), 0);
    struct sbx *s = contract_started(c, &(struct sbx_spec){.workspace = ws});
    CHECK_INT(contract_command(c, s, NULL, "cp /usr/bin/id id && chmod 6755 id").exit_code, 0);
    CHECK(stat(path, &st) == 0 && st.st_mode & S_ISUID); /* there is something to take off */
    own_fd fd = inotify_init1(IN_CLOEXEC);
    CHECK(inotify_add_watch(fd, ws, IN_ATTRIB) >= 0);
    CHECK_OK(contract_stop(c, s));
    while (stat(path, &st) == 0 && st.st_mode & (S_ISUID | S_ISGID))
        CHECK(read(fd, events, sizeof events) > 0);
    contract_end(c, s);
}

TEST_LIMIT(set_id_files_a_server_left_in_its_workspace_are_taken_off, LIMIT_S)
{
    contract_run(&contract_native, 0, leave_set_id);
}
