/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TEST_CRITERION_SHIM_H
#define SATTN_TEST_CRITERION_SHIM_H

/* The macros of Criterion that the tests use, for where Criterion cannot run (ThreadSanitizer,
 * qemu, cross builds). All tests run in one process; a failed assertion ends its test. */

#include <stddef.h>
#include <string.h>

struct criterion_test_params {
    size_t size;
    void *params;
    size_t length;
};

typedef struct shim_test {
    const char *suite, *name;
    void (*body)(void *param);
    struct criterion_test_params (*parameters)(void); /* NULL: the test runs once */
    struct shim_test *next;
} shim_test;

void shim_add(shim_test *test);
/* Reports a failure and, if it is fatal, leaves the test. */
void shim_fail(int fatal, const char *file, int line, const char *condition, const char *format,
               ...);
_Noreturn void shim_skip(const char *format, ...);

#define SHIM_TEST(suite_, name_, param, argument, parameters_)                                     \
    static void suite_##_##name_##_body(param);                                                    \
    static void suite_##_##name_##_call(void *each)                                                \
    {                                                                                              \
        (void)each;                                                                                \
        suite_##_##name_##_body(argument);                                                         \
    }                                                                                              \
    __attribute__((constructor)) static void suite_##_##name_##_add(void)                          \
    {                                                                                              \
        static shim_test test = {#suite_, #name_, suite_##_##name_##_call, parameters_, NULL};     \
        shim_add(&test);                                                                           \
    }                                                                                              \
    static void suite_##_##name_##_body(param)

#define Test(suite, name) SHIM_TEST(suite, name, void, , NULL)
#define ParameterizedTest(param, suite, name)                                                      \
    SHIM_TEST(suite, name, param, each, suite##_##name##_parameters)
#define ParameterizedTestParameters(suite, name)                                                   \
    static struct criterion_test_params suite##_##name##_parameters(void)
#define cr_make_param_array(type, array, count)                                                    \
    ((struct criterion_test_params){sizeof(type), array, count})

/* Arguments: condition [, format, ...] */
#define SHIM_CHECK(fatal, condition, ...)                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            shim_fail(fatal, __FILE__, __LINE__, #condition, __VA_ARGS__);                         \
    } while (0)
#define SHIM_COMPARE(fatal, operator, a, b, ...) SHIM_CHECK(fatal, (a) operator(b), __VA_ARGS__)

#define cr_assert(...) SHIM_CHECK(1, __VA_ARGS__, "")
#define cr_expect(...) SHIM_CHECK(0, __VA_ARGS__, "")
#define cr_assert_eq(...) SHIM_COMPARE(1, ==, __VA_ARGS__, "")
#define cr_expect_eq(...) SHIM_COMPARE(0, ==, __VA_ARGS__, "")
#define cr_assert_neq(...) SHIM_COMPARE(1, !=, __VA_ARGS__, "")
#define cr_expect_neq(...) SHIM_COMPARE(0, !=, __VA_ARGS__, "")
#define cr_assert_not_null(...) SHIM_COMPARE(1, !=, NULL, __VA_ARGS__, "")
#define cr_assert_str_eq(a, ...) SHIM_STR_EQ(a, __VA_ARGS__, "")
#define SHIM_STR_EQ(a, b, ...) SHIM_CHECK(1, strcmp(a, b) == 0, __VA_ARGS__)
#define cr_assert_fail(...) shim_fail(1, __FILE__, __LINE__, "unreachable", __VA_ARGS__, "")
#define cr_skip_test(...) shim_skip(__VA_ARGS__, "")

#endif
