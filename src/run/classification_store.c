#include "run/classification_store.h"

#include <string.h>

#include "store/safetensors.h"

enum { FIGURES = 9, RELATION_FIGURES = 7 };

static void read_figures(vlp_classification *out, const double *figures, const double *rows) {
    out->threshold = figures[0];
    out->positives = (int64_t)figures[1];
    out->negatives = (int64_t)figures[2];
    out->accuracy = figures[3];
    out->test_positives = (int64_t)figures[4];
    out->test_negatives = (int64_t)figures[5];
    out->test_accuracy = figures[6];
    out->test_true_rate = figures[7];
    out->test_false_rate = figures[8];
    for (int32_t r = 0; r < out->relation_count; r++, rows += RELATION_FIGURES) {
        vlp_relation_threshold *of = &out->relations[r];
        of->threshold = rows[0];
        of->own = rows[1] != 0;
        of->positives = (int64_t)rows[2];
        of->negatives = (int64_t)rows[3];
        of->test_positives = (int64_t)rows[4];
        of->test_negatives = (int64_t)rows[5];
        of->test_accuracy = rows[6];
    }
}

bool vlp_classification_load(vlp_classification *out, const char *path, const char *fingerprint,
                             const char *made) {
    vlp_safetensors *file = NULL;
    const vlp_tensor *figures, *rows;
    const int64_t length[1] = {FIGURES}, shape[2] = {out->relation_count, RELATION_FIGURES};
    if (!vlp_path_exists(path) || vlp_safetensors_open(&file, path, true) != VLP_OK) return false;
    const char *of = vlp_safetensors_metadata(file, "run"),
               *how = vlp_safetensors_metadata(file, "made");
    bool fits = of && how && strcmp(of, fingerprint) == 0 && strcmp(how, made) == 0 &&
                vlp_safetensors_need(&figures, file, "figures", VLP_F64, 1, length) == VLP_OK &&
                vlp_safetensors_need(&rows, file, "relations", VLP_F64, 2, shape) == VLP_OK;
    if (fits) read_figures(out, figures->data, rows->data);
    vlp_safetensors_free(file);
    return fits;
}

void vlp_classification_save(const vlp_classification *from, const char *path, const char *fingerprint,
                             const char *made) {
    double figures[FIGURES] = {
        from->threshold,     (double)from->positives,      (double)from->negatives,
        from->accuracy,      (double)from->test_positives, (double)from->test_negatives,
        from->test_accuracy, from->test_true_rate,         from->test_false_rate};
    double *rows = vlp_alloc((size_t)from->relation_count * RELATION_FIGURES, sizeof *rows);
    if (!rows) return;
    for (int32_t r = 0; r < from->relation_count; r++) {
        vlp_relation_threshold of = from->relations[r];
        double row[RELATION_FIGURES] = {of.threshold,
                                        of.own,
                                        (double)of.positives,
                                        (double)of.negatives,
                                        (double)of.test_positives,
                                        (double)of.test_negatives,
                                        of.test_accuracy};
        memcpy(rows + (int64_t)r * RELATION_FIGURES, row, sizeof row);
    }
    vlp_tensor tensors[2] = {
        {"figures", VLP_F64, 1, {FIGURES, 0, 0, 0}, figures},
        {"relations", VLP_F64, 2, {from->relation_count, RELATION_FIGURES, 0, 0}, rows}};
    vlp_pair pairs[2] = {{"run", fingerprint}, {"made", made}};
    (void)vlp_safetensors_write(path, tensors, 2, pairs, 2);
    vlp_free(rows);
}
