/* The sampler of the CUDA backend on shapes that fill a GPU: shares of the shells, no repetitions, no
 * known answers. Without a GPU the test is passed over, unless VLP_TEST_DEVICE asks for one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/distance.h"
#include "lab.h"

enum { SEED = 70 };

static const vlp_backend *gpu;

/* Half-bytes of distances 1 .. 8, at random. */
typedef struct shells {
    int32_t nodes;
    uint8_t *matrix;
    int32_t *counts;
    vlp_shell_view on;
} shells;

static void make_shells(lab *bench, shells *out, int32_t nodes) {
    size_t stride = (size_t)vlp_shells_stride(nodes), n = (size_t)nodes;
    *out = (shells){nodes, calloc(n * stride, 1), calloc(9 * n, sizeof(int32_t)), {0}};
    assert_true(out->matrix && out->counts);
    for (int32_t i = 0; i < nodes; i++)
        for (int32_t e = 0; e < nodes; e++) {
            int32_t distance = e == i ? 0 : 1 + (lab_between(bench, 0, 199) + 20) / 28;
            out->matrix[(size_t)i * stride + (size_t)e / 2] |= (uint8_t)(distance << (e % 2 * 4));
            out->counts[i * 9 + distance]++;
        }
    out->on = (vlp_shell_view){nodes,
                               8,
                               lab_put_bytes(bench, out->matrix, n * stride),
                               (int64_t)stride,
                               lab_put_ids(bench, out->counts, 9 * nodes),
                               lab_put_bytes(bench, calloc(n, 1), n),
                               lab_put_bytes(bench, calloc(n + 1, 8), (n + 1) * 8),
                               lab_put_ids(bench, out->counts, 1)};
}

static int32_t shell_at(const shells *s, int32_t head, int32_t e) {
    size_t stride = (size_t)vlp_shells_stride(s->nodes);
    int32_t distance = s->matrix[(size_t)head * stride + (size_t)e / 2] >> (e % 2 * 4) & 15;
    return distance < 1 ? 1 : distance;
}

/* The chance of each shell to be among `count` drawn, in the limit of many: 1 - exp(-w T), with T such
 * that the chances add up to the count. */
static void expected_shares(double share[9], const shells *s, int32_t head, double alpha0,
                            int32_t count) {
    double low = 0, high = 1e12;
    for (int round = 0; round < 200; round++) {
        double middle = 0.5 * (low + high), sum = 0;
        for (int d = 1; d <= 8; d++) {
            share[d] = 1 - exp(-exp(-alpha0 * d) * middle);
            sum += share[d] * (s->counts[head * 9 + d] + (d == 1));
        }
        if (sum < count)
            low = middle;
        else
            high = middle;
    }
}

/* Enough draws for the two ways there are: keys in shared memory, and thresholds for the many. */
static void check_sampler(lab *bench, const shells *s, int32_t batch, int32_t count, float alpha0,
                          int32_t knowns) {
    size_t cells = (size_t)batch * ((size_t)count + 1);
    int32_t *heads = lab_ids(bench, batch, 0, s->nodes - 1),
            *known = calloc((size_t)(batch * knowns) + 1, 4);
    int64_t *offsets = calloc((size_t)batch + 1, sizeof *offsets);
    int32_t *rows = malloc(cells * sizeof *rows), *again = malloc(cells * sizeof *again);
    uint8_t *seen = calloc((size_t)s->nodes, 1);
    assert_true(known && offsets && rows && again && seen);
    for (int32_t i = 0; i < batch; i++) {
        offsets[i + 1] = offsets[i] + knowns;
        for (int32_t j = 0; j < knowns; j++) known[i * knowns + j] = (i + 1) % 7 + 11 * j;
    }
    memset(rows, 0xee, cells * sizeof *rows);
    vlp_sample_options options = {&s->on, alpha0, s->nodes, count, SEED};
    int32_t *rows_on = lab_put_ids(bench, rows, (int64_t)cells),
            *heads_on = lab_put_ids(bench, heads, batch);
    int32_t *known_on = lab_put_ids(bench, known, batch * knowns);
    int64_t *offsets_on = lab_put_bytes(bench, offsets, ((size_t)batch + 1) * sizeof *offsets);
    vlp_step_values values = {.step = 5};
    for (int round = 0; round < 2; round++) {
        assert_false(gpu->steps->begin(bench->compute, NULL, &values));
        assert_int_equal(gpu->sample->negatives(bench->compute, rows_on,
                                                &(vlp_sampled_queries){.count = batch,
                                                                       .heads = heads_on,
                                                                       .known_begin = offsets_on,
                                                                       .known_end = offsets_on + 1,
                                                                       .known = known_on},
                                                &options),
                         VLP_OK);
        lab_get_bytes(bench, round ? again : rows, rows_on, cells * sizeof *rows);
    }
    assert_memory_equal(rows, again, cells * sizeof *rows);
    double observed[9] = {0}, expected[9] = {0}, variance[9] = {0}, share[9] = {0};
    for (int32_t i = 0; i < batch; i++) {
        const int32_t *row = rows + (size_t)i * ((size_t)count + 1);
        memset(seen, 0, (size_t)s->nodes);
        for (int32_t j = 0; j < knowns; j++) seen[known[i * knowns + j]] = 1;
        for (int32_t j = 1; j <= count; j++) {
            assert_in_range(row[j], 0, s->nodes - 1);
            assert_int_equal(seen[row[j]], 0);
            seen[row[j]] = 1;
            observed[shell_at(s, heads[i], row[j])]++;
        }
        if (knowns > 0) continue;
        expected_shares(share, s, heads[i], (double)alpha0, count);
        for (int d = 1; d <= 8; d++) {
            double members = s->counts[heads[i] * 9 + d] + (d == 1);
            expected[d] += share[d] * members;
            variance[d] += share[d] * (1 - share[d]) * members;
        }
    }
    for (int d = 1; d <= 8 && knowns == 0; d++)
        if (fabs(observed[d] - expected[d]) > 5 * sqrt(variance[d]) + 0.002 * expected[d] + 3) {
            print_error("count %d, alpha0 %g, shell %d: %g drawn, %g expected\n", count, (double)alpha0,
                        d, observed[d], expected[d]);
            fail();
        }
    free(known);
    free(offsets);
    free(rows);
    free(again);
    free(seen);
}

static void test_sampler(void **state) {
    (void)state;
    if (!gpu) skip();
    lab bench;
    lab_open_on(&bench, gpu, 0, SEED + 5);
    shells small, large;
    make_shells(&bench, &small, 3001);
    make_shells(&bench, &large, 13001);
    static const float strengths[] = {0, 0.5f, 1.1f, 2};
    for (int i = 0; i < 4; i++) {
        check_sampler(&bench, &small, 200, 256, strengths[i], 0);
        check_sampler(&bench, &small, 60, 1024, strengths[i], 0);
        check_sampler(&bench, &small, 60, 1024, strengths[i], 40);
        check_sampler(&bench, &large, 9, 7900, strengths[i], 0); /* more than are sorted */
        check_sampler(&bench, &large, 9, 9000, strengths[i], 40);
    }
    free(small.matrix);
    free(small.counts);
    free(large.matrix);
    free(large.counts);
    lab_close(&bench);
}

int main(void) {
    gpu = lab_gpu();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sampler)};
    return cmocka_run_group_tests_name("cuda sampler", tests, NULL, NULL);
}
