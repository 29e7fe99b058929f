// SPDX-License-Identifier: Apache-2.0
/* escape.h — the corpus of attempts, run outside as a control and inside as a test. */
#pragma once

#include <sched.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/str.h"
#include "test/escape/watch.h"

#define ESCAPE_WORDS    20
#define ESCAPE_ATTEMPTS 120 /* with a control that is open here: fewer, and the corpus is blind */

/* Things of the host that nobody inside may reach, and the words that tell the probe of them. */
struct escape_bait {
    char dir[280], file[300], dev_shm[64], pts[64], text[ESCAPE_WORDS][340];
    const char *words[ESCAPE_WORDS + 1]; /* "FILE=…", …; ends with NULL */
    unsigned count;
    char secrets[4][40]; /* never told: in files and memory, a name, addresses of the kernel */
    int sysv_shm, sysv_msg, sysv_sem;
    int abstract, path, tcp, udp, pty, slave; /* sockets that listen, and a terminal */
    pid_t victim, janitor;
    struct victim_page *page;
    int asked; /* the victim answers here */
    cpu_set_t cpus;
    struct stat as_laid;
    struct buf settings; /* of the host, when it was laid */
    int life;            /* while it is open the janitor waits */
};
/* For a test that is not in a mount namespace of its own yet, before it starts anything: the mounts
 * of other tests come and go. */
void escape_own_mounts(void);
/* uid: whose process the victim is. */
void escape_bait_lay(struct escape_bait *b, uid_t uid);
void escape_bait_take_up(struct escape_bait *b);
/* What somebody left there, a line each: the name of the row, or what is not as it was. Messages
 * are taken out; all else shows again the next time. */
void escape_bait_marks(struct escape_bait *b, struct buf *out);
/* Settings of the host that rows aim at, its names, its mounts. */
void escape_settings(struct buf *out);

/* The probe alone in a directory, which becomes the workspace; anybody may write there. */
void escape_place_probe(char dir[300]);

struct escape_line {
    struct str name, verdict, note; /* "4-calls/mount", "refused", … */
};
/* Takes the next line off *text; false at "end". Fails the test when the probe broke off. */
bool escape_next(struct str *text, struct escape_line *ret_line);

#define ESCAPE_TRACES (TRACE_LEFT + 1)
extern const char *const escape_traces[ESCAPE_TRACES]; /* a note begins: "by left: …" */

/* To be called before the probe is started: it waits until it is watched. */
struct watch *escape_watch(const struct escape_bait *b);
/* After its end, before anything else is started: the verdicts, a line each. What they are taken
 * from is what was seen and what was left; what the probe printed is looked through for secrets.
 * Fails the test when the host is not as it was or the probe was not shut in. */
void escape_verdicts(struct escape_bait *b, struct watch *w, struct str printed, struct buf *out);
/* The same of a probe outside. */
void escape_control(struct escape_bait *b, struct buf *out);
/* How many doors that are open outside are not shut inside; says which. granted: names that may be
 * open; ends with NULL. */
unsigned escape_compare(struct str control, struct str inside, const char *const *granted,
                        unsigned *ret_doors);
/* Holds the verdicts inside against the control's; fails the test if any is open.
 * Gives how many attempts had an open door outside. */
unsigned escape_judge(struct str control, struct str inside);
