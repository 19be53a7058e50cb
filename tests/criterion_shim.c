/* SPDX-License-Identifier: BSD-2-Clause */
#include "criterion_shim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

static shim_test *first, **last = &first;
static jmp_buf end_of_test;
static int failures; /* of the test that runs */

void shim_add(shim_test *test)
{
    *last = test;
    last = &test->next;
}

void shim_fail(int fatal, const char *file, int line, const char *condition, const char *format,
               ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%s:%d: %s: ", file, line, condition);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    failures++;
    if (fatal)
        longjmp(end_of_test, 1);
}

_Noreturn void shim_skip(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("skipped: ");
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    longjmp(end_of_test, 1);
}

static int run(const shim_test *test, void *param)
{
    failures = 0;
    if (setjmp(end_of_test) == 0)
        test->body(param);
    printf("%s %s/%s\n", failures ? "FAIL" : "ok", test->suite, test->name);
    fflush(stdout);
    return failures != 0;
}

int main(void)
{
    int ran = 0, failed = 0;
    for (const shim_test *test = first; test; test = test->next) {
        struct criterion_test_params each = {0, NULL, 1};
        if (test->parameters)
            each = test->parameters();
        for (size_t i = 0; i < each.length; i++, ran++)
            failed += run(test, each.params ? (char *)each.params + i * each.size : NULL);
    }
    printf("%d tests, %d failed\n", ran, failed);
    return failed > 0 || ran == 0;
}
