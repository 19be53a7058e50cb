/* SPDX-License-Identifier: BSD-2-Clause */
/* attend: threads of the host call softmax attention at once, each with a team, forward and
 * backward, whose tasks wait for each other. All get the same bits. */
#include "process.h"
#include "sattn/sattn.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 3,
    CALLS = 3,
    QUERIES = 200,
    KEYS = 1600,
    WIDTH = 8,
    Q = QUERIES * WIDTH,
    K = KEYS * WIDTH
};

static float q[Q], k[K], v[K], dout[Q];

typedef struct {
    float out[Q], stats[2 * QUERIES], dq[Q], dk[K], dv[K];
} result;

static void *caller(void *memory)
{
    result *r = memory;
    sattn_attention p;
    int32_t status = sattn_attention_init(&p, sizeof p, 1, 1, 1, QUERIES, KEYS, WIDTH, WIDTH);
    EXPECT(status == SATTN_OK, "%s", sattn_status_string(status));
    p.q.data = q, p.k.data = k, p.v.data = v, p.dout.data = dout, p.threads = 4;
    p.out.data = r->out, p.stats.data = r->stats;
    p.dq.data = r->dq, p.dk.data = r->dk, p.dv.data = r->dv;
    for (int i = 0; i < CALLS; i++) {
        status = sattn_attention_forward_f32(&p);
        EXPECT(status == SATTN_OK, "%s", sattn_status_string(status));
        status = sattn_attention_backward_f32(&p);
        EXPECT(status == SATTN_OK, "%s", sattn_status_string(status));
    }
    return NULL;
}

static void fill_with(float *x, int n, int step)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)(i * step % 101) / 50 - 1;
}

int main(void)
{
    pthread_t ids[THREADS];
    result *results = calloc(THREADS, sizeof *results);
    EXPECT(results != NULL, "no memory");
    fill_with(q, Q, 37);
    fill_with(k, K, 41);
    fill_with(v, K, 43);
    fill_with(dout, Q, 47);
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&ids[i], NULL, caller, &results[i]) == 0, "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    for (int i = 1; i < THREADS; i++)
        EXPECT(memcmp(&results[i], &results[0], sizeof *results) == 0, "other bits in %d", i);
    EXPECT(results[0].dk[K - 1] != 0, "nothing came out");
    free(results);
    return 0;
}
