/* Asks a run a query and shows what each answer was copied from.
 *
 *   cc predict.c $(pkg-config --cflags --libs vlp) -o predict
 *   ./predict RUN HEAD RELATION */
#include <stdio.h>
#include <vlp.h>

/* The answer's best reference, as a sentence. */
static void print_reference(const vlp_dataset *data, const vlp_answers *answers,
                            const vlp_prediction *prediction) {
    int32_t best = -1;
    for (int32_t i = 0; i < answers->reference_count; i++)
        if (best < 0 || prediction->contributions[i] > prediction->contributions[best]) best = i;
    if (best < 0) return;
    vlp_triple triple = answers->references[best].triple;
    printf("    most from %s %s %s (%+.4f)\n", vlp_dataset_entity_name(data, triple.head),
           vlp_dataset_relation_name(data, triple.relation), vlp_dataset_entity_name(data, triple.tail),
           prediction->contributions[best]);
}

static int ask(vlp_run *run, const char *head, const char *relation) {
    const vlp_dataset *data = vlp_run_dataset(run);
    vlp_triple triple = {-1, -1, -1}; /* -1 is what is asked for */
    if (vlp_dataset_find_entity(&triple.head, data, head)) return 1;
    if (vlp_dataset_find_relation(&triple.relation, data, relation)) return 1;
    vlp_query query = vlp_query_of(data, triple);

    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.count = 3;
    options.explain = true;
    vlp_predictions *predictions = NULL;
    if (vlp_run_predict(&predictions, run, &query, 1, &options)) return 1;
    const vlp_answers *answers = vlp_predictions_get(predictions, 0);
    for (int32_t i = 0; i < answers->prediction_count; i++) {
        const vlp_prediction *prediction = &answers->predictions[i];
        printf("%.4f  %s\n", prediction->score, vlp_dataset_entity_name(data, prediction->entity));
        print_reference(data, answers, prediction);
    }
    vlp_predictions_free(predictions);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: predict RUN HEAD RELATION\n");
        return 2;
    }
    vlp_run *run = NULL;
    int code = vlp_run_open(&run, argv[1], NULL) || ask(run, argv[2], argv[3]);
    if (code) fprintf(stderr, "%s\n", vlp_error_message());
    vlp_run_free(run);
    return code;
}
