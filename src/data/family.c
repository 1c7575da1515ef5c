/* A generated data set of families in which all answers are known, and the number of inference steps
 * between each held-out triple and the training triples.
 *
 * (x, father, y) means "x's father is y", so relations compose from left to right: father, father is
 * grandfather. father, mother, son, daughter, and either husband or wife of every couple, are always in
 * the training split. All other triples follow by rules; the number of steps is the number of relations
 * in the rule. A rule may use a triple in the inverse direction; parent is father or mother, spouse is
 * husband or wife; nobody is their own sibling or cousin:
 *
 *   1  husband, wife                   the inverse of the other
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
 * These numbers hold only without shortcuts: with (x, grandfather, y) in the training split, x's
 * great_grandfather is two steps away, not three. Therefore the data set consists of villages without
 * marriages between them. Besides the one-step relations, each village contains only relations of 2,
 * only of 3 or only of 4 steps, but these completely: the union of the splits contains every true answer
 * of every query. (Great-great-grandparents are included where they are founders of the village, which
 * is always the case with five generations. Otherwise a child's great-great-grandmother would be the
 * daughter of a parent's great-great-grandmother: three steps instead of four.)
 *
 * Within a village, all derived triples over the same couple of ancestors (or parents-in-law) are held
 * out together or not at all, as a brother's cousin would lead to one's own in three steps. They are
 * held out only if the distance between the two people of each triple, in undirected hops over all
 * training triples, equals its number of steps. Holding out more couples later removes triples but no
 * births or marriages, so these distances are final. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/options.h"
#include "data/family.h"
#include "data/output.h"

/* Gendered relations: the male form, followed by the female one. */
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
    int steps; /* number of inference steps; 0: never held out */
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
    /* Derived triples of two steps and more, grouped by couple, in pairs of a triple and its inverse. */
    vlp_triple_list facts;
    int64_t *first_fact; /* (couples + 1) facts of a couple: first_fact[c] .. first_fact[c + 1] - 1 */
    uint8_t *split;      /* (couples) the split of a couple's facts */
    uint8_t *step_split; /* (couples + 2 * persons) the split of one-step facts; see step_fact */
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

/* ---- Derived triples of two steps and more ------------------------------------------------------- */

/* (x, kind, y), in the female form if y is female. */
static vlp_triple state(const world *w, int32_t x, enum relation kind, int32_t y) {
    bool is_neutral = kind == COUSIN || kind == CHILD;
    int32_t relation = (int32_t)kind + (!is_neutral && w->people.persons[y].is_female);
    return (vlp_triple){x, relation, y};
}

static vlp_status relate(world *w, int32_t x, enum relation kind, int32_t y, enum relation backwards) {
    VLP_TRY(append(&w->facts, state(w, x, kind, y)));
    return append(&w->facts, state(w, y, backwards, x));
}

/* The children of a person as a range; empty for unmarried people. */
static int32_t children_of(const world *w, int32_t person, int32_t *end) {
    int32_t marriage = w->people.persons[person].marriage;
    if (marriage < 0) return *end = 0;
    const vlp_couple *couple = &w->people.couples[marriage];
    *end = couple->first_child + couple->child_count;
    return couple->first_child;
}

/* Newcomers marry people born in the village, so only in founding couples neither has known parents. */
static bool are_founders(const world *w, const vlp_couple *couple) {
    return w->people.persons[couple->members[0]].birth < 0 &&
           w->people.persons[couple->members[1]].birth < 0;
}

/* Relates `ancestors` to their descendants `steps` generations below. `couple` is `depth` generations
 * below. */
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

/* A couple and the spouses of their children. */
static vlp_status relate_parents_in_law(world *w, const vlp_couple *parents) {
    for (int32_t i = 0; i < parents->child_count; i++) {
        int32_t spouse = vlp_people_spouse(&w->people, parents->first_child + i);
        for (int member = 0; member < 2 && spouse >= 0; member++)
            VLP_TRY(relate(w, spouse, FATHER_IN_LAW, parents->members[member], SON_IN_LAW));
    }
    return VLP_OK;
}

/* Two siblings, their spouses and children, as far as the village includes the relation. Called for
 * both orders. */
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

/* ---- Distances over the training split ----------------------------------------------------------- */

/* Neighbours by facts, and the ball around one person. Births and marriages are read from the people. */
typedef struct surroundings {
    int64_t *first;     /* (persons + 1) into other and couple */
    int32_t *other;     /* (facts) */
    int32_t *couple;    /* (facts) the couple of the fact */
    int32_t *neighbors; /* a buffer for the neighbours of one person */
    int32_t *ball;      /* (persons) the ball, nearest first */
    int32_t *mark;      /* (persons) the number of the last ball that contained the person */
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
    enum { BY_BIRTH_AND_MARRIAGE = 16 }; /* at least two parents, a spouse and four children */
    size_t persons = (size_t)w->people.person_count, facts = (size_t)w->facts.count;
    s->first = vlp_alloc_zero(persons + 2, sizeof *s->first);
    s->other = vlp_alloc(facts, sizeof *s->other);
    s->couple = vlp_alloc(facts, sizeof *s->couple);
    s->ball = vlp_alloc(persons, sizeof *s->ball);
    s->mark = vlp_alloc_zero(persons, sizeof *s->mark);
    if (!s->first || !s->other || !s->couple || !s->ball || !s->mark)
        return vlp_fail_memory("the distances of the family world");
    for (size_t i = 0; i < facts; i++) s->first[w->facts.items[i].head + 2]++;
    int64_t longest = 0;
    for (size_t p = 0; p < persons; p++) {
        if (s->first[p + 2] > longest) longest = s->first[p + 2];
        s->first[p + 2] += s->first[p + 1];
    }
    /* first[p + 1] is the index of the next fact of p, and finally their end. */
    for (int64_t c = 0; c < w->people.couple_count; c++)
        for (int64_t i = w->first_fact[c]; i < w->first_fact[c + 1]; i++) {
            int64_t place = s->first[w->facts.items[i].head + 1]++;
            s->other[place] = w->facts.items[i].tail;
            s->couple[place] = (int32_t)c;
        }
    s->neighbors = vlp_alloc((size_t)longest + BY_BIRTH_AND_MARRIAGE, sizeof *s->neighbors);
    if (!s->neighbors) return vlp_fail_memory("the distances of the family world");
    return VLP_OK;
}

/* The people one training triple away from `person` if the facts of couple `without` are held out. */
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

/* Marks the people within `radius` of `center`. */
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

/* Whether the distance of all facts of a couple equals their number of steps. The rule gives an upper
 * bound, so it suffices that there is no shorter path: a ball of all but two steps around the head
 * entity must not meet a ball of one step around the tail entity. */
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

/* Assigns couples in random order, each to the smaller split, as long as that brings the split closer
 * to its share. */
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

/* One-step facts are numbered: for a couple either husband or wife at random, so that the other
 * remains; for a person child of the father and of the mother. */
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

/* All people occur in the training split, so their numbers do not change. */
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

/* Only relations that occur get numbers: a small data set has no great-great-grandparents. */
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

/* From here on the splits use the numbers of the relations that occur. */
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
    vlp_output output = {entities, names, w->splits, label_of, NULL};
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
        return vlp_fail(VLP_ERROR_ARGUMENT, "families is %d; the range is 1 to 100000",
                        options->families);
    if (options->generations < 2 || options->generations > 12)
        return vlp_fail(VLP_ERROR_ARGUMENT, "generations is %d; the range is 2 to 12",
                        options->generations);
    if (!(options->held_out >= 0 && options->held_out <= 0.4)) /* refuses NaN as well */
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "held_out is %g; the range is 0 to 0.4, for each of valid and test",
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
