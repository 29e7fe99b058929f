// SPDX-License-Identifier: Apache-2.0
/* doctor.c — see doctor.h. */
#include "host/doctor/doctor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/own.h"
#include "base/rng.h"
#include "host/run/run.h"

#define SELF "/run/croft-doctor" /* where croft itself is, inside */

/* The first three acts have a target out here. */
struct targets {
    char file[64], pid[16], port[16];
    int listener;
};

static fallible targets_make(struct targets *t)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;

    strcpy(t->file, "/tmp/croft-doctor-XXXXXX");
    own_fd fd = mkostemp(t->file, O_CLOEXEC);
    if (fd < 0)
        return err_sys("make a file to look for");
    snprintf(t->pid, sizeof t->pid, "%d", (int)getpid());
    t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (t->listener < 0 || bind(t->listener, (struct sockaddr *)&a, sizeof a) < 0 ||
        listen(t->listener, 8) < 0 || getsockname(t->listener, (struct sockaddr *)&a, &len) < 0)
        return err_sys("listen for a caller");
    snprintf(t->port, sizeof t->port, "%d", ntohs(a.sin_port));
    return NULL;
}

static void targets_done(struct targets *t)
{
    unlink(t->file);
    own_close_p(&t->listener);
}

static const char *target_of(const struct targets *t, size_t act)
{
    return act == 0 ? t->file : act == 1 ? t->pid : act == 2 ? t->port : "";
}

/* Lines "NAME yes" or "NAME no". */
static void read_lines(struct str text, struct doctor_report *r)
{
    struct str line, name;

    for (bool more = true; more;) {
        more = str_cut(&text, '\n', &line);
        if (!str_cut(&line, ' ', &name))
            continue;
        for (size_t i = 0; i < doctor_acts_len; i++)
            if (str_eq(name, str_of(doctor_acts[i].name)))
                r->acts[i] = str_eq(line, STR("no")) ? DOCTOR_HELD : DOCTOR_OPEN;
    }
}

static fallible try_inside(const char *state, const struct targets *t, struct doctor_report *r)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    const char *argv[] = {SELF, "doctor", "--inside", "--", t->file, t->pid, t->port, NULL};
    char exe[4096]; /* by name: what a process runs belongs to the namespace it was started in */
    struct run_mount self = {exe, SELF, NATIVE_RO};
    char id[RNG_HEX_LEN + 1], name[48];
    struct run_result result;
    int out[2];
    own_done(buf) text;

    buf_init(&text, 1u << 16);
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n < 0)
        return err_sys("find our own file");
    exe[n] = '\0';
    rng_hex(rng_system(), id);
    snprintf(name, sizeof name, "doctor-%.8s", id);
    if (pipe2(out, O_CLOEXEC) < 0)
        return err_sys("make a pipe");
    struct run_spec s = {.state = state,
                         .id = name,
                         .workdir = "/",
                         .user = "root",
                         .mounts = &self,
                         .mount_count = 1,
                         .argv = argv,
                         .env = env,
                         .in = -1,
                         .out = out[1],
                         .err = -1};
    struct err *e = run_sandbox(&s, &result);
    close(out[1]);
    if (!e)
        e = fd_read_all(out[0], &text);
    close(out[0]);
    TRY(e);
    r->start_ms = (double)result.start_ns / 1e6;
    read_lines(buf_str(&text), r);
    return NULL;
}

void doctor_examine(const char *state, struct doctor_report *ret_report)
{
    struct targets t = {.listener = -1};
    bool blind[16] = {false};

    *ret_report = (struct doctor_report){0};
    for (size_t i = 0; i < doctor_acts_len; i++)
        ret_report->acts[i] = DOCTOR_UNKNOWN;
    ret_report->trouble = targets_make(&t);
    for (size_t i = 0; i < doctor_acts_len && !ret_report->trouble; i++)
        blind[i] =
            doctor_acts[i].outside && !doctor_acts[i].outside(&doctor_acts[i], target_of(&t, i));
    if (!ret_report->trouble)
        ret_report->trouble = try_inside(state, &t, ret_report);
    for (size_t i = 0; i < doctor_acts_len; i++)
        if (blind[i] && ret_report->acts[i] == DOCTOR_HELD)
            ret_report->acts[i] = DOCTOR_UNKNOWN; /* it does not work out here either */
    targets_done(&t);
}

int doctor_inside(int argc, char **argv)
{
    for (size_t i = 0; i < doctor_acts_len; i++) {
        const char *arg = i < (size_t)argc ? argv[i] : "";
        bool could = doctor_acts[i].inside(&doctor_acts[i], arg);
        printf("%s %s\n", doctor_acts[i].name, could ? "yes" : "no");
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
