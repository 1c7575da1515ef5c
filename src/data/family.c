/* A generated world of families in which the right answers are known, and how far each is from what the
 * training triples state.
 *
 * (x, father, y) reads "x's father is y", so that relations compose from left to right: father and then
 * father is grandfather. Recorded for everybody and always in train are father, mother, son, daughter,
 * and of every couple husband or wife. The rest follows, by as many steps as there are relations in the
 * rule (a rule may read a triple backwards; parent is father or mother, spouse husband or wife, and the
 * person asked about is never their own sibling, cousin and so on):
 *
 *   1  husband, wife                   the other one backwards
 *      child                           son | daughter
 *   2  grandfather, grandmother        parent, father | mother
 *      grandson, granddaughter         child, son | daughter
 *      brother, sister                 parent, son | daughter
 *      father_in_law, mother_in_law    spouse, father | mother
 *      son_in_law, daughter_in_law     child, husband | wife
 *   3  great_grandfather, ...          parent, parent, father | mother
 *      great_grandson, ...             child, child, son | daughter
 *      uncle, aunt                     parent, parent, son | daughter
 *      nephew, niece                   parent, child, son | daughter
 *      brother_in_law, sister_in_law   spouse, parent, son | daughter; parent, child, husband | wife
 *   4  great_great_grandfather, ...    parent, parent, parent, father | mother
 *      great_great_grandson, ...       child, child, child, son | daughter
 *      cousin                          parent, parent, child, child
 *
 * A conclusion is that far only if nothing nearer is stated: with (x, grandfather, y) in train, x's
 * great_grandfather is two steps away, not three. Therefore the world consists of villages that do not
 * marry into each other, and each records, besides what takes one step, only what takes 2, only what
 * takes 3 or only what takes 4 steps, but that completely: the union of the splits has every true answer
 * of whatever query a split asks. (Great-great-grandparents are recorded where they are founders of the
 * village, which in a world of five generations they all are. Recorded throughout, a child's
 * great-great-grandmother would be a person's own one's daughter: three steps instead of four.)
 *
 * Within a village, all that is concluded over the same couple of ancestors (or of parents-in-law) is
 * held out together or not at all: a brother's cousin would lead to one's own in three steps. A couple's
 * conclusions are held out only if the distance of every two people they relate, in hops over all
 * training triples whichever way they point, is just the number of steps. What is held out later removes
 * triples and no recorded births or marriages, so these distances are final. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/options.h"
#include "data/family.h"
#include "data/output.h"

/* Where the name depends on whose it is, the man's comes first and the woman's behind it. */
enum relation {
    FATHER,
    MOTHER,
    SON,
    DAUGHTER,
    HUSBAND,
    WIFE,
    CHILD,
    GRANDFATHER,
    GRANDMOTHER,
    GRANDSON,
    GRANDDAUGHTER,
    BROTHER,
    SISTER,
    FATHER_IN_LAW,
    MOTHER_IN_LAW,
    SON_IN_LAW,
    DAUGHTER_IN_LAW,
    GREAT_GRANDFATHER,
    GREAT_GRANDMOTHER,
    GREAT_GRANDSON,
    GREAT_GRANDDAUGHTER,
    UNCLE,
    AUNT,
    NEPHEW,
    NIECE,
    BROTHER_IN_LAW,
    SISTER_IN_LAW,
    GREAT_GREAT_GRANDFATHER,
    GREAT_GREAT_GRANDMOTHER,
    GREAT_GREAT_GRANDSON,
    GREAT_GREAT_GRANDDAUGHTER,
    COUSIN,
    RELATIONS
};

static const struct {
    const char *name;
    int steps; /* to conclude it; 0: never held out */
} relations[RELATIONS] = {
    [FATHER] = {"father", 0},
    [MOTHER] = {"mother", 0},
    [SON] = {"son", 0},
    [DAUGHTER] = {"daughter", 0},
    [HUSBAND] = {"husband", 1},
    [WIFE] = {"wife", 1},
    [CHILD] = {"child", 1},
    [GRANDFATHER] = {"grandfather", 2},
    [GRANDMOTHER] = {"grandmother", 2},
    [GRANDSON] = {"grandson", 2},
    [GRANDDAUGHTER] = {"granddaughter", 2},
    [BROTHER] = {"brother", 2},
    [SISTER] = {"sister", 2},
    [FATHER_IN_LAW] = {"father_in_law", 2},
    [MOTHER_IN_LAW] = {"mother_in_law", 2},
    [SON_IN_LAW] = {"son_in_law", 2},
    [DAUGHTER_IN_LAW] = {"daughter_in_law", 2},
    [GREAT_GRANDFATHER] = {"great_grandfather", 3},
    [GREAT_GRANDMOTHER] = {"great_grandmother", 3},
    [GREAT_GRANDSON] = {"great_grandson", 3},
    [GREAT_GRANDDAUGHTER] = {"great_granddaughter", 3},
    [UNCLE] = {"uncle", 3},
    [AUNT] = {"aunt", 3},
    [NEPHEW] = {"nephew", 3},
    [NIECE] = {"niece", 3},
    [BROTHER_IN_LAW] = {"brother_in_law", 3},
    [SISTER_IN_LAW] = {"sister_in_law", 3},
    [GREAT_GREAT_GRANDFATHER] = {"great_great_grandfather", 4},
    [GREAT_GREAT_GRANDMOTHER] = {"great_great_grandmother", 4},
    [GREAT_GREAT_GRANDSON] = {"great_great_grandson", 4},
    [GREAT_GREAT_GRANDDAUGHTER] = {"great_great_granddaughter", 4},
    [COUSIN] = {"cousin", 4},
};

enum { LONGEST = 4 };

typedef struct world {
    const vlp_family_options *options;
    vlp_people people;
    /* What takes two steps and more, couple by couple. Facts come in twos, one the other backwards. */
    vlp_triple_list facts;
    int64_t *first_fact; /* (couples + 1) a couple's: first_fact[c] .. first_fact[c + 1] - 1 */
    uint8_t *split;      /* (couples) where a couple's facts go */
    uint8_t *step_split; /* (couples + 2 * persons) where what takes one step goes; see step_fact */
    vlp_triple_list splits[VLP_SPLITS];
} world;

static void world_free(world *w) {
    vlp_people_free(&w->people);
    vlp_triple_list_free(&w->facts);
    vlp_free(w->first_fact);
    vlp_free(w->split);
    vlp_free(w->step_split);
    for (int i = 0; i < VLP_SPLITS; i++) vlp_triple_list_free(&w->splits[i]);
}

static vlp_status append(vlp_triple_list *list, vlp_triple triple) {
    VLP_TRY(vlp_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items,
                     "the triples of the family world"));
    list->items[list->count++] = triple;
    return VLP_OK;
}

/* ---- Conclusions of two steps and more ----------------------------------------------------------- */

/* "x's `kind` is y", with the woman's form where y is one. */
static vlp_triple state(const world *w, int32_t x, enum relation kind, int32_t y) {
    bool is_neutral = kind == COUSIN || kind == CHILD;
    int32_t relation = (int32_t)kind + (!is_neutral && w->people.persons[y].is_female);
    return (vlp_triple){x, relation, y};
}

static vlp_status relate(world *w, int32_t x, enum relation kind, int32_t y, enum relation backwards) {
    VLP_TRY(append(&w->facts, state(w, x, kind, y)));
    return append(&w->facts, state(w, y, backwards, x));
}

/* A person's children as a range; empty for the unmarried. */
static int32_t children_of(const world *w, int32_t person, int32_t *end) {
    int32_t marriage = w->people.persons[person].marriage;
    if (marriage < 0) return *end = 0;
    const vlp_couple *couple = &w->people.couples[marriage];
    *end = couple->first_child + couple->child_count;
    return couple->first_child;
}

/* Newcomers marry people who were born here, so only founders have no parents on either side. */
static bool are_founders(const world *w, const vlp_couple *couple) {
    return w->people.persons[couple->members[0]].birth < 0 &&
           w->people.persons[couple->members[1]].birth < 0;
}

/* `ancestors` and those of their descendants who are `steps` generations below. `couple` is at `depth`
 * generations below. */
static vlp_status relate_descendants(world *w, const vlp_couple *ancestors, const vlp_couple *couple,
                                     int depth) {
    static const enum relation up[] = {[2] = GRANDFATHER, GREAT_GRANDFATHER, GREAT_GREAT_GRANDFATHER};
    static const enum relation down[] = {[2] = GRANDSON, GREAT_GRANDSON, GREAT_GREAT_GRANDSON};
    int steps = ancestors->steps;
    for (int32_t i = 0; i < couple->child_count; i++) {
        int32_t child = couple->first_child + i;
        int32_t marriage = w->people.persons[child].marriage;
        if (depth + 1 < steps) {
            if (marriage >= 0)
                VLP_TRY(relate_descendants(w, ancestors, &w->people.couples[marriage], depth + 1));
        } else {
            for (int member = 0; member < 2; member++)
                VLP_TRY(relate(w, child, up[steps], ancestors->members[member], down[steps]));
        }
    }
    return VLP_OK;
}

/* A couple and those who married their children. */
static vlp_status relate_parents_in_law(world *w, const vlp_couple *parents) {
    for (int32_t i = 0; i < parents->child_count; i++) {
        int32_t spouse = vlp_people_spouse(&w->people, parents->first_child + i);
        for (int member = 0; member < 2 && spouse >= 0; member++)
            VLP_TRY(relate(w, spouse, FATHER_IN_LAW, parents->members[member], SON_IN_LAW));
    }
    return VLP_OK;
}

/* Two siblings, their spouses and children, by what the village records. Both orders are asked for. */
static vlp_status relate_siblings(world *w, int32_t one, int32_t other, int32_t steps) {
    int32_t end, other_end;
    if (steps == 2 && one < other) VLP_TRY(relate(w, one, BROTHER, other, BROTHER));
    if (steps == 3) {
        int32_t spouse = vlp_people_spouse(&w->people, other);
        if (spouse >= 0) VLP_TRY(relate(w, spouse, BROTHER_IN_LAW, one, BROTHER_IN_LAW));
        for (int32_t child = children_of(w, other, &end); child < end; child++)
            VLP_TRY(relate(w, child, UNCLE, one, NEPHEW));
    }
    if (steps == 4 && one < other)
        for (int32_t child = children_of(w, one, &end); child < end; child++)
            for (int32_t cousin = children_of(w, other, &other_end); cousin < other_end; cousin++)
                VLP_TRY(relate(w, child, COUSIN, cousin, COUSIN));
    return VLP_OK;
}

static vlp_status conclude(world *w) {
    size_t couples = (size_t)w->people.couple_count;
    w->first_fact = vlp_alloc(couples + 1, sizeof *w->first_fact);
    w->split = vlp_alloc_zero(couples, sizeof *w->split);
    if (!w->first_fact || !w->split) return vlp_fail_memory("the couples of the family world");
    for (size_t c = 0; c < couples; c++) {
        const vlp_couple *couple = &w->people.couples[c];
        w->first_fact[c] = w->facts.count;
        for (int32_t i = 0; i < couple->child_count; i++)
            for (int32_t j = 0; j < couple->child_count; j++)
                if (i != j)
                    VLP_TRY(relate_siblings(w, couple->first_child + i, couple->first_child + j,
                                            couple->steps));
        if (couple->steps == 2) VLP_TRY(relate_parents_in_law(w, couple));
        if (couple->steps < LONGEST || are_founders(w, couple))
            VLP_TRY(relate_descendants(w, couple, couple, 0));
    }
    w->first_fact[couples] = w->facts.count;
    return VLP_OK;
}

/* ---- Distances over what remains in train --------------------------------------------------------- */

/* Who is related to whom by facts, and the ball around one person. Births and marriages are read from
 * the people themselves. */
typedef struct surroundings {
    int64_t *first;     /* (persons + 1) into other and couple */
    int32_t *other;     /* (facts) */
    int32_t *couple;    /* (facts) whose fact it is */
    int32_t *neighbors; /* room for those of any one person */
    int32_t *ball;      /* (persons) who is in it, nearest first */
    int32_t *mark;      /* (persons) the number of the last ball somebody was in */
    int32_t balls;
} surroundings;

static void surroundings_free(surroundings *s) {
    vlp_free(s->first);
    vlp_free(s->other);
    vlp_free(s->couple);
    vlp_free(s->neighbors);
    vlp_free(s->ball);
    vlp_free(s->mark);
}

static vlp_status surroundings_make(surroundings *s, const world *w) {
    enum { BY_BIRTH_AND_MARRIAGE = 16 }; /* more than two parents, a spouse and four children */
    size_t persons = (size_t)w->people.person_count, facts = (size_t)w->facts.count;
    s->first = vlp_alloc_zero(persons + 2, sizeof *s->first);
    s->other = vlp_alloc(facts, sizeof *s->other);
    s->couple = vlp_alloc(facts, sizeof *s->couple);
    s->ball = vlp_alloc(persons, sizeof *s->ball);
    s->mark = vlp_alloc_zero(persons, sizeof *s->mark);
    if (!s->first || !s->other || !s->couple || !s->ball || !s->mark)
        return vlp_fail_memory("the distances of the family world");
    for (size_t i = 0; i < facts; i++) s->first[w->facts.items[i].head + 2]++;
    int64_t most = 0;
    for (size_t p = 0; p < persons; p++) {
        if (s->first[p + 2] > most) most = s->first[p + 2];
        s->first[p + 2] += s->first[p + 1];
    }
    /* first[p + 1] serves as the place where p's next fact goes, and ends up as where they end. */
    for (int64_t c = 0; c < w->people.couple_count; c++)
        for (int64_t i = w->first_fact[c]; i < w->first_fact[c + 1]; i++) {
            int64_t place = s->first[w->facts.items[i].head + 1]++;
            s->other[place] = w->facts.items[i].tail;
            s->couple[place] = (int32_t)c;
        }
    s->neighbors = vlp_alloc((size_t)most + BY_BIRTH_AND_MARRIAGE, sizeof *s->neighbors);
    if (!s->neighbors) return vlp_fail_memory("the distances of the family world");
    return VLP_OK;
}

/* Everybody one training triple away from `person` when the facts of couple `without` are held out. */
static int32_t find_neighbors(surroundings *s, const world *w, int32_t person, int32_t without) {
    int32_t count = 0, end;
    const vlp_person *p = &w->people.persons[person];
    for (int member = 0; member < 2 && p->birth >= 0; member++)
        s->neighbors[count++] = w->people.couples[p->birth].members[member];
    if (p->marriage >= 0) s->neighbors[count++] = vlp_people_spouse(&w->people, person);
    for (int32_t child = children_of(w, person, &end); child < end; child++)
        s->neighbors[count++] = child;
    for (int64_t i = s->first[person]; i < s->first[person + 1]; i++)
        if (s->couple[i] != without && w->split[s->couple[i]] == VLP_TRAIN)
            s->neighbors[count++] = s->other[i];
    return count;
}

/* Marks everybody within `radius` of `center`. */
static void fill_ball(surroundings *s, const world *w, int32_t center, int radius, int32_t without) {
    s->balls++;
    s->ball[0] = center;
    s->mark[center] = s->balls;
    int32_t size = 1, level = 0;
    for (int distance = 0; distance < radius; distance++)
        for (int32_t level_end = size; level < level_end; level++) {
            int32_t count = find_neighbors(s, w, s->ball[level], without);
            for (int32_t i = 0; i < count; i++) {
                int32_t person = s->neighbors[i];
                if (s->mark[person] == s->balls) continue;
                s->mark[person] = s->balls;
                s->ball[size++] = person;
            }
        }
}

/* Whether all facts of a couple would need their full number of steps. A rule leads there in so many, so
 * the query is whether anything leads there in fewer: from the head all but two of the steps, and one
 * more from the tail. */
static bool has_no_shortcut(surroundings *s, const world *w, int32_t couple) {
    int steps = w->people.couples[couple].steps;
    int32_t center = -1;
    for (int64_t i = w->first_fact[couple]; i < w->first_fact[couple + 1]; i += 2) {
        vlp_triple fact = w->facts.items[i];
        if (fact.head != center) fill_ball(s, w, center = fact.head, steps - 2, couple);
        if (s->mark[fact.tail] == s->balls) return false;
        int32_t count = find_neighbors(s, w, fact.tail, couple);
        for (int32_t j = 0; j < count; j++)
            if (s->mark[s->neighbors[j]] == s->balls) return false;
    }
    return true;
}

/* ---- Holding out --------------------------------------------------------------------------------- */

/* Takes couples in a random order, each to the split that has less, as long as that brings the split
 * nearer to its share. */
static void hold_out_couples(world *w, surroundings *s, int32_t steps, int32_t *order) {
    int64_t count = 0, facts = 0;
    for (int64_t c = 0; c < w->people.couple_count; c++) {
        int64_t own = w->first_fact[c + 1] - w->first_fact[c];
        if (w->people.couples[c].steps != steps || own == 0) continue;
        order[count++] = (int32_t)c;
        facts += own;
    }
    vlp_family_shuffle(order, count, w->options->seed, VLP_FAMILY_STEP_ORDER, (uint32_t)steps);
    double share = w->options->held_out * (double)facts;
    int64_t held[VLP_SPLITS] = {0};
    for (int64_t i = 0; i < count; i++) {
        int32_t couple = order[i];
        int64_t own = w->first_fact[couple + 1] - w->first_fact[couple];
        vlp_split to = held[VLP_TEST] <= held[VLP_VALID] ? VLP_TEST : VLP_VALID;
        if ((double)held[to] + (double)own / 2 > share || !has_no_shortcut(s, w, couple)) continue;
        w->split[couple] = (uint8_t)to;
        held[to] += own;
    }
}

/* What takes one step has numbers: a couple's is husband or wife by chance, so that the other remains,
 * and a person's two are child of father and of mother. */
static int64_t step_fact(const world *w, int32_t person, int member) {
    return w->people.couple_count + 2 * (int64_t)person + member;
}

static vlp_status hold_out_steps(world *w) {
    int64_t couples = w->people.couple_count, persons = w->people.person_count, count = 0;
    w->step_split = vlp_alloc_zero((size_t)(couples + 2 * persons), sizeof *w->step_split);
    int32_t *order = vlp_alloc((size_t)(couples + 2 * persons), sizeof *order);
    if (!w->step_split || !order) {
        vlp_free(order);
        return vlp_fail_memory("the triples of the family world");
    }
    for (int32_t c = 0; c < couples; c++) order[count++] = c;
    for (int32_t p = 0; p < persons; p++)
        for (int member = 0; member < 2 && w->people.persons[p].birth >= 0; member++)
            order[count++] = (int32_t)step_fact(w, p, member);
    vlp_family_shuffle(order, count, w->options->seed, VLP_FAMILY_STEP_ORDER, 1);
    int64_t share = (int64_t)(w->options->held_out * (double)count);
    for (int64_t i = 0; i < 2 * share; i++) w->step_split[order[i]] = i < share ? VLP_TEST : VLP_VALID;
    vlp_free(order);
    return VLP_OK;
}

static vlp_status hold_out(world *w) {
    vlp_status status = VLP_OK;
    surroundings s = {0};
    int32_t *order = vlp_alloc((size_t)w->people.couple_count, sizeof *order);
    if (!order) VLP_CHECK(vlp_fail_memory("the couples of the family world"));
    VLP_CHECK(surroundings_make(&s, w));
    for (int32_t steps = 2; steps <= LONGEST; steps++) hold_out_couples(w, &s, steps, order);
    VLP_CHECK(hold_out_steps(w));
out:
    vlp_free(order);
    surroundings_free(&s);
    return status;
}

/* ---- Splits -------------------------------------------------------------------------------------- */

static vlp_status record_couple(world *w, int32_t c) {
    const vlp_couple *couple = &w->people.couples[c];
    int32_t husband = couple->members[0], wife = couple->members[1];
    bool holds_wife = vlp_family_roll(w->options->seed, VLP_FAMILY_SPOUSE_FACT, (uint64_t)c, 2);
    VLP_TRY(append(&w->splits[holds_wife ? VLP_TRAIN : w->step_split[c]],
                   (vlp_triple){wife, HUSBAND, husband}));
    return append(&w->splits[holds_wife ? w->step_split[c] : VLP_TRAIN],
                  (vlp_triple){husband, WIFE, wife});
}

static vlp_status record_child(world *w, const vlp_couple *couple, int32_t child) {
    vlp_triple_list *train = &w->splits[VLP_TRAIN];
    for (int member = 0; member < 2; member++) {
        int32_t parent = couple->members[member];
        VLP_TRY(append(train, state(w, child, FATHER, parent)));
        VLP_TRY(append(train, state(w, parent, SON, child)));
        VLP_TRY(append(&w->splits[w->step_split[step_fact(w, child, member)]],
                       state(w, parent, CHILD, child)));
    }
    return VLP_OK;
}

static vlp_status record(world *w) {
    for (int32_t c = 0; c < w->people.couple_count; c++) {
        const vlp_couple *couple = &w->people.couples[c];
        VLP_TRY(record_couple(w, c));
        for (int32_t i = 0; i < couple->child_count; i++)
            VLP_TRY(record_child(w, couple, couple->first_child + i));
        for (int64_t i = w->first_fact[c]; i < w->first_fact[c + 1]; i++)
            VLP_TRY(append(&w->splits[w->split[c]], w->facts.items[i]));
    }
    return VLP_OK;
}

/* ---- Writing ------------------------------------------------------------------------------------- */

/* Everybody occurs in train, so that people keep their numbers. */
static vlp_status name_people(vlp_dictionary *entities, char *labels, const char **label_of,
                              const vlp_people *people) {
    char name[VLP_PERSON_NAME_SIZE];
    for (int32_t p = 0; p < people->person_count; p++) {
        int repeat = 1;
        do vlp_person_name(name, &people->persons[p], repeat++);
        while (vlp_dictionary_find(entities, name, strlen(name)) >= 0);
        int32_t id;
        VLP_TRY(vlp_dictionary_add(entities, &id, name));
        assert(id == p);
        label_of[p] = labels + (size_t)p * VLP_PERSON_NAME_SIZE;
        vlp_person_label(labels + (size_t)p * VLP_PERSON_NAME_SIZE, &people->persons[p]);
    }
    return VLP_OK;
}

/* Relations get numbers only if they occur: a small world has no great-great-grandparents. */
static vlp_status name_relations(vlp_dictionary *names, world *w, int32_t id_of[RELATIONS]) {
    bool occurs[RELATIONS] = {false};
    for (int split = 0; split < VLP_SPLITS; split++)
        for (int64_t i = 0; i < w->splits[split].count; i++)
            occurs[w->splits[split].items[i].relation] = true;
    for (int r = 0; r < RELATIONS; r++)
        if (occurs[r]) VLP_TRY(vlp_dictionary_add(names, &id_of[r], relations[r].name));
    return VLP_OK;
}

static vlp_status write_hops(vlp_staging *staging, const world *w, const vlp_dictionary *entities) {
    vlp_writer *writer = NULL;
    VLP_TRY(vlp_staging_writer(&writer, staging, "hops.tsv"));
    for (int64_t i = 0; i < w->splits[VLP_TEST].count; i++) {
        vlp_triple triple = w->splits[VLP_TEST].items[i];
        vlp_writer_format(writer, "%s\t%s\t%s\t%d\n", vlp_dictionary_name(entities, triple.head),
                          relations[triple.relation].name, vlp_dictionary_name(entities, triple.tail),
                          relations[triple.relation].steps);
    }
    return vlp_writer_commit(&writer);
}

/* From here on the splits speak of the relations that occur. */
static void renumber(world *w, const int32_t id_of[RELATIONS]) {
    for (int split = 0; split < VLP_SPLITS; split++)
        for (int64_t i = 0; i < w->splits[split].count; i++) {
            int32_t *relation = &w->splits[split].items[i].relation;
            *relation = id_of[*relation];
        }
}

static vlp_status write_world(vlp_import_report *report, vlp_staging *staging, world *w) {
    vlp_status status = VLP_OK;
    vlp_dictionary *entities = NULL, *names = NULL;
    size_t persons = (size_t)w->people.person_count;
    const char **label_of = vlp_alloc(persons, sizeof *label_of);
    char *labels = vlp_alloc(persons, VLP_PERSON_NAME_SIZE);
    if (!label_of || !labels) VLP_CHECK(vlp_fail_memory("the names of people"));
    VLP_CHECK(vlp_dictionary_new(&entities));
    VLP_CHECK(vlp_dictionary_new(&names));
    VLP_CHECK(name_people(entities, labels, label_of, &w->people));
    int32_t id_of[RELATIONS];
    VLP_CHECK(name_relations(names, w, id_of));
    VLP_CHECK(write_hops(staging, w, entities));
    renumber(w, id_of);
    vlp_output output = {entities, names, w->splits, label_of};
    VLP_CHECK(vlp_output_write(report, staging, &output));
out:
    vlp_dictionary_free(entities);
    vlp_dictionary_free(names);
    vlp_free(label_of);
    vlp_free(labels);
    return status;
}

static vlp_status check_options(const vlp_family_options *options) {
    if (options->families < 1 || options->families > 100000)
        return vlp_fail(VLP_ERROR_ARGUMENT, "families is %d; it has to be 1 to 100000",
                        options->families);
    if (options->generations < 2 || options->generations > 12)
        return vlp_fail(VLP_ERROR_ARGUMENT, "generations is %d; it has to be 2 to 12",
                        options->generations);
    if (!(options->held_out >= 0 && options->held_out <= 0.4)) /* also refuses NaN */
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "held_out is %g; it has to be 0 to 0.4, since valid and test take it each",
                        options->held_out);
    return VLP_OK;
}

vlp_status vlp_family_generate(vlp_import_report *out, const char *folder,
                               const vlp_family_options *given) {
    VLP_REQUIRE(folder);
    vlp_family_options options = VLP_FAMILY_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_family_options, &options, given));
    world w = {.options = &options};
    vlp_status status = VLP_OK;
    vlp_staging *staging = NULL;
    vlp_import_report report = {0};
    VLP_CHECK(check_options(w.options));
    VLP_CHECK(vlp_staging_open(&staging, folder));
    VLP_CHECK(vlp_people_make(&w.people, w.options));
    VLP_CHECK(conclude(&w));
    VLP_CHECK(hold_out(&w));
    VLP_CHECK(record(&w));
    VLP_CHECK(write_world(&report, staging, &w));
    VLP_CHECK(vlp_staging_commit(&staging));
    if (out) *out = report;
out:
    world_free(&w);
    vlp_staging_free(staging);
    return status;
}
