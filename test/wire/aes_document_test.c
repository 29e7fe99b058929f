// SPDX-License-Identifier: Apache-2.0
/* aes_document_test.c — documents seen through the editor, as Markdown. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "test/aes_run.h"

static struct str view(struct aes *a, const char *file)
{
    struct json *o =
        aes_act(a, "read", aes_text(a, "'path':'%s','impl_source':'oh_aci'", aes_path(a, file)));

    CHECK_STR(json_get_str(o, "observation", STR("")), "read");
    return json_get_str(o, "content", STR(""));
}

static const char *shown(struct aes *a, const char *file, const char *markdown)
{
    return aes_text(a, "Here's the content of the file %s displayed in Markdown format:\n%s\n",
                    aes_path(a, file), markdown);
}

static void make(struct aes *a)
{
    own_free char *script = realpath(test_source("test/wire/make_documents.py"), NULL);
    struct run_answer r = aes_run_plain(a, aes_text(a, "/usr/bin/python3 %s %s", script, a->dir));

    if (r.rc != 0)
        FAIL("make_documents: " STR_FMT, STR_ARG(r.content));
}

AES_TEST(documents_are_shown_as_markdown)
{
    struct aes a;

    aes_open_plain(&a, program);
    make(&a);
    CHECK_STR(view(&a, "a.docx"),
              shown(&a, "a.docx",
                    "# Report\n\n## Part two\n\nPlain & simple \xc3\xa4\n\n**strong**\n\n* one\n* "
                    "two\n\n| a | b\\|c |\n| --- | --- |\n| 1 | 2 |"));
    CHECK_STR(view(&a, "a.xlsx"), shown(&a, "a.xlsx",
                                        "## Numbers\n| first |  | third |\n| --- | --- | --- |\n| "
                                        "1.5 | TRUE |  |"));
    CHECK_STR(view(&a, "a.pptx"),
              shown(&a, "a.pptx",
                    "<!-- Slide number: 1 -->\n# First\nwords\n### Notes:\nsay this\n<!-- Slide "
                    "number: 2 -->\n# Last"));
    CHECK_STR(view(&a, "a.pdf"), shown(&a, "a.pdf", "Hello from PDF"));
    CHECK_HAS(view(&a, "a.wav"), "* Channels: 2\n* Sample rate: 8000 Hz\n* Length: 0.50 s\n");
    struct str cut = view(&a, "long.docx");
    CHECK_HAS(cut, "xxx<response clipped><NOTE>Due to the max output limit, only part of this file "
                   "has been shown to you. Please use Python libraries");
    struct json *o =
        aes_act(&a, "edit", aes_text(&a, "'path':'%s','command':'view'", aes_path(&a, "a.pdf")));
    CHECK_STR(json_get_str(o, "content", STR("")), shown(&a, "a.pdf", "Hello from PDF"));
    aes_close(&a);
}

AES_TEST(documents_that_cannot_be_read_say_why)
{
    struct aes a;

    aes_open_plain(&a, program);
    make(&a);
    CHECK_STR(view(&a, "broken.xlsx"),
              aes_text(&a,
                       "ERROR:\nError in converting file to Markdown: BadZipFile: File is not a "
                       "zip file. Please use Python code to read %s",
                       aes_path(&a, "broken.xlsx")));
    aes_put(&a, "x.mp3", STR("ID3\x03"));
    CHECK_HAS(view(&a, "x.mp3"), "needs the Python package 'mutagen'");
    CHECK_HAS(view(&a, "missing.pdf"), "does not exist");
    const char *python = aes_text(&a, "%s/bin/python3", test_dir());
    aes_put(&a, "../bin/python3", STR("#!/bin/sh\nexit 3\n"));
    CHECK_INT(chmod(python, 0755), 0);
    CHECK_HAS(view(&a, "a.docx"), "Markdown: the reader ended with status 3. Please use");
    aes_close(&a);
}

/* A document that takes its time holds up nobody, and ends with the server. */
AES_TEST(documents_are_read_beside_everything_else)
{
    struct aes a;

    aes_open_plain(&a, program);
    make(&a);
    const char *python = aes_text(&a, "%s/bin/python3", test_dir());
    aes_put(&a, "../bin/python3",
            str_of(aes_text(&a, "#!/bin/sh\n: > %s/runs\nexec sleep 1000\n", a.dir)));
    CHECK_INT(chmod(python, 0755), 0);
    CHECK_INT(mkfifo(aes_path(&a, "runs"), 0600), 0);
    int fd = aes_send(&a, "POST", "/execute_action", "",
                      aes_quoted(&a, aes_text(&a,
                                              "{'action':{'action':'read','args':{'path':'%s',"
                                              "'impl_source':'oh_aci'}}}",
                                              aes_path(&a, "a.docx"))));
    CHECK_STR(aes_get(&a, "runs"), ""); /* waits until it runs */
    CHECK_STR(aes_run_plain(&a, "echo on").content, "on");
    aes_close(&a);
    close(fd);
}
