// SPDX-License-Identifier: Apache-2.0
#include "guest/exec/start.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cfg.h"
#include "base/fd.h"
#include "guest/held/held.h"
#include "test/test.h"

#define ENV(...)                                                                                   \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__ __VA_OPT__(, ) NULL                                                            \
    }

static char etc[300], homes[300], dir[300];

static void place(struct start *s)
{
    CHECK_INT(chmod(test_dir(), 0755), 0); /* whom it is for must get there */
    snprintf(etc, sizeof etc, "%s/etc", test_dir());
    snprintf(homes, sizeof homes, "%s/home", test_dir());
    snprintf(dir, sizeof dir, "%s/some/work", test_dir());
    mkdir(etc, 0755);
    int fd = open(etc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(fd_replace_file(fd, "passwd",
                             STR("root:x:0:0:root:/root:/bin/bash\n"
                                 "al:x:1400:1400::/home/al:/bin/zsh\n"
                                 "guest:x:65534:65534::/:/bin/false\n"),
                             0644));
    CHECK_OK(fd_replace_file(fd, "group", STR("root:x:0:\nstaff:x:50:\n"), 0644));
    close(fd);
    *s = (struct start){.place = {etc, homes}};
}

static struct exec_config config(const char *user, const char *const *env)
{
    return (struct exec_config){
        .working_dir = str_of(dir), .username = str_of(user), .uid = EXEC_NO_UID, .envp = env};
}

static void need_root(void)
{
    if (geteuid() != 0)
        SKIP("only root can be somebody else");
}

TEST(start_runs_commands_as_we_are_when_nobody_is_named)
{
    struct start s;
    struct stat st;

    place(&s);
    struct exec_config c = config("", ENV("HOME=/kept", "X=1"));
    CHECK_OK(start_all(&s, &c));
    CHECK(!s.other);
    CHECK_STR(cfg_env_get(s.env, "HOME"), "/kept");
    CHECK_STR(cfg_env_get(s.env, "X"), "1");
    CHECK_HAS(cfg_env_get(s.env, "PATH"), "/usr/bin:");
    CHECK(stat(dir, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 0777) == 0775);
    if (geteuid() == 0)
        CHECK_STR(cfg_env_get(s.env, "USER"), "root");
    start_done(&s);
}

TEST(start_is_the_user_that_is_there_whatever_number_was_asked_for)
{
    struct start s;
    struct stat st;

    need_root();
    place(&s);
    struct exec_config c = config("al", ENV("HOME=/root", "USER=root", "SHELL=x", "LOGNAME=root",
                                            "PATH=/p", "SANDBOX_GROUP_ID=staff"));
    c.uid = 4000;
    CHECK_OK(start_all(&s, &c));
    CHECK(s.other);
    CHECK_INT(s.user.uid, 1400);
    CHECK_INT(s.user.gid, 1400);
    CHECK_STR(cfg_env_get(s.env, "HOME"), "/home/al");
    CHECK_STR(cfg_env_get(s.env, "USER"), "al");
    CHECK_STR(cfg_env_get(s.env, "LOGNAME"), "al");
    CHECK_STR(cfg_env_get(s.env, "SHELL"), "/bin/zsh");
    CHECK_STR(cfg_env_get(s.env, "PATH"), "/p");
    size_t homes_seen = 0;
    for (const char *const *e = s.env; *e; e++)
        homes_seen += str_starts(str_of(*e), STR("HOME="));
    CHECK_INT(homes_seen, 1);
    CHECK(stat(dir, &st) == 0 && st.st_uid == 1400 && st.st_gid == 50);
    CHECK(!s.foreign_dir);
    start_done(&s);
}

TEST(start_keeps_in_path_what_the_user_may_enter)
{
    struct start s;
    char path[1000], secret[300], shared[300];
    gid_t groups[PASSWD_GROUPS_MAX];

    need_root();
    place(&s);
    CHECK_INT(chmod(test_dir(), 0755), 0);
    snprintf(secret, sizeof secret, "%s/secret", test_dir());
    snprintf(shared, sizeof shared, "%s/shared", test_dir());
    CHECK(mkdir(secret, 0700) == 0 && mkdir(shared, 0750) == 0 && chown(shared, 0, 1400) == 0);
    snprintf(path, sizeof path, "PATH=%s:/no/such/dir:%s/bin:%s:/usr/bin", secret, secret, shared);
    int before = getgroups(PASSWD_GROUPS_MAX, groups);
    struct exec_config c = config("al", ENV(path));
    CHECK_OK(start_all(&s, &c));
    snprintf(path, sizeof path, "/no/such/dir:%s:/usr/bin", shared);
    CHECK_STR(cfg_env_get(s.env, "PATH"), path);
    CHECK_INT(getgroups(PASSWD_GROUPS_MAX, groups), before);
    start_done(&s);
    CHECK(open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0); /* we are ourselves again */
}

TEST(start_makes_the_user_that_is_missing_and_gives_it_the_directory)
{
    struct start s;
    struct stat st;
    char file[400];

    need_root();
    place(&s);
    snprintf(file, sizeof file, "%s/some", test_dir());
    CHECK_INT(mkdir(file, 0755), 0);
    CHECK_INT(mkdir(dir, 0700), 0);
    snprintf(file, sizeof file, "%s/f", dir);
    close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    struct exec_config c = config("openhands", ENV());
    CHECK_OK(start_all(&s, &c));
    CHECK_INT(s.user.uid, 1000);
    CHECK_INT(s.user.gid, 0);
    CHECK(stat(file, &st) == 0 && st.st_uid == 1000 && (st.st_mode & 0777) == 0600);
    CHECK(stat(dir, &st) == 0 && st.st_uid == 1000 && (st.st_mode & 0777) == 0760);
    CHECK_OK(passwd_by_name(etc, STR("openhands"), &s.account));
    start_done(&s);
}

TEST(start_leaves_a_developers_machine_alone)
{
    struct start s;
    struct stat st;

    need_root();
    place(&s);
    struct exec_config c = config("nobody-here", ENV("USER=nobody-here", "HOME=/mine"));
    CHECK_ERR(start_all(&s, &c), ERR_INVALID, "--username 'nobody-here': there is no such user");
    start_done(&s);
    place(&s);
    c = config("al", ENV("USER=al", "HOME=/mine", "SU_TO_USER=false"));
    CHECK_OK(start_all(&s, &c));
    CHECK(!s.other);
    CHECK_STR(cfg_env_get(s.env, "HOME"), "/mine");
    CHECK(stat(dir, &st) == 0 && st.st_uid == 0);
    start_done(&s);
}

TEST(start_refuses_another_user_unless_root_asks)
{
    struct start s;

    need_root();
    place(&s);
    CHECK(chmod(test_dir(), 0777) == 0);
    CHECK(seteuid(65534) == 0);
    struct exec_config c = config("al", ENV());
    CHECK_ERR(start_all(&s, &c), ERR_INVALID, "--username 'al': only root can run commands");
    start_done(&s);
    s = (struct start){.place = {etc, homes}};
    c = config("guest", ENV());
    CHECK_OK(start_all(&s, &c)); /* that is us */
    CHECK(!s.other);
    start_done(&s);
    s = (struct start){.place = {etc, homes}};
    c = config("al", ENV("SU_TO_USER=false", "HOME=/mine"));
    CHECK_OK(start_all(&s, &c));
    CHECK(!s.other);
    CHECK_STR(cfg_env_get(s.env, "HOME"), "/mine");
    start_done(&s);
    CHECK(seteuid(0) == 0);
}

TEST(start_keeps_keys_from_what_it_starts)
{
    struct start s;

    place(&s);
    struct exec_config c =
        config("", ENV("SESSION_API_KEY=k", "OH_SESSION_API_KEYS_0=k", "OH_SECRET_KEY=k",
                       "CROFT_SERVER_API_KEY=k", "LISTEN_FDS=1", "OPENAI_API_KEY=theirs",
                       "CROFT_COLOR=1", "MY_KEY=mine"));
    CHECK_OK(start_all(&s, &c));
    for (const char *const *e = s.env; *e; e++)
        CHECK(!str_ends(str_of(*e), STR("=k")));
    CHECK(!cfg_env_get(s.env, "LISTEN_FDS"));
    CHECK_STR(cfg_env_get(s.env, "OPENAI_API_KEY"), "theirs");
    CHECK_STR(cfg_env_get(s.env, "MY_KEY"), "mine");
    CHECK_STR(cfg_env_get(s.env, "CROFT_COLOR"), "1");
    start_done(&s);
}

TEST(start_lets_git_work_in_a_directory_of_somebody_else)
{
    struct start s;

    need_root();
    place(&s);
    snprintf(etc, sizeof etc, "%s/some", test_dir());
    CHECK(mkdir(etc, 0755) == 0 && mkdir(dir, 0755) == 0 && chown(dir, 1234, 1234) == 0);
    struct exec_config c = config("", ENV());
    CHECK_OK(start_all(&s, &c));
    CHECK_STR(cfg_env_get(s.env, "GIT_CONFIG_COUNT"), "2");
    CHECK_STR(cfg_env_get(s.env, "GIT_CONFIG_VALUE_0"), dir);
    start_done(&s);
}

TEST(start_writes_the_git_user_once)
{
    struct start s;
    own_done(buf) text;
    char home[400], path[450];

    place(&s);
    snprintf(home, sizeof home, "HOME=%s", test_dir());
    snprintf(path, sizeof path, "%s/.gitconfig", test_dir());
    struct exec_config c = config("", ENV(home));
    c.git_name = STR("Al \"the\\pal\"");
    c.git_email = STR("al@example.com");
    for (int i = 0; i < 2; i++) {
        s = (struct start){.place = {etc, homes}};
        CHECK_OK(start_all(&s, &c));
        start_done(&s);
    }
    buf_init(&text, 4096);
    CHECK_OK(fd_read_file(path, &text));
    CHECK_STR(buf_str(&text),
              "[user]\n\tname = \"Al \\\"the\\\\pal\\\"\"\n\temail = \"al@example.com\"\n");
    s = (struct start){.place = {etc, homes}};
    c.git_name = STR("a\nb");
    CHECK_ERR(start_all(&s, &c), ERR_INVALID, "--git-user-name");
    start_done(&s);
}

TEST(start_names_the_argument_it_cannot_use)
{
    static const struct {
        const char *dir, *user, *group, *part;
    } rows[] = {
        {"relative", "", "", "--working-dir 'relative' must be an absolute path"},
        {"", "", "", "--working-dir '' must be"},
        {"/dev/null/x", "", "", "--working-dir '/dev/null/x': Not a directory"},
        {"/dev/null", "", "", "--working-dir '/dev/null': Not a directory"},
        {NULL, "root", "no-group", "SANDBOX_GROUP_ID 'no-group': a group's name or number"},
        {NULL, "Bad Name", "", "--username"},
    };
    char group[100];

    need_root();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct start s;
        place(&s);
        snprintf(group, sizeof group, "SANDBOX_GROUP_ID=%s", rows[i].group);
        struct exec_config c = config(rows[i].user, ENV(group));
        if (rows[i].dir)
            c.working_dir = str_of(rows[i].dir);
        struct err *e = start_all(&s, &c);
        CHECK(e != NULL);
        CHECK_HAS(err_text(e), rows[i].part);
        err_free(e);
        start_done(&s);
    }
}

TEST(start_fails_cleanly_whatever_call_fails)
{
    struct exec_config c;
    bool fired = true;

    need_root();
    for (unsigned n = 1; fired; n++) {
        struct start s;
        unsigned fds = test_open_fds();
        place(&s);
        c = config("openhands", ENV("A=1"));
        c.git_name = STR("Al");
        fault_at(n);
        struct err *e = start_all(&s, &c);
        fired = fault_fired();
        fault_at(0);
        if (e && err_code(e) != ERR_NO_MEMORY && !str_starts(str_of(err_text(e)), STR("-")) &&
            !str_starts(str_of(err_text(e)), STR("create the user")) &&
            !str_starts(str_of(err_text(e)), STR("look up the user")) &&
            !str_starts(str_of(err_text(e)), STR("make the env")))
            FAIL("call %u: the step is not named: %s", n, err_text(e));
        CHECK(fired || !e);
        err_free(e);
        start_done(&s);
        CHECK_INT(test_open_fds(), fds);
    }
}

/* With the test's directory as root, whatever process is the parent. */
static bool gets_a_name(struct held *held)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct start s = {.place = {"/etc", "/home"}};
        struct exec_config c = config("", ENV("HOME=/kept"));
        c.user = STR("10001");
        c.held = held;
        if (chroot(test_dir()) < 0 || chdir("/") < 0 || start_user(&s, &c) != NULL)
            _exit(2);
        _exit(s.account.name[0] != '\0');
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status);
}

TEST(start_makes_an_account_for_a_number_only_where_pid_1_says_that_it_may)
{
    struct start s;
    struct held outside = {.inside = false}, inside = {.inside = true};
    own_done(buf) text;
    char path[400];

    need_root();
    place(&s);
    CHECK(!gets_a_name(NULL));
    CHECK(!gets_a_name(&outside));
    buf_init(&text, 4096);
    snprintf(path, sizeof path, "%s/passwd", etc);
    CHECK_OK(fd_read_file(path, &text));
    CHECK(str_find(buf_str(&text), STR("10001")) < 0);
    CHECK(gets_a_name(&inside));
    CHECK_OK(fd_read_file(path, &text));
    CHECK_HAS(buf_str(&text), "openhands:x:10001:");
}
