/* Trains a small model on a data set and says how good it is on what was held out.
 *
 *   cc train.c $(pkg-config --cflags --libs vlp) -o train
 *   ./train DATA RUN */
#include <stdio.h>
#include <vlp.h>

static int fail(void) {
    fprintf(stderr, "%s\n", vlp_error_message());
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: train DATA RUN\n");
        return 2;
    }
    const char *settings[] = {"model=complex", "dim=16", "steps=200", "batch=64", "negatives=16"};
    vlp_train_options training = VLP_TRAIN_OPTIONS_INIT;
    training.settings = settings;
    training.setting_count = sizeof settings / sizeof *settings;
    vlp_train_report report;
    if (vlp_train(&report, argv[1], argv[2], &training)) return fail();
    printf("%lld steps\n", (long long)report.steps);

    vlp_run *run = NULL;
    vlp_evaluation *evaluation = NULL;
    int code = 0;
    if (vlp_run_open(&run, argv[2], NULL) || vlp_run_evaluate(&evaluation, run, NULL))
        code = fail();
    else
        printf("MRR %.4f over %lld queries\n", evaluation->both.mrr, (long long)evaluation->queries);
    vlp_evaluation_free(evaluation);
    vlp_run_free(run);
    return code;
}
