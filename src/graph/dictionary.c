/* Open addressing over 8-byte slots. A slot holds where its name lies and part of its hash; the name
 * lies behind a small head with its id and its whole hash. So a look-up in a large table misses the
 * cache twice, once for the slot and once for the name, and making the table larger reads the names in
 * their order. */
#include "graph/dictionary.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Names lie one behind the other: a head, the bytes, a terminating zero, and up to the next multiple
 * of 4. */
typedef struct name_head {
    int32_t id;
    uint32_t hash;
} name_head;

/* The low 40 bits: the offset of the name's head in `names` divided by 4, plus one (0: a free slot); the
 * high 24: the high bits of its hash. */
typedef uint64_t slot;
enum { OFFSET_BITS = 40, NAME_PADDING = 8 };
#define OFFSET_MASK ((UINT64_C(1) << OFFSET_BITS) - 1)

struct vlp_dictionary {
    slot *slots;
    uint32_t mask; /* slots - 1; slots is a power of two */
    int32_t size;
    char *names; /* (names_used), and NAME_PADDING zeros */
    int64_t names_used, names_capacity;
    int64_t *starts; /* (size) of the names' bytes */
    int64_t starts_capacity;
};

static slot make_slot(int64_t head, uint32_t hash) {
    return ((uint64_t)head / 4 + 1) | (uint64_t)(hash >> 8) << OFFSET_BITS;
}

/* The offset of a used slot's head. */
static inline int64_t head_of(slot found) {
    return (int64_t)(((found & OFFSET_MASK) - 1) * 4);
}

uint32_t vlp_name_hash(const char *text, size_t length) {
    return (uint32_t)XXH3_64bits(text, length);
}

vlp_span vlp_span_make(const char *text, size_t length) {
    return (vlp_span){text, (uint32_t)length, vlp_name_hash(text, length)};
}

/* At least every second slot is free: short probes. */
static vlp_status make_slots(vlp_dictionary *dictionary, uint32_t count) {
    slot *slots = vlp_alloc_zero(count, sizeof *slots);
    if (!slots) return vlp_fail_memory("a dictionary");
    uint32_t mask = count - 1;
    for (int32_t id = 0; id < dictionary->size; id++) {
        int64_t at = dictionary->starts[id] - (int64_t)sizeof(name_head);
        name_head head;
        memcpy(&head, dictionary->names + at, sizeof head);
        uint32_t place = head.hash & mask;
        while (slots[place]) place = (place + 1) & mask;
        slots[place] = make_slot(at, head.hash);
    }
    vlp_free(dictionary->slots);
    dictionary->slots = slots;
    dictionary->mask = mask;
    return VLP_OK;
}

vlp_status vlp_dictionary_new(vlp_dictionary **out) {
    *out = NULL;
    vlp_dictionary *dictionary = vlp_alloc_zero(1, sizeof *dictionary);
    if (!dictionary) return vlp_fail_memory("a dictionary");
    vlp_status status = make_slots(dictionary, 64);
    if (status == VLP_OK)
        status = vlp_grow(&dictionary->starts, &dictionary->starts_capacity, 1,
                          sizeof *dictionary->starts, "a dictionary");
    if (status != VLP_OK) {
        vlp_dictionary_free(dictionary);
        return status;
    }
    *out = dictionary;
    return VLP_OK;
}

void vlp_dictionary_free(vlp_dictionary *dictionary) {
    if (!dictionary) return;
    vlp_free(dictionary->slots);
    vlp_free(dictionary->names);
    vlp_free(dictionary->starts);
    vlp_free(dictionary);
}

/* memcmp for names, which are short: words that may overlap instead of a call. A stored name that is
 * shorter than `length` differs in the word with its terminator, of which up to 7 bytes lie behind the
 * name: NAME_PADDING. */
static inline bool same_bytes(const char *left, const char *right, size_t length) {
    if (length >= 8) {
        for (size_t i = 0;; i = i + 16 <= length ? i + 8 : length - 8) {
            uint64_t a, b;
            memcpy(&a, left + i, 8);
            memcpy(&b, right + i, 8);
            if (a != b) return false;
            if (i + 8 == length) return true;
        }
    }
    for (size_t i = 0; i < length; i++)
        if (left[i] != right[i]) return false;
    return true;
}

/* Whether the name behind a head is this one; names hold no zero byte, so that the terminator tells the
 * length. */
static inline bool same_name(const vlp_dictionary *dictionary, int64_t head, const char *text,
                             size_t length) {
    const char *name = dictionary->names + head + sizeof(name_head);
    return same_bytes(name, text, length) && name[length] == '\0';
}

/* The place of a name: its slot, or the free one where it belongs. */
static inline uint32_t find_place(const vlp_dictionary *dictionary, const char *text, size_t length,
                                  uint32_t hash) {
    uint32_t place = hash & dictionary->mask;
    for (slot found; (found = dictionary->slots[place]); place = (place + 1) & dictionary->mask)
        if (found >> OFFSET_BITS == hash >> 8 && same_name(dictionary, head_of(found), text, length))
            break;
    return place;
}

/* The id of a slot, -1 of a free one. */
static inline int32_t id_of(const vlp_dictionary *dictionary, slot found) {
    if (!found) return -1;
    int32_t id;
    memcpy(&id, dictionary->names + head_of(found), sizeof id);
    return id;
}

/* Appends a name; *head is where its head lies. */
static vlp_status append_name(vlp_dictionary *dictionary, int64_t *head, const vlp_span *span) {
    if (dictionary->size == INT32_MAX)
        return vlp_fail(VLP_ERROR_FORMAT, "more than %d distinct names", INT32_MAX);
    *head = dictionary->names_used;
    int64_t start = *head + (int64_t)sizeof(name_head);
    int64_t needed = (start + span->length + 1 + 3) & ~INT64_C(3);
    VLP_TRY(
        vlp_grow(&dictionary->names, &dictionary->names_capacity, needed + NAME_PADDING, 1, "names"));
    VLP_TRY(vlp_grow(&dictionary->starts, &dictionary->starts_capacity, (int64_t)dictionary->size + 1,
                     sizeof *dictionary->starts, "names"));
    name_head first = {dictionary->size, span->hash};
    memcpy(dictionary->names + *head, &first, sizeof first);
    memcpy(dictionary->names + start, span->text, span->length);
    memset(dictionary->names + start + span->length, 0,
           (size_t)(needed + NAME_PADDING - start - span->length));
    dictionary->names_used = needed;
    dictionary->starts[dictionary->size++] = start;
    return VLP_OK;
}

vlp_status vlp_dictionary_intern(vlp_dictionary *dictionary, int32_t *id, const vlp_span *span) {
    uint32_t place = find_place(dictionary, span->text, span->length, span->hash);
    *id = id_of(dictionary, dictionary->slots[place]);
    if (*id >= 0) return VLP_OK;
    int64_t head = 0;
    VLP_TRY(append_name(dictionary, &head, span));
    *id = dictionary->size - 1;
    dictionary->slots[place] = make_slot(head, span->hash);
    if ((int64_t)dictionary->size * 2 > dictionary->mask) {
        if (dictionary->mask >= UINT32_MAX / 2) return vlp_fail(VLP_ERROR_FORMAT, "too many names");
        return make_slots(dictionary, (dictionary->mask + 1) * 2);
    }
    return VLP_OK;
}

vlp_status vlp_dictionary_add(vlp_dictionary *dictionary, int32_t *id, const char *name) {
    vlp_span span = vlp_span_make(name, strlen(name));
    return vlp_dictionary_intern(dictionary, id, &span);
}

void vlp_dictionary_find_many(const vlp_dictionary *dictionary, int32_t *ids, int64_t id_stride,
                              const vlp_span *spans, int64_t span_stride, int64_t count) {
    /* A large table misses the cache at every look-up: ask for the slot far ahead, and for the name when
     * the slot should be there. */
    enum { FAR = 24, NEAR = 12 };
    for (int64_t i = 0; i < count; i++) {
        if (i + FAR < count)
            __builtin_prefetch(
                &dictionary->slots[spans[(i + FAR) * span_stride].hash & dictionary->mask]);
        if (i + NEAR < count) {
            slot ahead = dictionary->slots[spans[(i + NEAR) * span_stride].hash & dictionary->mask];
            if (ahead) __builtin_prefetch(dictionary->names + head_of(ahead));
        }
        const vlp_span *span = &spans[i * span_stride];
        uint32_t place = find_place(dictionary, span->text, span->length, span->hash);
        ids[i * id_stride] = id_of(dictionary, dictionary->slots[place]);
    }
}

int32_t vlp_dictionary_find(const vlp_dictionary *dictionary, const char *text, size_t length) {
    if (memchr(text, '\0', length)) return -1; /* no name has one */
    uint32_t place = find_place(dictionary, text, length, vlp_name_hash(text, length));
    return id_of(dictionary, dictionary->slots[place]);
}

const char *vlp_dictionary_name(const vlp_dictionary *dictionary, int32_t id) {
    assert(id >= 0 && id < dictionary->size);
    return dictionary->names + dictionary->starts[id];
}

size_t vlp_dictionary_name_length(const vlp_dictionary *dictionary, int32_t id) {
    assert(id >= 0 && id < dictionary->size);
    return strlen(dictionary->names + dictionary->starts[id]);
}

int32_t vlp_dictionary_size(const vlp_dictionary *dictionary) {
    return dictionary->size;
}

int64_t vlp_dictionary_bytes(const vlp_dictionary *dictionary) {
    return dictionary->names_capacity + dictionary->starts_capacity * (int64_t)sizeof(int64_t) +
           ((int64_t)dictionary->mask + 1) * (int64_t)sizeof(slot);
}

void vlp_dictionary_trim(vlp_dictionary *dictionary) {
    int64_t starts = dictionary->size, names = dictionary->names_used + NAME_PADDING;
    void *smaller = vlp_realloc(dictionary->starts, (size_t)starts, sizeof *dictionary->starts);
    if (smaller) {
        dictionary->starts = smaller;
        dictionary->starts_capacity = starts;
    }
    smaller = vlp_realloc(dictionary->names, (size_t)names, 1);
    if (smaller) {
        dictionary->names = smaller;
        dictionary->names_capacity = names;
    }
}
