/* Successive halving: which candidate is trained next, and for how long.
 *
 * Candidates come in brackets. All candidates of a bracket are trained at its first rung; the best third
 * of a rung goes on to the next one, where trainings are three times as long, and those of the last rung
 * have their full length. There are at most four rungs: 1/27, 1/9, 1/3 and all of a training's passes
 * and steps. A bracket with fewer than 27 candidates begins at a later rung, so that its last rung has
 * at least one of them: 9 begin at 1/9, 3 at 1/3, 2 at full length.
 *
 * The trials of a rung are independent of each other, and so are brackets: results decide what is
 * trained, and the order in which they arrive does not. */
#ifndef VLP_LEARN_HALVING_H
#define VLP_LEARN_HALVING_H

#include "base/base.h"

enum {
    VLP_HALVING_FACTOR = 3,
    VLP_HALVING_RUNGS = 4,
    VLP_HALVING_BRACKET = 27, /* candidates of a whole bracket */
    VLP_HALVING_TRIALS = 40   /* of a whole bracket: 27 + 9 + 3 + 1 */
};

typedef struct vlp_halving vlp_halving;

vlp_status vlp_halving_new(vlp_halving **out);
void vlp_halving_free(vlp_halving *halving);

/* Adds a bracket of `count` candidates, 1 to 27, numbered on from the last one. */
vlp_status vlp_halving_add(vlp_halving *halving, int32_t count);
int64_t vlp_halving_candidates(const vlp_halving *halving);

/* The next trial that can be trained, which is then running. False: none before another one finishes,
 * or none at all. */
bool vlp_halving_next(int64_t *candidate, int32_t *rung, vlp_halving *halving);
/* The result of a trial, running or not. NaN: it failed, and is the last of its rung. */
void vlp_halving_finish(vlp_halving *halving, int64_t candidate, int32_t rung, double mrr);

/* The trials of a bracket of `count` candidates, and the largest bracket that has at most `trials`. */
int32_t vlp_halving_trials(int32_t count);
int32_t vlp_halving_largest(int64_t trials);
/* The first rung of a bracket of `count` candidates. */
int32_t vlp_halving_first_rung(int32_t count);
/* The share of a full training at a rung: 1/27 to 1; and its denominator. */
double vlp_halving_share(int32_t rung);
int32_t vlp_halving_part(int32_t rung);

#endif
