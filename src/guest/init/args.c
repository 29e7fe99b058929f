// SPDX-License-Identifier: Apache-2.0
/* args.c — the command line of pid 1. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/passwd.h"
#include "guest/init/init.h"
#include "guest/init/inner.h"
#include "guest/proc/env.h"
#include "guest/usage/usage.h"

#define EXIT_USAGE     2
#define EXIT_OURS      125 /* with --exec, as elsewhere: 125 ours, 126 not run, 127 not found */
#define EXIT_NOT_RUN   126
#define EXIT_NOT_FOUND 127

fallible init_parse_user(struct init_config *c, const char *text)
{
    const struct passwd_user *u = &c->account;

    TRY_WRAP(passwd_find(PASSWD_ETC, str_of(text), &c->account), "--user");
    c->has_user = true;
    c->user = (struct proc_user){
        .name = u->name, .home = u->home, .uid = u->uid, .gid = u->gid, .also = u->also};
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

static fallible parse_option(struct init_config *c, const char *name, const char *value)
{
    const struct {
        const char *name;
        int *to;
    } single[] = {{"--listen-fd", &c->listen_fd},   {"--ready-fd", &c->ready_fd},
                  {"--end-fd", &c->end_fd},         {"--connect-fd", &c->connect_fd},
                  {"--control-fd", &c->control_fd}, {"--memory-fd", &c->memory_fd}};

    if (!value)
        return err_new(ERR_INVALID, "%.80s needs a value", name);
    for (size_t i = 0; i < ARRAY_LEN(single); i++)
        if (strcmp(name, single[i].name) == 0)
            return fd_parse(name, value, single[i].to);
    if (strcmp(name, "--work-cgroup-fd") == 0)
        return add_fd(c->cgroup_fds, &c->cgroup_len, INIT_CGROUPS_MAX, name, value);
    if (strcmp(name, "--oom-fd") == 0)
        return add_fd(c->oom_fds, &c->oom_len, HELD_OOM_MAX, name, value);
    if (strcmp(name, "--user") == 0)
        return init_parse_user(c, value);
    if (strcmp(name, "--cwd") != 0)
        return err_new(ERR_INVALID, "unknown option '%.80s'", name);
    c->cwd = value;
    return NULL;
}

static fallible args_parse(struct init_config *c, int argc, char **argv)
{
    int i = 0;

    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool exec = strcmp(argv[i], "--exec") == 0, await = strcmp(argv[i], "--await") == 0;
        c->exec |= exec;
        c->await |= await;
        if (exec || await)
            continue;
        TRY(parse_option(c, argv[i], i + 1 < argc ? argv[i + 1] : NULL));
        i++;
    }
    if (c->await)
        return c->control_fd >= 0 ? NULL : err_new(ERR_INVALID, "--await needs --control-fd");
    if (i + 1 >= argc)
        return err_new(ERR_INVALID, "name what to run after --");
    c->argv = (const char *const *)argv + i + 1;
    if (!c->exec && (c->cwd || c->has_user))
        return err_new(ERR_INVALID, "--cwd and --user are for --exec");
    return NULL;
}

void init_drop_key(struct init_config *c)
{
    if (c->key.p != c->short_key)
        free((char *)c->key.p);
    c->key = (struct str){0};
}

/* The key goes to the server by another way, and does not show in /proc. */
void init_take_key(struct init_config *c, char **envp)
{
    static const char name[] = "SESSION_API_KEY=";

    for (; *envp; envp++) {
        if (strncmp(*envp, name, sizeof name - 1) != 0)
            continue;
        char *value = *envp + sizeof name - 1;
        size_t n = strnlen(value, HELD_DATA_MAX - 1);
        init_drop_key(c);
        c->key =
            str_n(memcpy(n < sizeof c->short_key ? c->short_key : mem_new(n + 1), value, n), n);
        explicit_bzero(value, strlen(value));
    }
}

static int args_trouble(struct err *e, int code)
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

/* The end of the processes is told before the kernel takes the namespaces apart. A fork under way
 * sees the signal and fails, so one round is enough. */
static void tell_end(const struct init_config *c, int code)
{
    const unsigned char byte = (unsigned char)code;

    if (c->end_fd < 0 || getpid() != 1)
        return;
    kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    if (write(c->end_fd, &byte, 1) < 0)
        return; /* our death will tell */
}

int init_main(int argc, char **argv, char **envp)
{
    struct init_config c = {.listen_fd = -1,
                            .connect_fd = -1,
                            .control_fd = -1,
                            .ready_fd = -1,
                            .end_fd = -1,
                            .memory_fd = -1};
    struct init in;
    int code;

    prctl(PR_SET_DUMPABLE, 0); /* or guest root takes our descriptors by pidfd_getfd */
    signal(SIGPIPE, SIG_IGN);
    if (argc == 1 && strcmp(argv[0], "--help") == 0) {
        usage_print(STDOUT_FILENO);
        return 0;
    }
    log_setup(STDERR_FILENO, LOG_WARN, LOG_AUTO);
    struct err *e = args_parse(&c, argc, argv);
    if (e)
        return args_trouble(e, c.exec ? EXIT_OURS : EXIT_USAGE);
    c.env = (const char *const *)envp;
    if (!c.exec)
        init_take_key(&c, envp);
    e = init_start(&in, &c);
    if (e) {
        code = start_code(&in, e);
        return args_trouble(e, code);
    }
    e = init_serve(&in, &code);
    if (!e)
        tell_end(&c, code);
    init_done(&in);
    return e ? args_trouble(e, EXIT_FAILURE) : code;
}
