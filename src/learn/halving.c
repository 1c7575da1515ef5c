#include "learn/halving.h"

#include <math.h>

typedef enum trial_state { OPEN = 0, RUNNING, FINISHED } trial_state;

typedef struct candidate_results {
    trial_state state[VLP_HALVING_RUNGS];
    double mrr[VLP_HALVING_RUNGS];
} candidate_results;

typedef struct bracket {
    int64_t first;
    int32_t count;
} bracket;

struct vlp_halving {
    candidate_results *candidates;
    int64_t count, capacity;
    bracket *brackets;
    int64_t bracket_count, bracket_capacity;
};

vlp_status vlp_halving_new(vlp_halving **out) {
    *out = vlp_alloc_zero(1, sizeof **out);
    return *out ? VLP_OK : vlp_fail_memory("a search");
}

void vlp_halving_free(vlp_halving *halving) {
    if (!halving) return;
    vlp_free(halving->candidates);
    vlp_free(halving->brackets);
    vlp_free(halving);
}

vlp_status vlp_halving_add(vlp_halving *halving, int32_t count) {
    assert(count > 0 && count <= VLP_HALVING_BRACKET);
    VLP_TRY(vlp_grow(&halving->candidates, &halving->capacity, halving->count + count,
                     sizeof *halving->candidates, "a search"));
    VLP_TRY(vlp_grow(&halving->brackets, &halving->bracket_capacity, halving->bracket_count + 1,
                     sizeof *halving->brackets, "a search"));
    halving->brackets[halving->bracket_count++] = (bracket){halving->count, count};
    for (int32_t i = 0; i < count; i++) halving->candidates[halving->count++] = (candidate_results){0};
    return VLP_OK;
}

int64_t vlp_halving_candidates(const vlp_halving *halving) {
    return halving->count;
}

int32_t vlp_halving_first_rung(int32_t count) {
    int32_t rung = VLP_HALVING_RUNGS - 1;
    for (; rung > 0 && count >= VLP_HALVING_FACTOR; count /= VLP_HALVING_FACTOR) rung--;
    return rung;
}

int32_t vlp_halving_trials(int32_t count) {
    int32_t trials = 0;
    for (int32_t rung = vlp_halving_first_rung(count); rung < VLP_HALVING_RUNGS; rung++) {
        trials += count;
        count /= VLP_HALVING_FACTOR;
    }
    return trials;
}

int32_t vlp_halving_largest(int64_t trials) {
    int32_t count = VLP_HALVING_BRACKET;
    while (count > 0 && vlp_halving_trials(count) > trials) count--;
    return count;
}

int32_t vlp_halving_part(int32_t rung) {
    int32_t part = 1;
    for (; rung < VLP_HALVING_RUNGS - 1; rung++) part *= VLP_HALVING_FACTOR;
    return part;
}

double vlp_halving_share(int32_t rung) {
    return 1.0 / vlp_halving_part(rung);
}

/* Whether the first of two candidates goes before the second: by MRR, then by number. */
static bool is_better(const vlp_halving *halving, int64_t a, int64_t b, int32_t rung) {
    double of_a = halving->candidates[a].mrr[rung], of_b = halving->candidates[b].mrr[rung];
    if (isnan(of_a) != isnan(of_b)) return isnan(of_b);
    if (!isnan(of_a) && of_a != of_b) return of_a > of_b;
    return a < b;
}

/* The members of the next rung, best first, in the front of `members`. Returns how many. */
static int32_t promote(int64_t members[VLP_HALVING_BRACKET], int32_t count, const vlp_halving *halving,
                       int32_t rung) {
    for (int32_t i = 1; i < count; i++) {
        int64_t member = members[i];
        int32_t at = i;
        for (; at > 0 && is_better(halving, member, members[at - 1], rung); at--)
            members[at] = members[at - 1];
        members[at] = member;
    }
    return count / VLP_HALVING_FACTOR;
}

/* The next trial of one bracket. */
static bool next_of(int64_t *candidate, int32_t *rung, const vlp_halving *halving, const bracket *of) {
    int64_t members[VLP_HALVING_BRACKET];
    int32_t count = of->count;
    for (int32_t i = 0; i < count; i++) members[i] = of->first + i;
    for (int32_t r = vlp_halving_first_rung(count); r < VLP_HALVING_RUNGS; r++) {
        bool whole = true;
        for (int32_t i = 0; i < count; i++) {
            trial_state state = halving->candidates[members[i]].state[r];
            whole = whole && state == FINISHED;
            if (state != OPEN) continue;
            *candidate = members[i];
            *rung = r;
            return true;
        }
        if (!whole) return false;
        count = promote(members, count, halving, r);
    }
    return false;
}

bool vlp_halving_next(int64_t *candidate, int32_t *rung, vlp_halving *halving) {
    for (int64_t i = 0; i < halving->bracket_count; i++)
        if (next_of(candidate, rung, halving, &halving->brackets[i])) {
            halving->candidates[*candidate].state[*rung] = RUNNING;
            return true;
        }
    return false;
}

void vlp_halving_finish(vlp_halving *halving, int64_t candidate, int32_t rung, double mrr) {
    assert(candidate >= 0 && candidate < halving->count && rung >= 0 && rung < VLP_HALVING_RUNGS);
    halving->candidates[candidate].state[rung] = FINISHED;
    halving->candidates[candidate].mrr[rung] = mrr;
}
