#include "classes.h"

#include <math.h>

#include "cli.h"
#include "text.h"

static void print_relations(const vlp_dataset *data, const vlp_classification *classes) {
    printf("# threshold   valid    test  accuracy  relation\n");
    for (int32_t r = 0; r < classes->relation_count; r++) {
        const vlp_relation_threshold *of = &classes->relations[r];
        printf("# %9.4f%s %6s  %6s  ", of->threshold, of->own ? " " : "*", cli_count(of->positives),
               cli_count(of->test_positives));
        if (isnan(of->test_accuracy))
            printf("       -");
        else
            printf("%8.4f", of->test_accuracy);
        printf("  %s\n", text_shown(vlp_dataset_relation_name(data, r)));
    }
}

/* Names the relations that have too few triples in valid. */
static void print_shared(const vlp_dataset *data, const vlp_classification *classes) {
    int32_t shared = 0;
    for (int32_t r = 0; r < classes->relation_count; r++) shared += !classes->relations[r].own;
    if (shared == 0) return;
    printf("# the threshold of all relations, %.4f, for %s with too few triples in valid:",
           classes->threshold, cli_things(shared, "relation"));
    const char *gap = " ";
    for (int32_t r = 0; r < classes->relation_count; r++)
        if (!classes->relations[r].own) {
            printf("%s%s", gap, text_shown(vlp_dataset_relation_name(data, r)));
            gap = ", ";
        }
    putchar('\n');
}

void classes_text(const vlp_dataset *data, const vlp_classification *classes, bool all) {
    printf("# true where f is at least the threshold of its relation, fitted on %s of valid and %s "
           "corruptions of them\n",
           cli_things(classes->positives, "triple"), cli_count(classes->negatives));
    if (isnan(classes->test_accuracy))
        printf("# no accuracy: the data set has no test split\n");
    else
        printf("# accuracy %.4f on %s of test and %s corruptions of them, both kinds weighted equally "
               "(true %.4f, false %.4f)\n",
               classes->test_accuracy, cli_things(classes->test_positives, "triple"),
               cli_count(classes->test_negatives), classes->test_true_rate, classes->test_false_rate);
    print_shared(data, classes);
    if (all) print_relations(data, classes);
}

void classes_json(json_out *json, const vlp_dataset *data, const vlp_classification *classes) {
    json_object(json, "classification");
    json_number(json, "threshold", classes->threshold);
    json_integer(json, "positives", classes->positives);
    json_integer(json, "negatives", classes->negatives);
    json_number(json, "valid_accuracy", classes->accuracy);
    json_integer(json, "test_positives", classes->test_positives);
    json_integer(json, "test_negatives", classes->test_negatives);
    json_number(json, "accuracy", classes->test_accuracy);
    json_number(json, "true_rate", classes->test_true_rate);
    json_number(json, "false_rate", classes->test_false_rate);
    json_array(json, "relations");
    for (int32_t r = 0; r < classes->relation_count; r++) {
        const vlp_relation_threshold *of = &classes->relations[r];
        json_object(json, NULL);
        json_string(json, "relation", vlp_dataset_relation_name(data, r));
        json_number(json, "threshold", of->threshold);
        json_bool(json, "own", of->own);
        json_integer(json, "positives", of->positives);
        json_integer(json, "test_positives", of->test_positives);
        json_number(json, "accuracy", of->test_accuracy);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}
