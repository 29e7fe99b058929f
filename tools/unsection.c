// SPDX-License-Identifier: Apache-2.0
/* unsection FILE — cuts off a program's table of sections, and whatever else no segment holds: only
 * linkers and debuggers read that, and of a stripped program they learn nothing from it. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int fail(const char *what)
{
    perror(what);
    return 1;
}

int main(int argc, char **argv)
{
    int fd = argc == 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
    Elf64_Ehdr head;
    Elf64_Off end = 0;

    if (fd < 0 || pread(fd, &head, sizeof head, 0) != sizeof head)
        return fail("unsection: read a program");
    for (unsigned i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        if (pread(fd, &part, sizeof part, (off_t)(head.e_phoff + i * sizeof part)) != sizeof part)
            return fail("unsection: read a segment");
        if (part.p_offset + part.p_filesz > end)
            end = part.p_offset + part.p_filesz;
    }
    head.e_shoff = 0;
    head.e_shnum = head.e_shstrndx = 0;
    if (pwrite(fd, &head, sizeof head, 0) != sizeof head || ftruncate(fd, (off_t)end) < 0 ||
        close(fd) < 0)
        return fail("unsection: write a program");
    return 0;
}
