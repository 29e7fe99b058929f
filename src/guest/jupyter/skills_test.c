// SPDX-License-Identifier: Apache-2.0
/* skills_test.c — the functions cells find: their names, their text, their refusals. */
#include "test/kernel_kit.h"
#include "guest/proc/proc.h"

static struct kit *skilled(void)
{
    kit_need_ipykernel();
    struct kit *k = kit_with((struct kernel_config){.skills = true});
    kit_run(
        k, "with open('f.txt', 'w') as f: f.write(''.join(f'line {i}\\n' for i in range(1, 251)))");
    return k;
}

/* The part of a file_editor answer that models read. */
static const char *edit(struct kit *k, const char *args)
{
    char code[1024];

    snprintf(code, sizeof code,
             "import json; print(json.loads(file_editor(%s).split('\\n', 1)[1].rsplit('\\n', 1)[0])"
             "['formatted_output_and_error'])",
             args);
    return kit_run(k, code);
}

TEST(skills_page_through_a_file)
{
    struct kit *k = skilled();

    CHECK_STR(kit_run(k, "scroll_down()"),
              "ERROR: No file open. Use the open_file function first.");
    CHECK_STR(kit_run(k, "open_file('none.txt')"), "ERROR: File none.txt not found.");
    CHECK_STR(kit_run(k, "open_file('f.txt', 0)"), "ERROR: Line number must be between 1 and 250");
    const char *got = kit_run(k, "open_file('f.txt')");
    CHECK_HAS(got, "/f.txt (250 lines total)]\n(this is the beginning of the file)\n1|line 1\n");
    CHECK_HAS(got, "100|line 100\n(150 more lines below)\n"
                   "[Use `scroll_down` to view the next 100 lines of the file!]");
    got = kit_run(k, "scroll_down()");
    CHECK_HAS(got, "(100 more lines above)\n101|line 101\n");
    CHECK_HAS(got, "201|line 201\n(49 more lines below)");
    CHECK_HAS(kit_run(k, "scroll_down()"), "250|line 250\n(this is the end of the file)");
    CHECK_HAS(kit_run(k, "goto_line(120)"), "(69 more lines above)\n70|line 70\n");
    CHECK_HAS(kit_run(k, "scroll_up()"), "(19 more lines above)\n20|line 20\n");
    CHECK_STR(kit_run(k, "goto_line(999)"), "ERROR: Line number must be between 1 and 250.");
    kit_free(k);
}

TEST(skills_search)
{
    struct kit *k = skilled();

    CHECK_STR(kit_run(k, "search_dir('line 25')"), "[Found 2 matches for \"line 25\" in ./]\n"
                                                   "./f.txt (Line 25): line 25\n"
                                                   "./f.txt (Line 250): line 250\n"
                                                   "[End of matches for \"line 25\" in ./]");
    CHECK_STR(kit_run(k, "search_dir('nothing')"), "No matches found for \"nothing\" in ./");
    CHECK_STR(kit_run(k, "search_dir('x', 'nodir')"), "ERROR: Directory nodir not found");
    CHECK_STR(kit_run(k, "search_file('line 249', 'f.txt')"),
              "[Found 1 matches for \"line 249\" in f.txt]\nLine 249: line 249\n"
              "[End of matches for \"line 249\" in f.txt]");
    CHECK_STR(kit_run(k, "find_file('f.t')"),
              "[Found 1 matches for \"f.t\" in ./]\n./f.txt\n[End of matches for \"f.t\" in ./]");
    kit_run(k, "import os; os.mkdir('many')\n"
               "for i in range(101): open(f'many/{i}', 'w').write('needle')");
    CHECK_STR(kit_run(k, "search_dir('needle')"),
              "More than 101 files matched for \"needle\" in ./. Please narrow your search.");
    kit_free(k);
}

TEST(skills_edit_files)
{
    struct kit *k = skilled();

    kit_run(k, "p = os.getcwd() + '/e.txt'");
    CHECK_HAS(edit(k, "command='create', path=p"),
              "ERROR:\nParameter `file_text` is required for command: create.");
    CHECK_HAS(edit(k, "command='create', path=p, file_text='one\\ntwo\\nthree\\n'"),
              "File created successfully at: ");
    CHECK_HAS(edit(k, "command='view', path=p"), "     3\tthree\n     4");
    CHECK_HAS(edit(k, "command='view', path=p, view_range=[2, 10]"),
              "NOTE: We only show up to 3 since there're only 3 lines in this file.\nHere's");
    CHECK_HAS(edit(k, "command='str_replace', path=p, old_str='two', new_str='TWO'"),
              "     1\tone\n     2\tTWO\n     3\tthree\n     4\t\nReview the changes");
    CHECK_HAS(edit(k, "command='str_replace', path=p, old_str='e', new_str='x'"),
              "Multiple occurrences of old_str `e` in lines [1, 3].");
    CHECK_HAS(edit(k, "command='insert', path=p, insert_line=10, new_str='x'"),
              "It should be within the range of allowed values: [0, 3]");
    CHECK_HAS(edit(k, "command='insert', path=p, insert_line=1, new_str='new'"),
              "a snippet of the edited file:\n     1\tone\n     2\tnew\n     3\tTWO\n");
    CHECK_HAS(edit(k, "command='undo_edit', path=p"), "undone successfully.");
    CHECK_HAS(edit(k, "command='view', path='e.txt'"), "The path should be an absolute path");
    CHECK_HAS(edit(k, "command='fly', path=p"), "Unrecognized command fly. The allowed commands");
    kit_run(k, "open(p, 'wb').write(b'a\\r\\nb\\r\\n')"); /* DEF-10: newlines survive */
    edit(k, "command='str_replace', path=p, old_str='b', new_str='c'");
    CHECK_STR(kit_run(k, "open(p, 'rb').read()"), "b'a\\r\\nc\\r\\n'");
    kit_run(k, "open(p, 'wb').write(b'a\\nb')"); /* DEF-13: nothing is glued */
    edit(k, "command='insert', path=p, insert_line=2, new_str='c'");
    CHECK_STR(kit_run(k, "open(p).read()"), "'a\\nb\\nc\\n'");
    kit_free(k);
}

TEST(skills_import_by_the_original_name_and_need_no_library)
{
    struct kit *k = skilled();

    CHECK_STR(kit_run(k, "from openhands.runtime.plugins.agent_skills.agentskills import *\n"
                         "print(callable(open_file), callable(file_editor), callable(parse_docx))"),
              "True True True");
    CHECK_HAS(kit_run(k, "parse_latex('f.txt')"), "pylatexenc");
    kit_free(k);
}

TEST(skills_say_permission_denied_to_another_user)
{
    char home[600];

    if (geteuid() != 0)
        SKIP("needs root to become another user");
    kit_need_ipykernel();
    struct proc_user nobody = {"nobody", home, 65534, 65534};
    snprintf(home, sizeof home, "%s", test_dir());
    CHECK_INT(chown(test_dir(), 65534, 65534), 0);
    struct kit *k = kit_with((struct kernel_config){.skills = true, .user = &nobody});
    CHECK_STR(kit_run(k, "import os; print(os.environ['USER'], os.getuid())"), "nobody 65534");
    CHECK_HAS(kit_run(k, "print(file_editor(command='view', path='/root/test.txt'))"),
              "Permission denied");
    kit_run(k, "with open('test.txt','w') as f: f.write('x')");
    CHECK_STR(kit_run(k, "os.stat('test.txt').st_uid"), "65534");
    kit_free(k);
}
