// SPDX-License-Identifier: Apache-2.0
/* look_rows.c — rows of the contract: what is told of a sandbox to who looks at it from outside. */
#include <stdio.h>
#include <string.h>

#include "test/contract/contract.h"

static void never(void *arg, struct sbx *s, const struct err *e)
{
    (void)arg, (void)s, (void)e;
    FAIL("a refused operation has no answer");
}

void contract_counts_what_it_uses(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);

    if (!c->driver->backend->measure) {
        CHECK_ERR(sbx_measure(s, never, NULL), ERR_UNSUPPORTED, "does not count");
        contract_end(c, s);
        return;
    }
    CHECK_OK(contract_measure(c, s));
    struct sbx_usage before = s->usage;
    contract_command(c, s, NULL, "for ((i = 0; i < 200000; i++)); do :; done");
    CHECK_OK(contract_measure(c, s));
    if (before.memory_bytes) { /* else nobody counts here */
        CHECK(before.cpu_ns > 0 && before.pids > 0);
        CHECK(s->usage.cpu_ns > before.cpu_ns + 10 * NS_PER_MS);
    }
    CHECK_OK(contract_stop(c, s));
    CHECK_ERR(sbx_measure(s, never, NULL), ERR_CONFLICT, "is stopped");
    contract_end(c, s);
}

static void check_changed(struct contract *c, struct sbx *s, const char *text, const char *path,
                          bool is)
{
    CHECK_OK(contract_files(c, s, SBX_FILES_DIFF, text));
    CHECK(s->report != NULL);
    if ((strstr(s->report, path) != NULL) != is)
        FAIL("'%s' of '%s' is %sin %s", path, text, is ? "not " : "", s->report);
}

void contract_tells_and_undoes_what_it_changed(struct contract *c)
{
    struct sbx *s = contract_started(c, NULL);
    char path[4200];

    if (!c->driver->backend->files) {
        CHECK_ERR(sbx_files(s, SBX_FILES_DIFF, STR("{}"), never, NULL), ERR_UNSUPPORTED,
                  "does not know what");
        contract_end(c, s);
        return;
    }
    snprintf(path, sizeof path, "\"%s/made\"", contract_command(c, s, NULL, "pwd").text);
    bool pauses = c->driver->caps & SBX_CAN_PAUSE; /* else it must have ended */
    if (pauses)
        check_changed(c, s, "{}", path, false);
    contract_command(c, s, NULL, "echo new > made; sync");
    if (pauses)
        check_changed(c, s, "{}", path, true);
    CHECK_STR(contract_command(c, s, NULL, "cat made").text, "new"); /* it goes on */
    CHECK_OK(contract_stop(c, s));
    check_changed(c, s, "{}", path, true);
    check_changed(c, s, "{\"offset\":100000}", path, false);
    CHECK_OK(contract_files(c, s, SBX_FILES_ROLLBACK, ""));
    check_changed(c, s, "{}", path, false);
    CHECK_OK(contract_start(c, s));
    CHECK_STR(contract_command(c, s, NULL, "cat made 2>/dev/null || echo gone").text, "gone");
    contract_end(c, s);
}
