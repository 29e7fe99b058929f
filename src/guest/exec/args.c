// SPDX-License-Identifier: Apache-2.0
/* args.c — the command line of the action server: ours, and the one foreign clients send. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cfg.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/passwd.h"
#include "guest/exec/exec.h"
#include "guest/held/held.h"
#include "guest/exec/plugin.h"
#include "guest/usage/usage.h"
#include "loop/loop.h"

#define DEFAULT_SOFT_S 10
#define VIEWER_URL     "/tmp/oh-server-url"
#define PLUGINS_MAX    32
#define INIT_FD        "--init-fd" /* what pid 1 adds; see guest/held */

enum { EXIT_FAILED = 1, EXIT_MISUSE = 2, EXIT_NO_START = 3 };

struct args {
    struct exec_config config;
    const char *plugins[PLUGINS_MAX + 1];
    size_t plugins_len;
    bool no_browser, eval_env;
    bool looks; /* it is only to be known whether they are right */
    char *key;
    char listen[200], *cwd;
    struct held held;
};

static fallible parse_option(struct args *a, struct str name, const char *value)
{
    uint64_t n;

    if (!value)
        return err_new(ERR_INVALID, STR_FMT " needs a value", STR_ARG(str_first(name, 80)));
    if (str_eq(name, STR("--working-dir")))
        a->config.working_dir = str_of(value);
    else if (str_eq(name, STR("--username")))
        a->config.username = str_of(value);
    else if (str_eq(name, STR("--user")))
        a->config.user = str_of(value);
    else if (str_eq(name, STR("--git-user-name")))
        a->config.git_name = str_of(value);
    else if (str_eq(name, STR("--git-user-email")))
        a->config.git_email = str_of(value);
    else if (str_eq(name, STR("--viewer-url")))
        a->config.viewer_url = value;
    else if (str_eq(name, STR("--ready-fd")))
        return a->looks ? NULL : fd_parse("--ready-fd", value, &a->config.ready_fd);
    else if (str_eq(name, STR("--user-id"))) {
        if (!str_to_u64(str_of(value), &n) || n > INT_MAX)
            return err_new(ERR_INVALID, "--user-id '%.80s': a user's number is wanted, as 1000",
                           value);
        a->config.uid = (uid_t)n;
    } else if (str_eq(name, STR("--browsergym-eval-env"))) {
        a->eval_env = true;
    } else if (!str_eq(name, STR(INIT_FD))) {
        return err_new(ERR_INVALID, "unknown option '" STR_FMT "'; --help lists them",
                       STR_ARG(str_first(name, 80)));
    }
    return NULL;
}

static fallible parse_address(struct args *a, const char *text)
{
    uint64_t port;

    if (a->held.listen_fd >= 0) { /* whatever the line says: that one is there already */
        snprintf(a->listen, sizeof a->listen, "fd:%d", take_fd(&a->held.listen_fd));
    } else if (!text) {
        return err_new(ERR_INVALID, "name the port or address to listen on");
    } else if (!str_to_u64(str_of(text), &port)) {
        snprintf(a->listen, sizeof a->listen, "%s", text);
    } else {
        if (port > 65535)
            return err_new(ERR_INVALID, "port %.20s is over 65535", text);
        snprintf(a->listen, sizeof a->listen, "%s:%u",
                 a->config.session_key.len ? "0.0.0.0" : "127.0.0.1", (unsigned)port);
    }
    a->config.listen = str_of(a->listen);
    return NULL;
}

static fallible add_plugin(struct args *a, const char *name)
{
    if (a->plugins_len == PLUGINS_MAX)
        return err_new(ERR_INVALID, "--plugins: more than %d names", PLUGINS_MAX);
    a->plugins[a->plugins_len++] = name;
    return NULL;
}

static fallible args_parse(struct args *a, int argc, char **argv)
{
    const char *address = NULL;

    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--plugins") == 0) {
            while (i + 1 < argc && argv[i + 1][0] != '-')
                TRY(add_plugin(a, argv[++i]));
        } else if (strcmp(argv[i], "--enable-browser") == 0 ||
                   strcmp(argv[i], "--no-enable-browser") == 0) {
            a->no_browser = argv[i][2] == 'n';
        } else if (argv[i][0] == '-') {
            struct str value = str_of(argv[i]), name;
            bool equals = str_cut(&value, '=', &name);
            TRY(parse_option(a, name, equals ? value.p : i + 1 < argc ? argv[i + 1] : NULL));
            i += !equals;
        } else if (!address) {
            address = argv[i];
        } else {
            return err_new(ERR_INVALID, "'%.80s' is not wanted here", argv[i]);
        }
    }
    if (a->no_browser && a->eval_env)
        return err_new(ERR_INVALID, "Browser environment is not enabled in config, but "
                                    "browsergym_eval_env is set: leave one of them out");
    return parse_address(a, address);
}

static fallible read_timeout(struct args *a, const char *const *envp)
{
    const char *soft = cfg_env_get(envp, "NO_CHANGE_TIMEOUT_SECONDS");
    uint64_t seconds = DEFAULT_SOFT_S;

    if (soft && soft[0] && (!str_to_u64(str_of(soft), &seconds) || seconds == 0 || seconds > 86400))
        return err_new(ERR_INVALID,
                       "NO_CHANGE_TIMEOUT_SECONDS is '%.40s': a number from 1 to 86400 is wanted",
                       soft);
    a->config.soft_timeout_ms = seconds * 1000;
    return NULL;
}

static fallible read_env(struct args *a, const char *const *envp)
{
    const char *key = cfg_env_get(envp, "SESSION_API_KEY");

    TRY(read_timeout(a, envp));
    a->key = strdup(key ? key : "");
    if (!a->key)
        return err_no_memory();
    if (key) /* /proc shows a process's environment to all that its user runs */
        explicit_bzero((char *)key, strlen(key));
    a->config.session_key = a->held.session_key.len ? a->held.session_key : str_of(a->key);
    a->config.envp = envp;
    a->config.viewer_url = VIEWER_URL;
    a->config.plugins = a->plugins;
    return NULL;
}

/* First of all: pid 1 hands over what the others build on. */
static fallible open_held(struct args *a, int argc, char **argv)
{
    int fd;

    for (int i = 0; i + 1 < argc; i++) {
        if (strcmp(argv[i], INIT_FD) != 0)
            continue;
        TRY(fd_parse(INIT_FD, argv[i + 1], &fd));
        a->config.held = &a->held;
        TRY_WRAP(held_open(&a->held, fd), "pid 1");
        a->config.session_key = a->held.session_key;
        a->config.ready_fd = take_fd(&a->held.ready_fd);
        return NULL;
    }
    return NULL;
}

static int skip_name(int argc, char **argv)
{
    int skip = exec_foreign_args(argc, argv);

    return skip ? skip : argc && strcmp(argv[0], "action-server") == 0;
}

/* It is there, or can be made. by_everybody: any user may enter it. */
static bool is_usable_dir(struct str dir, bool by_everybody)
{
    char path[512];
    struct stat st;
    bool writable = access("/", W_OK) == 0;

    if (dir.len >= sizeof path)
        return false;
    memcpy(path, dir.len ? dir.p : "", dir.len);
    path[dir.len] = '\0';
    for (char *end = path; *end;) {
        end += 1 + strcspn(end + 1, "/");
        char after = *end;
        *end = '\0';
        if (stat(path, &st) < 0)
            return errno == ENOENT && writable;
        if (!S_ISDIR(st.st_mode) || (by_everybody && !(st.st_mode & S_IXOTH)))
            return false;
        writable = access(path, W_OK) == 0;
        *end = after;
    }
    return true;
}

static fallible args_look(struct args *a, const char *const *argv, const char *const *envp)
{
    struct passwd_user user;
    int argc = 0;

    while (argv[argc])
        argc++;
    int skip = skip_name(argc, (char **)argv);
    TRY(read_timeout(a, envp));
    TRY(args_parse(a, argc - skip, (char **)argv + skip));
    return a->config.user.len ? passwd_find(PASSWD_ETC, a->config.user, &user) : NULL;
}

bool exec_may_wait(const char *const *argv, const char *const *envp)
{
    static const char *const said[] = {"SANDBOX_GROUP_ID", "INIT_PLUGIN_TIMEOUT",
                                       "RUNTIME_MEMORY_MONITOR"};
    struct args a = {.looks = true, .held = {.listen_fd = 0}}; /* there is a socket already */
    own(err) e = args_look(&a, argv, envp);
    bool may =
        !e && is_usable_dir(a.config.working_dir, a.config.user.len || a.config.username.len);

    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        may = may && !cfg_env_get(envp, said[i]);
    for (size_t i = 0; i < a.plugins_len; i++)
        may = may && plugin_is_lazy(a.plugins[i]);
    return may;
}

static void set_log(const char *const *envp)
{
    enum log_level level = LOG_INFO;
    const char *word = cfg_env_get(envp, "LOG_LEVEL");

    if (word)
        log_level_parse(str_of(word), &level);
    log_setup(STDERR_FILENO, level, LOG_AUTO);
}

int exec_main(int argc, char **argv, const char *const *envp)
{
    struct args a = {.config = {.ready_fd = -1, .uid = EXEC_NO_UID}, .held = {.listen_fd = -1}};
    struct loop *loop = NULL;
    struct exec *exec = NULL;
    bool served = false;

    prctl(PR_SET_DUMPABLE, 0); /* our memory holds the key, and our descriptors are for no other
                                * process */
    if (argc == 1 && strcmp(argv[0], "--help") == 0) {
        usage_print(STDOUT_FILENO);
        return 0;
    }
    set_log(envp);
    signal(SIGPIPE, SIG_IGN);
    struct err *e = open_held(&a, argc, argv);
    if (!e)
        e = read_env(&a, envp);
    if (!e)
        e = args_parse(&a, argc, argv);
    if (!e && !a.config.working_dir.p) {
        a.cwd = getcwd(NULL, 0);
        if (a.cwd)
            a.config.working_dir = str_of(a.cwd);
        else
            e = err_sys("current directory");
    }
    if (!e)
        e = loop_new(&clock_system, &loop);
    if (!e)
        e = exec_new(loop, &exec);
    if (!e)
        e = exec_run(exec, &a.config, &served);
    exec_free(exec);
    loop_free(loop);
    free(a.key);
    free(a.cwd);
    if (a.config.held)
        held_done(&a.held);
    if (!e)
        return 0;
    int code = served ? EXIT_FAILED : err_code(e) == ERR_INVALID ? EXIT_MISUSE : EXIT_NO_START;
    fd_print(STDERR_FILENO, "action-server: %s\n", err_text(e));
    err_free(e);
    return code;
}

int exec_foreign_args(int argc, char **argv)
{
    for (int i = 0; i + 1 < argc; i++)
        if (strcmp(argv[i], "-m") == 0 &&
            strcmp(argv[i + 1], "openhands.runtime.action_execution_server") == 0)
            return i + 2;
    return 0;
}
