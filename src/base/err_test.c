// SPDX-License-Identifier: Apache-2.0
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "test/test.h"

static fallible fails(void)
{
    return err_new(ERR_NOT_FOUND, "no '%s'", "x");
}

static fallible passes_on(bool fail, int *ret_reached)
{
    if (fail)
        TRY_WRAP(fails(), "open %d", 7);
    TRY(NULL);
    *ret_reached = 1;
    return NULL;
}

TEST(error_tells_its_story_from_the_outside_in)
{
    int reached = 0;
    own(err) e = passes_on(true, &reached);

    CHECK_STR(err_text(e), "open 7: no 'x'");
    CHECK_INT(err_code(e), ERR_NOT_FOUND);
    CHECK_INT(err_errno(e), 0);
    CHECK_INT(reached, 0);
    CHECK_OK(passes_on(false, &reached));
    CHECK_INT(reached, 1);
    CHECK_OK(err_wrap(NULL, "nothing"));
}

TEST(error_keeps_when_to_try_again_on_its_way_out)
{
    own(err) e = err_again(fails(), 30);

    e = err_recode(err_wrap(take(&e), "open"), ERR_LIMIT);
    CHECK_INT(err_again_s(e), 30);
    own(err) copy = err_copy(e);
    own(err) plain = fails();
    CHECK_INT(err_again_s(copy), 30);
    CHECK_INT(err_again_s(plain), 0);
    CHECK_OK(err_again(NULL, 1));
}

TEST(error_of_a_system_call_keeps_errno_and_finds_its_code)
{
    static const struct {
        int errnum;
        enum err_code code;
    } map[] = {{ENOENT, ERR_NOT_FOUND},  {EACCES, ERR_FORBIDDEN},   {EXDEV, ERR_FORBIDDEN},
               {EEXIST, ERR_CONFLICT},   {ENOMEM, ERR_NO_MEMORY},   {EMFILE, ERR_BUSY},
               {EINVAL, ERR_INVALID},    {EPIPE, ERR_CLOSED},       {ECONNREFUSED, ERR_UPSTREAM},
               {ETIMEDOUT, ERR_TIMEOUT}, {ENOSYS, ERR_UNSUPPORTED}, {EIO, ERR_IO},
               {ENOSPC, ERR_NO_SPACE},   {EDQUOT, ERR_NO_SPACE}};

    for (size_t i = 0; i < ARRAY_LEN(map); i++) {
        errno = map[i].errnum;
        own(err) e = err_sys("call %zu", i);
        CHECK_INT(err_code(e), map[i].code);
        CHECK_INT(err_errno(e), map[i].errnum);
        CHECK_HAS(err_text(e), strerror(map[i].errnum));
    }
    own(err) e = err_wrap(err_sysno(ENOENT, "open"), "load");
    CHECK_STR(err_text(e), "load: open: No such file or directory");
    CHECK_INT(err_errno(e), ENOENT);
}

TEST(every_code_has_a_status_and_a_word)
{
#define ROW_CHECK(code, status, word)                                                              \
    CHECK_INT(err_http_status(code), status);                                                      \
    CHECK_STR(err_code_word(code), word);
    ERR_CODES(ROW_CHECK)
#undef ROW_CHECK
}

TEST(error_can_be_recoded_and_copied)
{
    own(err) e = err_recode(err_sysno(EIO, "disk"), ERR_BUSY);
    own(err) copy = err_copy(e);

    CHECK_INT(err_code(e), ERR_BUSY);
    CHECK(copy != e);
    CHECK_STR(err_text(copy), err_text(e));
    CHECK_INT(err_code(copy), ERR_BUSY);
    CHECK_INT(err_errno(copy), EIO);
    CHECK_OK(err_copy(NULL));
    CHECK_OK(err_recode(NULL, ERR_BUSY));
}

TEST(error_without_memory_is_a_shared_one_that_survives_everything)
{
    fault_at(1);
    struct err *e = err_new(ERR_INVALID, "text");
    CHECK(fault_fired());
    CHECK_INT(err_code(e), ERR_NO_MEMORY);
    CHECK_STR(err_text(e), "out of memory");
    e = err_recode(e, ERR_INVALID);
    CHECK_INT(err_code(e), ERR_NO_MEMORY);
    err_free(e);
    err_free(e);
    e = err_wrap(err_no_memory(), "load");
    CHECK_STR(err_text(e), "load: out of memory");
    err_free(e);
    err_free(NULL);
}

TEST(wrapping_without_memory_keeps_the_fact)
{
    for (unsigned n = 1; n <= 2; n++) {
        struct err *e = err_new(ERR_NOT_FOUND, "no such thing");
        fault_at(n);
        e = err_wrap(e, "context");
        fault_at(0);
        CHECK_INT(err_code(e), ERR_NOT_FOUND);
        CHECK_HAS(err_text(e), "no such thing");
        err_free(e);
    }
}

TEST(error_holds_text_of_any_length)
{
    static char lots[5000];

    memset(lots, 'x', sizeof lots - 1);
    own(err) e = err_wrap(err_new(ERR_IO, "%s", lots), "%s", lots);
    CHECK_INT(strlen(err_text(e)), 2 * 4999 + 2);
}

TEST(own_fd_closes_at_the_end_of_the_scope_and_take_prevents_it)
{
    int kept;
    unsigned before = test_open_fds();

    {
        own_fd gone = open("/dev/null", O_RDONLY | O_CLOEXEC);
        own_fd moved = open("/dev/null", O_RDONLY | O_CLOEXEC);
        own_fd empty = -1;
        CHECK(gone >= 0 && empty == -1);
        kept = take_fd(&moved);
        CHECK_INT(moved, -1);
        errno = 42;
    }
    CHECK_INT(errno, 42); /* closing is silent */
    CHECK_INT(test_open_fds(), before + 1);
    own_close(kept);
    errno = 42;
    own_close(kept); /* already closed: errno is kept even then */
    CHECK_INT(errno, 42);
}

TEST(take_moves_a_pointer_and_leaves_null)
{
    own(err) e = err_new(ERR_IO, "x");
    own(err) moved = take(&e);

    CHECK(e == NULL && moved != NULL);
    own_free char *raw = strdup("freed at the end, as LeakSanitizer will confirm");
    CHECK(raw != NULL);
}
