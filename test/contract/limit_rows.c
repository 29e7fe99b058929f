// SPDX-License-Identifier: Apache-2.0
/* limit_rows.c — rows of the contract: what a sandbox may use, held where it is used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/contract/contract.h"

#define KILLED "ran out of memory and a process was killed"

void contract_check_64_mib(struct contract *c, struct sbx *s)
{
    struct answer a =
        contract_command(c, s, NULL, "head -c 300000000 /dev/zero | tail -c 299999999 | wc -c");

    CHECK(strcmp(a.text, "299999999") != 0);
    CHECK_HAS(a.suffix, KILLED);
    a = contract_command(c, s, NULL, "echo alive");
    CHECK_STR(a.text, "alive");
    CHECK(!strstr(a.suffix, KILLED)); /* that was the one before */
}

/* Who ran out of it is told, by the command's own answer and by what is counted; nobody else is. */
void contract_holds_the_memory_limit(struct contract *c)
{
    struct sbx_spec spec = {.limits.memory_bytes = 64u << 20};
    struct sbx *s = contract_started(c, &spec), *other = contract_started(c, &spec);

    contract_check_64_mib(c, s);
    struct answer a = contract_command(c, other, NULL, "echo untouched");
    CHECK_STR(a.text, "untouched");
    CHECK(!strstr(a.suffix, KILLED));
    if (c->driver->backend->measure) {
        CHECK_OK(contract_measure(c, s));
        CHECK_OK(contract_measure(c, other));
        CHECK(s->usage.oom_kills >= 1);
        CHECK_INT(other->usage.oom_kills, 0);
    }
    contract_end(c, other);
    contract_end(c, s);
}

/* A tenth of a processor, of a program that wants a whole one for a while. Others on the machine
 * can only make it less. */
void contract_check_a_tenth(struct contract *c, struct sbx *s)
{
    double wall, user, system;
    struct answer a = contract_command(
        c, s, NULL, "TIMEFORMAT='spent %R %U %S'; time timeout 1 bash -c 'while :; do :; done'");
    const char *said = strstr(a.text, "spent ");

    if (!said || sscanf(said, "spent %lf %lf %lf", &wall, &user, &system) != 3)
        FAIL("no times: %s", a.text);
    if (user + system > 0.3 * wall)
        FAIL("%s: more than a tenth", said);
}

void contract_holds_the_cpu_limit(struct contract *c)
{
    struct sbx_spec spec = {.limits.cpu_permille = 100};
    struct sbx *s = contract_started(c, &spec);

    contract_check_a_tenth(c, s);
    contract_end(c, s);
}

void contract_holds_the_open_files_limit(struct contract *c)
{
    struct sbx_spec spec = {.limits.open_files = 200};
    struct sbx *s = contract_started(c, &spec);

    CHECK_STR(contract_command(c, s, NULL, "ulimit -Sn; ulimit -Hn").text, "200\n200");
    CHECK_STR(contract_command(c, s, NULL,
                               "bash -c 'n=0; while exec {fd}</dev/null; do n=$((n+1)); "
                               "[ $n -lt 1000 ] || break; done 2>/dev/null; "
                               "[ $n -gt 100 ] && [ $n -lt 200 ] && echo $?' || true")
                  .text,
              "0");
    CHECK_HAS(contract_command(c, s, NULL, "ulimit -n 400; echo $?").text, "1");
    contract_end(c, s);
}

/* A file that does not fit; what fits stays over a restart, and so does the limit. */
void contract_holds_the_disk_limit(struct contract *c)
{
    static const char fill[] = "head -c 60000000 /dev/zero >>big; stat -c %s big";
    struct sbx_spec spec = {.limits.disk_bytes = 32u << 20};
    struct sbx *s = contract_started(c, &spec), *other = contract_started(c, NULL);
    struct sbx_info info;

    for (unsigned life = 0; life < 2; life++) {
        struct answer a = contract_command(c, s, NULL, fill);
        const char *size = strrchr(a.text, '\n');
        CHECK(strstr(a.text, "No space left") || strstr(a.text, "quota exceeded"));
        CHECK(size != NULL);
        CHECK(atol(size) > 24 << 20 && atol(size) < 40 << 20);
        sbx_inspect(s, &info);
        CHECK(info.disk != NULL || !(c->driver->caps & SBX_IS_HERE)); /* there, it is not told */
        CHECK_STR(contract_command(c, other, NULL,
                                   "rm -f big; head -c 60000000 /dev/zero >big;"
                                   "stat -c %s big")
                      .text,
                  "60000000");
        contract_command(c, s, NULL, "rm big; echo more >>f"); /* a full one has no room to start */
        CHECK_OK(contract_stop(c, s));
        CHECK_OK(contract_start(c, s));
    }
    sbx_inspect(other, &info);
    CHECK(info.disk == NULL);
    CHECK_STR(contract_command(c, s, NULL, "cat f").text, "more\nmore");
    contract_end(c, other);
    contract_end(c, s);
}

/* Of a hundred that are asked for less than forty come; then there is room again. */
void contract_holds_the_process_limit(struct contract *c)
{
    struct sbx_spec spec = {.limits.pids = 40};
    struct sbx *s = contract_started(c, &spec);
    struct answer a = contract_command(c, s, NULL,
                                       "python3 -c '\n"
                                       "import os, signal\n"
                                       "made = []\n"
                                       "try:\n"
                                       "    while len(made) < 100:\n"
                                       "        pid = os.fork()\n"
                                       "        if pid == 0:\n"
                                       "            signal.pause()\n"
                                       "        made.append(pid)\n"
                                       "except BlockingIOError:\n"
                                       "    print(\"refused at\", len(made))\n"
                                       "for pid in made:\n"
                                       "    os.kill(pid, 9)\n"
                                       "'");
    int made = -1;

    if (sscanf(a.text, "refused at %d", &made) != 1 || made < 5 || made >= 40)
        FAIL("%s", a.text);
    CHECK_STR(contract_command(c, s, NULL, "/bin/echo room").text, "room");
    contract_end(c, s);
}
