/* The order of queries: a permutation, a different one in every pass, and uniformly distributed. */
#include <math.h>
#include <stdlib.h>

#include "support.h"

#include "base/order.h"
#include "chi_square.h"

enum { SEED = 404 };

static void check_permutation(int64_t n, uint64_t seed, uint64_t pass) {
    uint8_t *seen = calloc((size_t)n, 1);
    assert_non_null(seen);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = vlp_permuted(i, n, seed, pass);
        assert_true(at >= 0 && at < n && !seen[at]);
        seen[at] = 1;
    }
    free(seen);
}

static int compare_positions(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void test_order_is_permutation(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 300; n++)
        for (uint64_t pass = 0; pass < 5; pass++) check_permutation(n, SEED, pass);
    static const int64_t large[] = {1022, 1023, 1024, 1025, 65536, 65537, 173670, (1 << 18) + 1};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) check_permutation(large[i], SEED, i);
    /* Too large to check completely: the items of a sample are distinct and evenly distributed. */
    for (int64_t n = INT64_C(3000000000); n < INT64_C(1) << 61; n *= 7) {
        enum { SAMPLE = 4000, PARTS = 10 };
        int64_t at[SAMPLE], observed[PARTS] = {0};
        long double share[PARTS];
        for (int64_t i = 0; i < SAMPLE; i++) {
            at[i] = vlp_permuted(i % 2 ? i : n - 1 - i, n, SEED, 1);
            assert_true(at[i] >= 0 && at[i] < n);
            observed[at[i] / (n / PARTS + 1)]++;
        }
        qsort(at, SAMPLE, sizeof *at, compare_positions);
        for (int i = 1; i < SAMPLE; i++) assert_true(at[i - 1] < at[i]);
        for (int i = 0; i < PARTS; i++) share[i] = 1.0L / PARTS;
        assert_true(fits(compare_counts(observed, share, PARTS, SAMPLE), UNLIKELY));
    }
}

static int64_t fixed_points(int64_t n, uint64_t seed, uint64_t pass, uint64_t other_seed,
                            uint64_t other_pass) {
    int64_t same = 0;
    for (int64_t i = 0; i < n; i++)
        same += vlp_permuted(i, n, seed, pass) == vlp_permuted(i, n, other_seed, other_pass);
    return same;
}

/* Two permutations of a thousand items agree in about one position. */
static void test_orders_differ(void **state) {
    (void)state;
    for (uint64_t pass = 0; pass < 20; pass++) {
        assert_true(fixed_points(1000, SEED, pass, SEED, pass + 1) < 12);
        assert_true(fixed_points(1000, SEED, pass, SEED + 1, pass) < 12);
        int64_t in_place = 0;
        for (int64_t i = 0; i < 1000; i++) in_place += vlp_permuted(i, 1000, SEED, pass) == i;
        assert_true(in_place < 12);
    }
}

/* Every item at every position equally often. */
static void test_order_is_even(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 13, 16, 17, 27, 40, 64};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        enum { PASSES = 20000 };
        int64_t n = sizes[s], count[64][64] = {{0}};
        for (uint64_t pass = 0; pass < PASSES; pass++)
            for (int64_t i = 0; i < n; i++) count[i][vlp_permuted(i, n, SEED, pass)]++;
        double sum = 0, expected = (double)PASSES / (double)n;
        for (int64_t i = 0; i < n; i++)
            for (int64_t at = 0; at < n; at++) sum += pow((double)count[i][at] - expected, 2) / expected;
        /* Rows and columns of the counts have fixed sums: (n - 1)^2 degrees of freedom, each with a
         * variance of n / (n - 1). */
        double freedom = (double)((n - 1) * (n - 1)), scaled = sum * (double)(n - 1) / (double)n;
        assert_true(n == 1 ? sum == 0 : scaled <= quantile(freedom, UNLIKELY));
    }
}

/* All permutations of a few items equally often. */
static void test_all_orders_occur(void **state) {
    (void)state;
    for (int64_t n = 2; n <= 5; n++) {
        enum { PASSES = 60000, CODES = 5 * 5 * 5 * 5 * 5 };
        int64_t observed[CODES] = {0}, orders = 1;
        for (int64_t i = 2; i <= n; i++) orders *= i;
        for (uint64_t pass = 0; pass < PASSES; pass++) {
            int64_t code = 0;
            for (int64_t i = 0; i < n; i++) code = code * n + vlp_permuted(i, n, SEED + 1, pass);
            observed[code]++;
        }
        double sum = 0, expected = (double)PASSES / (double)orders;
        int64_t occurring = 0;
        for (int64_t code = 0; code < CODES; code++) {
            if (observed[code] == 0) continue;
            occurring++;
            sum += pow((double)observed[code] - expected, 2) / expected;
        }
        assert_int_equal(occurring, orders);
        assert_true(sum <= quantile((double)orders - 1, UNLIKELY));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_is_permutation),
        cmocka_unit_test(test_orders_differ),
        cmocka_unit_test(test_order_is_even),
        cmocka_unit_test(test_all_orders_occur),
    };
    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
