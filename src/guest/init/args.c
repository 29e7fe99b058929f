// SPDX-License-Identifier: Apache-2.0
/* args.c — the command line of pid 1. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/passwd.h"
#include "guest/init/init.h"
#include "guest/init/inner.h"
#include "guest/proc/env.h"

#define EXIT_USAGE     2
#define EXIT_OURS      125 /* with --exec, as elsewhere: 125 ours, 126 not run, 127 not found */
#define EXIT_NOT_RUN   126
#define EXIT_NOT_FOUND 127

static const char usage[] =
    "usage: croft-guest init [OPTION ...] -- SERVER-ARGS\n"
    "       croft-guest init --exec [--cwd DIR] [--user NAME|UID[:GID]] [OPTION ...] -- COMMAND\n"
    "Pid 1 of a sandbox, or of a few processes elsewhere. N is an open descriptor:\n"
    "  --listen-fd N       the server's listening socket; SERVER-ARGS then need no address\n"
    "  --ready-fd N        gets one byte when the server listens\n"
    "  --connect-fd N      a listening socket for CONNECT 127.0.0.1:PORT\n"
    "  --control-fd N      a connection of the host: byte 'p' is answered 'P'\n"
    "  --work-cgroup-fd N  a cgroup of shells and commands, or its cgroup.procs; several\n"
    "  --oom-fd N          memory.events or memory.oom_control of that cgroup; several\n";

struct args {
    struct init_config config;
    struct passwd_user user;
};

static fallible parse_user(struct args *a, const char *text)
{
    struct str name = str_of(text), uid;
    uint64_t u, g;

    a->config.has_user = true;
    bool has_gid = str_cut(&name, ':', &uid);
    if (str_to_u64(uid, &u) && u < UINT32_MAX) {
        struct err *e = passwd_by_uid(PASSWD_ETC, (uid_t)u, &a->user);
        if (e) /* a number needs no name */
            a->user = (struct passwd_user){.uid = (uid_t)u, .gid = (gid_t)u};
        err_free(e);
    } else {
        TRY_WRAP(passwd_by_name(PASSWD_ETC, uid, &a->user), "--user");
    }
    if (has_gid && (!str_to_u64(name, &g) || g >= UINT32_MAX))
        return err_new(ERR_INVALID, "--user '%.80s': the group is not a number", text);
    if (has_gid)
        a->user.gid = (gid_t)g;
    a->config.user = (struct proc_user){
        .name = a->user.name, .home = a->user.home, .uid = a->user.uid, .gid = a->user.gid};
    return NULL;
}

static fallible add_fd(int *list, size_t *len, size_t max, const char *name, const char *value)
{
    if (*len == max)
        return err_new(ERR_INVALID, "%s: at most %zu", name, max);
    TRY(fd_parse(name, value, &list[*len]));
    ++*len;
    return NULL;
}

static fallible parse_option(struct args *a, const char *name, const char *value)
{
    struct init_config *c = &a->config;
    const struct {
        const char *name;
        int *to;
    } single[] = {{"--listen-fd", &c->listen_fd},
                  {"--ready-fd", &c->ready_fd},
                  {"--connect-fd", &c->connect_fd},
                  {"--control-fd", &c->control_fd}};

    if (!value)
        return err_new(ERR_INVALID, "%.80s needs a value", name);
    for (size_t i = 0; i < ARRAY_LEN(single); i++)
        if (strcmp(name, single[i].name) == 0)
            return fd_parse(name, value, single[i].to);
    if (strcmp(name, "--work-cgroup-fd") == 0)
        return add_fd(c->cgroup_fds, &c->cgroup_len, INIT_CGROUPS_MAX, name, value);
    if (strcmp(name, "--oom-fd") == 0)
        return add_fd(c->oom_fds, &c->oom_len, KEEP_OOM_MAX, name, value);
    if (strcmp(name, "--user") == 0)
        return parse_user(a, value);
    if (strcmp(name, "--cwd") != 0)
        return err_new(ERR_INVALID, "unknown option '%.80s'", name);
    c->cwd = value;
    return NULL;
}

static fallible parse(struct args *a, int argc, char **argv)
{
    int i = 0;

    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--exec") == 0) {
            a->config.exec = true;
            continue;
        }
        TRY(parse_option(a, argv[i], i + 1 < argc ? argv[i + 1] : NULL));
        i++;
    }
    if (i + 1 >= argc)
        return err_new(ERR_INVALID, "name what to run after --");
    a->config.argv = (const char *const *)argv + i + 1;
    if (!a->config.exec && (a->config.cwd || a->config.has_user))
        return err_new(ERR_INVALID, "--cwd and --user are for --exec");
    return NULL;
}

/* The key goes to the server by another way; here nobody finds it in /proc. */
static struct str take_key(char **envp, char key[KEEP_DATA_MAX])
{
    static const char name[] = "SESSION_API_KEY=";

    for (; *envp; envp++) {
        if (strncmp(*envp, name, sizeof name - 1) != 0)
            continue;
        char *value = *envp + sizeof name - 1;
        size_t n = strnlen(value, KEEP_DATA_MAX - 1);
        memcpy(key, value, n);
        explicit_bzero(value, strlen(value));
        return str_n(key, n);
    }
    return STR("");
}

static int trouble(struct err *e, int code)
{
    if (e)
        fd_print(STDERR_FILENO, "croft-guest: init: %s\n", err_text(e));
    err_free(e);
    return code;
}

static int start_code(const struct init *in, const struct err *e)
{
    if (!in->config->exec)
        return EXIT_FAILURE;
    if (!in->command_failed)
        return EXIT_OURS;
    return err_code(e) == ERR_NOT_FOUND || err_errno(e) == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
}

int init_main(int argc, char **argv, char **envp)
{
    char key[KEEP_DATA_MAX];
    struct args a = {.config = {.listen_fd = -1,
                                .connect_fd = -1,
                                .control_fd = -1,
                                .ready_fd = -1,
                                .program = "/proc/self/exe"}};
    struct init in;
    int code;

    prctl(PR_SET_DUMPABLE, 0); /* or guest root takes our descriptors by pidfd_getfd */
    signal(SIGPIPE, SIG_IGN);
    if (argc == 1 && strcmp(argv[0], "--help") == 0) {
        fd_print(STDOUT_FILENO, "%s", usage);
        return 0;
    }
    log_setup(STDERR_FILENO, LOG_WARN, LOG_AUTO);
    struct err *e = parse(&a, argc, argv);
    if (e)
        return trouble(e, a.config.exec ? EXIT_OURS : EXIT_USAGE);
    a.config.env = (const char *const *)envp;
    a.config.key = take_key(envp, key);
    e = init_start(&in, &a.config);
    if (e) {
        code = start_code(&in, e);
        return trouble(e, code);
    }
    e = init_serve(&in, &code);
    init_done(&in);
    return e ? trouble(e, EXIT_FAILURE) : code;
}
