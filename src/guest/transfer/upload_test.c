// SPDX-License-Identifier: Apache-2.0
/* upload_test.c — POST /upload_file: what it says, what it leaves behind, and what it never does.
 */
#include "test/transfer_kit.h"

TEST(a_file_lands_in_its_destination)
{
    struct kit k;

    kit_sh("mkdir w; umask 022");
    kit_open_web(&k, false);
    struct web_answer a = kit_upload(&k, kit_into("w", ""), "a.txt", STR("hello"));
    CHECK_INT(a.status, 200);
    CHECK_HAS(a.head, "content-type: application/json\r\n");
    char want[500];
    snprintf(want, sizeof want,
             "{\"filename\":\"a.txt\",\"destination\":\"%s/w\",\"recursive\":false}", test_dir());
    CHECK_STR(a.body, want);
    CHECK_STR(kit_sh("cat w/a.txt; ls -A w; ls -A"), "helloa.txt\nw\n");
    a = kit_upload(&k, kit_into("w", "&recursive=False"), "a.txt", STR("")); /* overwrites */
    CHECK_INT(a.status, 200);
    CHECK_STR(kit_sh("stat -c '%s %a' w/a.txt; chmod 750 w/a.txt"), "0 644\n");
    CHECK_INT(kit_upload(&k, kit_into("w", ""), "a.txt", STR("x")).status, 200);
    CHECK_STR(kit_sh("stat -c %a w/a.txt"), "750\n"); /* what it replaces lends its mode */
    kit_close_web(&k);
}

TEST(a_missing_destination_is_made_with_its_parents)
{
    struct kit k;

    kit_open_web(&k, false);
    CHECK_INT(kit_upload(&k, kit_into("x/y//z/", ""), "f", STR("deep")).status, 200);
    CHECK_STR(kit_sh("cat x/y/z/f; ls -A . x x/y | tr '\\n' ' '"), "deep.: x  x: y  x/y: z ");
    kit_close_web(&k);
}

TEST(refusals_have_upstreams_words_and_proper_statuses)
{
    struct kit k;

    kit_open_web(&k, false);
    struct web_answer a = kit_upload(&k, "destination=relative", "f", STR("x"));
    CHECK_INT(a.status, 400);
    CHECK_STR(a.body, "{\"detail\":\"Destination must be an absolute path\"}");
    a = kit_upload(&k, kit_into("w", "&recursive=true"), "f.tar", STR("x"));
    CHECK_INT(a.status, 400);
    CHECK_STR(a.body, "{\"detail\":\"Recursive uploads must be zip files\"}");
    a = kit_upload(&k, kit_into("w", "&recursive=maybe"), "f", STR("x"));
    CHECK_INT(a.status, 422);
    CHECK_STR(a.body, "{\"detail\":\"Invalid request parameters\",\"errors\":\"[{'type': "
                      "'bool_parsing', 'loc': ('query', 'recursive'), 'msg': 'Input should be a "
                      "valid boolean, unable to interpret input', 'input': 'maybe'}]\"}");
    own_done(buf) b;
    kit_form(&b, kit_into("w", ""), "other", "f", STR("x"));
    a = kit_send(&k, buf_str(&b));
    CHECK_INT(a.status, 422);
    CHECK_STR(a.body, "{\"detail\":\"Invalid request parameters\",\"errors\":\"[{'type': "
                      "'missing', 'loc': ('body', 'file'), 'msg': 'Field required', 'input': "
                      "None}]\"}");
    a = kit_send(&k, STR("POST /upload_file HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"));
    CHECK_INT(a.status, 422);
    a = kit_send(&k, STR("POST /upload_file?destination=/tmp HTTP/1.1\r\nHost: a\r\nContent-Type: "
                         "multipart/form-data; boundary=B\r\nContent-Length: 5\r\n\r\nwrong"));
    CHECK_INT(a.status, 400);
    CHECK_STR(kit_sh("ls -A"), "");
    kit_close_web(&k);
}

TEST(what_goes_wrong_on_disk_is_a_500_that_says_what)
{
    struct kit k;

    kit_sh("printf x >file; mkdir -p w/f");
    kit_open_web(&k, false);
    struct web_answer a = kit_upload(&k, kit_into("file", ""), "f", STR("x"));
    CHECK_INT(a.status, 500);
    CHECK_HAS(a.body, "Not a directory");
    a = kit_upload(&k, kit_into("w", ""), "f", STR("x"));
    CHECK_INT(a.status, 500);
    CHECK_HAS(a.body, "Is a directory");
    CHECK_STR(kit_sh("ls -A . w"), ".:\nfile\nw\n\nw:\nf\n");
    kit_close_web(&k);
}

TEST(names_of_files_never_lead_anywhere)
{
    static const struct {
        const char *name, *lands;
    } cases[] = {
        {"../../up", "up"},
        {"/etc/abs", "abs"},
        {"C:\\\\dir\\\\win.txt", "win.txt"},
        {"a b&c", "a b&c"},
        {"n\xc3\xa4me", "n\xc3\xa4me"},
    };
    struct kit k;
    char path[300];

    kit_sh("mkdir w");
    kit_open_web(&k, false);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_INT(kit_upload(&k, kit_into("w", ""), cases[i].name, STR("x")).status, 200);
        snprintf(path, sizeof path, "%s/w/%s", test_dir(), cases[i].lands);
        CHECK(access(path, F_OK) == 0);
    }
    for (const char *const *bad = (const char *const[]){"..", ".", "a/..", NULL}; *bad; bad++)
        CHECK(kit_upload(&k, kit_into("w", ""), *bad, STR("x")).status >= 400);
    CHECK_STR(kit_sh("ls -A; ls w | wc -l"), "w\n5\n");
    kit_close_web(&k);
}

TEST(a_zip_is_unpacked_and_gone)
{
    struct kit k;

    kit_sh("mkdir -p t/dir/sub; printf 1 >t/dir/a; printf 2 >t/dir/sub/b; chmod +x t/dir/a\n"
           "cd t && zip -qr0D ../dir.zip dir");
    kit_open_web(&k, false);
    struct web_answer a =
        kit_upload(&k, kit_into("w", "&recursive=true"), "dir.zip", kit_file("dir.zip"));
    CHECK_INT(a.status, 200);
    CHECK_HAS(a.body, "\"recursive\":true}");
    kit_sh("diff -r t w && test -x w/dir/a && test \"$(ls -A w)\" = dir");
    a = kit_upload(&k, kit_into("v", ""), "dir.zip", kit_file("dir.zip"));
    CHECK_INT(a.status, 200);
    CHECK_HAS(a.body, "\"filename\":\"dir.zip\"");
    kit_sh("diff -r t v && test -z \"$(find . -name '.upload*')\"");
    kit_close_web(&k);
}

TEST(a_large_archive_is_unpacked_over_many_turns)
{
    struct kit k;

    kit_sh("mkdir t; head -c 5000000 /dev/urandom >t/noise; seq 1 900000 >t/text\n"
           "for i in $(seq 1 300); do printf $i >t/f$i; done; cd t && zip -qr1 ../t.zip .");
    kit_open_web(&k, false);
    CHECK_INT(kit_upload(&k, kit_into("w", ""), "t.zip", kit_file("t.zip")).status, 200);
    kit_sh("diff -r t w");
    kit_close_web(&k);
}

TEST(a_bad_archive_leaves_nothing_not_even_the_destination)
{
    struct kit k;

    kit_python("import zipfile\nz = zipfile.ZipFile('bad.zip', 'w')\n"
               "z.writestr('good', b'x'); z.writestr('bad', b'DAMAGE'); z.close()\n"
               "d = open('bad.zip', 'rb').read()\n"
               "open('bad.zip', 'wb').write(d.replace(b'DAMAGE', b'damage'))\n"
               "z = zipfile.ZipFile('bomb.zip', 'w', zipfile.ZIP_DEFLATED)\n"
               "z.writestr('zeros', bytes(100 << 20)); z.close()\n"
               "z = zipfile.ZipFile('up.zip', 'w'); z.writestr('../up', b'x')\n"
               "z.writestr('/tmp/croft-abs', b'x'); z.writestr('in', b'x'); z.close()");
    kit_open_web(&k, false);
    struct web_answer a = kit_upload(&k, kit_into("w/x", ""), "bad.zip", kit_file("bad.zip"));
    CHECK_INT(a.status, 500);
    CHECK_STR(a.body, "{\"detail\":\"bad.zip: unpack 'bad': its checksum is wrong\"}");
    a = kit_upload(&k, kit_into("w/x", ""), "not.zip", STR("no zip at all"));
    CHECK_INT(a.status, 500);
    CHECK_STR(a.body, "{\"detail\":\"not.zip: the file is not a zip archive\"}");
    CHECK_INT(kit_upload(&k, kit_into("w/x", ""), "bomb.zip", kit_file("bomb.zip")).status, 413);
    CHECK_STR(kit_sh("ls -A"), "bad.zip\nbomb.zip\nup.zip\n");
    CHECK_INT(kit_upload(&k, kit_into("w/x", ""), "up.zip", kit_file("up.zip")).status, 200);
    CHECK_STR(kit_sh("ls -A . w w/x | tr '\\n' ' '"),
              ".: bad.zip bomb.zip up.zip w  w: x  w/x: in ");
    kit_close_web(&k);
}

TEST(what_follows_an_upload_on_its_connection_is_the_next_request)
{
    static char content[1000000]; /* over several reads, with half a boundary at every seam */
    struct kit k;
    own_done(buf) b;
    struct web_client c;

    kit_sh("mkdir w");
    kit_open_web(&k, false);
    for (size_t i = 0; i + 7 < sizeof content; i += 4096)
        memcpy(content + i, "\r\n--\r\n-", 7);
    for (size_t len = sizeof content - 8; len <= sizeof content; len++) {
        kit_form(&b, kit_into("w", ""), "file", "f", str_n(content, len));
        buf_add_cstr(&b, "GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n");
        web_connect(&k.web, &c, 65536);
        CHECK(web_send(&k.web, &c, buf_str(&b)));
        CHECK_INT(web_take(&k.web, &c).status, 200);
        CHECK_INT(web_take(&k.web, &c).status, 404);
        CHECK(str_eq(kit_file("w/f"), str_n(content, len)));
        web_close_client(&c);
        buf_done(&b);
    }
    buf_init(&b, 0);
    kit_close_web(&k);
}

TEST(a_length_that_is_too_short_cuts_the_form_and_leaves_nothing)
{
    static char content[400000];
    struct kit k;
    own_done(buf) b;

    kit_sh(":");
    kit_open_web(&k, false);
    kit_form(&b, kit_into("w", ""), "file", "f", str_n(content, sizeof content));
    char *length = strstr(b.p, "Content-Length: 400");
    CHECK(length);
    memcpy(length + strlen("Content-Length: "), "300", 3);
    struct web_answer a = kit_send(&k, buf_str(&b));
    CHECK_INT(a.status, 400);
    CHECK_HAS(a.body, "stops before its last boundary");
    CHECK_STR(kit_sh("ls -A"), "");
    kit_close_web(&k);
}

TEST(an_interrupted_upload_leaves_nothing)
{
    struct kit k;
    own_done(buf) b;
    struct web_client c;

    kit_sh(":");
    kit_open_web(&k, false);
    static char content[2000000];
    kit_form(&b, kit_into("w/new", ""), "file", "f.zip", str_n(content, sizeof content));
    for (size_t cut = 300; cut < b.len; cut += 350000) {
        unsigned fds = test_open_fds();
        web_connect(&k.web, &c, 65536);
        CHECK(web_send(&k.web, &c, str_first(buf_str(&b), cut)));
        web_turns(&k.web, 5);
        CHECK_HAS(kit_sh("ls -A"), ".upload-");
        web_close_client(&c);
        web_turns(&k.web, 5);
        CHECK_STR(kit_sh("ls -A"), "");
        CHECK_INT(test_open_fds(), fds);
    }
    kit_close_web(&k);
}

TEST(a_server_that_stops_in_the_middle_leaves_nothing)
{
    struct kit k;
    own_done(buf) b;
    struct web_client c;

    kit_open_web(&k, false);
    kit_form(&b, kit_into("w", ""), "file", "f", STR("some content that does not come whole"));
    web_connect(&k.web, &c, 65536);
    CHECK(web_send(&k.web, &c, str_first(buf_str(&b), b.len - 20)));
    web_turns(&k.web, 5);
    kit_close_web(&k);
    web_close_client(&c);
    CHECK_STR(kit_sh("ls -A"), "");
}

/* Every call that can fail does, ENOSPC for writes among them. When the very call that cleans up
 * fails after all went well, the empty directory stays; that is logged. */
static void fail_each(const char *filename, struct str content, const char *judge)
{
    struct kit k;
    own_done(buf) b;
    struct web_client c;

    kit_form(&b, kit_into("w", ""), "file", filename, content);
    for (unsigned i = 1;; i++) {
        kit_open_web(&k, false);
        web_connect(&k.web, &c, 65536);
        web_turns(&k.web, 3);
        unsigned fds = test_open_fds();
        fault_at(i);
        web_send(&k.web, &c, buf_str(&b));
        web_turns(&k.web, 30);
        bool fired = fault_fired();
        fault_at(0);
        web_read(&k.web, &c);
        bool ok = str_starts(str_n(c.p, c.len), STR("HTTP/1.1 200"));
        CHECK(test_open_fds() <= fds);
        web_close_client(&c);
        kit_close_web(&k);
        if (fired && ok)
            kit_sh("rm -rf .upload*");
        kit_sh(judge);
        if (!fired)
            break;
    }
}

TEST_LIMIT(no_failing_call_leaves_half_a_file, 300)
{
    fail_each("f", STR("content"),
              "test -z \"$(find . -name '.upload*')\" && { test ! -e w/f || test \"$(cat w/f)\" = "
              "content; } && rm -rf w");
}

TEST_LIMIT(no_failing_call_leaves_half_an_archive, 300)
{
    kit_sh("mkdir t; printf one >t/a; cd t && zip -q ../t.zip a; cd ..; rm -r t");
    struct str zip = kit_file("t.zip");
    fail_each("t.zip", zip,
              "test -z \"$(find . -name '.upload*')\" && { test ! -e w/a || test \"$(cat w/a)\" = "
              "one; } && rm -rf w");
}

TEST(what_is_made_belongs_to_the_user_of_the_sandbox)
{
    struct kit k;

    if (geteuid() != 0)
        SKIP("needs root");
    kit_sh("mkdir -p w t/d; printf 1 >t/d/f; cd t && zip -qr0D ../t.zip d");
    kit_open_web(&k, false);
    k.transfer.uid = 1234;
    k.transfer.gid = 4321;
    CHECK_INT(kit_upload(&k, kit_into("w/new", ""), "f", STR("x")).status, 200);
    CHECK_INT(kit_upload(&k, kit_into("w/zip", ""), "t.zip", kit_file("t.zip")).status, 200);
    CHECK_STR(kit_sh("cd w; stat -c %u:%g . new new/f zip zip/d zip/d/f | tr '\\n' ' '"),
              "0:0 1234:4321 1234:4321 1234:4321 1234:4321 1234:4321 ");
    kit_close_web(&k);
}

TEST(a_boundary_holds)
{
    struct kit k;

    kit_sh("mkdir -p w; ln -s /tmp w/out; ln -s sub w/in; mkdir w/sub");
    kit_open_web(&k, true);
    CHECK_INT(kit_upload(&k, "destination=/tmp", "f", STR("x")).status, 403);
    CHECK_INT(kit_upload(&k, kit_into("../x", ""), "f", STR("x")).status, 403);
    CHECK_INT(kit_upload(&k, kit_into("w/out", ""), "f", STR("x")).status, 403);
    CHECK_INT(kit_upload(&k, kit_into("w/in", ""), "f", STR("x")).status, 200);
    CHECK_STR(kit_sh("cat w/sub/f"), "x");
    kit_close_web(&k);
}

TEST(several_transfers_go_on_at_once)
{
    enum { MANY = 8 };
    struct kit k;
    struct web_client c[MANY];
    struct buf forms[MANY];
    static char content[MANY][700000];
    char name[20];

    kit_sh("mkdir w");
    kit_open_web(&k, false);
    for (int i = 0; i < MANY; i++) {
        memset(content[i], 'a' + i, sizeof content[i]);
        snprintf(name, sizeof name, "f%d", i);
        kit_form(&forms[i], kit_into("w", ""), "file", name, str_n(content[i], sizeof content[i]));
        web_connect(&k.web, &c[i], 65536);
    }
    for (size_t at = 0; at < forms[0].len; at += 50000)
        for (int i = 0; i < MANY; i++)
            CHECK(web_send(&k.web, &c[i], str_first(str_from(buf_str(&forms[i]), at), 50000)));
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(web_take(&k.web, &c[i]).status, 200);
        web_close_client(&c[i]);
        buf_done(&forms[i]);
        snprintf(name, sizeof name, "w/f%d", i);
        CHECK(str_eq(kit_file(name), str_n(content[i], sizeof content[i])));
    }
    CHECK_STR(kit_sh("ls -A w | wc -l"), "8\n");
    kit_close_web(&k);
}
