// SPDX-License-Identifier: Apache-2.0
/* in_test.c — archives that others wrote, well and ill meant. */
#include "guest/zip/zip.h"

#include "test/zip_kit.h"

TEST(what_zip_packs_comes_out_the_same)
{
    kit_sh("mkdir -p tree/sub/empty 'tree/d\xc3\xb6r'; printf hello >tree/a; : >tree/none\n"
           "head -c 2500000 /dev/urandom >tree/sub/noise; seq 1 200000 >tree/sub/text\n"
           "printf x >'tree/d\xc3\xb6r/\xe2\x82\xac'; printf '#!' >tree/run; chmod 755 tree/run\n"
           "cd tree && zip -qr ../t.zip .");
    CHECK_OK(kit_unpack("t.zip", NULL));
    kit_sh("diff -r out tree && test -x out/run && ! test -x out/a && test -d out/sub/empty");
}

TEST(what_zip_streams_with_sizes_behind_the_data_comes_out_the_same)
{
    kit_sh(
        "mkdir tree; seq 1 50000 >tree/text; printf '' >tree/none\n"
        "cd tree && zip -qr - . | cat >../t.zip; printf 'in front' | cat - ../t.zip >../sfx.zip");
    CHECK_OK(kit_unpack("t.zip", NULL));
    kit_sh("diff -r out tree && rm -r out");
    CHECK_OK(kit_unpack("sfx.zip", NULL)); /* with something before the archive */
    kit_sh("diff -r out tree");
}

TEST(what_zipfile_packs_comes_out_the_same)
{
    kit_python("import zipfile, os\nz = zipfile.ZipFile('t.zip', 'w', zipfile.ZIP_DEFLATED)\n"
               "with z.open('large', 'w', force_zip64=True) as f: f.write(b'64 bits')\n"
               "z.writestr('./a//b/./c', b'clean'); z.writestr('x\\u20ac/y', b'1')\n"
               "z.comment = b'a comment PK\\x05\\x06 with a trap'\nz.close()");
    CHECK_OK(kit_unpack("t.zip", NULL));
    CHECK_STR(kit_sh("cat out/large out/a/b/c 'out/x\xe2\x82\xac/y'; find out | wc -l"),
              "64 bitsclean1"
              "7\n");
}

TEST(files_are_replaced_and_others_stay)
{
    kit_sh("mkdir -p tree/d out/d; printf new >tree/d/f; printf old-and-longer >out/d/f\n"
           "printf keep >out/d/g; cd tree && zip -qr ../t.zip .");
    CHECK_OK(kit_unpack("t.zip", NULL));
    CHECK_STR(kit_sh("cat out/d/f out/d/g"), "newkeep");
}

TEST(an_exact_archive_is_unpacked_to_the_same_tree)
{
    struct zip_out_config whole = {.exact = true};
    struct zip_in_config exact = {.uid = (uid_t)-1, .gid = (gid_t)-1, .exact = true};

    kit_sh("umask 077; mkdir -p tree/d/empty tree/shut; cd tree; echo x > \"$(printf '\\377')\"; "
           "ln -s /nowhere l; ln -s d m; echo y > d/f; mkfifo p; chmod 4751 d/f; chmod 555 shut; "
           "chmod 711 .; touch -d @1000000000 d/f d .");
    kit_zip("tree", "t.zip", &whole, 1000);
    CHECK_OK(kit_unpack("t.zip", &exact));
    kit_sh(
        "chmod u-s tree/d/f; rm tree/p; touch -d @1000000000 tree; for d in tree out; do (cd $d; "
        "find . -printf '%p %y %m %l\\n'; find . ! -type l -printf '%p %Ts\\n') | LC_ALL=C sort "
        "> $d.list; done; cmp tree.list out.list");
}

TEST(nothing_is_unpacked_through_a_link_of_the_archive)
{
    struct zip_in_config exact = {.uid = (uid_t)-1, .gid = (gid_t)-1, .exact = true};

    kit_python("import zipfile\nz = zipfile.ZipFile('t.zip', 'w')\n"
               "i = zipfile.ZipInfo('l'); i.create_system = 3; i.external_attr = 0o120777 << 16\n"
               "z.writestr(i, '..'); z.writestr('l/out', b'x'); z.close()");
    CHECK_ERR(kit_unpack("t.zip", &exact), ERR_INVALID, "lies in another entry");
    kit_sh("rm -rf out; mkdir out; ln -s .. out/l");
    kit_python(
        "import zipfile\nz = zipfile.ZipFile('t.zip', 'w')\nz.writestr('l/x', b'x')\nz.close()");
    own(err) e = kit_unpack("t.zip", &exact);
    CHECK(e != NULL);
    CHECK_STR(kit_sh("ls"), "out\nt.zip\n");
}

TEST(unsafe_names_are_refused_or_left_out)
{
    struct zip_in_config skip = {.uid = (uid_t)-1, .gid = (gid_t)-1, .skip_unsafe = true};

    kit_python("import zipfile\nz = zipfile.ZipFile('t.zip', 'w')\n"
               "for n in ('ok', '/abs', '../up', 'a/../../up', 'a/..', 'dots..fine', './', '..'):\n"
               "    z.writestr(n, b'x')\nz.close()");
    CHECK_ERR(kit_unpack("t.zip", NULL), ERR_INVALID, "'/abs' would lead out");
    CHECK_STR(kit_sh("ls -A out"), "");
    CHECK_OK(kit_unpack("t.zip", &skip));
    CHECK_STR(kit_sh("ls -A out; ls -A"), "dots..fine\nok\nout\nt.zip\n");
}

TEST(links_in_archives_become_files_and_links_on_disk_do_not_lead_out)
{
    kit_sh("mkdir -p tree/evil/d elsewhere out; ln -s ../elsewhere tree/link\n"
           "printf pwned >tree/evil/f; cd tree && zip -qry ../t.zip . ");
    kit_sh("ln -s ../elsewhere out/evil");
    CHECK_ERR(kit_unpack("t.zip", NULL), ERR_FORBIDDEN, "evil");
    CHECK_STR(kit_sh("ls -A elsewhere; rm -f out/evil out/link; ln -s ../elsewhere out/link"), "");
    CHECK_OK(kit_unpack("t.zip", NULL));
    CHECK_STR(kit_sh("test ! -L out/link && cat out/link; ls -A elsewhere"), "../elsewhere");
}

TEST(a_link_and_a_file_behind_it_are_refused)
{
    kit_python("import zipfile\nz = zipfile.ZipFile('t.zip', 'w')\n"
               "i = zipfile.ZipInfo('l'); i.create_system = 3; i.external_attr = 0o120777 << 16\n"
               "z.writestr(i, b'/tmp'); z.writestr('l/f', b'x'); z.close()");
    CHECK_ERR(kit_unpack("t.zip", NULL), ERR_INVALID, "'l/f' lies in another entry");
    CHECK_STR(kit_sh("ls -A out"), "");
}

TEST(what_is_in_the_way_is_found_before_anything_is_placed)
{
    static const struct {
        const char *there, *why;
    } cases[] = {
        {"mkdir out/m", "'m': give the file its name: Is a directory"},
        {"touch out/z", "'z/f'"},
        {"ln -s nowhere out/z", "'z/f'"},
        {"ln -s .. out/z", "'z/f'"},
        {"mkdir -p out/z/y/f", "'z/y/f': give the file its name: Is a directory"},
        {"mkdir out/z; touch out/z/e", "'z/e'"},
    };
    char command[200];

    kit_sh("mkdir -p in/z/y in/z/e; for f in a m z/f z/y/f; do echo new >in/$f; done; cd in && "
           "zip -q ../t.zip a m z/f z/y/f z/e");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(command, sizeof command,
                 "rm -rf out was; mkdir out; echo old >out/a; %s; cp -a out was", cases[i].there);
        kit_sh(command);
        own(err) e = kit_unpack("t.zip", NULL);
        CHECK(e != NULL);
        CHECK_HAS(err_text(e), cases[i].why);
        CHECK_STR(kit_sh("cd was; find . ! -type l | sort | xargs ls -ld >../1; cd ../out; find . "
                         "! -type l | sort | xargs ls -ld >../2; cmp ../1 ../2; cat a"),
                  "old\n");
    }
    kit_sh("rm -rf out; mkdir -p out/z/y out/real; echo old >out/z/y/f; ln -s nowhere out/m");
    CHECK_OK(kit_unpack("t.zip", NULL));
    CHECK_STR(kit_sh("cat out/a out/m out/z/f out/z/y/f; ls -d out/z/e"),
              "new\nnew\nnew\nnew\nout/z/e\n");
}

TEST(names_that_come_twice_are_refused_and_case_counts)
{
    kit_python("import zipfile, warnings\nwarnings.simplefilter('ignore')\n"
               "z = zipfile.ZipFile('a.zip', 'w'); z.writestr('a', b'1'); z.writestr('./a', b'2')\n"
               "z.close(); z = zipfile.ZipFile('b.zip', 'w'); z.writestr('a/', b'')\n"
               "z.writestr('a', b'2'); z.close()\n"
               "z = zipfile.ZipFile('c.zip', 'w'); z.writestr('A/x', b'1')\n"
               "z.writestr('a/X', b'2'); z.writestr('a/', b''); z.writestr('a/', b'')");
    CHECK_ERR(kit_unpack("a.zip", NULL), ERR_INVALID, "two entries are called 'a'");
    CHECK_ERR(kit_unpack("b.zip", NULL), ERR_INVALID, "two entries are called 'a'");
    CHECK_OK(kit_unpack("c.zip", NULL));
    CHECK_STR(kit_sh("cat out/A/x out/a/X"), "12");
}

TEST(encryption_and_unknown_methods_are_refused_by_name)
{
    kit_sh("printf x >f; zip -q -P secret e.zip f");
    kit_python("import zipfile\nz = zipfile.ZipFile('m.zip', 'w', zipfile.ZIP_LZMA)\n"
               "z.writestr('f', b'x' * 100); z.close()");
    CHECK_ERR(kit_unpack("e.zip", NULL), ERR_UNSUPPORTED, "'f' is encrypted");
    CHECK_ERR(kit_unpack("m.zip", NULL), ERR_UNSUPPORTED, "by method 14; only 0 (stored)");
    CHECK_STR(kit_sh("ls -A out"), "");
}

TEST(a_wrong_checksum_leaves_nothing)
{
    kit_python("import zipfile\nz = zipfile.ZipFile('t.zip', 'w')\n"
               "z.writestr('good', b'fine'); z.writestr('bad', b'DAMAGE'); z.close()\n"
               "d = open('t.zip', 'rb').read(); open('t.zip', 'wb')"
               ".write(d.replace(b'DAMAGE', b'damage', 1))");
    CHECK_ERR(kit_unpack("t.zip", NULL), ERR_CORRUPT, "unpack 'bad': its checksum is wrong");
    CHECK_STR(kit_sh("ls -A out"), "");
}

TEST(broken_archives_are_refused)
{
    static const struct {
        const char *edit, *why;
    } cases[] = {
        {"d[:0]", "not a zip archive"},
        {"b'PK' * 500", "not a zip archive"},
        {"d[:-1]", "not a zip archive"},
        {"d + b'x'", "not a zip archive"},
        {"d[20:]", "does not fit"},
        {"d.replace(b'PK\\1\\2', b'PK\\1\\3')", "index is damaged"},
        {"d.replace(b'PK\\3\\4', b'PK\\3\\5', 1)", "data cannot be found"},
        {"d.replace(b'one', b'two', 1)", "two records differ"},
        {"d[:-12] + b'\\2\\0' + d[-10:]", "several parts"},
        {"d[:-14] + b'\\2\\0\\2\\0' + d[-10:]", "does not fit"},
        {"d[:-18] + b'\\1\\0' + d[-16:]", "several parts"},
    };
    char code[600];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(code, sizeof code,
                 "import zipfile\nz = zipfile.ZipFile('t.zip', 'w'); z.writestr('one', b'data')\n"
                 "z.close()\nd = open('t.zip', 'rb').read()\nd = %s\nopen('t.zip', 'wb').write(d)",
                 cases[i].edit);
        kit_python(code);
        struct err *e = kit_unpack("t.zip", NULL);
        if (!e)
            FAIL("case %zu was taken", i);
        CHECK_HAS(err_text(e), cases[i].why);
        err_free(e);
        CHECK_STR(kit_sh("ls -A out"), "");
    }
}

TEST(overlapping_entries_are_refused)
{
    kit_python("import zipfile, io, struct\nz = zipfile.ZipFile('t.zip', 'w')\n"
               "z.writestr('a', b'x' * 1000); z.writestr('b', b'x' * 1000); z.close()\n"
               "d = bytearray(open('t.zip', 'rb').read())\n"
               "i = d.rfind(b'PK\\1\\2'); d[i + 42:i + 46] = struct.pack('<I', 0)\n"
               "open('t.zip', 'wb').write(d)");
    CHECK_ERR(kit_unpack("t.zip", NULL), ERR_CORRUPT, "overlap");
    kit_python("import zipfile, struct\nz = zipfile.ZipFile('t.zip', 'w')\n"
               "z.writestr('a', b'x' * 10); z.writestr('b', b'y' * 100); z.close()\n"
               "d = bytearray(open('t.zip', 'rb').read())\n"
               "d[28:30] = struct.pack('<H', 20)\n" /* the extra field reaches into the next */
               "open('t.zip', 'wb').write(d)");
    CHECK_ERR(kit_unpack("t.zip", NULL), ERR_CORRUPT, "runs into the next entry");
    CHECK_STR(kit_sh("ls -A out"), "");
}

TEST(bombs_are_refused_before_a_byte_is_written)
{
    struct zip_in_config config = {.uid = (uid_t)-1, .gid = (gid_t)-1};

    kit_python("import zipfile\nz = zipfile.ZipFile('t.zip', 'w', zipfile.ZIP_DEFLATED)\n"
               "z.writestr('zeros', bytes(100 << 20)); z.writestr('b', b''); z.close()");
    CHECK_ERR(kit_unpack("t.zip", NULL), ERR_TOO_LARGE, "more than 250-fold");
    config.limits = (struct zip_limits){.ratio = 2000, .bytes = 1 << 20};
    CHECK_ERR(kit_unpack("t.zip", &config), ERR_TOO_LARGE, "at most 1048576 are taken");
    config.limits = (struct zip_limits){.entries = 1};
    CHECK_ERR(kit_unpack("t.zip", &config), ERR_TOO_LARGE, "has 2 entries, at most 1");
    kit_python("d = bytearray(open('t.zip', 'rb').read()); i = d.find(b'PK\\1\\2')\n"
               "d[i + 24:i + 28] = b'\\x10\\0\\0\\0'; open('s.zip', 'wb').write(d)\n"
               "d[i + 24:i + 28] = b'\\xfe\\xff\\xff\\xff'; open('l.zip', 'wb').write(d)");
    CHECK_ERR(kit_unpack("s.zip", NULL), ERR_CORRUPT, "larger than the index says");
    CHECK_ERR(kit_unpack("l.zip", NULL), ERR_CORRUPT, "cannot be as large as it says");
    CHECK_STR(kit_sh("ls -A out"), "");
}

TEST(an_archive_past_4_gb_is_read)
{
    kit_python("import zipfile\nf = open('t.zip', 'w+b'); f.seek(4300 << 20)\n"
               "z = zipfile.ZipFile(f, 'w'); z._start_disk = 0\n" /* true offsets, past a hole */
               "z.writestr('a', b'far'); z.writestr('d/b', b'out'); z.close()");
    CHECK_OK(kit_unpack("t.zip", NULL));
    CHECK_STR(kit_sh("cat out/a out/d/b"), "farout");
}

TEST(names_of_old_programs_are_read_as_theirs)
{
    kit_python("import zipfile\nz = zipfile.ZipFile('t.zip', 'w'); z.writestr('n?me', b'x')\n"
               "z.close()\nd = open('t.zip', 'rb').read().replace(b'n?me', b'n\\x84me')\n"
               "open('t.zip', 'wb').write(d)");
    CHECK_OK(kit_unpack("t.zip", NULL));
    CHECK_STR(kit_sh("ls out"), "n\xc3\xa4me\n");
}

TEST(special_bits_are_never_set)
{
    kit_python("import zipfile\nz = zipfile.ZipFile('t.zip', 'w')\n"
               "i = zipfile.ZipInfo('su'); i.create_system = 3; i.external_attr = 0o106755 << 16\n"
               "z.writestr(i, b'x'); i = zipfile.ZipInfo('none'); i.create_system = 3\n"
               "i.external_attr = 0o100000 << 16; z.writestr(i, b'x'); z.close()");
    CHECK_OK(kit_unpack("t.zip", NULL));
    CHECK_STR(kit_sh("stat -c %a out/su out/none"), "755\n644\n");
}

TEST(no_failing_call_crashes_leaks_or_leaves_half_a_file)
{
    unsigned fds;

    kit_sh("mkdir -p tree/d/e; seq 1 30000 >tree/d/a; printf b >tree/b; cd tree && zip -qr "
           "../t.zip . && rm -rf ../out");
    fds = test_open_fds();
    for (unsigned i = 1;; i++) {
        kit_sh("rm -rf out; mkdir -p out staging");
        own_fd fd = kit_open("t.zip", O_RDONLY), dir = kit_open("out", O_RDONLY | O_DIRECTORY),
               staging = kit_open("staging", O_RDONLY | O_DIRECTORY);
        struct zip_in_config c = {dir, staging, (uid_t)-1, (gid_t)-1, .skip_unsafe = false};
        struct zip_in *z = NULL;
        bool done = false;
        fault_at(i);
        struct err *e = zip_in_new(fd, &c, &z);
        while (!e && !done)
            e = zip_in_step(z, &done);
        bool fired = fault_fired();
        fault_at(0);
        zip_in_free(z);
        CHECK(unlinkat(kit_dir(), "staging", AT_REMOVEDIR) == 0);
        CHECK(fired || !e);
        if (!e)
            kit_sh("diff -r tree out");
        else
            kit_sh("test ! -e out/d/a || cmp tree/d/a out/d/a");
        err_free(e);
        if (!fired)
            break;
    }
    CHECK_INT(test_open_fds(), fds);
}
