// SPDX-License-Identifier: Apache-2.0
/* bait.c — see escape.h: what lies about on the host while the probe looks for it. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
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
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
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
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0);
    CHECK(type != SOCK_STREAM || listen(fd, 64) == 0);
    CHECK_INT(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

/* In the victim: what it shares with the test, and where it answers. */
static struct {
    struct victim_page *page;
    int answer;
} self;

static void on_signal(int sig)
{
    if (sig == VICTIM_ASKED)
        (void)!write(self.answer, "", 1);
    else
        self.page->came[sig] = 1;
}

static _Noreturn void be_victim(uid_t uid, const char *name)
{
    struct sigaction act = {.sa_handler = on_signal};
    sigset_t none;

    if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
        _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 1);
    prctl(PR_SET_NAME, name);
    sigfillset(&act.sa_mask); /* the lower number first, so asked is answered last */
    sigemptyset(&none);
    for (int sig = VICTIM_KILL; sig <= VICTIM_ASKED; sig++)
        sigaction(sig, &act, NULL);
    on_signal(VICTIM_ASKED);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (;;)
        pause();
}

/* A process that does nothing but note its signals; it dies with us at the latest. */
static void lay_victim(struct escape_bait *b, uid_t uid)
{
    int answer[2];
    char byte;

    b->page =
        mmap(NULL, sizeof *b->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(b->page != MAP_FAILED && pipe2(answer, O_CLOEXEC) == 0);
    snprintf(b->page->secret, sizeof b->page->secret, "%s", b->secrets[0]);
    b->victim = fork();
    if (b->victim == 0) {
        self.page = b->page;
        self.answer = answer[1];
        be_victim(uid, b->secrets[1]);
    }
    close(answer[1]);
    b->asked = answer[0];
    CHECK(b->victim > 0 && read(b->asked, &byte, 1) == 1);
    CHECK_INT(sched_getaffinity(b->victim, sizeof b->cpus, &b->cpus), 0);
    tell(b, "VICTIM=%d", (int)b->victim);
    tell(b, "PAGE=%lx", (unsigned long)b->page);
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
    b->pty = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    CHECK(b->pty >= 0 && grantpt(b->pty) == 0 && unlockpt(b->pty) == 0);
    CHECK_INT(ptsname_r(b->pty, b->pts, sizeof b->pts), 0);
    CHECK_INT(chmod(b->pts, 0666), 0);
    b->slave = open(b->pts, O_RDWR | O_NOCTTY | O_CLOEXEC); /* or the terminal would hang up */
    CHECK(b->slave >= 0);
    tell(b, "PTS=%s", b->pts);
}

/* The first address in it, as the probe would print it; one that nobody prints if there is none. */
static void learn_address(const char *path, char secret[40])
{
    FILE *f = fopen(path, "re");
    char line[256];

    snprintf(secret, 40, "no address in %.20s", path);
    while (f && fgets(line, sizeof line, f))
        if (strtoull(line, NULL, 16) > 0xffff) {
            snprintf(secret, 40, "%016llx", strtoull(line, NULL, 16));
            break;
        }
    if (f)
        fclose(f);
}

static void learn_secrets(struct escape_bait *b)
{
    char token[RNG_HEX_LEN + 1];

    _Static_assert(sizeof token <= sizeof b->secrets[0], "a secret is a token");
    rng_hex(rng_system(), b->secrets[0]);
    rng_hex(rng_system(), token);
    snprintf(b->secrets[1], 16, "v%.14s", token);
    learn_address("/proc/kallsyms", b->secrets[2]);
    learn_address("/proc/iomem", b->secrets[3]);
}

void escape_bait_lay(struct escape_bait *b, uid_t uid)
{
    char token[RNG_HEX_LEN + 1], name[64], path[400];
    unsigned port;

    *b = (struct escape_bait){.count = 0};
    buf_init(&b->settings, 1u << 20);
    learn_secrets(b);
    rng_hex(rng_system(), token);
    snprintf(b->dir, sizeof b->dir, "%s/bait", test_dir());
    CHECK(mkdir(b->dir, 0777) == 0 && chmod(b->dir, 0777) == 0);
    snprintf(b->file, sizeof b->file, "%s/secret", b->dir);
    lay_file(b->file, b->secrets[0]);
    tell(b, "FILE=%s", b->file);
    snprintf(name, sizeof name, "croft-bait-%.16s", token);
    snprintf(b->dev_shm, sizeof b->dev_shm, "/dev/shm/%.32s", name);
    lay_file(b->dev_shm, b->secrets[0]);
    tell(b, "DEVSHM=%s", name);
    b->abstract = lay_unix(name, true);
    tell(b, "ABSTRACT=%s", name);
    snprintf(path, sizeof path, "%s/sock", b->dir);
    b->path = lay_unix(path, false);
    tell(b, "SOCKET=%s", path);
    b->tcp = lay_inet(SOCK_STREAM, &port);
    tell(b, "TCP=%u", port);
    b->udp = lay_inet(SOCK_DGRAM, &port);
    tell(b, "UDP=%u", port);
    lay_victim(b, uid);
    lay_sysv(b);
    leave_to_janitor(b);
    lay_pty(b);
    tell(b, "WATCHED=1");
    CHECK_INT(stat(b->file, &b->as_laid), 0);
    escape_settings(&b->settings);
}

void escape_bait_take_up(struct escape_bait *b)
{
    const int fds[] = {b->abstract, b->path, b->tcp, b->udp, b->pty, b->slave, b->asked};

    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        close(fds[i]);
    kill(b->victim, SIGKILL);
    CHECK_INT(waitpid(b->victim, NULL, 0), b->victim);
    munmap(b->page, sizeof *b->page);
    buf_done(&b->settings);
    close(b->life);
    CHECK_INT(waitpid(b->janitor, NULL, 0), b->janitor);
}
