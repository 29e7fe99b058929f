// SPDX-License-Identifier: Apache-2.0
/* test.h — tests that register themselves; each runs in a process of its own.
 *
 *   TEST(replay_starts_after_the_id_asked_for) { CHECK_STR(…, "second\n"); }
 *
 * A failed CHECK ends the test. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rows.h"
#include "base/str.h"

struct test {
    const char *file, *name;
    void (*run)(void);
    unsigned limit_s; /* 0: the runner's default */
};

#define TEST(id) TEST_LIMIT(id, 0)
#define TEST_LIMIT(id, seconds)                                                                    \
    static void test_run_##id(void);                                                               \
    ROW(tests, struct test,                                                                        \
        id) = {.file = __FILE__, .name = #id, .run = test_run_##id, .limit_s = seconds};           \
    static void test_run_##id(void)

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond))                                                                               \
            test_fail(__FILE__, __LINE__, "%s", #cond);                                            \
    } while (0)
#define CHECK_INT(got, want)                                                                       \
    test_check_int(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))
#define CHECK_STR(got, want)                                                                       \
    test_check_str(__FILE__, __LINE__, #got, TEST_STR_(got), TEST_STR_(want))
#define CHECK_HAS(got, part)                                                                       \
    test_check_has(__FILE__, __LINE__, #got, TEST_STR_(got), TEST_STR_(part))
#define CHECK_OK(call) test_check_ok(__FILE__, __LINE__, #call, (call))
/* Must fail with this code and a text that holds `part`. */
#define CHECK_ERR(call, code, part) test_check_err(__FILE__, __LINE__, #call, (call), code, part)
#define FAIL(...)                   test_fail(__FILE__, __LINE__, __VA_ARGS__)
#define SKIP(...)                   test_skip(__VA_ARGS__)

#define TEST_STR_(x)                                                                               \
    _Generic((x), struct str : test_str, char * : test_str_c, const char * : test_str_c)(x)
static inline struct str test_str(struct str s)
{
    return s;
}
static inline struct str test_str_c(const char *s)
{
    return str_of(s);
}

_Noreturn void test_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void test_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void test_check_int(const char *file, int line, const char *what, long long got, long long want);
void test_check_str(const char *file, int line, const char *what, struct str got, struct str want);
void test_check_has(const char *file, int line, const char *what, struct str got, struct str part);
void test_check_ok(const char *file, int line, const char *what, struct err *e);
void test_check_err(const char *file, int line, const char *what, struct err *e, enum err_code code,
                    const char *part);

/* Makes the n-th allocation or system call from now on fail (ENOMEM, or an errno that fits the
 * call), once; 0 disarms. Counts calls made by our objects, not by libraries. */
void fault_at(unsigned n);
/* From here on children count too: one fault in all of them together. */
void fault_share(void);
/* From here on calls fail as well that matter to what makes walls only: ids, capabilities, filters,
 * owners, descriptors. */
void fault_deep(void);
/* Every call of this name fails until it is NULL; not counted. */
void fault_always(const char *name);
bool fault_fired(void);
const char *fault_name(void); /* of the call that failed; of syscall and prctl with its number */
/* Past the counter, for a test that counts in another process. */
long __real_syscall(long number, ...);
struct pollfd;
int __real_poll(struct pollfd *p, unsigned long n, int timeout_ms);
unsigned fault_calls(void); /* since it was last armed or counted: fault_at(UINT_MAX) counts only */

/* A fresh directory, removed with all in it when the test ends; the path lives as long as it. */
const char *test_dir(void);
int test_dir_fd(void);
unsigned test_slow(void); /* how many times as long as usual to wait before something hangs */
/* Path of a built program, "croft" or "croft-guest", of the build under test. */
const char *test_program(const char *name);
/* From here on alone in a pid namespace, where that is allowed: for a test that looks through all
 * processes often, which would take minutes on a machine with thousands. */
void test_alone(void);
/* From here on in a network of its own, whose ports no other test takes. False: not allowed. */
bool test_own_network(void);
/* Open descriptors of this process, for leak checks. */
unsigned test_open_fds(void);
/* A free port of this machine, outside the range that the kernel chooses from. Each process gets
 * another number, so no other test has it either. */
unsigned test_free_port(void);
/* Path of a file in the source tree, for data ("test/json/cases.txt"). */
const char *test_source(const char *relative);
