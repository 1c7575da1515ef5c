/* The WordNet database (wndb(5WN)): synsets, their words and glosses, and the pointers between them.
 * The parser reads from memory, so that mapped files, tests and fuzzers use the same code. The texts
 * are untrusted and need no terminating zero. */
#ifndef VLP_DATA_WORDNET_H
#define VLP_DATA_WORDNET_H

#include "base/base.h"

/* Parts of speech, in the order in which synsets are numbered. */
enum {
    VLP_WORDNET_NOUN,
    VLP_WORDNET_VERB,
    VLP_WORDNET_ADJECTIVE,
    VLP_WORDNET_ADVERB,
    VLP_WORDNET_PARTS
};
enum { VLP_WORDNET_FILES = 2 * VLP_WORDNET_PARTS };

/* data.noun, data.verb, data.adj, data.adv, then index.noun and so on. */
extern const char *const vlp_wordnet_file_names[VLP_WORDNET_FILES];

typedef struct vlp_wordnet_file {
    const char *name; /* for messages */
    const char *text; /* (size) */
    size_t size;
} vlp_wordnet_file;

typedef struct vlp_synset {
    const char *words; /* (words_size) "word lex_id word lex_id ...", within the text */
    const char *gloss; /* (gloss_size) trimmed, within the text */
    int32_t words_size, gloss_size;
    int32_t word_count;
    int32_t offset; /* identifies the synset within its part of speech */
    int32_t sense;  /* counted from 1, of the first word among all senses of that word */
    char type;      /* n v a s r */
    int64_t line;   /* counted from 1, in its data file */
} vlp_synset;

/* A pointer of synset `head`, or of one of its words, to synset `tail`. */
typedef struct vlp_pointer {
    int32_t head, relation, tail;
    int32_t offset;     /* of the tail */
    uint8_t part, word; /* of the tail; word 0 is the synset as a whole */
} vlp_pointer;

typedef struct vlp_wordnet {
    vlp_synset *synsets; /* by part of speech, then by offset */
    int64_t synset_count, synset_capacity;
    int64_t first[VLP_WORDNET_PARTS + 1]; /* synsets of part p: first[p] .. first[p + 1] - 1 */
    vlp_pointer *pointers;                /* in the order of the files */
    int64_t pointer_count, pointer_capacity;
} vlp_wordnet;

/* The texts must outlive the result. */
vlp_status vlp_wordnet_read(vlp_wordnet **out, const vlp_wordnet_file files[VLP_WORDNET_FILES]);
void vlp_wordnet_free(vlp_wordnet *wordnet);

/* The next word of a synset, without the marker of an adjective ("galore(ip)"). *at starts NULL; false
 * after the last word. Not terminated. */
bool vlp_wordnet_next_word(const vlp_synset *synset, const char **at, const char **word, int *length);

/* The relations of pointers. */
typedef struct vlp_wordnet_relation {
    const char *symbol; /* in the files */
    const char *name;
    /* The symbol of the inverse relation: its own if the relation is symmetric, that of the inverse if
     * the inverse is kept instead, NULL if this one is kept. */
    const char *mirror;
} vlp_wordnet_relation;

enum { VLP_WORDNET_RELATIONS = 26 };
extern const vlp_wordnet_relation vlp_wordnet_relations[VLP_WORDNET_RELATIONS];

/* The relation of a symbol, or -1. */
int32_t vlp_wordnet_find_relation(const char *symbol, size_t length);

#endif
