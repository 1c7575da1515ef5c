/* Whether explanations are faithful: queries of test are answered, and of the best answer's references
 * one is taken out: the one that contributes most, one at random, the one that contributes least. How
 * far does the answer's score fall, and is it still the best?
 *
 * Taken out of the references: the head sees the others only. Taken out of the graph: references are
 * looked for anew without that triple, another may take its place.
 *
 *   bench_explain RUN [QUERIES]   prints the table of docs/explanations.md */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bench.h"
#include "run/score.h"

enum { KINDS = 3 }; /* most, random, least */

typedef struct sums {
    int64_t queries;
    double contribution[KINDS], drop[KINDS]; /* out of the references, out of the graph */
    int64_t changed[KINDS];                  /* another answer is the best then */
    int64_t beats_random; /* the one that contributes most brings more than the random one */
    int64_t falls_more;   /* and its triple, out of the graph, costs more */
} sums;

/* The references to take out. */
static void choose(int32_t chosen[KINDS], const vlp_answers *answers, int64_t number) {
    const double *brought = answers->predictions[0].contributions;
    chosen[0] = chosen[2] = 0;
    for (int32_t i = 1; i < answers->reference_count; i++) {
        if (brought[i] > brought[chosen[0]]) chosen[0] = i;
        if (brought[i] < brought[chosen[2]]) chosen[2] = i;
    }
    vlp_random4 random = vlp_random(0, VLP_STREAM_TEST, (uint64_t)number, 0);
    chosen[1] = (int32_t)vlp_random_below(random.v[0], random.v[1], (uint32_t)answers->reference_count);
}

static void take_out(sums *all, vlp_run *run, const vlp_answers *answers, int64_t number,
                     const vlp_predict_options *options) {
    int32_t chosen[KINDS], same[KINDS];
    double drops[KINDS];
    vlp_query queries[KINDS];
    const vlp_prediction *best = &answers->predictions[0];
    choose(chosen, answers, number);
    for (int kind = 0; kind < KINDS; kind++) {
        queries[kind] = answers->query;
        queries[kind].left_out =
            vlp_graph_find(vlp_run_graph(run), answers->references[chosen[kind]].triple);
        same[kind] = best->entity;
    }
    vlp_predictions *explained = NULL, *anew = NULL;
    need(vlp_run_explain(&explained, run, queries, same, KINDS, NULL));
    need(vlp_run_predict(&anew, run, queries, KINDS, options));
    for (int kind = 0; kind < KINDS; kind++) {
        drops[kind] = best->score - vlp_predictions_get(explained, kind)->predictions[0].score;
        all->contribution[kind] += best->contributions[chosen[kind]];
        all->drop[kind] += drops[kind];
        all->changed[kind] += vlp_predictions_get(anew, kind)->predictions[0].entity != best->entity;
    }
    all->beats_random += best->contributions[chosen[0]] > best->contributions[chosen[1]];
    all->falls_more += drops[0] > drops[1];
    all->queries++;
    vlp_predictions_free(explained);
    vlp_predictions_free(anew);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: bench_explain RUN [QUERIES]\n");
        return 2;
    }
    int64_t wanted = argc > 2 ? atoll(argv[2]) : 1000, count;
    vlp_run *run = NULL;
    need(vlp_run_open(&run, argv[1], NULL));
    vlp_run_info info;
    vlp_run_describe(&info, run);
    if (!info.copies) {
        fprintf(stderr, "bench: %s copies nothing: there is nothing to take out\n", argv[1]);
        return 1;
    }
    const vlp_triple *test = vlp_dataset_triples(vlp_run_dataset(run), VLP_TEST, &count);
    int32_t relations = vlp_dataset_relation_count(vlp_run_dataset(run));
    if (wanted > 2 * count) wanted = 2 * count;
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.count = 1;
    options.explain = true;
    options.filter = 1u << VLP_TRAIN | 1u << VLP_VALID;
    sums all = {0};
    for (int64_t i = 0; i < wanted; i++) {
        /* Spread over test, both ways. */
        int64_t at = i * (2 * count) / wanted;
        vlp_triple triple = test[at % count];
        vlp_query query = at < count ? (vlp_query){triple.head, triple.relation, -1}
                                     : (vlp_query){triple.tail, triple.relation + relations, -1};
        vlp_predictions *predictions = NULL;
        need(vlp_run_predict(&predictions, run, &query, 1, &options));
        const vlp_answers *answers = vlp_predictions_get(predictions, 0);
        if (answers->prediction_count > 0 && answers->reference_count > 1)
            take_out(&all, run, answers, i, &options);
        vlp_predictions_free(predictions);
    }
    double n = all.queries > 0 ? (double)all.queries : 1;
    printf("%s, %s: %lld queries of test with two references or more, the best answer of each\n\n",
           argv[1], info.model, (long long)all.queries);
    printf("| taken out | score falls, out of the references | score falls, out of the graph | another "
           "answer is best then |\n");
    printf("|---|---|---|---|\n");
    static const char *const names[KINDS] = {"the reference that contributes most", "one at random",
                                             "the one that contributes least"};
    for (int kind = 0; kind < KINDS; kind++)
        printf("| %s | %.4f | %.4f | %.1f%% |\n", names[kind], all.contribution[kind] / n,
               all.drop[kind] / n, 100 * (double)all.changed[kind] / n);
    printf("\nThe reference that contributes most costs more than the random one: out of the references "
           "in %.1f%%, out of the graph in %.1f%% of the queries (in %.1f%% they are the same).\n",
           100 * (double)all.beats_random / n, 100 * (double)all.falls_more / n,
           100 - 100 * (double)all.beats_random / n);
    vlp_run_free(run);
    return 0;
}
