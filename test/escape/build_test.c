// SPDX-License-Identifier: Apache-2.0
/* The corpus in a sandbox that builds images: it has no Landlock and may make namespaces and mounts
 * of its own. What that grants is a list, by name; everything else of the corpus is shut, tried as
 * the sandbox's root and again as root of namespaces of its own. */
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/own.h"
#include "test/contract/contract.h"
#include "test/escape/escape.h"
#include "test/native/kit.h"

#define LIMIT_S 240

static void probe_with(struct contract *c, struct sbx *s, struct escape_bait *b, const char *before,
                       const char *dir, struct buf *out)
{
    own_done(buf) command;
    own_done(buf) printed;
    char path[400];

    buf_init(&command, 1u << 16);
    buf_init(&printed, 1u << 20);
    struct watch *w = escape_watch(b);
    buf_addf(&command, "%s ./escape-probe", before);
    for (unsigned i = 0; i < b->count; i++)
        buf_addf(&command, " '%s'", b->words[i]);
    buf_addf(&command, " >lines%c", '\0');
    struct answer a = contract_command(c, s, NULL, command.p);
    if (a.exit_code)
        FAIL("%s: %d %s", before, a.exit_code, a.text);
    snprintf(path, sizeof path, "%s/lines", dir);
    CHECK_OK(fd_read_file(path, &printed));
    escape_verdicts(b, w, buf_str(&printed), out);
}

/* A user namespace, and what its root may do inside: mounts of files and file systems that know
 * whose they are, in a mount namespace of its own, and a host name of its own. */
static const char *const granted[] = {
    "4-calls/unshare_newuser",
    "4-calls/unshare_newns",
    "4-calls/unshare_newuts",
    "4-calls/clone_newuser",
    "4-calls/clone_newns",
    "4-calls/clone_newuts",
    "4-calls/clone_newuser_newns",
    "4-calls/mount",
    "4-calls/umount2",
    "4-calls/sethostname",
    "4-calls/setdomainname",
    "12-images/cover_usr",
    "12-images/cover_etc",
    "3-proc-sys/cve_2025_52881_cover_proc", /* for itself: nobody else reads through it */
    "12-images/mount_tmpfs",
    "12-images/mount_overlay_cve_2023_0386",
    "8-processes/mount_devpts_of_host", /* an instance of its own, empty */
    "3-proc-sys/mount_binfmt_misc",     /* of its own user namespace, since Linux 6.7 */
    NULL,
};

static void judge(struct str control, struct str inside, const char *who)
{
    unsigned doors, open = escape_compare(control, inside, granted, &doors);

    if (open)
        FAIL("%u of %u doors are not shut to %s", open, doors, who);
    printf("%u doors open outside, none to %s\n", doors, who);
    CHECK(doors >= ESCAPE_ATTEMPTS);
}

static void try_nested(struct contract *c)
{
    char dir[300];
    struct escape_bait b;
    own_done(buf) as_root;
    own_done(buf) as_own_root;
    own_done(buf) control;

    buf_init(&as_root, 1u << 20);
    buf_init(&as_own_root, 1u << 20);
    buf_init(&control, 1u << 20);
    escape_place_probe(dir);
    escape_bait_lay(&b, 0);
    struct sbx *s = contract_started(c, &(struct sbx_spec){.workspace = dir, .nested = true});
    probe_with(c, s, &b, "", dir, &as_root);
    probe_with(c, s, &b, "unshare -Urmu", dir, &as_own_root);
    contract_end(c, s);
    escape_control(&b, &control);
    judge(buf_str(&control), buf_str(&as_root), "its root");
    judge(buf_str(&control), buf_str(&as_own_root), "root of its own namespaces");
    escape_bait_take_up(&b);
}

TEST_LIMIT(a_sandbox_that_builds_has_no_door_but_its_own_namespaces, LIMIT_S)
{
    contract_run(&contract_native, 0, try_nested);
}
