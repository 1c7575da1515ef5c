#include "learn/validation.h"

#include "eval/evaluate.h"
#include "eval/metrics.h"

vlp_status vlp_validate(double *mrr, vlp_mixture *best, const vlp_model *model,
                        const vlp_dataset *dataset, const vlp_settings *settings) {
    vlp_mixture *grid;
    int32_t count;
    VLP_TRY(vlp_mixture_grid(&grid, &count, model->components));
    vlp_ranking_options options = {.split = VLP_VALID,
                                   .filter = 1u << VLP_TRAIN | 1u << VLP_VALID,
                                   .most_triples = settings->eval_triples,
                                   .mixtures = grid,
                                   .mixture_count = count,
                                   .references = settings->references,
                                   .references_per_head = settings->references_per_head,
                                   .references_rule = vlp_settings_reference_rule(settings),
                                   .threads = settings->threads};
    vlp_ranking *ranking = NULL;
    vlp_status status = vlp_ranking_compute(&ranking, model, dataset, &options);
    *mrr = -1;
    for (int32_t i = 0; status == VLP_OK && i < count; i++) {
        vlp_metrics metrics =
            vlp_metrics_compute(vlp_ranking_of(ranking, i), ranking->queries, VLP_REALISTIC, NULL);
        if (metrics.mrr > *mrr) {
            *mrr = metrics.mrr;
            *best = grid[i];
        }
    }
    vlp_ranking_free(ranking);
    vlp_free(grid);
    return status;
}
