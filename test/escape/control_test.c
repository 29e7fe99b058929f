// SPDX-License-Identifier: Apache-2.0
/* The corpus, tried outside: a door that is shut there tests nothing. */
#include "test/escape/escape.h"
#include "test/program.h"

#include <stdio.h>
#include <unistd.h>

#include "base/own.h"
#include "test/test.h"

TEST(the_doors_of_the_escape_corpus_are_open_outside)
{
    struct escape_bait b;
    struct escape_line line;
    own_done(buf) out;
    unsigned open = 0, absent = 0;

    if (geteuid() != 0)
        SKIP("the controls need root");
    buf_init(&out, 1u << 20);
    escape_bait_lay(&b, 0);
    escape_control(&b, &out);
    escape_bait_take_up(&b);
    struct str text = buf_str(&out);
    while (escape_next(&text, &line)) {
        open += str_eq(line.verdict, STR("OPEN"));
        absent += str_eq(line.verdict, STR("absent"));
        if (str_eq(line.verdict, STR("lost")))
            FAIL("%.*s: %.*s", STR_ARG(line.name), STR_ARG(line.note));
    }
    printf("%u doors open outside, %u not on this machine\n", open, absent);
    CHECK(open >= ESCAPE_ATTEMPTS);
}

TEST(the_judge_of_the_escape_corpus_sees_an_open_door)
{
    struct str control = STR("a/one OPEN \na/two absent x\na/three OPEN \nend\n");
    unsigned doors;

    CHECK_INT(
        escape_compare(control, STR("a/one refused e\na/three refused e\nend\n"), ARGS(), &doors),
        0);
    CHECK_INT(doors, 2);
    CHECK_INT(
        escape_compare(control, STR("a/one refused e\na/three OPEN e\nend\n"), ARGS(), &doors), 1);
    CHECK_INT(
        escape_compare(control, STR("a/one refused e\na/three lost e\nend\n"), ARGS(), &doors), 1);
    CHECK_INT(escape_compare(control, STR("a/three refused e\nend\n"), ARGS(), &doors), 1);
    CHECK_INT(
        escape_compare(control, STR("a/one refused e\nend\n"), ARGS("a/three", "a/th"), &doors), 0);
    CHECK_INT(doors, 1);
}
