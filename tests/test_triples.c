/* The triples of a run: there and back, the same bytes each time, every wrong line named, every
 * allocation failing once. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing_allocator.h"
#include "oracle.h"
#include "store/triples.h"

static void must(vlp_status status) {
    if (status != VLP_OK) fail_msg("%s", vlp_error_message());
}

static vlp_stored_triples random_triples(uint64_t seed, int32_t most) {
    oracle_random random = {seed, 0, 0};
    vlp_stored_triples made = {0};
    for (int split = 0; split < VLP_SPLITS; split++) {
        made.counts[split] = oracle_below(&random, most);
        made.items[split] = calloc((size_t)made.counts[split] + 1, sizeof(vlp_triple));
        assert_non_null(made.items[split]);
        for (int64_t i = 0; i < made.counts[split]; i++)
            made.items[split][i] =
                (vlp_triple){oracle_below(&random, INT32_MAX), oracle_below(&random, 100),
                             oracle_below(&random, 1 + oracle_below(&random, INT32_MAX - 1))};
    }
    return made;
}

static void release(vlp_stored_triples *triples) {
    for (int split = 0; split < VLP_SPLITS; split++) free(triples->items[split]);
}

static void there_and_back(void **state) {
    (void)state;
    const char *folder = support_folder();
    for (uint64_t seed = 0; seed < 12; seed++) {
        vlp_stored_triples made = random_triples(seed, seed < 10 ? 40 : 20000), back;
        const char *path = support_path(folder, "triples.tsv.gz"),
                   *again = support_path(folder, "again");
        must(vlp_triples_write(path, &made));
        must(vlp_triples_read(&back, path, INT32_MAX, 100));
        for (int split = 0; split < VLP_SPLITS; split++) {
            assert_int_equal(back.counts[split], made.counts[split]);
            if (made.counts[split])
                assert_memory_equal(back.items[split], made.items[split],
                                    (size_t)made.counts[split] * sizeof(vlp_triple));
        }
        /* The same bytes; bytes 4 to 7 of a gzip file are its time, and there is none. */
        must(vlp_triples_write(again, &back));
        vlp_map left, right;
        must(vlp_map_open(&left, path));
        must(vlp_map_open(&right, again));
        assert_int_equal(left.size, right.size);
        assert_memory_equal(left.data, right.data, left.size);
        assert_memory_equal(left.data + 4, "\0\0\0\0", 4);
        vlp_map_close(&left);
        vlp_map_close(&right);
        vlp_stored_triples_free(&back);
        release(&made);
    }
    support_remove(folder);
}

static vlp_status parse(vlp_stored_triples *out, const char *text, size_t size) {
    vlp_source *source = NULL;
    must(vlp_source_open_memory(&source, "triples", text, size));
    vlp_status status = vlp_triples_parse(out, source, 10, 3);
    vlp_source_free(source);
    return status;
}

static void lines(void **state) {
    (void)state;
    vlp_stored_triples read;
    static const char good[] = "train\t0\t0\t9\nvalid\t00\t2\t1\ntrain\t1\t1\t1";
    must(parse(&read, good, sizeof good - 1));
    assert_int_equal(read.counts[VLP_TRAIN], 2);
    assert_int_equal(read.counts[VLP_VALID], 1);
    assert_int_equal(read.items[VLP_TRAIN][0].tail, 9);
    assert_int_equal(read.items[VLP_VALID][0].relation, 2);
    vlp_stored_triples_free(&read);
    must(parse(&read, "", 0));
    assert_int_equal(read.counts[VLP_TRAIN] + read.counts[VLP_VALID] + read.counts[VLP_TEST], 0);

    static const char *const bad[] = {"train\t0\t0\t10",
                                      "train\t10\t0\t1",
                                      "train\t0\t3\t1",
                                      "train\t0\t0",
                                      "train\t0\t0\t1\t",
                                      "train\t0\t0\t",
                                      "train\t\t0\t1",
                                      "trains\t0\t0\t1",
                                      "train 0\t0\t1",
                                      "train\t-1\t0\t1",
                                      "train\t0\t0\t1\r",
                                      "",
                                      "train",
                                      "train\t0\t0\t99999999999999999999999"};
    char text[4096];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int length = snprintf(text, sizeof text, "test\t1\t2\t3\n%s\n", bad[i]);
        assert_int_equal(parse(&read, text, (size_t)length), VLP_ERROR_FORMAT);
        assert_non_null(strstr(vlp_error_message(), "triples:2: "));
    }
    assert_int_equal(parse(&read, "train\t0\0\t0\t1\n", 13), VLP_ERROR_FORMAT);
    /* A line that does not end. */
    memset(text, 'x', sizeof text);
    assert_int_equal(parse(&read, text, sizeof text), VLP_ERROR_FORMAT);
}

static void damaged_files(void **state) {
    (void)state;
    const char *folder = support_folder(), *path = support_path(folder, "triples.tsv.gz");
    vlp_stored_triples made = random_triples(3, 4000), read;
    must(vlp_triples_write(path, &made));
    vlp_map map;
    must(vlp_map_open(&map, path));
    char *copy = malloc(map.size);
    size_t size = map.size;
    assert_non_null(copy);
    memcpy(copy, map.data, size);
    vlp_map_close(&map);
    support_write(folder, "triples.tsv.gz", copy, size / 2);
    assert_int_equal(vlp_triples_read(&read, path, INT32_MAX, 100), VLP_ERROR_FORMAT);
    copy[size / 2] ^= 8;
    support_write(folder, "triples.tsv.gz", copy, size);
    assert_int_equal(vlp_triples_read(&read, path, INT32_MAX, 100), VLP_ERROR_FORMAT);
    assert_non_null(strstr(vlp_error_message(), "triples.tsv.gz"));
    free(copy);
    release(&made);
    support_remove(folder);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const char *folder = support_folder(), *path = support_path(folder, "triples.tsv.gz");
    vlp_stored_triples made = random_triples(5, 300), read;
    failing_allocator memory;
    for (int reading = 0; reading < 2; reading++) {
        int64_t call = 0;
        do {
            failing_allocator_install(&memory, ++call);
            vlp_status status =
                reading ? vlp_triples_read(&read, path, INT32_MAX, 100) : vlp_triples_write(path, &made);
            assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
            if (reading && status == VLP_OK) vlp_stored_triples_free(&read);
            failing_allocator_remove(&memory);
            assert_int_equal(support_count(folder), reading || status == VLP_OK);
        } while (memory.failed);
        assert_true(call > 5);
    }
    release(&made);
    support_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(lines),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
