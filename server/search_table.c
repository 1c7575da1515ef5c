#include "search_table.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

enum {
    BLOCK = 16, /* ranks of a leaf of the tree of minima */
    BUCKET = 8, /* rows of a node that has no children */
    DEPTH = 64, /* characters at which the tree of characters ends */
    EDITS = 2
};

/* ---- Making -------------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right, void *pool) {
    const search_item *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    if ((a->key & 0xff) != 0) { /* the texts are longer than their keys */
        int order = strcmp((const char *)pool + a->offset + 8, (const char *)pool + b->offset + 8);
        if (order != 0) return order;
    }
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static uint64_t key_of(const char *text) {
    uint64_t key = 0;
    int shift = 56;
    for (; shift >= 0 && *text; text++, shift -= 8) key |= (uint64_t)(unsigned char)*text << shift;
    return key;
}

static void make_minima(search_table *table) {
    for (uint32_t i = 0; i < 2 * table->width; i++) table->least[i] = INT32_MAX;
    for (uint32_t i = 0; i < table->count; i++) {
        int32_t *leaf = &table->least[table->width + i / BLOCK];
        if (table->ranks[i] < *leaf) *leaf = table->ranks[i];
    }
    for (uint32_t i = table->width - 1; i > 0; i--) {
        int32_t left = table->least[2 * i], right = table->least[2 * i + 1];
        table->least[i] = left < right ? left : right;
    }
}

typedef struct pending {
    uint32_t node;
    uint16_t bytes, characters; /* of the text before its children */
} pending;

typedef struct builder {
    search_table *table;
    uint32_t capacity;
    pending *queue; /* nodes with more than BUCKET rows */
    uint32_t queued, queue_capacity;
} builder;

static bool add_node(builder *to, search_node node, uint16_t bytes, uint16_t characters) {
    search_table *table = to->table;
    if (table->node_count == to->capacity) {
        uint32_t capacity = to->capacity ? 2 * to->capacity : 256;
        search_node *nodes = realloc(table->nodes, capacity * sizeof *nodes);
        if (!nodes) return false;
        table->nodes = nodes;
        to->capacity = capacity;
    }
    if (node.end - node.begin > BUCKET && characters < DEPTH && (node.character || characters == 0)) {
        if (to->queued == to->queue_capacity) {
            uint32_t capacity = to->queue_capacity ? 2 * to->queue_capacity : 256;
            pending *queue = realloc(to->queue, capacity * sizeof *queue);
            if (!queue) return false;
            to->queue = queue;
            to->queue_capacity = capacity;
        }
        to->queue[to->queued++] = (pending){table->node_count, bytes, characters};
    }
    table->nodes[table->node_count++] = node;
    return true;
}

static bool add_children(builder *to, pending parent) {
    search_table *table = to->table;
    uint32_t begin = table->nodes[parent.node].begin, end = table->nodes[parent.node].end;
    uint32_t first = table->node_count;
    while (begin < end) {
        int length, other;
        uint32_t character = text_next(table->pool + table->offsets[begin] + parent.bytes, &length);
        uint32_t next = begin + 1;
        while (next < end &&
               text_next(table->pool + table->offsets[next] + parent.bytes, &other) == character)
            next++;
        search_node node = {begin, next, 0, 0, character};
        if (!add_node(to, node, (uint16_t)(parent.bytes + length), (uint16_t)(parent.characters + 1)))
            return false;
        begin = next;
    }
    table->nodes[parent.node].first = first;
    table->nodes[parent.node].count = table->node_count - first;
    return true;
}

static bool make_nodes(search_table *table) {
    builder to = {table, 0, NULL, 0, 0};
    bool done = add_node(&to, (search_node){0, table->count, 0, 0, 0}, 0, 0);
    for (uint32_t i = 0; done && i < to.queued; i++) done = add_children(&to, to.queue[i]);
    free(to.queue);
    return done;
}

bool search_table_make(search_table *out, const char *pool, search_item *items, uint32_t count) {
    *out = (search_table){.pool = pool, .count = count, .width = 1};
    while ((uint64_t)out->width * BLOCK < count) out->width *= 2;
    for (uint32_t i = 0; i < count; i++) items[i].key = key_of(pool + items[i].offset);
    if (count > 0) qsort_r(items, count, sizeof *items, compare, (void *)(uintptr_t)pool);
    out->offsets = malloc(((size_t)count + 1) * sizeof *out->offsets);
    out->ranks = calloc((size_t)count + 1, sizeof *out->ranks);
    out->keys = malloc(((size_t)count + 1) * sizeof *out->keys);
    out->least = malloc(2 * (size_t)out->width * sizeof *out->least);
    if (!out->offsets || !out->ranks || !out->keys || !out->least) goto failed;
    for (uint32_t i = 0; i < count; i++) {
        out->offsets[i] = items[i].offset;
        out->ranks[i] = items[i].rank;
        out->keys[i] = items[i].key;
    }
    make_minima(out);
    if (make_nodes(out)) return true;
failed:
    search_table_free(out);
    return false;
}

void search_table_free(search_table *table) {
    free(table->offsets);
    free(table->ranks);
    free(table->keys);
    free(table->least);
    free(table->nodes);
    *table = (search_table){0};
}

/* ---- The best of a range ------------------------------------------------------------------------- */

static bool is_among(const int32_t *ranks, int32_t count, int32_t rank) {
    for (int32_t i = 0; i < count; i++)
        if (ranks[i] == rank) return true;
    return false;
}

/* Ranks from this one on would not be kept. */
static int32_t bound(const search_top *top) {
    return top->count == top->wanted ? top->wanted == 0 ? 0 : top->ranks[top->count - 1] : INT32_MAX;
}

static void add(search_top *top, int32_t rank) {
    if (rank >= bound(top) || is_among(top->ranks, top->count, rank) ||
        is_among(top->found, top->found_count, rank))
        return;
    if (top->count < top->wanted) top->count++;
    int32_t at = top->count - 1;
    for (; at > 0 && top->ranks[at - 1] > rank; at--) top->ranks[at] = top->ranks[at - 1];
    top->ranks[at] = rank;
}

/* Adds rows begin .. end - 1 that are below `node`, whose leaves start at block `first`. The half with
 * the smaller minimum comes first, which lowers the bound for the other. */
static void add_below(search_top *top, const search_table *table, uint32_t node, uint32_t first,
                      uint32_t blocks, uint32_t begin, uint32_t end) {
    uint64_t from = (uint64_t)first * BLOCK, to = (uint64_t)(first + blocks) * BLOCK;
    if (from >= end || to <= begin || table->least[node] >= bound(top)) return;
    if (blocks == 1) {
        for (uint64_t i = from > begin ? from : begin; i < (to < end ? to : end); i++)
            add(top, table->ranks[i]);
        return;
    }
    uint32_t half = blocks / 2;
    bool left = table->least[2 * node] <= table->least[2 * node + 1];
    for (int i = 0; i < 2; i++, left = !left)
        add_below(top, table, 2 * node + !left, left ? first : first + half, half, begin, end);
}

static void add_range(search_top *top, const search_table *table, uint32_t begin, uint32_t end) {
    if (end - begin <= BLOCK)
        for (uint32_t i = begin; i < end; i++) add(top, table->ranks[i]);
    else
        add_below(top, table, 1, 0, table->width, begin, end);
}

/* ---- Beginnings ---------------------------------------------------------------------------------- */

/* The first row from `low` on that is not below the text (`after`: that neither is below nor begins with
 * its first `length` bytes). */
static uint32_t row_of(const search_table *table, const char *text, size_t length, bool after) {
    uint32_t low = 0, high = table->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strncmp(table->pool + table->offsets[middle], text, length);
        if (order < 0 || (after && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void search_table_equal(search_top *top, const search_table *table, const char *text) {
    size_t length = strlen(text) + 1; /* with its end */
    add_range(top, table, row_of(table, text, length, false), row_of(table, text, length, true));
}

void search_table_prefix(search_top *top, const search_table *table, const char *text) {
    size_t length = strlen(text);
    add_range(top, table, row_of(table, text, length, false), row_of(table, text, length, true));
}

/* ---- Edits --------------------------------------------------------------------------------------- */

/* positions[j]: bit i is set where i characters of the typed text are consumed with j edits.
 * exchanged[j]: before the last character it was so, and that character is the one after next. */
typedef struct automaton {
    uint64_t positions[EDITS + 1], exchanged[EDITS + 1];
} automaton;

typedef struct fuzzy {
    search_top *top;
    const search_table *table;
    int edits;
    uint64_t accepting;
    uint64_t ascii[128];     /* bit i: character i of the typed text is this one */
    uint32_t characters[64]; /* the others, distinct, with their masks */
    uint64_t masks[64];
    int count;
} fuzzy;

static uint64_t mask_of(const fuzzy *search, uint32_t character) {
    if (character < 128) return search->ascii[character];
    for (int i = 0; i < search->count; i++)
        if (search->characters[i] == character) return search->masks[i];
    return 0;
}

/* Returns false where no position is left. */
static bool step(automaton *state, const fuzzy *search, uint32_t character) {
    uint64_t mask = mask_of(search, character);
    /* Most characters end here: without an edit left, only one that is typed at a position leads on.
     * Positions with fewer edits, and those of an exchange, are among those with more. */
    uint64_t fewer_edits = state->positions[search->edits - 1], all = state->positions[search->edits];
    if (!(fewer_edits | (all & mask))) return false;
    automaton next = {{(state->positions[0] & mask) << 1}, {state->positions[0] & (mask >> 1)}};
    uint64_t any = next.positions[0];
    for (int j = 1; j <= search->edits; j++) {
        uint64_t fewer = state->positions[j - 1];
        next.positions[j] = (state->positions[j] & mask) << 1 | fewer | fewer << 1 |
                            next.positions[j - 1] << 1 | (state->exchanged[j - 1] & mask) << 2;
        next.exchanged[j] = state->positions[j] & (mask >> 1);
        any |= next.positions[j] | next.exchanged[j - 1];
    }
    *state = next;
    return any != 0;
}

static bool accepts(const automaton *state, const fuzzy *search) {
    return (state->positions[search->edits] & search->accepting) != 0;
}

/* What a text from `bytes` on comes to. */
static bool matches(const fuzzy *search, automaton state, const char *text) {
    for (int length; *text; text += length) {
        if (!step(&state, search, text_next(text, &length))) return false;
        if (accepts(&state, search)) return true;
    }
    return false;
}

/* The same of a row, by the bytes of its key as far as they are ASCII. */
static bool row_matches(const fuzzy *search, automaton state, uint32_t row, size_t bytes) {
    for (; bytes < 8; bytes++) {
        unsigned char byte = (unsigned char)(search->table->keys[row] >> (56 - 8 * bytes));
        if (byte == 0) return false;
        if (byte >= 0x80) break;
        if (!step(&state, search, byte)) return false;
        if (accepts(&state, search)) return true;
    }
    return matches(search, state, search->table->pool + search->table->offsets[row] + bytes);
}

/* Rows of a node without children, one by one. */
static void scan(const fuzzy *search, const search_node *node, automaton state, size_t bytes) {
    const search_table *table = search->table;
    for (uint32_t i = node->begin; i < node->end; i++)
        if (table->ranks[i] < bound(search->top) && row_matches(search, state, i, bytes))
            add(search->top, table->ranks[i]);
}

static size_t bytes_of(uint32_t character) {
    return character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
}

static void walk(const fuzzy *search, const search_node *node, automaton state, size_t bytes) {
    if (node->count == 0) {
        scan(search, node, state, bytes);
        return;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        const search_node *child = &search->table->nodes[node->first + i];
        automaton next = state;
        if (child->character == 0 || !step(&next, search, child->character)) continue;
        if (accepts(&next, search))
            add_range(search->top, search->table, child->begin, child->end);
        else
            walk(search, child, next, bytes + bytes_of(child->character));
    }
}

void search_table_fuzzy(search_top *top, const search_table *table, const char *text, int edits) {
    fuzzy search = {.top = top, .table = table, .edits = edits};
    int position = 0;
    for (int length; *text; text += length, position++) {
        uint32_t character = text_next(text, &length);
        if (character < 128) {
            search.ascii[character] |= 1ull << position;
            continue;
        }
        int i = 0;
        while (i < search.count && search.characters[i] != character) i++;
        search.characters[i] = character;
        search.masks[i] |= 1ull << position;
        if (i == search.count) search.count++;
    }
    search.accepting = 1ull << position;
    automaton start = {{1}, {0}};
    for (int j = 1; j <= edits; j++)
        start.positions[j] = start.positions[j - 1] | start.positions[j - 1] << 1;
    if (table->count > 0) walk(&search, &table->nodes[0], start, 0);
}
