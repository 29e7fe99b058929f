// SPDX-License-Identifier: Apache-2.0
/* escape.h — the corpus of attempts, run outside as a control and inside as a test. */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/str.h"

#define ESCAPE_WORDS    20
#define ESCAPE_ATTEMPTS 120 /* with a control that is open here: fewer, and the corpus is blind */

/* Things of the host that nobody inside may reach, and the words that tell the probe of them. */
struct escape_bait {
    char file[300], dev_shm[64], pts[64], text[ESCAPE_WORDS][340];
    const char *words[ESCAPE_WORDS + 1]; /* "FILE=…", …; ends with NULL */
    unsigned count;
    int sysv_shm, sysv_msg, sysv_sem;
    int abstract, path, tcp, udp, pty; /* sockets that listen, and a terminal */
    pid_t victim, janitor;
    int life; /* while it is open the janitor waits */
};
/* uid: whose process the victim is. */
void escape_bait_lay(struct escape_bait *b, uid_t uid);
void escape_bait_take_up(struct escape_bait *b);

/* The probe alone in a directory, which becomes the workspace; anybody may write there. */
void escape_place_probe(char dir[300]);

struct escape_line {
    struct str name, verdict, note; /* "4-calls/mount", "refused", … */
};
/* Takes the next line off *text; false at "end". Fails the test when the probe broke off. */
bool escape_next(struct str *text, struct escape_line *ret_line);

/* What the control prints, into *out. */
void escape_control(const struct escape_bait *b, struct buf *out);
/* How many doors that are open outside are not shut inside; says which. granted: names that may be
 * open; ends with NULL. */
unsigned escape_compare(struct str control, struct str inside, const char *const *granted,
                        unsigned *ret_doors);
/* Holds what a probe printed inside against the control; fails the test if any is open.
 * Gives how many attempts had an open door outside. */
unsigned escape_judge(struct str control, struct str inside);
