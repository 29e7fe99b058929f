// SPDX-License-Identifier: Apache-2.0
/* action — commands in the default shell through HTTP, one connection, one at a time; side by side
 * with the same line typed into a bare bash on a pty, and with tmux driven as the original drives
 * it (bench/peer/tmux.py). */
#include <stdio.h>
#include <stdlib.h>

#include "bench/kit/kit.h"

#define WARM     200
#define BUILTINS 4000
#define TRUES    1000
#define POLLS    5

static void time_guest(struct kit_guest *g, const char *command, int count, struct kit_series *s)
{
    for (int i = 0; i < count; i++) {
        double start = kit_now_ms();
        kit_run(g, command, 60);
        if (s)
            kit_add(s, kit_now_ms() - start);
    }
}

static void time_bare(int master, const char *command, int count, struct kit_series *s)
{
    for (int i = 0; i < count; i++) {
        double start = kit_now_ms();
        kit_type(master, command);
        kit_add(s, kit_now_ms() - start);
    }
}

static void time_tmux(struct kit_series *s)
{
    char command[64], line[64];

    snprintf(command, sizeof command, "python3 bench/peer/tmux.py %d", POLLS);
    FILE *f = popen(command, "re");
    while (f && fgets(line, sizeof line, f))
        kit_add(s, atof(line));
    if (!f || pclose(f) != 0 || s->count != POLLS)
        kit_die("tmux");
}

int main(void)
{
    const char *const bash[] = {"/bin/bash", "--noediting", "--norc", "-i", NULL};
    struct kit_series builtin = {0}, ours = {0}, bare = {0}, bare_builtin = {0}, polled = {0};
    struct kit_series row = {0}, bare_row = {0};
    struct kit_guest g;
    pid_t pid;
    int master = kit_pty(bash, &pid);

    kit_guest_start(&g);
    time_guest(&g, "echo hello", WARM, NULL);
    double start = kit_now_ms();
    time_guest(&g, "echo hello", BUILTINS, &builtin);
    double rate = BUILTINS / ((kit_now_ms() - start) / 1000);
    time_bare(master, "echo hello", BUILTINS / 4, &bare_builtin);
    for (int i = 0; i < TRUES; i++) { /* in turns: the machine's mood changes */
        time_guest(&g, "/bin/true", 1, &ours);
        time_bare(master, "/bin/true", 1, &bare);
    }
    /* Without a pause a command also waits for what both shells do after the one before. */
    time_guest(&g, "/bin/true", TRUES / 2, &row);
    time_bare(master, "/bin/true", TRUES / 2, &bare_row);
    time_tmux(&polled);
    kit_end(pid);
    kit_guest_stop(&g);
    double p50 = kit_print("builtin through HTTP", &builtin);
    kit_print("builtin in a bare bash", &bare_builtin);
    double ratio = kit_print("/bin/true through HTTP", &ours);
    ratio /= kit_print("/bin/true in a bare bash", &bare);
    double in_a_row = kit_print("/bin/true through HTTP, in a row", &row);
    in_a_row /= kit_print("/bin/true in a bare bash, in a row", &bare_row);
    double tmux = kit_print("builtin in tmux, polled", &polled);
    kit_at_most("builtin, p50", p50, 0.4, " ms");
    kit_at_most("/bin/true to a bare bash", ratio, 1.5, "x");
    printf("  %-34s %.3fx\n", "the same in a row", in_a_row);
    kit_at_least("faster than tmux, polled", tmux / p50, 100, "x");
    kit_at_least("builtins through one connection", rate, 2000, "/s");
    printf("bench/action: builtin p50 %.2f ms, true %.2fx bare bash, %.0fx tmux, %.0f/s\n", p50,
           ratio, tmux / p50, rate);
    return 0;
}
