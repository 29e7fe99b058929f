// SPDX-License-Identifier: Apache-2.0
/* aes_checklist_test.c — the compatibility checklist (section 11), line by line. Lines 2 and 11 are
 * in aes_http_test.c and plugin_test.c, 7 in aes_edit_test.c, 8 in aes_files_test.c, 9 in
 * aes_python_test.c, 12 in aes_git_test.c; 10 waits for a browser; 5 is every test here that
 * compares a whole observation. */
#include <stdio.h>
#include <unistd.h>

#include "test/aes_file.h"
#include "test/aes_run.h"

static int send_run(struct aes *a, const char *command, const char *more)
{
    return aes_send(a, "POST", "/execute_action", "",
                    aes_quoted(a, aes_text(a,
                                           "{'action':{'action':'run','args':{'command':'%s',"
                                           "'blocking':true}%s}}",
                                           command, more)));
}

AES_TEST(aes_checklist_1_alive_means_that_actions_run)
{
    struct aes a;

    aes_open(&a, &(struct aes_config){.program = program, .tcp = true});
    int alive = aes_send(&a, "GET", "/alive", "", STR(""));
    int first = send_run(&a, "echo first", "");
    CHECK_INT(aes_take(&a, alive).status, 200);
    struct aes_answer r = aes_take(&a, first);
    CHECK_INT(r.status, 200);
    CHECK_HAS(r.body, "\"content\":\"first\"");
    CHECK_HAS(r.body, "\"exit_code\":0");
    aes_close(&a);
}

AES_TEST(aes_checklist_3_one_at_a_time_in_order_across_a_cut)
{
    struct aes a;
    int waiting[4];

    aes_open_plain(&a, program);
    aes_run_plain(&a, "mkfifo gate seen");
    int cut = send_run(&a,
                       "echo 0 >> order; : > seen; until read < gate; do :; done; echo 1 >> "
                       "order",
                       "");
    aes_meet(&a, "s"); /* it runs */
    for (int i = 0; i < 4; i++) {
        waiting[i] = send_run(&a, aes_text(&a, "echo %d >> order; cat order", i + 2), "");
        /* the server has it before it gets the next: one more request, answered at once */
        CHECK_INT(aes_ask_get(&a, "/alive").status, 200);
    }
    close(cut);
    CHECK_INT(aes_ask_get(&a, "/alive").status, 200);
    CHECK_STR(aes_get(&a, "order"), "0\n"); /* still running, nobody else is */
    aes_meet(&a, "g");
    for (int i = 0; i < 4; i++)
        CHECK_HAS(aes_take(&a, waiting[i]).body,
                  aes_text(&a, "\\n%d\",\"extras\"", i + 2)); /* the last line it saw is its own */
    CHECK_STR(aes_get(&a, "order"), "0\n1\n2\n3\n4\n5\n");
    aes_close(&a);
}

AES_TEST(aes_checklist_4_an_answer_comes_within_its_timeout_also_from_the_queue)
{
    struct aes a;

    aes_open_plain(&a, program);
    aes_run_plain(&a, "mkfifo gate seen");
    int first = send_run(&a, ": > seen; until read < gate; do :; done; echo first", "");
    aes_meet(&a, "s");
    struct aes_answer r = aes_take(&a, send_run(&a, "echo second", ",'timeout':0.2"));
    CHECK_INT(r.status, 200); /* though the first has not ended */
    CHECK_HAS(r.body, "Your command \\\"echo second\\\" is NOT executed.");
    CHECK_HAS(r.body, "\"exit_code\":-1");
    aes_meet(&a, "g");
    CHECK_HAS(aes_take(&a, first).body, "\"content\":\"first\"");
    aes_run(&a, &(struct run_step){4, "echo third", .want = {"=third"}});
    aes_close(&a);
}

/* n times a character of three bytes */
static const char *print_wide(struct aes *a, int n)
{
    return aes_text(a, "printf '日%%.0s' {1..%d}", n);
}

AES_TEST(aes_checklist_6_limits_are_in_characters_and_floats_as_python_prints_them)
{
    struct aes a;

    aes_open_plain(&a, program);
    struct run_answer r = aes_run_plain(&a, print_wide(&a, 30000));
    CHECK_INT(r.content.len, 90000); /* not cut */
    r = aes_run_plain(&a, print_wide(&a, 30001));
    CHECK_INT(r.content.len, 30000 * 3 + 47);
    CHECK_STR(str_first(str_from(r.content, 45000), 47),
              "\n[... Observation truncated due to length ...]\n");
    r = aes_run(&a, &(struct run_step){6, print_wide(&a, 30001), .hidden = true});
    CHECK_INT(r.content.len, 90003); /* hidden: nobody cuts it */
    static const double seconds[] = {0.25, 0.1, 1};
    for (size_t i = 0; i < ARRAY_LEN(seconds); i++) { /* 0.25, 0.1, 1.0 in the suffix */
        aes_run(&a, &(struct run_step){6, "read x", HARD, .timeout = seconds[i], .want = {"="}});
        aes_run(&a, &(struct run_step){6, "C-c", .in = true, .rc = 130});
    }
    aes_close(&a);
}

AES_TEST(aes_checklist_retry_of_a_cut_request_is_attached_and_runs_once)
{
    static const char body[] = "{'action':{'action':'run','args':{'command':'echo x >> count; : > "
                               "seen; until read < gate; do :; done; wc -l < count','blocking':"
                               "true}}}";
    struct aes a;

    aes_open_plain(&a, program);
    aes_run_plain(&a, "mkfifo gate seen");
    struct str request = aes_quoted(&a, body);
    int first = aes_send(&a, "POST", "/execute_action", "", request);
    aes_meet(&a, "s");
    close(first);
    CHECK_INT(aes_ask_get(&a, "/alive").status, 200);
    int again = aes_send(&a, "POST", "/execute_action", "", request);
    CHECK_INT(aes_ask_get(&a, "/alive").status, 200);
    aes_meet(&a, "g");
    CHECK_HAS(aes_take(&a, again).body, "\"content\":\"1\"");
    CHECK_STR(aes_get(&a, "count"), "x\n");
    aes_close(&a);
}

/* A refusal would stop the agent; as an observation it goes on without. */
AES_TEST(aes_browsing_without_a_browser_is_an_error_observation)
{
    static const char *const actions[] = {
        "{'action':{'action':'browse','args':{'url':'http://localhost/'}}}",
        "{'action':{'action':'browse_interactive','args':{'browser_actions':'noop()'}}}",
    };
    struct aes a;

    aes_open_plain(&a, program);
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        struct aes_answer r =
            aes_take(&a, aes_send(&a, "POST", "/execute_action", "", aes_quoted(&a, actions[i])));
        CHECK_INT(r.status, 200);
        CHECK_HAS(r.body, "\"observation\":\"error\",\"content\":\"Browser functionality is not "
                          "supported or disabled.\"");
    }
    aes_close(&a);
}
