/* SPDX-License-Identifier: BSD-2-Clause */
/* fork: children of a process that has computed with threads compute too, and the same bits. The
 * last fork comes from a second thread while the first is inside a call. */
#include "process.h"
#include "sattn/softmax.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 10 }; /* seconds for one call in a child, or for a call in the parent */

static float *x, *y, *wanted;
static atomic_int stop;

static int call(float *out)
{
    return sattn_softmax_f32(ROWS, COLUMNS, x, COLUMNS, out, COLUMNS, 4) == SATTN_OK &&
           memcmp(out, wanted, ELEMENTS * sizeof *out) == 0;
}

static void fork_and_call(const char *when)
{
    int status;
    const pid_t child = fork();
    EXPECT(child >= 0, "cannot fork");
    if (child == 0) {
        alarm(LIMIT);
        _exit(call(y) ? 0 : 1);
    }
    EXPECT(waitpid(child, &status, 0) == child, "lost a child");
    EXPECT(!WIFSIGNALED(status), "signal %d ended the child %s", WTERMSIG(status), when);
    EXPECT(status == 0, "other bits in the child %s", when);
}

static void *fork_meanwhile(void *unused)
{
    for (int i = 0; i < 10; i++)
        fork_and_call("of a second thread");
    atomic_store(&stop, 1);
    return unused;
}

int main(void)
{
    pthread_t second;
    x = floats(), y = floats(), wanted = floats();
    fill(x);
    EXPECT(sattn_softmax_f32(ROWS, COLUMNS, x, COLUMNS, wanted, COLUMNS, 4) == SATTN_OK, "softmax");
    for (int i = 0; i < 2; i++) {
        fork_and_call("after a call");
        alarm(LIMIT);
        EXPECT(call(y), "other bits in the parent");
        alarm(0);
    }
    EXPECT(pthread_create(&second, NULL, fork_meanwhile, NULL) == 0, "no thread");
    float *z = floats(); /* y belongs to the children of the second thread */
    while (!atomic_load(&stop))
        EXPECT(call(z), "other bits beside a fork");
    pthread_join(second, NULL);
    free(z);
    return 0;
}
