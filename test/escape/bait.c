// SPDX-License-Identifier: Apache-2.0
/* bait.c — see escape.h: what lies about on the host while the probe looks for it. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "test/escape/escape.h"
#include "test/test.h"

#define VICTIM_NAME "croft-victim"

static void tell(struct escape_bait *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void tell(struct escape_bait *b, const char *fmt, ...)
{
    va_list args;

    CHECK(b->count < ESCAPE_WORDS);
    va_start(args, fmt);
    vsnprintf(b->text[b->count], sizeof b->text[0], fmt, args);
    va_end(args);
    b->words[b->count] = b->text[b->count];
    b->words[++b->count] = NULL;
}

static void lay_file(const char *path, const char *token)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    CHECK(fd >= 0 && write(fd, token, RNG_HEX_LEN) == RNG_HEX_LEN);
    close(fd);
}

static int lay_unix(const char *path, bool abstract)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + abstract + strlen(path));

    CHECK(fd >= 0 && strlen(path) < sizeof at.sun_path - 1);
    memcpy(at.sun_path + abstract, path, strlen(path));
    CHECK(bind(fd, (struct sockaddr *)&at, len) == 0 && listen(fd, 64) == 0);
    if (!abstract)
        CHECK_INT(chmod(path, 0666), 0);
    return fd;
}

static int lay_inet(int type, unsigned *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0);
    CHECK(type != SOCK_STREAM || listen(fd, 64) == 0);
    CHECK_INT(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* A process that does nothing; it dies with us at the latest. */
static pid_t lay_victim(uid_t uid)
{
    int up[2];
    char byte;

    CHECK_INT(pipe2(up, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
            _exit(1);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_DUMPABLE, 1);
        prctl(PR_SET_NAME, VICTIM_NAME);
        close(up[0]);
        close(up[1]);
        for (;;)
            pause();
    }
    close(up[1]);
    CHECK(pid > 0 && read(up[0], &byte, 1) == 0);
    close(up[0]);
    return pid;
}

static void clear_away(const struct escape_bait *b)
{
    unlink(b->dev_shm);
    shmctl(b->sysv_shm, IPC_RMID, NULL);
    msgctl(b->sysv_msg, IPC_RMID, NULL);
    semctl(b->sysv_sem, 0, IPC_RMID);
}

/* What outlives a process is cleared away by another one, so that a failed test leaves nothing. */
static void leave_to_janitor(struct escape_bait *b)
{
    int life[2];
    char byte;

    CHECK_INT(pipe2(life, O_CLOEXEC), 0);
    b->janitor = fork();
    CHECK(b->janitor >= 0);
    if (b->janitor == 0) {
        close(life[1]);
        if (read(life[0], &byte, 1) == 0)
            clear_away(b);
        _exit(0);
    }
    CHECK_INT(setpgid(b->janitor, 0), 0); /* out of the group that the runner ends with us */
    close(life[0]);
    b->life = life[1];
}

static void lay_sysv(struct escape_bait *b)
{
    key_t key = (key_t)(getpid() << 8 | 0x5e);

    b->sysv_shm = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);
    b->sysv_msg = msgget(key, IPC_CREAT | IPC_EXCL | 0666);
    b->sysv_sem = semget(key, 1, IPC_CREAT | IPC_EXCL | 0666);
    tell(b, "SHM=%d", (int)key);
}

static void lay_pty(struct escape_bait *b)
{
    b->pty = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    CHECK(b->pty >= 0 && grantpt(b->pty) == 0 && unlockpt(b->pty) == 0);
    CHECK_INT(ptsname_r(b->pty, b->pts, sizeof b->pts), 0);
    CHECK_INT(chmod(b->pts, 0666), 0);
    struct stat st;
    CHECK_INT(stat(b->pts, &st), 0);
    tell(b, "PTS=%s", b->pts);
    tell(b, "PTS_DEV=%lu", (unsigned long)st.st_dev);
}

void escape_bait_lay(struct escape_bait *b, uid_t uid)
{
    char token[RNG_HEX_LEN + 1], name[64], path[400];
    unsigned port;

    *b = (struct escape_bait){.count = 0};
    rng_hex(rng_system(), token);
    snprintf(b->file, sizeof b->file, "%s/host-secret", test_dir());
    lay_file(b->file, token);
    tell(b, "FILE=%s", b->file);
    tell(b, "SECRET=%s", token);
    snprintf(name, sizeof name, "croft-bait-%.16s", token);
    snprintf(b->dev_shm, sizeof b->dev_shm, "/dev/shm/%.32s", name);
    lay_file(b->dev_shm, token);
    tell(b, "DEVSHM=%s", name);
    b->abstract = lay_unix(name, true);
    tell(b, "ABSTRACT=%s", name);
    snprintf(path, sizeof path, "%s/bait.sock", test_dir());
    b->path = lay_unix(path, false);
    tell(b, "SOCKET=%s", path);
    b->tcp = lay_inet(SOCK_STREAM, &port);
    tell(b, "TCP=%u", port);
    b->udp = lay_inet(SOCK_DGRAM, &port);
    tell(b, "UDP=%u", port);
    b->victim = lay_victim(uid);
    tell(b, "VICTIM=%d", (int)b->victim);
    tell(b, "VICTIM_NAME=%s", VICTIM_NAME);
    lay_sysv(b);
    leave_to_janitor(b);
    lay_pty(b);
}

void escape_bait_take_up(struct escape_bait *b)
{
    const int fds[] = {b->abstract, b->path, b->tcp, b->udp, b->pty};

    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        close(fds[i]);
    kill(b->victim, SIGKILL);
    CHECK_INT(waitpid(b->victim, NULL, 0), b->victim);
    close(b->life);
    CHECK_INT(waitpid(b->janitor, NULL, 0), b->janitor);
}
