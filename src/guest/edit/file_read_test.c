// SPDX-License-Identifier: Apache-2.0
#include "guest/edit/binary.h"
#include "test/edit_kit.h"

static struct str read_lines(struct kit *k, const char *path, int64_t start, int64_t end)
{
    struct file_read_args args = {.path = str_of(path), .start = start, .end = end};

    CHECK_OK(file_read(&k->ed.space, &args, &k->a, &k->r));
    return k->r.content;
}

static struct str read_all(struct kit *k, const char *path)
{
    return read_lines(k, path, 0, -1);
}

TEST(edit_read_selects_lines)
{
    static const struct {
        int start, end;
        const char *want;
    } rows[] = {
        {0, -1, "1\n2\n3\n4\n5\n"},
        {2, -1, "3\n4\n5\n"},
        {0, 2, "1\n2\n"},
        {3, 3, "4\n"},
        {4, 5, "4\n5\n"},
        {9, -1, ""},
        {9, 12, "4\n5\n"},
        {2, 0, "3\n"},
        {0, 0, "1\n"},
        {-3, -7, "1\n"},
        {-3, -1, "1\n2\n3\n4\n5\n"},
    };
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "five", STR("1\n2\n3\n4\n5\n"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(read_lines(&k, "five", rows[i].start, rows[i].end), rows[i].want);
    kit_put(&k, "none", STR(""));
    CHECK_STR(read_lines(&k, "none", 0, 3), "");
    kit_put(&k, "one", STR("x"));
    CHECK_STR(read_lines(&k, "one", 7, 9), "x");
}

TEST(edit_read_has_universal_newlines_and_keeps_the_mark)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    kit_put(&k, "m",
            STR("\xef\xbb\xbf"
                "a\r\nb\rc\n\r\n"));
    CHECK_STR(read_all(&k, "m"), "\xef\xbb\xbf"
                                 "a\nb\nc\n\n");
    CHECK_STR(read_lines(&k, "m", 1, 3), "b\nc\n");
}

TEST(edit_read_resolves_paths_like_pathlib)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    CHECK(mkdir(kit_path(&k, "d").p, 0755) == 0);
    kit_put(&k, "a", STR("x"));
    read_all(&k, ".//d/./..//a");
    CHECK_STR(k.r.content, "x");
    CHECK_STR(k.r.path, kit_path(&k, "d/../a"));
    read_all(&k, kit_path(&k, "/a/").p);
    CHECK_STR(k.r.path, kit_path(&k, "a"));
}

TEST(edit_read_says_what_is_wrong)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    struct file_read_args nul = {.path = STR("a\0b"), .end = -1};

    kit_init(&k);
    read_all(&k, "gone");
    CHECK_STR(k.r.content,
              arena_printf(&k.a,
                           "File not found: %s/gone. Your current working directory is "
                           "%s.",
                           k.dir.p, k.dir.p));
    CHECK_INT(k.r.kind, EDIT_ERROR);
    kit_put(&k, "latin", STR("caf\xe9\n"));
    CHECK_STR(read_all(&k, "latin"),
              kit_says(&k, "File could not be decoded as utf-8: {}.", "latin"));
    CHECK_STR(read_all(&k, "."),
              arena_printf(&k.a, "Path is a directory: %s. You can only read files", k.dir.p));
    CHECK_STR(read_all(&k, "latin/x"), kit_says(&k, "[Errno 20] Not a directory: '{}'", "latin/x"));
    CHECK_INT(k.r.kind, EDIT_EXCEPTION);
    CHECK_OK(file_read(&k.ed.space, &nul, &k.a, &k.r));
    CHECK_STR(k.r.content, "embedded null byte");
    CHECK_INT(k.r.kind, EDIT_EXCEPTION);
    kit_put(&k, "it's", STR("x"));
    CHECK(chmod(kit_path(&k, "it's").p, 0) == 0);
    if (geteuid() == 0 && seteuid(65534) < 0)
        FAIL("seteuid");
    CHECK_STR(read_all(&k, "it's"), kit_says(&k, "[Errno 13] Permission denied: \"{}\"", "it's"));
    CHECK_INT(k.r.kind, EDIT_EXCEPTION);
    if (getuid() == 0)
        CHECK(seteuid(0) == 0);
}

TEST(edit_read_media_as_data_urls)
{
    static const struct {
        const char *name, *mime;
    } rows[] = {
        {"a.png", "image/png"}, {"a.JPG", "image/jpeg"},  {"a.jpeg", "image/jpeg"},
        {"a.bmp", "image/bmp"}, {"a.gif", "image/gif"},   {"a.pdf", "application/pdf"},
        {"a.mp4", "video/mp4"}, {"a.webm", "video/webm"}, {"a.ogg", "video/mp4"},
        {".png", "image/png"},  {"a.mp3", "audio/mpeg"},  {"a.WAV", "audio/x-wav"},
        {"a.m4a", "audio/mp4"}, {"a.flac", "audio/flac"},
    };
    __attribute__((cleanup(kit_done))) struct kit k;
    struct file_read_args strict = {.end = -1, .refuse_media = true};

    kit_init(&k);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str path = kit_put(&k, rows[i].name, STR("\x89PNG\0\xff"));
        struct str want = arena_printf(&k.a, "data:%s;base64,iVBORwD/", rows[i].mime);
        CHECK_STR(read_all(&k, rows[i].name), want);
        CHECK_STR(read_all(&k, path.p), want);
        CHECK_STR(k.r.path, path);
        strict.path = path;
        CHECK_OK(file_read(&k.ed.space, &strict, &k.a, &k.r));
        CHECK_STR(k.r.content, "ERROR_BINARY_FILE");
    }
    CHECK_HAS(read_all(&k, "none.png"), "File not found: ");
    CHECK(mkdir(kit_path(&k, "d.png").p, 0755) == 0);
    CHECK_HAS(read_all(&k, "d.png"), "Path is a directory: ");
}

TEST(edit_read_refuses_other_binaries)
{
    __attribute__((cleanup(kit_done))) struct kit k;
    struct edit_result r;

    kit_init(&k);
    kit_put(&k, "x.bin", STR("ELF\0\1\2"));
    CHECK_STR(read_all(&k, "x.bin"), "ERROR_BINARY_FILE");
    CHECK_INT(k.r.kind, EDIT_ERROR);
    CHECK_STR(read_all(&k, "gone.pyc"), "ERROR_BINARY_FILE");
    CHECK(file_read_refuses(&k.ed.space, kit_path(&k, "x.bin"), &r));
    CHECK_STR(r.content, "ERROR_BINARY_FILE");
    kit_put(&k, "x.pdf", STR("%PDF\0"));
    CHECK(!file_read_refuses(&k.ed.space, kit_path(&k, "x.pdf"), &r));
    CHECK(!file_read_refuses(&k.ed.space, kit_path(&k, "gone"), &r));
}

TEST(edit_binary_heuristic)
{
    static const struct {
        struct str start;
        bool is_binary;
    } rows[] = {
        {STR_INIT(""), false},
        {STR_INIT("hello\n"), false},
        {STR_INIT("a\0b"), true},
        {STR_INIT("caf\xe9 cr\xe8me"), false},
        {STR_INIT("caf\xe9 \xff"), true},
        {STR_INIT("日本語のテキスト"), false},
        {STR_INIT("日本"), false},
        {STR_INIT("日本語の\0"), false}, /* the detector is sure of it all the same */
        {STR_INIT("日本\0"), true},
        {STR_INIT("\xff\xfeh\0i\0"), false},
        {STR_INIT("\xfe\xff\0h\0i"), false},
        {STR_INIT("h\0i\0"), true},
        {STR_INIT("\x01\x02\x03\x04\x05\x06\x07\x0e\x0f"), true},     /* r1 and r2 over 0.8 */
        {STR_INIT("\x93\xfa\x96\x8c\xea\x82\xc5\x82\xb7\xfa"), true}, /* all high, not UTF-8 */
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_INT(binary_bytes(rows[i].start), rows[i].is_binary);
}

TEST(edit_binary_look_may_end_inside_a_character)
{
    char text[BINARY_LOOK_BYTES + 2];

    for (size_t pad = 0; pad < 3; pad++) {
        memset(text, 'x', sizeof text);
        for (size_t i = pad; i + 3 <= sizeof text; i += 3)
            text[i] = '\xe6', text[i + 1] = '\x97', text[i + 2] = '\xa5';
        CHECK(!binary_bytes(str_n(text, BINARY_LOOK_BYTES)));
        CHECK(!binary_bytes(str_n(text, sizeof text)));
    }
}

TEST(edit_read_does_not_hang_on_a_fifo)
{
    __attribute__((cleanup(kit_done))) struct kit k;

    kit_init(&k);
    CHECK(mkfifo(kit_path(&k, "fifo").p, 0644) == 0);
    CHECK_STR(read_all(&k, "fifo"), kit_says(&k, "[Errno 22] Invalid argument: '{}'", "fifo"));
    CHECK_HAS(read_all(&k, "/dev/zero"), "[Errno 22] Invalid argument");
    CHECK_HAS(read_all(&k, "/proc/self/status"), "Name:"); /* size 0, content all the same */
}
