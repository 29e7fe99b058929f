// SPDX-License-Identifier: Apache-2.0
/* term — rendering MB/s of plain text, a coloured log, progress bars and UTF-8, beside a scan that
 * does nothing and tmux, which renders the same plain text by `cat` in a pane when it is installed.
 * Pieces are 64 KB, as read from a pty at best. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "guest/term/term.h"

#define SIZE  (20u << 20)
#define PIECE (64u << 10)

static double seconds(void)
{
    return (double)clock_mono_ns(&clock_system) / 1e9;
}

/* The best of several: others share this machine. */
static double mb_per_s(void (*run)(struct str), struct str bytes)
{
    double best = 1e9;

    for (unsigned i = 0; i < 5; i++) {
        double start = seconds();
        run(bytes);
        double spent = seconds() - start;
        best = spent < best ? spent : best;
    }
    return (double)bytes.len / 1e6 / best;
}

static void render(struct str bytes)
{
    struct term *t = term_new(&(struct term_config){0});

    for (struct str piece; bytes.len; bytes = str_from(bytes, piece.len)) {
        piece = str_first(bytes, PIECE);
        term_feed(t, piece);
    }
    term_free(t);
}

static volatile unsigned sink;

static void scan(struct str bytes)
{
    unsigned sum = 0;

    for (size_t i = 0; i < bytes.len; i++)
        sum += (unsigned char)bytes.p[i] < ' ';
    sink = sum;
}

/* --- what is rendered --- */

static void put_plain(struct buf *b, unsigned i)
{
    buf_addf(b, "src/module/file_%u.c:%u: %.*s\r\n", i % 97, i, (int)(20 + i % 60),
             "the quick brown fox jumps over the lazy dog and then some more of the same");
}

static void put_coloured(struct buf *b, unsigned i)
{
    buf_addf(b,
             "\033[2m2026-11-15T10:%02u:%02u\033[0m \033[32m INFO\033[0m \033[1mserver\033[0m: "
             "request \033[36m%u\033[0m took \033[33m%u\033[39m ms\r\n",
             i / 60 % 60, i % 60, i, i % 977);
}

static void put_progress(struct buf *b, unsigned i)
{
    buf_addf(b, "\r\033[KDownloading %3u%% [%.*s>%*s]", i % 101, (int)(i % 41),
             "========================================", 40 - (int)(i % 41), "");
    if (i % 101 == 100)
        buf_add_cstr(b, "\r\n");
}

static void put_utf8(struct buf *b, unsigned i)
{
    buf_addf(b,
             "%u \xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xe2\x94\x82 na\xc3\xafve \xf0\x9f\x9a\x80 "
             "\xe2\x9c\x93 done\r\n",
             i);
}

static void fill(struct buf *b, void (*put)(struct buf *, unsigned))
{
    buf_init(b, 2 * (size_t)SIZE);
    for (unsigned i = 0; b->len < SIZE; i++)
        put(b, i);
}

/* --- tmux --- */

/* Time of a shell command, or a negative number. */
static double shell_seconds(const char *command)
{
    double start = seconds();

    return system(command) == 0 ? seconds() - start : -1; // NOLINT: a bench may
}

static double pane_seconds(const char *dir, const char *what)
{
    char command[512];

    snprintf(command, sizeof command,
             "cd %s && tmux -S s new-window -d 'stty raw -echo; %s; tmux -S s wait-for -S end' && "
             "tmux -S s wait-for end",
             dir, what);
    return shell_seconds(command);
}

/* MB/s of `cat` in a pane; 0: not to be had. Starting the pane is timed alone and taken off. */
static double tmux_mb_per_s(struct str bytes)
{
    char dir[] = "/tmp/croft-bench-XXXXXX", command[512];
    double best = 0;

    if (!mkdtemp(dir))
        return 0;
    snprintf(command, sizeof command, "%s/in", dir);
    FILE *f = fopen(command, "we");
    snprintf(command, sizeof command,
             "tmux -S %s/s -f /dev/null new-session -d -x 200 -y 50 'sleep 600'", dir);
    if (f && fwrite(bytes.p, 1, bytes.len, f) == bytes.len && fclose(f) == 0 &&
        shell_seconds(command) >= 0) {
        for (unsigned i = 0; i < 3; i++) {
            double idle = pane_seconds(dir, "true"), busy = pane_seconds(dir, "cat in");
            double speed = (double)bytes.len / 1e6 / (busy - idle);
            if (idle > 0 && busy > idle && speed > best)
                best = speed;
        }
    }
    snprintf(command, sizeof command, "tmux -S %s/s kill-server 2>/dev/null; rm -rf %s", dir, dir);
    shell_seconds(command);
    return best;
}

int main(void)
{
    struct buf plain, coloured, progress, utf8;

    fill(&plain, put_plain);
    fill(&coloured, put_coloured);
    fill(&progress, put_progress);
    fill(&utf8, put_utf8);
    double scanned = mb_per_s(scan, buf_str(&plain)), rendered = mb_per_s(render, buf_str(&plain));
    double colours = mb_per_s(render, buf_str(&coloured));
    printf("a scan that does nothing %.0f MB/s\n", scanned);
    printf("progress bars %.0f MB/s, UTF-8 %.0f MB/s\n", mb_per_s(render, buf_str(&progress)),
           mb_per_s(render, buf_str(&utf8)));
    double tmux = system("command -v tmux >/dev/null") == 0 // NOLINT: a bench may
                      ? tmux_mb_per_s(buf_str(&plain))
                      : 0;
    printf("tmux %.1f MB/s%s\n", tmux, tmux > 0 ? "" : " (not to be had)");
    printf("bench/term: plain %.0f MB/s, coloured %.0f MB/s, (%.1fx tmux)\n", rendered, colours,
           tmux > 0 ? rendered / tmux : 0);
    buf_done(&plain);
    buf_done(&coloured);
    buf_done(&progress);
    buf_done(&utf8);
    return 0;
}
