// SPDX-License-Identifier: Apache-2.0
/* out_test.c — archives we write, as Python's zipfile and unzip read them. */
#include "guest/zip/in.h"

#include "test/zip_kit.h"

static const char make_tree[] =
    "mkdir -p tree/sub/deep tree/empty 'tree/d\xc3\xb6r'\n"
    "printf hello >tree/a.txt; : >tree/nothing; printf '#!/bin/sh\\n' >tree/run; chmod 755 "
    "tree/run\n"
    "head -c 300000 /dev/zero | tr '\\0' x >tree/sub/big; printf deep >tree/sub/deep/f\n"
    "printf uni >'tree/d\xc3\xb6r/\xe2\x82\xac.txt'; touch -d '2020-02-03 04:05:06' tree/a.txt\n"
    "ln -s a.txt tree/link; ln -s sub tree/dirlink; ln -s nowhere tree/dangling\n"
    "ln -s /etc tree/etc; mkfifo tree/fifo\n";

static const char list_zip[] =
    "import zipfile\n"
    "z = zipfile.ZipFile('t.zip'); assert z.testzip() is None\n"
    "for i in sorted(z.infolist(), key=lambda i: i.filename):\n"
    "    print(i.filename, i.file_size, oct(i.external_attr >> 16), i.compress_type)\n";

TEST(a_stored_tree_has_files_only_and_follows_links_to_files)
{
    kit_sh(make_tree);
    kit_zip("tree", "t.zip", NULL, 4096);
    CHECK_STR(kit_python(list_zip), "a.txt 5 0o100644 0\n"
                                    "d\xc3\xb6r/\xe2\x82\xac.txt 3 0o100644 0\n"
                                    "link 5 0o100644 0\n"
                                    "nothing 0 0o100644 0\n"
                                    "run 10 0o100755 0\n"
                                    "sub/big 300000 0o100644 0\n"
                                    "sub/deep/f 4 0o100644 0\n");
}

static void note_left_out(void *arg, struct str path)
{
    CHECK_STR(path, "fifo");
    ++*(unsigned *)arg;
}

TEST(directories_and_links_when_asked_for)
{
    unsigned left_out = 0;
    struct zip_out_config config = {
        .exact = true, .no_top = true, .left_out = note_left_out, .arg = &left_out};

    kit_sh(make_tree);
    kit_zip("tree", "t.zip", &config, 1000);
    CHECK_INT(left_out, 1);
    const char *list = kit_python(list_zip);
    CHECK_HAS(list, "empty/ 0 0o40755 0\n");
    CHECK_HAS(list, "link 5 0o120777 0\n");
    CHECK_HAS(list, "dangling 7 0o120777 0\n");
    CHECK_HAS(list, "sub/big 300000 0o100644 0\n");
    CHECK(strstr(list, "fifo") == NULL);
    kit_sh(
        "mkdir u && cd u && unzip -q ../t.zip && rm ../tree/fifo && diff -r --no-dereference . "
        "../tree && test -x run && test -d empty && test -L link && test \"$(stat -c %Y a.txt)\" "
        "= \"$(stat -c %Y ../tree/a.txt)\"");
}

TEST(the_bytes_do_not_depend_on_the_size_of_the_pulls)
{
    static const size_t sizes[] = {1, 7, 31, 4096, 262144};

    kit_sh(make_tree);
    struct zip_out_config config = {.exact = true};
    kit_zip("tree", "first.zip", &config, 65536);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        kit_zip("tree", "t.zip", &config, sizes[i]);
        kit_python(list_zip);
        kit_sh("cmp first.zip t.zip");
    }
}

TEST(one_file_is_an_archive_with_its_name)
{
    own(zip_out) z = NULL;

    kit_sh("printf content >f; mkdir d");
    CHECK_OK(zip_out_file(kit_open("f", O_RDONLY), STR("n\xc3\xa4me"), NULL, &z));
    kit_pull(z, "t.zip", 100);
    CHECK_STR(kit_sh("unzip -p t.zip"), "content");
    CHECK_STR(kit_python(list_zip), "n\xc3\xa4me 7 0o100644 0\n");
    struct zip_out *none = NULL;
    CHECK_ERR(zip_out_file(kit_open("d", O_RDONLY), STR("d"), NULL, &none), ERR_INVALID,
              "not a regular file");
}

TEST(an_empty_tree_is_an_empty_archive)
{
    kit_sh("mkdir tree");
    kit_zip("tree", "t.zip", NULL, 4096);
    CHECK_STR(kit_python(list_zip), "");
}

TEST_LIMIT(more_than_65535_entries_use_the_64_bit_end_and_little_memory, 180)
{
    struct zip_in_config config = {.dir = -1};
    own(zip_in) z = NULL;

    kit_python("import os\nfor d in range(66):\n os.makedirs('tree/%d' % d)\n"
               " one = 'tree/%d/0' % d; open(one, 'w').close()\n"
               " for f in range(1, 1000): os.link(one, 'tree/%d/%d' % (d, f))\n");
    kit_zip("tree", "t.zip", NULL, 65536);
    CHECK_STR(kit_python("import zipfile\nprint(len(zipfile.ZipFile('t.zip').infolist()))"),
              "66000\n");
    own_fd fd = kit_open("t.zip", O_RDONLY), staging = kit_open(".", O_RDONLY | O_DIRECTORY);
    config.staging = staging;
    CHECK_OK(zip_in_new(fd, &config, &z));
    CHECK_INT(z->entry_count, 66000);
    kit_sh("rm -rf tree");
}

TEST(a_tree_deeper_than_descriptors_allow_comes_whole)
{
    unsigned fds = test_open_fds() + 1; /* that of the test's directory */

    kit_python("import os\nos.mkdir('tree'); os.chdir('tree')\n"
               "for i in range(300):\n open('f', 'w').write(str(i)); os.mkdir('d');"
               " open('z', 'w').write(str(i)); os.chdir('d')\n");
    kit_zip("tree", "t.zip", NULL, 65536);
    CHECK_STR(kit_python("import zipfile\nz = zipfile.ZipFile('t.zip')\n"
                         "assert z.read('d/' * 299 + 'z') == b'299' == z.read('d/' * 299 + 'f')\n"
                         "print(len(z.infolist()))"),
              "600\n");
    CHECK_INT(test_open_fds(), fds);
}

TEST(a_file_that_shrinks_or_grows_leaves_the_archive_sound)
{
    char piece[4096];
    size_t n;
    own(zip_out) z = NULL;

    kit_sh("mkdir tree; head -c 100000 /dev/urandom >tree/a");
    CHECK_OK(zip_out_tree(kit_open("tree", O_RDONLY | O_DIRECTORY), NULL, &z));
    CHECK_OK(zip_out_next(z, piece, sizeof piece, &n));
    own_fd out = kit_open("t.zip", O_WRONLY | O_CREAT);
    CHECK_OK(fd_write_all(out, str_n(piece, n)));
    CHECK(truncate("tree/a", 20000) == 0);
    do {
        CHECK_OK(zip_out_next(z, piece, sizeof piece, &n));
        CHECK_OK(fd_write_all(out, str_n(piece, n)));
    } while (n);
    CHECK_STR(kit_python(list_zip), "a 20000 0o100644 0\n");
}

TEST(links_stay_within_a_boundary)
{
    kit_sh("mkdir -p root/tree/sub; printf secret >outside; printf in >root/inside\n"
           "ln -s ../../outside root/tree/out; ln -s ../inside root/tree/in\n"
           "ln -s /etc/passwd root/tree/abs; ln -s ../../inside root/tree/sub/in");
    own_fd root = kit_open("root", O_RDONLY | O_DIRECTORY);
    struct zip_out_config config = {
        .bounded = true, .boundary = root, .boundary_path = STR("tree")};
    kit_zip("root/tree", "t.zip", &config, 4096);
    CHECK_STR(kit_python(list_zip), "in 2 0o100644 0\nsub/in 2 0o100644 0\n");
}

/* Zeros become holes, so that gigabytes of them cost no disk. */
static void pull_sparse(struct zip_out *z, const char *to)
{
    static char piece[256u << 10], zeros[sizeof piece];
    own_fd fd = kit_open(to, O_WRONLY | O_CREAT | O_TRUNC);
    size_t n;

    do {
        CHECK_OK(zip_out_next(z, piece, sizeof piece, &n));
        if (n == sizeof piece && memcmp(piece, zeros, n) == 0)
            CHECK(lseek(fd, (off_t)n, SEEK_CUR) > 0);
        else
            CHECK_OK(fd_write_all(fd, str_n(piece, n)));
    } while (n);
}

TEST_LIMIT(sizes_and_offsets_over_4_gb_have_64_bits, 300)
{
    own(zip_out) z = NULL;

    if (!getenv("CROFT_LONG"))
        SKIP("most of a minute: set CROFT_LONG");
    kit_sh("mkdir -p tree/d/d; truncate -s 4300M tree/huge; for i in 1 2 3; do printf $i >tree/$i; "
           "printf $i >tree/d/d/$i; done");
    CHECK_OK(zip_out_tree(kit_open("tree", O_RDONLY | O_DIRECTORY), NULL, &z));
    pull_sparse(z, "t.zip");
    CHECK_STR(kit_python("import zipfile\nz = zipfile.ZipFile('t.zip')\n"
                         "print(z.getinfo('huge').file_size, len(z.infolist()), z.read('3'),\n"
                         "      z.read('d/d/1'), z.start_dir > 1 << 32)"),
              "4508876800 7 b'3' b'1' True\n");
    kit_sh("unzip -tq t.zip");
    struct zip_in_config unpack = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    CHECK_OK(kit_unpack("t.zip", &unpack));
    CHECK_STR(kit_sh("stat -c %s out/huge; cat out/d/d/3; rm -rf out"), "4508876800\n3");
}

TEST(no_failing_call_crashes_or_leaks_in_the_writer)
{
    static char piece[65536];
    struct zip_out_config config = {.exact = true, .no_top = true};
    kit_sh(make_tree);
    unsigned fds = test_open_fds();
    for (unsigned i = 1;; i++) {
        struct zip_out *z = NULL;
        size_t n = 1;
        int dir = kit_open("tree", O_RDONLY | O_DIRECTORY);
        fault_at(i);
        struct err *e = zip_out_tree(dir, &config, &z);
        while (!e && n)
            e = zip_out_next(z, piece, sizeof piece, &n);
        zip_out_free(z);
        bool fired = fault_fired();
        fault_at(0);
        err_free(e);
        if (!fired)
            break;
    }
    CHECK_INT(test_open_fds(), fds);
}
