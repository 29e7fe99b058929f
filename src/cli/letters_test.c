// SPDX-License-Identifier: Apache-2.0
#include "cli/letters.h"
#include "test/program.h"
#include "test/test.h"

static void check(const char *command, const char *const *argv, const char *want)
{
    own_done(arena) a;
    own_done(buf) got;
    int argc = 0;

    arena_init(&a, 1u << 20);
    buf_init(&got, 4096);
    while (argv[argc])
        argc++;
    char **spelled =
        letters_spell_out(cli_command_find(command), &a, &argc, (char **)(uintptr_t)argv);
    for (int i = 0; i < argc; i++)
        buf_addf(&got, "%s%s", i ? " " : "", spelled[i]);
    CHECK(spelled[argc] == NULL);
    CHECK_STR(buf_str(&got), want);
}

TEST(letters_are_flags_alone_and_together)
{
    check("ps", ARGS("-a"), "--all");
    check("ps", ARGS("-aq"), "--all --quiet");
    check("ps", ARGS("-aq", "--json"), "--all --quiet --json");
    check("fork", ARGS("a", "-n", "2"), "a --count 2");
    check("fork", ARGS("a", "-n2"), "a --count=2");
    check("fork", ARGS("-n=2", "a"), "--count=2 a");
    check("logs", ARGS("-fn3", "a"), "--follow --tail=3 a");
    check("exec", ARGS("-itw", "/tmp", "a", "--", "ls", "-a"),
          "--interactive --tty --workdir /tmp a -- ls -a");
    check("run", ARGS("-m", "1G", "-eA=b", "--", "-m"), "--memory 1G --env=A=b -- -m");
}

TEST(letters_stay_where_they_are_none_of_the_command)
{
    check("ps", ARGS("-ax"), "-ax");
    check("ps", ARGS("-h"), "-h");
    check("cp", ARGS("-", "a:/x"), "- a:/x");
    check("logs", ARGS("--tail", "-f", "a"), "--tail -f a"); /* a value */
    check("logs", ARGS("-n", "-f", "a"), "--tail -f a");
    check("logs", ARGS("-n"), "--tail");
    check("ps", ARGS("--", "-a"), "-- -a");
}

TEST(letters_of_a_command_that_is_run_are_its_own)
{
    check("exec", ARGS("a", "ls", "-it", "--help"), "a -- ls -it --help");
    check("exec", ARGS("a", "-i", "cat", "-w"), "a --interactive -- cat -w");
    check("exec", ARGS("-w", "/tmp", "a", "ls", "-w"), "--workdir /tmp a -- ls -w");
    check("exec", ARGS("--", "a", "ls", "-i"), "-- a ls -i");
}
