// SPDX-License-Identifier: Apache-2.0
/* zip.c — any bytes as an archive: unpacked into a directory of its own, nothing may appear beside
 * it, staging must end empty, and whatever was taken must pack and unpack again. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "guest/zip/walk.h"
#include "guest/zip/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Removes what is below dir, depth first. */
static unsigned empty_dir(int dir, bool remove, bool links)
{
    unsigned count = 0;
    bool again = true;

    while (again) { /* leaves first: each pass removes what it can */
        struct zip_walk *w = NULL;
        struct zip_walk_entry e;
        bool more = true;
        unsigned seen = 0;
        struct err *err = zip_walk_new(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), &w);
        while (!err && !(err = zip_walk_next(w, &e, &more)) && more) {
            seen++;
            if ((S_ISLNK(e.st.st_mode) && !links) || (e.st.st_mode & 07000))
                abort(); /* never made from an archive that is not exact */
            if (remove)
                unlinkat(e.dir, e.name, S_ISDIR(e.st.st_mode) ? AT_REMOVEDIR : 0);
        }
        err_free(err);
        zip_walk_free(w);
        count = seen > count ? seen : count;
        again = remove && seen;
    }
    return count;
}

static struct err *unpack(int fd, int dir, int staging, bool skip, bool exact)
{
    struct zip_in_config c = {.dir = dir,
                              .staging = staging,
                              .uid = (uid_t)-1,
                              .gid = (gid_t)-1,
                              .skip_unsafe = skip,
                              .exact = exact,
                              .limits = {.entries = 200, .bytes = 1 << 20}};
    struct zip_in *z = NULL;
    bool done = false;
    struct err *e = zip_in_new(fd, &c, &z);

    while (!e && !done)
        e = zip_in_step(z, &done);
    zip_in_free(z);
    if (empty_dir(staging, false, false))
        abort();
    return e;
}

static void pack_again(int dir, int other, int staging)
{
    struct zip_out_config config = {.exact = true};
    struct zip_out *z = NULL;
    char piece[4096];
    size_t n = 1;
    int fd = memfd_create("zip", MFD_CLOEXEC);
    struct err *e = zip_out_tree(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), &config, &z);

    while (!e && n && !(e = zip_out_next(z, piece, sizeof piece, &n)))
        e = fd_write_all(fd, str_n(piece, n));
    zip_out_free(z);
    if (!e)
        e = unpack(fd, other, staging, false, true);
    if (e) {
        fprintf(stderr, "packed again: %s\n", err_text(e));
        abort();
    }
    close(fd);
    if (empty_dir(dir, true, false) != empty_dir(other, true, false))
        abort();
}

static char root[64];

static void remove_root(void)
{
    static const char *const names[] = {"/out", "/again", "/staging", ""};
    char path[sizeof root + 16];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s%s", root, names[i]);
        rmdir(path);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int dirs[3] = {-1, -1, -1};
    static const char *const names[3] = {"out", "again", "staging"};

    if (!root[0]) {
        snprintf(root, sizeof root, "/dev/shm/croft-fuzz-zip-XXXXXX");
        if (!mkdtemp(root))
            abort();
        atexit(remove_root);
        int top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (int i = 0; i < 3; i++) {
            mkdirat(top, names[i], 0700);
            dirs[i] = openat(top, names[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
        close(top);
    }
    if (size == 0)
        return 0;
    int fd = memfd_create("zip", MFD_CLOEXEC);
    err_free(fd_write_all(fd, str_n(data + 1, size - 1)));
    bool exact = data[0] & 2;
    struct err *e = unpack(fd, dirs[0], dirs[2], data[0] & 1, exact);
    if (e || exact)
        empty_dir(dirs[0], true, exact);
    else
        pack_again(dirs[0], dirs[1], dirs[2]);
    err_free(e);
    close(fd);
    return 0;
}
