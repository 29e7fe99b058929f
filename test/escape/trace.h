// SPDX-License-Identifier: Apache-2.0
/* trace.h — by what the host knows that an attempt of the probe succeeded; for both of them.
 *
 * The probe never says whether it got through. The host traces its system calls (watch.c) and sees
 * what the kernel answered, looks at what lies about for it (bait.c), and looks for its secrets in
 * what the probe printed. The probe only marks for the tracer which call is meant: a mark is a
 * getpid() with arguments, which nobody refuses. */
#pragma once

enum trace {
    TRACE_CALL,  /* the kernel's answer to the deed is not "not permitted" or "no such call" */
    TRACE_DONE,  /* the kernel did the deed */
    TRACE_MADE,  /* as TRACE_CALL, and the kernel has that family of sockets and that protocol */
    TRACE_OPEN,  /* the deed gave a descriptor, and not one of /dev/null; "text busy" is as good */
    TRACE_LIMIT, /* after the deed a hard limit of the process is higher than before */
    TRACE_TOLD,  /* something that only the host knows is in what was printed */
    TRACE_LEFT,  /* something of the host's was reached or is not as it was: see bait.c */
};

#define MARK_MAGIC 0x63726f66L
enum mark {
    MARK_NONE,
    MARK_WAIT, /* answered with MARK_MAGIC by who watches */
    MARK_ROW,  /* a row begins: its family, its name, its trace */
    MARK_STEP, /* the next call leads to the deed; where it fails there is none */
    MARK_DEED, /* the next call is the deed */
    MARK_CALM, /* calls of this process are not looked at any more: there are very many */
};

/* What the probe leaves where it got write access to a file that it may only read. */
#define TRACE_WRITTEN "WRITTEN-THROUGH"

/* A process of the host's, of which the probe knows number and the address of this page. */
enum { VICTIM_KILL = 40, VICTIM_QUEUE, VICTIM_THREAD, VICTIM_PIDFD, VICTIM_ASKED = 60 };
struct victim_page {
    char secret[64];
    unsigned char came[64]; /* by number of the signal */
    unsigned long traced, written;
};
#define VICTIM_NICE 3
#define VICTIM_IO   (2 << 13 | 7)
#define VICTIM_OPEN 77
