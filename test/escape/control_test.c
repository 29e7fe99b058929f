// SPDX-License-Identifier: Apache-2.0
/* The corpus, tried outside: a door that is shut there tests nothing. */
#include "test/escape/escape.h"

#include <stdio.h>
#include <unistd.h>

#include "test/test.h"

TEST(the_doors_of_the_escape_corpus_are_open_outside)
{
    struct escape_secret s;
    struct escape_line line;
    unsigned open = 0, absent = 0;

    if (geteuid() != 0)
        SKIP("the controls need root");
    escape_secret_make(&s);
    struct str text = escape_control(&s);
    while (escape_next(&text, &line)) {
        open += str_eq(line.verdict, STR("OPEN"));
        absent += str_eq(line.verdict, STR("absent"));
        if (str_eq(line.verdict, STR("lost")))
            FAIL("%.*s: %.*s", STR_ARG(line.name), STR_ARG(line.note));
    }
    printf("%u doors open outside, %u not on this machine\n", open, absent);
    CHECK(open >=
          80); /* another kernel has other doors; without most of them the corpus is blind */
}

TEST(the_judge_of_the_escape_corpus_sees_an_open_door)
{
    struct str control = STR("a/one OPEN \na/two absent x\na/three OPEN \nend\n");

    CHECK_INT(escape_judge(control, STR("a/one refused e\na/three refused e\nend\n")), 2);
}
