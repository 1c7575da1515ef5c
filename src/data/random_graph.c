/* A generated graph for measuring: any number of entities and triples, in one pass over the head
 * entities, with memory of the order of the largest degree.
 *
 * Everything is a function of (seed, entity, number): nothing is stored. Entity e has the type e %
 * types, and the entities of a type are in communities of COMMUNITY. The out-degree follows a power law
 * (1 plus a share that falls with the root of a rank). A type has base relations ("slots"), each with a
 * type of its tails, and composed relations ("rules"). The triples of a head entity are anchors:  one of
 * each of its first slots. The tail is in the community that belongs to the head's, or, less often,
 * anywhere in the type, where some entities are far more likely than others. composed: h -r1-> m -r2->
 * t, both anchors, gives h -rule-> t. Only these are held out. others:   the rest, with tails anywhere
 * in the type. Hubs have most of them. Anchors have different relations, and so have composed triples;
 * only others can repeat, and they are drawn again. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/options.h"
#include "base/random.h"

enum { COMMUNITY = 32, RELATIONS_OF_TYPE = 10, ENTITIES_OF_TYPE = 10, MAX_RELATIONS = 10000 };

/* What a random number is for. */
enum purpose { TAIL_TYPE = 1, TAIL_COMMUNITY, TAIL, RULE, SPLIT, OTHER, SPREAD };

typedef struct maker {
    const vlp_random_graph_options *options;
    int32_t types;
    int32_t base;     /* base relations; those behind are composed */
    int64_t *set;     /* the base triples of a head entity, open addressing; -1: free */
    int64_t set_size; /* a power of two */
    bool *in_train;   /* (relations) */
    vlp_writer *writers[VLP_SPLITS];
    vlp_import_report report;
} maker;

static vlp_random4 roll(const maker *m, enum purpose purpose, uint64_t object, uint32_t number) {
    return vlp_random(m->options->seed, VLP_STREAM_GRAPH, object << 4 | (uint64_t)purpose, number);
}

/* ---- Entities ------------------------------------------------------------------------------------ */

/* A permutation of 0 .. count - 1: the factor is a prime above any count. */
static int32_t spread(const maker *m, int32_t index, int32_t count, uint32_t which) {
    uint64_t shift = roll(m, SPREAD, which, 0).v[0];
    return (int32_t)(((uint64_t)index * 2654435761u + shift) % (uint64_t)count);
}

static int32_t type_size(const maker *m, int32_t type) {
    return (m->options->entities - type + m->types - 1) / m->types;
}

/* Triples beyond the first of the entities of rank below `rank`. Roots are rounded the same everywhere.
 */
static int64_t share_below(const maker *m, int32_t rank) {
    double part = sqrt((double)rank / m->options->entities);
    return (int64_t)((double)(m->options->triples - m->options->entities) * part);
}

static int64_t out_degree(const maker *m, int32_t entity) {
    int32_t rank = spread(m, entity, m->options->entities, UINT32_MAX);
    return 1 + share_below(m, rank + 1) - share_below(m, rank);
}

/* ---- Relations ----------------------------------------------------------------------------------- */

/* Relations `first` .. `end` - 1 go round the types; how many a type has. */
static int32_t slots_between(const maker *m, int32_t type, int32_t first, int32_t end) {
    return (end - first - type + m->types - 1) / m->types;
}

static int32_t slot_count(const maker *m, int32_t type) {
    return slots_between(m, type, 0, m->base);
}

static int32_t slot_relation(const maker *m, int32_t type, int32_t slot) {
    return slot * m->types + type;
}

static int32_t tail_type(const maker *m, int32_t relation) {
    vlp_random4 bits = roll(m, TAIL_TYPE, (uint64_t)relation, 0);
    return (int32_t)vlp_random_below(bits.v[0], bits.v[1], (uint32_t)m->types);
}

static int64_t anchor_count(const maker *m, int32_t entity) {
    int64_t half = (out_degree(m, entity) + 1) / 2, slots = slot_count(m, entity % m->types);
    return half < slots ? half : slots;
}

/* ---- Tails --------------------------------------------------------------------------------------- */

/* floor(u^2 count): the probability of an index falls with its root. */
static int32_t skewed(uint32_t bits, int32_t count) {
    uint64_t square = (uint64_t)bits * bits >> 32;
    return (int32_t)(square * (uint64_t)count >> 32);
}

/* Anywhere in the type of a relation's tails. */
static int32_t any_tail(const maker *m, int32_t relation, uint32_t bits) {
    int32_t type = tail_type(m, relation), size = type_size(m, type);
    return spread(m, skewed(bits, size), size, (uint32_t)type) * m->types + type;
}

/* In the community that belongs to the head's. */
static int32_t near_tail(const maker *m, int32_t head, int32_t relation, uint32_t bits) {
    int32_t type = tail_type(m, relation), size = type_size(m, type);
    int32_t communities = (size + COMMUNITY - 1) / COMMUNITY;
    vlp_random4 map = roll(m, TAIL_COMMUNITY, (uint64_t)relation, 0);
    int64_t own = head / m->types / COMMUNITY;
    int32_t first = (int32_t)((own * (map.v[0] >> 4 | 1) + map.v[1]) % communities) * COMMUNITY;
    int32_t members = size - first < COMMUNITY ? size - first : COMMUNITY;
    return (first + skewed(bits, members)) * m->types + type;
}

static int32_t anchor_tail(const maker *m, int32_t head, int32_t slot) {
    int32_t relation = slot_relation(m, head % m->types, slot);
    vlp_random4 bits = roll(m, TAIL, (uint64_t)head, (uint32_t)slot);
    return bits.v[0] % 8 == 0 ? any_tail(m, relation, bits.v[1])
                              : near_tail(m, head, relation, bits.v[1]);
}

/* A rule of a type: the slots of its two parts. */
typedef struct rule {
    int32_t first, second; /* relations */
    int32_t slot, next;    /* of the head entity, of the entity between */
} rule;

static rule rule_of(const maker *m, int32_t type, int32_t number) {
    rule out = {.slot = number % slot_count(m, type)};
    out.first = slot_relation(m, type, out.slot);
    int32_t between = tail_type(m, out.first), slots = slot_count(m, between);
    /* Entities of few triples have the first slots only. */
    out.next = (int32_t)(roll(m, RULE, (uint64_t)type, (uint32_t)number).v[0] % (slots < 2 ? 1u : 2u));
    out.second = slot_relation(m, between, out.next);
    return out;
}

/* ---- The triples of a head entity ---------------------------------------------------------------- */

static void put_number(char **at, char letter, int32_t number) {
    char digits[12];
    int count = 0;
    do digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    *(*at)++ = letter;
    while (count > 0) *(*at)++ = digits[--count];
}

static void write_triple(maker *m, vlp_split split, int32_t head, int32_t relation, int32_t tail) {
    char line[64], *at = line;
    put_number(&at, 'e', head);
    *at++ = '\t';
    put_number(&at, 'r', relation);
    *at++ = '\t';
    put_number(&at, 'e', tail);
    *at++ = '\n';
    vlp_writer_bytes(m->writers[split], line, (size_t)(at - line));
    m->report.triples[split]++;
    if (split != VLP_TRAIN || m->in_train[relation]) return;
    m->in_train[relation] = true;
    m->report.relations++;
}

/* Makes an empty set for `count` triples. */
static vlp_status empty_set(maker *m, int64_t count) {
    int64_t size = 16;
    while (size < 2 * count) size *= 2;
    if (size > m->set_size) {
        vlp_free(m->set);
        m->set = vlp_alloc((size_t)size, sizeof *m->set);
        if (!m->set) return vlp_fail_memory("the triples of an entity");
    }
    m->set_size = size;
    memset(m->set, -1, (size_t)size * sizeof *m->set);
    return VLP_OK;
}

/* Adds a base triple of the head entity; false: it is there. */
static bool add(maker *m, int32_t relation, int32_t tail) {
    int64_t key = (int64_t)relation << 32 | tail, mask = m->set_size - 1;
    int64_t at = (int64_t)((uint64_t)key * UINT64_C(0x9E3779B97F4A7C15) >> 33) & mask;
    for (; m->set[at] >= 0; at = (at + 1) & mask)
        if (m->set[at] == key) return false;
    m->set[at] = key;
    return true;
}

/* The composed triples, at most `count`; returns how many. */
static int64_t write_composed(maker *m, int32_t head, int64_t anchors, int64_t count) {
    int32_t type = head % m->types;
    int32_t rules = slots_between(m, type, m->base, m->options->relations);
    int64_t made = 0;
    for (int32_t i = 0; i < rules && made < count; i++) {
        rule way = rule_of(m, type, i);
        if (way.slot >= anchors) continue;
        int32_t between = anchor_tail(m, head, way.slot), relation = m->base + slot_relation(m, type, i);
        if (way.next >= anchor_count(m, between)) continue;
        float u = vlp_random_unit(roll(m, SPLIT, (uint64_t)head, (uint32_t)i).v[0]);
        float share = (float)m->options->held_out;
        vlp_split split = u < share ? VLP_VALID : u < 2 * share ? VLP_TEST : VLP_TRAIN;
        if (!m->in_train[relation]) split = VLP_TRAIN;
        write_triple(m, split, head, relation, anchor_tail(m, between, way.next));
        made++;
    }
    return made;
}

/* A triple that the head entity does not have: drawn, and the next free tail behind it. */
static void write_other(maker *m, int32_t head, uint32_t number) {
    enum { ATTEMPTS = 4 };
    int32_t type = head % m->types, relation = 0, tail = 0;
    for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        vlp_random4 bits = roll(m, OTHER, (uint64_t)head, number * ATTEMPTS + attempt);
        relation = slot_relation(m, type, (int32_t)(bits.v[0] % (uint32_t)slot_count(m, type)));
        tail = any_tail(m, relation, bits.v[1]);
        if (add(m, relation, tail)) goto found;
    }
    int32_t of = tail_type(m, relation);
    do tail = (tail / m->types + 1) % type_size(m, of) * m->types + of;
    while (!add(m, relation, tail));
found:
    write_triple(m, VLP_TRAIN, head, relation, tail);
}

static vlp_status write_head(maker *m, int32_t head) {
    int64_t degree = out_degree(m, head), anchors = anchor_count(m, head);
    VLP_TRY(empty_set(m, degree));
    for (int32_t slot = 0; slot < anchors; slot++) {
        int32_t relation = slot_relation(m, head % m->types, slot), tail = anchor_tail(m, head, slot);
        add(m, relation, tail);
        write_triple(m, VLP_TRAIN, head, relation, tail);
    }
    int64_t done = anchors + write_composed(m, head, anchors, degree - anchors);
    for (; done < degree; done++) write_other(m, head, (uint32_t)done);
    return VLP_OK;
}

/* ---- All of it ----------------------------------------------------------------------------------- */

static vlp_status write_triples(maker *m, vlp_staging *staging) {
    static const char *const names[VLP_SPLITS] = {"train.txt", "valid.txt", "test.txt"};
    enum { BLOCK = 65536 }; /* head entities between looks at the observer */
    const vlp_random_graph_options *options = m->options;
    for (int split = 0; split < VLP_SPLITS; split++)
        if (split == VLP_TRAIN || options->held_out > 0)
            VLP_TRY(vlp_staging_writer(&m->writers[split], staging, names[split]));
    for (int32_t head = 0; head < options->entities; head++) {
        if (head % BLOCK == 0) {
            if (vlp_stopped(options->observer)) return vlp_fail_stopped();
            vlp_progress(options->observer, "entities", head, options->entities);
        }
        VLP_TRY(write_head(m, head));
    }
    vlp_progress(options->observer, "entities", options->entities, options->entities);
    for (int split = 0; split < VLP_SPLITS; split++)
        if (m->writers[split]) VLP_TRY(vlp_writer_commit(&m->writers[split]));
    return VLP_OK;
}

static vlp_status write_rules(const maker *m, vlp_staging *staging) {
    vlp_writer *writer = NULL;
    VLP_TRY(vlp_staging_writer(&writer, staging, "rules.tsv"));
    for (int32_t relation = m->base; relation < m->options->relations; relation++) {
        if (!m->in_train[relation]) continue;
        rule way = rule_of(m, (relation - m->base) % m->types, (relation - m->base) / m->types);
        vlp_writer_format(writer, "r%d\tr%d\tr%d\n", relation, way.first, way.second);
    }
    return vlp_writer_commit(&writer);
}

static vlp_status check_options(const maker *m) {
    const vlp_random_graph_options *options = m->options;
    if (options->entities < ENTITIES_OF_TYPE)
        return vlp_fail(VLP_ERROR_ARGUMENT, "%d entities; a generated graph has at least %d",
                        options->entities, ENTITIES_OF_TYPE);
    if (options->relations < 1 || options->relations > MAX_RELATIONS)
        return vlp_fail(VLP_ERROR_ARGUMENT, "relations is %d; the range is 1 to %d", options->relations,
                        MAX_RELATIONS);
    if (options->triples < options->entities || options->triples > INT32_MAX)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "triples is %lld; the range is the number of entities, %d, to %d",
                        (long long)options->triples, options->entities, INT32_MAX);
    if (!(options->held_out >= 0 && options->held_out <= 0.4)) /* refuses NaN as well */
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "held_out is %g; the range is 0 to 0.4, for each of valid and test",
                        options->held_out);
    return VLP_OK;
}

/* The largest out-degree has to leave tails free: a relation has as many as its type has entities. */
static vlp_status check_density(const maker *m) {
    int32_t room = type_size(m, m->types - 1);
    if (1 + share_below(m, 1) <= room) return VLP_OK;
    return vlp_fail(VLP_ERROR_ARGUMENT,
                    "%lld triples of %d entities: one would have %lld, and there are %d entities of a "
                    "type; ask for fewer triples or more entities",
                    (long long)m->options->triples, m->options->entities,
                    (long long)(1 + share_below(m, 1)), room);
}

vlp_status vlp_random_graph_generate(vlp_import_report *out, const char *folder,
                                     const vlp_random_graph_options *given) {
    VLP_REQUIRE(folder);
    vlp_random_graph_options options = VLP_RANDOM_GRAPH_OPTIONS_INIT;
    VLP_TRY(VLP_OPTIONS_TAKE(vlp_random_graph_options, &options, given));
    vlp_status status = VLP_OK;
    vlp_staging *staging = NULL;
    maker m = {.options = &options};
    VLP_TRY(check_options(&m));
    int32_t types = options.relations / RELATIONS_OF_TYPE, most = options.entities / ENTITIES_OF_TYPE;
    m.types = types < 1 ? 1 : types < most ? types : most;
    m.base = (options.relations + 1) / 2;
    m.report.entities = options.entities;
    VLP_TRY(check_density(&m));
    VLP_CHECK(vlp_staging_open(&staging, folder));
    m.in_train = vlp_alloc_zero((size_t)options.relations, sizeof *m.in_train);
    if (!m.in_train) VLP_CHECK(vlp_fail_memory("relations"));
    VLP_CHECK(write_triples(&m, staging));
    VLP_CHECK(write_rules(&m, staging));
    VLP_CHECK(vlp_staging_commit(&staging));
    if (out) *out = m.report;
out:
    for (int split = 0; split < VLP_SPLITS; split++) vlp_writer_free(m.writers[split]);
    vlp_free(m.set);
    vlp_free(m.in_train);
    vlp_staging_free(staging);
    return status;
}
