#include "random_data.h"

#include <stdio.h>
#include <stdlib.h>

void write_triples(const char *folder, const char *name, const vlp_triple *triples, int64_t count) {
    char *text = malloc((size_t)count * 40 + 1), *at = text;
    assert_non_null(text);
    for (int64_t i = 0; i < count; i++)
        at += sprintf(at, "e%d\tr%d\te%d\n", triples[i].head, triples[i].relation, triples[i].tail);
    support_write(folder, name, text, (size_t)(at - text));
    free(text);
}

const char *const split_files[VLP_SPLITS] = {"train.txt", "valid.txt", "test.txt"};

vlp_dataset *open_folder(const char *folder) {
    vlp_dataset *dataset = NULL;
    vlp_dataset_options options = VLP_DATASET_OPTIONS_INIT;
    options.threads = 1;
    vlp_status status = vlp_dataset_open(&dataset, folder, &options);
    if (status != VLP_OK) print_error("%s\n", vlp_error_message());
    assert_int_equal(status, VLP_OK);
    return dataset;
}

/* Triples at random, a few of them repeated in other splits; heads crowd at the low ids. */
vlp_dataset *random_dataset(sizes s, oracle_random *random) {
    const char *folder = support_folder();
    vlp_triple *triples[VLP_SPLITS];
    for (int split = 0; split < VLP_SPLITS; split++) {
        triples[split] = calloc((size_t)s.counts[split] + 1, sizeof **triples);
        assert_non_null(triples[split]);
        int32_t entities = s.entities + (split > 0 ? s.unseen : 0);
        for (int64_t i = 0; i < s.counts[split]; i++) {
            triples[split][i] =
                (vlp_triple){oracle_below(random, 1 + oracle_below(random, entities)),
                             oracle_below(random, s.relations), oracle_below(random, entities)};
            if (split > 0 && oracle_chance(random, 8))
                triples[split][i] = triples[0][oracle_below(random, (int32_t)s.counts[0])];
        }
        write_triples(folder, split_files[split], triples[split], s.counts[split]);
    }
    for (int split = 0; split < VLP_SPLITS; split++) free(triples[split]);
    vlp_dataset *dataset = open_folder(folder);
    support_remove(folder);
    return dataset;
}

vlp_query query_of(const vlp_dataset *dataset, vlp_split split, int64_t i, int32_t *answer) {
    int64_t count;
    const vlp_triple *triples = vlp_dataset_triples(dataset, split, &count);
    vlp_triple t = triples[i % count];
    *answer = i < count ? t.tail : t.head;
    return i < count ? (vlp_query){t.head, t.relation, -1}
                     : (vlp_query){t.tail, t.relation + vlp_dataset_relation_count(dataset), -1};
}

bool known(const vlp_dataset *dataset, unsigned splits, vlp_query query, int32_t entity) {
    int32_t relations = vlp_dataset_relation_count(dataset);
    bool forward = query.relation < relations;
    for (int split = 0; split < VLP_SPLITS; split++) {
        int64_t count;
        const vlp_triple *t = vlp_dataset_triples(dataset, (vlp_split)split, &count);
        for (int64_t i = 0; (splits >> split & 1) && i < count; i++)
            if (t[i].relation == query.relation % relations &&
                (forward ? t[i].head : t[i].tail) == query.entity &&
                (forward ? t[i].tail : t[i].head) == entity)
                return true;
    }
    return false;
}

sizes random_sizes(oracle_random *random) {
    return (sizes){
        4 + oracle_below(random, 30),
        1 + oracle_below(random, 3),
        oracle_below(random, 6),
        {10 + oracle_below(random, 60), 1 + oracle_below(random, 15), 1 + oracle_below(random, 15)}};
}
