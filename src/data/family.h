/* The people of the generated family data set: births and marriages. family.c derives all other
 * relations from them. */
#ifndef VLP_DATA_FAMILY_H
#define VLP_DATA_FAMILY_H

#include "base/base.h"
#include "base/random.h"

typedef struct vlp_person {
    int32_t birth;    /* the couple of the parents; -1: unknown */
    int32_t marriage; /* the couple of this person; -1: unmarried */
    int32_t surname;  /* by birth */
    int16_t year;     /* of birth */
    uint8_t first_name;
    bool is_female;
} vlp_person;

typedef struct vlp_couple {
    int32_t members[2]; /* husband, wife */
    int32_t first_child, child_count;
    int32_t steps; /* 2, 3 or 4: the village, by the steps of its relations; see family.c */
} vlp_couple;

/* Every marriage is between two people of one village and one generation who have no ancestor in
 * common up to their great-grandparents, and no two siblings marry two siblings. So two people are not
 * related in two ways (cousin, uncle, brother-in-law). Nobody marries twice. Parents are at least 20
 * years older than their children. */
typedef struct vlp_people {
    vlp_person *persons;
    int64_t person_count, person_capacity;
    vlp_couple *couples; /* couples of parents before those of their children */
    int64_t couple_count, couple_capacity;
} vlp_people;

/* `people` is zeroed by the caller and freed by it, also on failure. */
vlp_status vlp_people_make(vlp_people *people, const vlp_family_options *options);
void vlp_people_free(vlp_people *people);

/* The husband or wife, or -1. */
static inline int32_t vlp_people_spouse(const vlp_people *people, int32_t person) {
    const vlp_person *p = &people->persons[person];
    return p->marriage < 0 ? -1 : people->couples[p->marriage].members[!p->is_female];
}

enum { VLP_PERSON_NAME_SIZE = 64 };
/* "anna_ashford_1923", and "Anna Ashford (1923)" for the label. `repeat` > 1 distinguishes people with
 * the same name: "anna_ashford_1923_2". Each buffer has VLP_PERSON_NAME_SIZE. */
void vlp_person_name(char *name, const vlp_person *person, int repeat);
void vlp_person_label(char *label, const vlp_person *person);

/* ---- Random decisions ---- */
/* The purpose of a random number; decisions of different purposes are independent. */
enum vlp_family_purpose {
    VLP_FAMILY_SEX = 1,
    VLP_FAMILY_FIRST_NAME,
    VLP_FAMILY_SURNAME,
    VLP_FAMILY_YEAR,
    VLP_FAMILY_CHILDREN,
    VLP_FAMILY_MATCH_ORDER,
    VLP_FAMILY_NEWCOMER,
    VLP_FAMILY_SPOUSE_FACT,
    VLP_FAMILY_STEP_ORDER
};

/* Uniform in 0 .. bound - 1. */
static inline uint32_t vlp_family_roll(uint64_t seed, enum vlp_family_purpose purpose, uint64_t object,
                                       uint32_t bound) {
    vlp_random4 bits = vlp_random(seed, VLP_STREAM_FAMILY, object, (uint32_t)purpose);
    return vlp_random_below(bits.v[0], bits.v[1], bound);
}

/* A random permutation; `list` distinguishes lists of the same purpose. */
void vlp_family_shuffle(int32_t *items, int64_t count, uint64_t seed, enum vlp_family_purpose purpose,
                        uint32_t list);

#endif
