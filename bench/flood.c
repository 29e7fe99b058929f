// SPDX-License-Identifier: Apache-2.0
/* flood — a command that prints 100 MB, through pty, terminal model and HTTP; beside a reader of
 * the same kind of pty that does nothing, and beside tmux. `flood MB` for other sizes.
 *
 * The guest's peak memory is measured from before the flood: what it keeps is bounded, whatever is
 * printed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kit/kit.h"

#define ROUNDS   3
#define LINE     "The quick brown fox jumps over the lazy dog; 0123456789 times, or so they say.\n"
#define RSS_ROOM 16384 /* KB: more than every limit of a shell together */

static char file[128];

static void make_file(const char *dir, size_t mb)
{
    snprintf(file, sizeof file, "%s/flood", dir);
    FILE *f = fopen(file, "we");
    for (size_t n = 0; f && n < mb * 1000000; n += sizeof LINE - 1)
        fputs(LINE, f);
    if (!f || fclose(f))
        kit_die(file);
}

static double read_ms(void)
{
    static char piece[64 << 10];
    const char *const argv[] = {"/bin/cat", file, NULL};
    pid_t pid;
    double start = kit_now_ms();
    int master = kit_pty(argv, &pid);

    while (read(master, piece, sizeof piece) > 0) /* EIO when its last process has gone */
        ;
    waitpid(pid, NULL, 0);
    close(master);
    return kit_now_ms() - start;
}

static double guest_ms(struct kit_guest *g)
{
    char command[200];

    snprintf(command, sizeof command, "cat %s", file);
    double start = kit_now_ms();
    kit_run(g, command, 600);
    return kit_now_ms() - start;
}

static double tmux_ms(void)
{
    char command[600];

    snprintf(command, sizeof command,
             "tmux -L bench-flood-%d new-session -d -x 1000 -y 1000 "
             "'cat %s; tmux -L bench-flood-%d wait-for -S done; sleep 60' && "
             "tmux -L bench-flood-%d wait-for done",
             (int)getpid(), file, (int)getpid(), (int)getpid());
    double start = kit_now_ms();
    if (system(command))
        kit_die("tmux");
    double ms = kit_now_ms() - start;
    snprintf(command, sizeof command, "tmux -L bench-flood-%d kill-server", (int)getpid());
    if (system(command))
        kit_die("tmux");
    return ms;
}

int main(int argc, char **argv)
{
    struct kit_series bare = {0}, ours = {0}, tmux = {0};
    size_t mb = argc > 1 ? (size_t)atoi(argv[1]) : 100;
    struct kit_guest g;

    kit_guest_start(&g);
    make_file(g.dir, mb);
    long before = kit_status_kb(g.pid, "VmRSS");
    for (int i = 0; i < ROUNDS; i++) {
        kit_add(&bare, read_ms());
        kit_add(&ours, guest_ms(&g));
        kit_add(&tmux, tmux_ms());
    }
    long grown = kit_status_kb(g.pid, "VmHWM") - before;
    kit_guest_stop(&g);
    printf("  %zu MB of output\n", mb);
    double none = kit_print("a reader that does nothing", &bare);
    double guest = kit_print("run through HTTP", &ours);
    double other = kit_print("tmux", &tmux);
    kit_at_least("speed to the reader", none / guest, 0.7, "x");
    kit_at_least("speed to tmux", other / guest, 2, "x");
    kit_at_most("memory it grew by", (double)grown, RSS_ROOM, " KB");
    printf("bench/flood: %.0f MB/s, %.2fx a reader that does nothing, %.1fx tmux, +%ld KB\n",
           (double)mb * 1000 / guest, none / guest, other / guest, grown);
    return 0;
}
