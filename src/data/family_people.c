/* Generates the people of the family data set, by village and generation.
 *
 * Couples form within a generation where possible, which links the families, otherwise with newcomers,
 * whose parents are unknown. Each generation forms one couple more than there were founding couples,
 * so that the size of a village stays stable and even a single family has cousins. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "data/family.h"

enum {
    LAST_BIRTHS = 1990, /* approximate birth year of the youngest generation */
    GENERATION_YEARS = 27,
    LARGEST_AGE_GAP = 8, /* of a couple */
    NEWCOMERS_ONE_IN = 2,
    MATCH_ATTEMPTS = 64, /* candidates tried before marrying a newcomer */
};

static const char *const men[] = {"adam",   "albert", "anton",  "arthur", "boris", "bruno",  "daniel",
                                  "david",  "edward", "emil",   "felix",  "frank", "george", "gustav",
                                  "harold", "henry",  "hugo",   "ivan",   "jacob", "john",   "karl",
                                  "leo",    "martin", "max",    "oscar",  "paul",  "peter",  "robert",
                                  "samuel", "simon",  "thomas", "victor"};
static const char *const women[] = {"ada",    "agnes",  "alice", "anna",   "bertha", "carla",    "clara",
                                    "diana",  "edith",  "ella",  "emma",   "eva",    "florence", "greta",
                                    "hannah", "helen",  "ida",   "irene",  "jane",   "judith",   "laura",
                                    "lena",   "lucy",   "maria", "martha", "nora",   "olga",     "paula",
                                    "rosa",   "sophia", "tessa", "vera"};
enum { FIRST_NAMES = sizeof men / sizeof *men };
_Static_assert(sizeof men == sizeof women, "one number selects a name of either sex");

static const char *const surname_starts[] = {
    "ash",  "birch", "black", "brook", "clay", "cross", "east", "elm",   "fair", "fern", "grey",
    "hart", "haw",   "heath", "hill",  "lake", "lang",  "lin",  "marsh", "mill", "moor", "north",
    "oak",  "red",   "rock",  "salt",  "stan", "stone", "swan", "thorn", "west", "wood"};
static const char *const surname_ends[] = {"berry", "bourne", "bridge", "burn", "by",   "combe", "cote",
                                           "dale",  "den",    "field",  "ford", "gate", "grove", "ham",
                                           "hurst", "land",   "ley",    "low",  "man",  "mere",  "ridge",
                                           "side",  "ton",    "well",   "wick", "worth"};
enum {
    SURNAME_STARTS = sizeof surname_starts / sizeof *surname_starts,
    SURNAME_ENDS = sizeof surname_ends / sizeof *surname_ends,
    SURNAMES = SURNAME_STARTS * SURNAME_ENDS
};

/* ---- Names --------------------------------------------------------------------------------------- */

/* Consecutive numbers differ in both parts, and SURNAMES consecutive numbers give SURNAMES different
 * names: a start repeats every 32 numbers, and 33 and 26 are coprime. */
static const char *surname_end(int32_t surname) {
    return surname_ends[(surname + surname / SURNAME_STARTS) % SURNAME_ENDS];
}

static const char *first_name(const vlp_person *person) {
    return (person->is_female ? women : men)[person->first_name];
}

void vlp_person_name(char *name, const vlp_person *person, int repeat) {
    int length = snprintf(name, VLP_PERSON_NAME_SIZE, "%s_%s%s_%d", first_name(person),
                          surname_starts[person->surname % SURNAME_STARTS], surname_end(person->surname),
                          person->year);
    if (repeat > 1) snprintf(name + length, (size_t)(VLP_PERSON_NAME_SIZE - length), "_%d", repeat);
}

void vlp_person_label(char *label, const vlp_person *person) {
    const char *first = first_name(person), *start = surname_starts[person->surname % SURNAME_STARTS];
    snprintf(label, VLP_PERSON_NAME_SIZE, "%c%s %c%s%s (%d)", toupper(first[0]), first + 1,
             toupper(start[0]), start + 1, surname_end(person->surname), person->year);
}

/* ---- Random decisions ---------------------------------------------------------------------------- */

void vlp_family_shuffle(int32_t *items, int64_t count, uint64_t seed, enum vlp_family_purpose purpose,
                        uint32_t list) {
    for (int64_t i = count - 1; i > 0; i--) {
        uint64_t object = (uint64_t)list << 32 | (uint64_t)i;
        uint32_t other = vlp_family_roll(seed, purpose, object, (uint32_t)i + 1);
        int32_t item = items[i];
        items[i] = items[other];
        items[other] = item;
    }
}

/* ---- Births and marriages ------------------------------------------------------------------------ */

/* The largest data set has about five million people: twice their number is far below 2^31. */
static vlp_status add_person(vlp_people *people, vlp_person person, int32_t *id) {
    VLP_TRY(vlp_grow(&people->persons, &people->person_capacity, people->person_count + 1,
                     sizeof *people->persons, "people"));
    *id = (int32_t)people->person_count;
    people->persons[people->person_count++] = person;
    return VLP_OK;
}

static vlp_status add_couple(vlp_people *people, int32_t one, int32_t other, int32_t steps) {
    VLP_TRY(vlp_grow(&people->couples, &people->couple_capacity, people->couple_count + 1,
                     sizeof *people->couples, "couples"));
    int32_t id = (int32_t)people->couple_count++;
    vlp_couple *couple = &people->couples[id];
    *couple = (vlp_couple){.first_child = -1, .steps = steps};
    couple->members[people->persons[one].is_female] = one;
    couple->members[people->persons[other].is_female] = other;
    assert(couple->members[0] != couple->members[1]);
    people->persons[one].marriage = people->persons[other].marriage = id;
    return VLP_OK;
}

/* A newcomer, without known parents, of suitable age for a spouse born in `year`. */
static vlp_status add_newcomer(vlp_people *people, uint64_t seed, bool is_female, int year,
                               int32_t *id) {
    uint64_t next = (uint64_t)people->person_count;
    int older = (int)vlp_family_roll(seed, VLP_FAMILY_YEAR, next, 9) - 4;
    vlp_person newcomer = {
        .birth = -1,
        .marriage = -1,
        .surname = (int32_t)vlp_family_roll(seed, VLP_FAMILY_SURNAME, next, SURNAMES),
        .year = (int16_t)(year - older),
        .first_name = (uint8_t)vlp_family_roll(seed, VLP_FAMILY_FIRST_NAME, next, FIRST_NAMES),
        .is_female = is_female,
    };
    return add_person(people, newcomer, id);
}

static vlp_status add_children(vlp_people *people, uint64_t seed, int32_t couple_id) {
    static const int32_t counts[] = {2, 3, 3, 4};
    vlp_couple *couple = &people->couples[couple_id];
    const vlp_person *husband = &people->persons[couple->members[0]];
    const vlp_person *wife = &people->persons[couple->members[1]];
    int32_t surname = husband->surname;
    int year = (husband->year > wife->year ? husband->year : wife->year) + 20;
    couple->first_child = (int32_t)people->person_count;
    couple->child_count = counts[vlp_family_roll(seed, VLP_FAMILY_CHILDREN, (uint64_t)couple_id, 4)];
    uint32_t name =
        vlp_family_roll(seed, VLP_FAMILY_FIRST_NAME, (uint64_t)couple->first_child, FIRST_NAMES);
    for (int32_t i = 0; i < couple->child_count; i++) {
        uint64_t next = (uint64_t)people->person_count;
        year += (int)vlp_family_roll(seed, VLP_FAMILY_YEAR, next, i == 0 ? 6 : 3) + (i > 0);
        vlp_person child = {
            .birth = couple_id,
            .marriage = -1,
            .surname = surname,
            .year = (int16_t)year,
            /* Steps of 11 through 32 names: siblings have different names. */
            .first_name = (uint8_t)((name + 11 * (uint32_t)i) % FIRST_NAMES),
            .is_female = vlp_family_roll(seed, VLP_FAMILY_SEX, next, 2),
        };
        int32_t id;
        VLP_TRY(add_person(people, child, &id));
    }
    return VLP_OK;
}

/* ---- Allowed marriages --------------------------------------------------------------------------- */

/* The ancestor couples of a person: parents, grandparents, great-grandparents; -1 if unknown. */
enum { ANCESTRY = 1 + 2 + 4 };
static void find_ancestry(const vlp_people *people, int32_t person, int32_t ancestry[ANCESTRY]) {
    ancestry[0] = people->persons[person].birth;
    for (int i = 0; 2 * i + 2 < ANCESTRY; i++)
        for (int member = 0; member < 2; member++) {
            int32_t couple = ancestry[i];
            ancestry[2 * i + 1 + member] =
                couple < 0 ? -1 : people->persons[people->couples[couple].members[member]].birth;
        }
}

static bool are_kin(const vlp_people *people, int32_t one, int32_t other) {
    int32_t mine[ANCESTRY], theirs[ANCESTRY];
    find_ancestry(people, one, mine);
    find_ancestry(people, other, theirs);
    for (int i = 0; i < ANCESTRY; i++)
        for (int j = 0; j < ANCESTRY; j++)
            if (mine[i] >= 0 && mine[i] == theirs[j]) return true;
    return false;
}

/* Whether a sibling of one is married to a sibling of the other. Their children would be cousins in
 * two ways. */
static bool are_families_joined(const vlp_people *people, int32_t one, int32_t other) {
    const vlp_couple *parents = &people->couples[people->persons[one].birth];
    for (int32_t i = 0; i < parents->child_count; i++) {
        int32_t spouse = vlp_people_spouse(people, parents->first_child + i);
        if (spouse >= 0 && people->persons[spouse].birth == people->persons[other].birth) return true;
    }
    return false;
}

static bool may_marry(const vlp_people *people, int32_t one, int32_t other) {
    const vlp_person *a = &people->persons[one], *b = &people->persons[other];
    int gap = a->year - b->year;
    return a->is_female != b->is_female && b->marriage < 0 && gap <= LARGEST_AGE_GAP &&
           gap >= -LARGEST_AGE_GAP && !are_kin(people, one, other) &&
           !are_families_joined(people, one, other);
}

/* ---- Villages ------------------------------------------------------------------------------------ */

/* The village of a family, by the number of steps of its relations. Four-step relations are rarer, so
 * more families get them. */
static int32_t village_of(int32_t family) {
    static const int32_t steps[] = {2, 3, 4, 2, 3, 4, 4};
    return steps[(size_t)family % (sizeof steps / sizeof *steps)];
}

static vlp_status found_families(vlp_people *people, const vlp_family_options *options,
                                 int32_t village) {
    int year = LAST_BIRTHS - GENERATION_YEARS * (options->generations - 1);
    for (int32_t family = 0; family < options->families; family++) {
        if (village_of(family) != village) continue;
        int32_t husband, wife;
        VLP_TRY(add_newcomer(people, options->seed, false, year, &husband));
        people->persons[husband].surname = family;
        VLP_TRY(add_newcomer(people, options->seed, true, people->persons[husband].year, &wife));
        VLP_TRY(add_couple(people, husband, wife, village));
    }
    return VLP_OK;
}

/* Forms at most `wanted` couples of the people in `singles`. */
static vlp_status match(vlp_people *people, uint64_t seed, const int32_t *singles, int64_t count,
                        int64_t wanted, int32_t steps) {
    for (int64_t i = 0; i < count && wanted > 0; i++) {
        int32_t person = singles[i], spouse = -1;
        if (people->persons[person].marriage >= 0) continue;
        if (vlp_family_roll(seed, VLP_FAMILY_NEWCOMER, (uint64_t)person, NEWCOMERS_ONE_IN) > 0)
            for (int64_t j = i + 1; j < count && j <= i + MATCH_ATTEMPTS && spouse < 0; j++)
                if (may_marry(people, person, singles[j])) spouse = singles[j];
        if (spouse < 0)
            VLP_TRY(add_newcomer(people, seed, !people->persons[person].is_female,
                                 people->persons[person].year, &spouse));
        VLP_TRY(add_couple(people, person, spouse, steps));
        wanted--;
    }
    return VLP_OK;
}

static vlp_status settle_village(vlp_people *people, const vlp_family_options *options,
                                 int32_t village) {
    uint64_t seed = options->seed;
    int64_t couples = people->couple_count;
    VLP_TRY(found_families(people, options, village));
    int64_t founded = people->couple_count - couples;
    for (int32_t generation = 2; generation <= options->generations; generation++) {
        int64_t born = people->person_count, parents_end = people->couple_count;
        for (; couples < parents_end; couples++) VLP_TRY(add_children(people, seed, (int32_t)couples));
        int64_t count = people->person_count - born;
        int32_t *singles = vlp_alloc((size_t)count, sizeof *singles);
        if (!singles) return vlp_fail_memory("a generation");
        for (int64_t i = 0; i < count; i++) singles[i] = (int32_t)(born + i);
        vlp_family_shuffle(singles, count, seed, VLP_FAMILY_MATCH_ORDER,
                           (uint32_t)(village * 16 + generation));
        vlp_status status = match(people, seed, singles, count, founded + 1, village);
        vlp_free(singles);
        if (status != VLP_OK) return status;
    }
    return VLP_OK;
}

vlp_status vlp_people_make(vlp_people *people, const vlp_family_options *options) {
    for (int32_t village = 2; village <= 4; village++) VLP_TRY(settle_village(people, options, village));
    return VLP_OK;
}

void vlp_people_free(vlp_people *people) {
    vlp_free(people->persons);
    vlp_free(people->couples);
    *people = (vlp_people){0};
}
