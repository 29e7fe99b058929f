// SPDX-License-Identifier: Apache-2.0
/* snapshot_rows.c — what the contract says of snapshots and forks; see contract.h. */
#include <stdio.h>
#include <string.h>

#include "test/contract/contract.h"

/* Who cannot be paused is stopped for it. */
static void snapshot(struct contract *c, struct sbx *s, const char *name)
{
    bool stop = !(c->driver->caps & SBX_CAN_PAUSE);

    if (stop)
        CHECK_OK(contract_stop(c, s));
    CHECK_OK(contract_snapshot(c, s, name));
    if (stop)
        CHECK_OK(contract_start(c, s));
}

static struct sbx *forked(struct contract *c, const char *name)
{
    struct sbx *child;

    CHECK_OK(sbx_fork(c->driver, str_of(name), &(struct sbx_spec){0}, &child));
    CHECK_OK(contract_start(c, child));
    return child;
}

void contract_forks_a_snapshot(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);

    contract_command(c, s, NULL, "echo before > f");
    snapshot(c, s, "point");
    contract_command(c, s, NULL, "echo after > f; echo later > g");
    struct sbx *child = forked(c, "point");
    CHECK_STR(contract_command(c, child, NULL, "cat f; test ! -e g && echo none").text,
              "before\nnone");
    contract_command(c, child, NULL, "echo child > f");
    CHECK_STR(contract_command(c, s, NULL, "cat f g").text, "after\nlater");
    contract_end(c, child);
    contract_end(c, s);
}

void contract_keeps_forks_apart(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);

    contract_command(c, s, NULL, "echo shared > f");
    snapshot(c, s, "point");
    struct sbx *one = forked(c, "point"), *two = forked(c, "point");
    contract_end(c, s); /* its files stay as long as somebody stands on them */
    contract_command(c, one, NULL, "echo one > who; rm f");
    CHECK_STR(contract_command(c, two, NULL, "cat f; test ! -e who && echo none").text,
              "shared\nnone");
    CHECK_OK(contract_stop(c, one));
    CHECK_OK(contract_start(c, one));
    CHECK_STR(contract_command(c, one, NULL, "cat who; test ! -e f && echo none").text,
              "one\nnone");
    contract_end(c, one);
    CHECK_STR(contract_command(c, two, NULL, "cat f").text, "shared");
    contract_end(c, two);
}

void contract_forks_a_fork(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);

    contract_command(c, s, NULL,
                     "mkdir d e; echo 1 > d/old; echo 2 > e/gone; echo 3 > stays; ln -s stays l; "
                     "mkfifo -m 640 p; umask 0; : > x; chmod 751 x");
    snapshot(c, s, "first");
    struct sbx *child = forked(c, "first");
    contract_command(c, child, NULL, "rm -r d; mkdir d; echo new > d/new; rm e/gone; echo 4 > own");
    snapshot(c, child, "second");
    contract_command(c, child, NULL, "echo later > own");
    struct sbx *grandchild = forked(c, "second");
    contract_end(c, child);
    CHECK_STR(
        contract_command(c, grandchild, NULL, "echo d/* e/*; cat own stays l; stat -c '%F %a' p x")
            .text,
        "d/new e/*\n4\n3\n3\nfifo 640\nregular empty file 751");
    contract_end(c, grandchild);
    CHECK_STR(contract_command(c, s, NULL, "echo d/* e/* *").text, "d/old e/gone d e l p stays x");
    contract_end(c, s);
}

void contract_snapshots_what_is_stopped(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);

    contract_command(c, s, NULL, "echo before > f; echo other > g");
    CHECK_OK(contract_stop(c, s));
    CHECK_OK(contract_snapshot(c, s, "point"));
    CHECK_OK(contract_start(c, s));
    CHECK_STR(contract_command(c, s, NULL, "cat f g; rm g; echo after > f").text, "before\nother");
    struct sbx *child = forked(c, "point");
    CHECK_STR(contract_command(c, child, NULL, "cat f g").text, "before\nother");
    contract_end(c, child);
    CHECK_OK(contract_stop(c, s));
    CHECK_OK(contract_snapshot(c, s, "next"));
    contract_end(c, s);
    child = forked(c, "next");
    CHECK_STR(contract_command(c, child, NULL, "cat f; test ! -e g && echo none").text,
              "after\nnone");
    contract_end(c, child);
}

/* Counters in directories with others' files between them, each counted up after the one before: at
 * any one moment the first is at most one ahead of the last and none is ahead of the one before it.
 * Copied while they run, in whatever order, they are not. */
void contract_snapshots_one_moment_of_what_runs(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);
    struct answer a = contract_command(
        c, s, NULL,
        "for d in {a..t}; do mkdir $d; for f in {1..60}; do : > $d/$f; done; done\n"
        "count() { for ((i = 1;; i++)); do for d in {a..t}; do printf %07d $i 1<> $d/n; done; "
        "done; }\n"
        "(count & echo $! > pid); until [ -s t/n ]; do :; done; kill -0 $(cat pid) && echo counts");

    CHECK_STR(a.text, "counts");
    CHECK_OK(contract_snapshot(c, s, "moment"));
    CHECK_STR(contract_command(c, s, NULL, "kill $(cat pid) && echo went on").text, "went on");
    struct sbx *child = forked(c, "moment");
    struct answer n = contract_command(c, child, NULL, "cat {a..t}/n");
    unsigned long first = 0, last = 0;
    CHECK_INT(strlen(n.text), 20 * 7);
    for (unsigned i = 0; i < 20; i++) {
        unsigned long now;
        CHECK_INT(sscanf(n.text + 7 * i, "%7lu", &now), 1);
        if (i == 0)
            first = now;
        else if (now > last || now + 1 < first)
            FAIL("copied while it ran: %s", n.text);
        last = now;
    }
    contract_end(c, child);
    contract_end(c, s);
}

void contract_snapshots_what_is_paused(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);
    struct sbx_info info;

    contract_command(c, s, NULL, "echo before > f");
    CHECK_OK(contract_pause(c, s));
    CHECK_OK(contract_snapshot(c, s, "point"));
    sbx_inspect(s, &info);
    CHECK_INT(info.state, SBX_PAUSED);
    struct sbx *child = forked(c, "point");
    CHECK_STR(contract_command(c, child, NULL, "cat f").text, "before");
    contract_end(c, child);
    CHECK_OK(contract_resume(c, s));
    CHECK_STR(contract_command(c, s, NULL, "cat f").text, "before");
    contract_end(c, s);
}

static void refused(struct contract *c, struct sbx *s, const char *name, enum err_code code)
{
    struct err *e = contract_snapshot(c, s, name);

    CHECK(e != NULL);
    CHECK_INT(err_code(e), code);
    err_free(e);
}

void contract_refuses_snapshots_by_name(struct contract *c)
{
    static const char *const bad[] = {"", "..", ".hidden", "a/b", "../up", "-x", "a b", "a\nb"};
    struct sbx *s = contract_started(c, NULL), *child;

    snapshot(c, s, "point");
    CHECK_OK(contract_stop(c, s));
    refused(c, s, "point", ERR_CONFLICT);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused(c, s, bad[i], ERR_INVALID);
    CHECK_OK(contract_start(c, s));
    CHECK_STR(contract_command(c, s, NULL, "echo on").text, "on");
    contract_end(c, s);
    struct err *e = sbx_fork(c->driver, STR("unknown"), &(struct sbx_spec){0}, &child);
    if (!e) { /* it may look only when it starts */
        e = contract_start(c, child);
        CHECK_OK(contract_remove(c, child));
    }
    CHECK(e != NULL);
    CHECK_INT(err_code(e), ERR_NOT_FOUND);
    err_free(e);
}

static void not_removed(struct contract *c, const char *name)
{
    char said[64];
    struct err *e = contract_snapshots(c, name, said, sizeof said);

    CHECK(e != NULL);
    CHECK_INT(err_code(e), ERR_NOT_FOUND);
    err_free(e);
}

static void never(void *arg, const char *names, size_t count, const struct err *e)
{
    (void)arg, (void)names, (void)count, (void)e;
    FAIL("a closed driver answered");
}

/* More than fit one answer of any backend, in the order of their names. */
void contract_lists_and_removes_snapshots(struct contract *c)
{
    enum { MANY = 70 };
    char said[4096], want[4096] = "", name[16];
    struct sbx *s = contract_started(c, NULL);

    CHECK_OK(contract_snapshots(c, NULL, said, sizeof said));
    CHECK_STR(str_of(said), "");
    contract_command(c, s, NULL, "echo kept > f");
    CHECK_OK(contract_stop(c, s));
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "p%02u", MANY - 1 - i);
        CHECK_OK(contract_snapshot(c, s, name));
        snprintf(want + strlen(want), sizeof want - strlen(want), "%sp%02u", i ? " " : "", i);
    }
    CHECK_OK(contract_snapshots(c, NULL, said, sizeof said));
    CHECK_STR(str_of(said), str_of(want));
    struct sbx *child = forked(c, "p03");
    CHECK_OK(contract_snapshots(c, "p03", said, sizeof said));
    CHECK_STR(contract_command(c, child, NULL, "cat f").text, "kept");
    not_removed(c, "p03");
    not_removed(c, "../box");
    not_removed(c, "");
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "p%02u", i);
        if (i != 3)
            CHECK_OK(contract_snapshots(c, name, said, sizeof said));
    }
    CHECK_OK(contract_snapshots(c, NULL, said, sizeof said));
    CHECK_STR(str_of(said), "");
    contract_end(c, child);
    contract_end(c, s);
    CHECK_OK(sbx_snapshot_list(c->driver, never, NULL)); /* and the driver is closed */
}
