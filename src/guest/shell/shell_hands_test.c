// SPDX-License-Identifier: Apache-2.0
#include "test/test.h"

#include "guest/shell/shell_kit.h"

/* A command that is under way when this returns; its answer is asked for with kit_wait. */
static void begin(struct kit *k, const char *command)
{
    struct shell_request r = {
        .command = str_of(command), .blocking = true, .done = kit_on_done, .arg = k};

    k->answered = false;
    CHECK_OK(shell_run(k->shell, &r));
}

TEST(shell_hands_type_into_what_runs)
{
    struct kit k;

    kit_open(&k);
    CHECK_ERR(shell_send(k.shell, STR("x\r")), ERR_CONFLICT, "no command runs");
    CHECK_ERR(shell_send_key(k.shell, STR("ENTER")), ERR_CONFLICT, "no command runs");
    begin(&k, "read a; read b; echo \"<$a><$b>\"");
    CHECK_STR(shell_command(k.shell), "read a; read b; echo \"<$a><$b>\"");
    CHECK_OK(shell_send(k.shell, STR("one\rtw")));
    CHECK_OK(shell_send(k.shell, STR("x")));
    CHECK_OK(shell_send_key(k.shell, STR("BS")));
    CHECK_ERR(shell_send_key(k.shell, STR("SUPER")), ERR_UNPROCESSABLE, "no key 'SUPER'");
    CHECK_OK(shell_send(k.shell, STR("o")));
    CHECK_OK(shell_send_key(k.shell, STR("ENTER")));
    kit_wait(&k);
    CHECK_HAS(k.content, "<one><two>");
    CHECK_STR(shell_command(k.shell), "");
    kit_close(&k);
}

TEST(shell_hands_interrupt_and_end_input)
{
    struct kit k;

    kit_open(&k);
    begin(&k, "sleep 60");
    CHECK_OK(shell_send_key(k.shell, STR("C-c")));
    kit_wait(&k);
    CHECK_INT(k.exit_code, 130);
    begin(&k, "cat; echo over");
    CHECK_OK(shell_send_key(k.shell, STR("C-d")));
    kit_wait(&k);
    CHECK_STR(k.content, "over");
    kit_close(&k);
}

TEST(shell_hands_resize_the_window_of_what_runs)
{
    struct kit k;

    kit_open(&k);
    kit_expect(&k, "stty size", "1000 1000", 0);
    CHECK_OK(shell_resize(k.shell, 80, 24));
    kit_expect(&k, "stty size", "24 80", 0);
    kit_expect(&k, "printf '%0100d\\n' 7", /* wrapped on the screen, one line in the text */
               "0000000000000000000000000000000000000000000000000000000000000000000000000000000000"
               "000000000000000007",
               0);
    begin(&k, "( trap 'stty size; exit' WINCH; echo before; while :; do sleep 0.01; done )");
    size_t before = k.live_bytes;
    while (k.live_bytes < before + 8)
        CHECK_OK(loop_turn(k.loop, 1000));
    CHECK_OK(shell_resize(k.shell, 132, 50));
    kit_wait(&k);
    CHECK_STR(k.content, "before\n50 132"); /* what was drawn before stays */
    CHECK_ERR(shell_resize(k.shell, 0, 50), ERR_UNPROCESSABLE, "columns");
    CHECK_ERR(shell_resize(k.shell, 80, 5000), ERR_UNPROCESSABLE, "rows");
    kit_close(&k);
}
