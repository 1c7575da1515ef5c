/* Open addressing over 8-byte slots that hold an id and part of the hash, so that a look-up touches the
 * names only where the hash agrees. Names lie one behind the other, each with a terminating zero. */
#include "graph/dictionary.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct slot {
    uint32_t hash;
    int32_t id; /* -1: free */
} slot;

struct vlp_dictionary {
    slot *slots;
    uint32_t mask; /* slots - 1; slots is a power of two */
    int32_t size;
    char *names;
    int64_t names_used, names_capacity;
    int64_t *starts; /* (size + 1) into names */
    int64_t starts_capacity;
};

uint32_t vlp_name_hash(const char *text, size_t length) {
    return (uint32_t)XXH3_64bits(text, length);
}

vlp_span vlp_span_make(const char *text, size_t length) {
    return (vlp_span){text, (uint32_t)length, vlp_name_hash(text, length)};
}

/* A free slot at most every second one: short probes. */
static vlp_status make_slots(vlp_dictionary *dictionary, uint32_t count) {
    slot *slots = vlp_alloc(count, sizeof *slots);
    if (!slots) return vlp_fail_memory("a dictionary");
    memset(slots, 0xff, count * sizeof *slots);
    uint32_t mask = count - 1;
    if (dictionary->slots) {
        for (uint64_t i = 0; i <= dictionary->mask; i++) {
            slot old = dictionary->slots[i];
            if (old.id < 0) continue;
            uint32_t place = old.hash & mask;
            while (slots[place].id >= 0) place = (place + 1) & mask;
            slots[place] = old;
        }
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
    dictionary->starts[0] = 0;
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

/* memcmp for names, which are short: words that may overlap instead of a call. */
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

static inline bool same_name(const vlp_dictionary *dictionary, int32_t id, const char *text,
                             size_t length) {
    int64_t start = dictionary->starts[id];
    return (size_t)(dictionary->starts[id + 1] - start - 1) == length &&
           same_bytes(dictionary->names + start, text, length);
}

/* The place of a name: its slot, or the free one where it belongs. */
static inline uint32_t find_place(const vlp_dictionary *dictionary, const char *text, size_t length,
                                  uint32_t hash) {
    uint32_t place = hash & dictionary->mask;
    for (slot found; (found = dictionary->slots[place]).id >= 0; place = (place + 1) & dictionary->mask)
        if (found.hash == hash && same_name(dictionary, found.id, text, length)) break;
    return place;
}

static vlp_status append_name(vlp_dictionary *dictionary, const vlp_span *span) {
    if (dictionary->size == INT32_MAX)
        return vlp_fail(VLP_ERROR_FORMAT, "more than %d distinct names", INT32_MAX);
    int64_t needed = dictionary->names_used + span->length + 1;
    VLP_TRY(vlp_grow(&dictionary->names, &dictionary->names_capacity, needed, 1, "names"));
    VLP_TRY(vlp_grow(&dictionary->starts, &dictionary->starts_capacity, dictionary->size + 2,
                     sizeof *dictionary->starts, "names"));
    memcpy(dictionary->names + dictionary->names_used, span->text, span->length);
    dictionary->names[needed - 1] = '\0';
    dictionary->names_used = needed;
    dictionary->size++;
    dictionary->starts[dictionary->size] = needed;
    return VLP_OK;
}

vlp_status vlp_dictionary_intern(vlp_dictionary *dictionary, int32_t *id, const vlp_span *span) {
    uint32_t place = find_place(dictionary, span->text, span->length, span->hash);
    *id = dictionary->slots[place].id;
    if (*id >= 0) return VLP_OK;
    VLP_TRY(append_name(dictionary, span));
    *id = dictionary->size - 1;
    dictionary->slots[place] = (slot){span->hash, *id};
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
    /* A large table misses the cache at every look-up: ask for the slot far ahead, for the name's start
     * and its bytes in two shorter steps. */
    enum { FAR = 24, MIDDLE = 16, NEAR = 8 };
    for (int64_t i = 0; i < count; i++) {
        if (i + FAR < count)
            __builtin_prefetch(
                &dictionary->slots[spans[(i + FAR) * span_stride].hash & dictionary->mask]);
        if (i + MIDDLE < count) {
            slot ahead = dictionary->slots[spans[(i + MIDDLE) * span_stride].hash & dictionary->mask];
            if (ahead.id >= 0) __builtin_prefetch(&dictionary->starts[ahead.id]);
        }
        if (i + NEAR < count) {
            slot ahead = dictionary->slots[spans[(i + NEAR) * span_stride].hash & dictionary->mask];
            if (ahead.id >= 0) __builtin_prefetch(&dictionary->names[dictionary->starts[ahead.id]]);
        }
        const vlp_span *span = &spans[i * span_stride];
        uint32_t place = find_place(dictionary, span->text, span->length, span->hash);
        ids[i * id_stride] = dictionary->slots[place].id;
    }
}

int32_t vlp_dictionary_find(const vlp_dictionary *dictionary, const char *text, size_t length) {
    return dictionary->slots[find_place(dictionary, text, length, vlp_name_hash(text, length))].id;
}

const char *vlp_dictionary_name(const vlp_dictionary *dictionary, int32_t id) {
    assert(id >= 0 && id < dictionary->size);
    return dictionary->names + dictionary->starts[id];
}

size_t vlp_dictionary_name_length(const vlp_dictionary *dictionary, int32_t id) {
    assert(id >= 0 && id < dictionary->size);
    return (size_t)(dictionary->starts[id + 1] - dictionary->starts[id] - 1);
}

int32_t vlp_dictionary_size(const vlp_dictionary *dictionary) {
    return dictionary->size;
}

int64_t vlp_dictionary_bytes(const vlp_dictionary *dictionary) {
    return dictionary->names_capacity + dictionary->starts_capacity * (int64_t)sizeof(int64_t) +
           ((int64_t)dictionary->mask + 1) * (int64_t)sizeof(slot);
}

void vlp_dictionary_trim(vlp_dictionary *dictionary) {
    int64_t starts = dictionary->size + 1, names = dictionary->names_used;
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
