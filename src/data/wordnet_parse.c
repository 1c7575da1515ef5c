/* Parses the text of WordNet's database files.
 *
 * A data file has one line per synset:
 *   offset lex_file type word_count (word lex_id)... pointer_count
 *   (symbol offset part words)... [frames] | gloss
 * An index file has one line per word, with the offsets of its synsets in the order of its senses:
 *   word part synset_count pointer_count symbol... sense_count tagged_count offset...
 * Lines that start with two spaces are the licence. Offsets are positions of lines in the original
 * file; here they are only identifiers, so that files with other line ends can be read. They have to
 * ascend, which makes them unique and allows a binary search.
 *
 * The files are untrusted: every line is checked before it is used, and an error ends the parsing with
 * "FILE:LINE: cause". */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "data/wordnet.h"

const char *const vlp_wordnet_file_names[VLP_WORDNET_FILES] = {"data.noun", "data.verb",  "data.adj",
                                                               "data.adv",  "index.noun", "index.verb",
                                                               "index.adj", "index.adv"};

/* The maximum length of a line; the longest one of WordNet has 15,000 bytes. Sizes fit an int. */
enum { LINE_LIMIT = 1 << 20 };

/* ss_type of the synsets of a part of speech. Satellites ("s") are adjectives. */
static const char *const part_types[VLP_WORDNET_PARTS] = {"n", "v", "as", "r"};

/* Names as in WN18RR and NLTK. (x, hypernym, y) means "x's hypernym is y". */
const vlp_wordnet_relation vlp_wordnet_relations[VLP_WORDNET_RELATIONS] = {
    {"@", "hypernym", NULL},
    {"@i", "instance_hypernym", NULL},
    {"%m", "member_meronym", NULL},
    {"%p", "part_meronym", NULL},
    {"%s", "substance_meronym", NULL},
    {";c", "synset_domain_topic_of", NULL},
    {";r", "synset_domain_region_of", NULL},
    {";u", "synset_domain_usage_of", NULL},
    {"*", "entailment", NULL},
    {">", "cause", NULL},
    {"<", "participle_of", NULL},
    {"\\", "pertainym", NULL},
    {"!", "antonym", "!"},
    {"&", "similar_to", "&"},
    {"^", "also_see", "^"},
    {"$", "verb_group", "$"},
    {"=", "attribute", "="},
    {"+", "derivationally_related_form", "+"},
    {"~", "hyponym", "@"},
    {"~i", "instance_hyponym", "@i"},
    {"#m", "member_holonym", "%m"},
    {"#p", "part_holonym", "%p"},
    {"#s", "substance_holonym", "%s"},
    {"-c", "member_of_domain_topic", ";c"},
    {"-r", "member_of_domain_region", ";r"},
    {"-u", "member_of_domain_usage", ";u"},
};

int32_t vlp_wordnet_find_relation(const char *symbol, size_t length) {
    for (int32_t i = 0; i < VLP_WORDNET_RELATIONS; i++) {
        const char *known = vlp_wordnet_relations[i].symbol;
        if (strlen(known) == length && memcmp(known, symbol, length) == 0) return i;
    }
    return -1;
}

/* ---- Lines and fields ---------------------------------------------------------------------------- */

typedef struct field {
    const char *text;
    int length; /* 0 if the line has no further field */
} field;

/* A position in a file: the current line and the rest of it. */
typedef struct scanner {
    const vlp_wordnet_file *file;
    int part;
    size_t next;  /* where the next line starts */
    int64_t line; /* counted from 1 */
    const char *at, *end;
    field lemma; /* of the previous index line */
} scanner;

static vlp_status fail_at(const vlp_wordnet_file *file, int64_t line, const char *cause) {
    return vlp_fail(VLP_ERROR_FORMAT, "%s:%lld: %s", file->name, (long long)line, cause);
}

static vlp_status VLP_PRINTF(2, 3) fail_line(const scanner *s, const char *format, ...) {
    char cause[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cause, sizeof cause, format, arguments);
    va_end(arguments);
    return fail_at(s->file, s->line, cause);
}

/* The length of a field to quote in a message, for "%.*s". */
static int quoted(int length) {
    return length < 60 ? length : 60;
}

static vlp_status check_encoding(const vlp_wordnet_file *file) {
    size_t valid = vlp_utf8_valid_prefix(file->text, file->size);
    if (valid == file->size) return VLP_OK;
    return fail_at(file, vlp_count_newlines(file->text, valid) + 1, "invalid UTF-8");
}

/* Advances to the next line that is not part of the licence; *more is false at the end of the file. */
static vlp_status next_line(scanner *s, bool *more) {
    const char *text = s->file->text;
    size_t size = s->file->size;
    while (s->next < size) {
        s->at = text + s->next;
        const char *newline = memchr(s->at, '\n', size - s->next);
        s->end = newline ? newline : text + size;
        s->next = (size_t)(s->end - text) + 1;
        s->line++;
        if (s->end > s->at && s->end[-1] == '\r') s->end--;
        if (s->end - s->at > LINE_LIMIT) return fail_line(s, "the line is too long for a WordNet file");
        for (const char *c = s->at; c < s->end; c++)
            if ((unsigned char)*c < 0x20 || *c == 0x7f)
                return fail_line(s, "control character 0x%02x", (unsigned)(unsigned char)*c);
        if (s->end - s->at >= 2 && s->at[0] == ' ' && s->at[1] == ' ') continue;
        *more = true;
        return VLP_OK;
    }
    *more = false;
    return VLP_OK;
}

static field take_field(scanner *s) {
    while (s->at < s->end && *s->at == ' ') s->at++;
    field taken = {s->at, 0};
    while (s->at < s->end && *s->at != ' ') s->at++;
    taken.length = (int)(s->at - taken.text);
    return taken;
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 16;
}

/* A number of exactly `width` digits, or of 1 to 7 when `width` is 0. */
static vlp_status take_number(scanner *s, int32_t *out, int base, int width, const char *what) {
    field f = take_field(s);
    if (f.length == 0) return fail_line(s, "the line ends before the %s", what);
    int32_t value = 0;
    bool good = width > 0 ? f.length == width : f.length <= 7;
    for (int i = 0; i < f.length && good; i++) {
        int digit = digit_value(f.text[i]);
        good = digit < base;
        value = value * base + digit;
    }
    if (!good) {
        char form[32] = "";
        if (width > 0) snprintf(form, sizeof form, " of %d digits", width);
        return fail_line(s, "the %s is '%.*s', which is not a %s number%s", what, quoted(f.length),
                         f.text, base == 16 ? "hexadecimal" : "decimal", form);
    }
    *out = value;
    return VLP_OK;
}

/* ---- Words --------------------------------------------------------------------------------------- */

/* The length of a word without the syntactic marker of an adjective. */
static int unmarked_length(char type, const char *word, int length) {
    static const char *const markers[] = {"(a)", "(p)", "(ip)"};
    if (type != 'a' && type != 's') return length;
    for (size_t i = 0; i < sizeof markers / sizeof *markers; i++) {
        int marker = (int)strlen(markers[i]);
        if (length > marker && memcmp(word + length - marker, markers[i], (size_t)marker) == 0)
            return length - marker;
    }
    return length;
}

bool vlp_wordnet_next_word(const vlp_synset *synset, const char **at, const char **word, int *length) {
    scanner s = {.at = *at ? *at : synset->words, .end = synset->words + synset->words_size};
    field f = take_field(&s);
    if (f.length == 0) return false;
    (void)take_field(&s); /* lex_id */
    *at = s.at;
    *word = f.text;
    *length = unmarked_length(synset->type, f.text, f.length);
    return true;
}

/* Whether the synset's first word in lower case is `lemma`. */
static bool starts_with_lemma(const vlp_synset *synset, field lemma) {
    const char *at = NULL, *word = NULL;
    int length = 0;
    if (!vlp_wordnet_next_word(synset, &at, &word, &length) || length != lemma.length) return false;
    for (int i = 0; i < length; i++) {
        char lower = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] - 'A' + 'a') : word[i];
        if (lower != lemma.text[i]) return false;
    }
    return true;
}

/* ---- Data files ---------------------------------------------------------------------------------- */

/* The index of a synset, or -1. Offsets ascend within a part of speech. */
static int32_t find_synset(const vlp_wordnet *wordnet, int part, int32_t offset) {
    int64_t low = wordnet->first[part], high = wordnet->first[part + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (wordnet->synsets[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < wordnet->first[part + 1] && wordnet->synsets[low].offset == offset;
    return found ? (int32_t)low : -1;
}

static vlp_status read_words(scanner *s, vlp_synset *synset) {
    VLP_TRY(take_number(s, &synset->word_count, 16, 2, "number of words"));
    if (synset->word_count == 0) return fail_line(s, "the synset has no words");
    while (s->at < s->end && *s->at == ' ') s->at++;
    synset->words = s->at;
    for (int32_t i = 0; i < synset->word_count; i++) {
        int32_t lex_id;
        if (take_field(s).length == 0)
            return fail_line(s, "the line ends before word %d of %d", i + 1, synset->word_count);
        VLP_TRY(take_number(s, &lex_id, 16, 0, "lex_id of a word"));
    }
    synset->words_size = (int32_t)(s->at - synset->words);
    return VLP_OK;
}

/* "symbol offset part words": the target is resolved after all files are read. */
static vlp_status read_pointer(vlp_wordnet *wordnet, scanner *s, const vlp_synset *synset) {
    vlp_pointer pointer = {.head = (int32_t)wordnet->synset_count, .tail = -1};
    field symbol = take_field(s);
    if (symbol.length == 0) return fail_line(s, "the line ends before the symbol of a pointer");
    pointer.relation = vlp_wordnet_find_relation(symbol.text, (size_t)symbol.length);
    if (pointer.relation < 0)
        return fail_line(s, "unknown pointer symbol '%.*s'", quoted(symbol.length), symbol.text);
    VLP_TRY(take_number(s, &pointer.offset, 10, 8, "synset offset of a pointer"));
    field type = take_field(s);
    int part = 0;
    while (part < VLP_WORDNET_PARTS && (type.length != 1 || !strchr(part_types[part], type.text[0])))
        part++;
    if (part == VLP_WORDNET_PARTS)
        return fail_line(s, "a pointer leads to part of speech '%.*s', which is not one of n v a s r",
                         quoted(type.length), type.text);
    int32_t words;
    VLP_TRY(take_number(s, &words, 16, 4, "source/target of a pointer"));
    if (words >> 8 > synset->word_count)
        return fail_line(s, "a pointer starts at word %d of %d", words >> 8, synset->word_count);
    pointer.part = (uint8_t)part;
    pointer.word = (uint8_t)(words & 0xff);
    VLP_TRY(vlp_grow(&wordnet->pointers, &wordnet->pointer_capacity, wordnet->pointer_count + 1,
                     sizeof *wordnet->pointers, "WordNet's pointers"));
    wordnet->pointers[wordnet->pointer_count++] = pointer;
    return VLP_OK;
}

/* "frame_count + frame word + frame word ...", of verbs only, and skipped; `bar` is set to the next
 * field. */
static vlp_status skip_frames(scanner *s, field *bar) {
    const char *start = s->at;
    *bar = take_field(s);
    if (s->part != VLP_WORDNET_VERB || (bar->length > 0 && bar->text[0] == '|')) return VLP_OK;
    s->at = start;
    int32_t count, number;
    VLP_TRY(take_number(s, &count, 10, 0, "number of frames"));
    for (int32_t i = 0; i < count; i++) {
        field plus = take_field(s);
        if (plus.length != 1 || plus.text[0] != '+')
            return fail_line(s, "frame %d of %d does not start with '+'", i + 1, count);
        VLP_TRY(take_number(s, &number, 10, 0, "number of a frame"));
        VLP_TRY(take_number(s, &number, 16, 2, "word of a frame"));
    }
    *bar = take_field(s);
    return VLP_OK;
}

static vlp_status read_gloss(scanner *s, vlp_synset *synset) {
    field bar;
    VLP_TRY(skip_frames(s, &bar));
    if (bar.length == 0) return fail_line(s, "the line ends before the '|' of the gloss");
    if (bar.text[0] != '|')
        return fail_line(s, "'%.*s' where the '|' of the gloss should be", quoted(bar.length), bar.text);
    const char *start = bar.text + 1, *end = s->end;
    while (start < end && *start == ' ') start++;
    while (end > start && end[-1] == ' ') end--;
    synset->gloss = start;
    synset->gloss_size = (int32_t)(end - start);
    return VLP_OK;
}

static vlp_status read_synset(vlp_wordnet *wordnet, scanner *s) {
    vlp_synset synset = {.line = s->line};
    int32_t number = 0;
    VLP_TRY(take_number(s, &synset.offset, 10, 8, "synset offset"));
    bool is_first = wordnet->synset_count == wordnet->first[s->part];
    if (!is_first && wordnet->synsets[wordnet->synset_count - 1].offset >= synset.offset)
        return fail_line(s, "synset offset %08d is not above the previous one", synset.offset);
    VLP_TRY(take_number(s, &number, 10, 2, "lexicographer file"));
    field type = take_field(s);
    if (type.length != 1 || !strchr(part_types[s->part], type.text[0]))
        return fail_line(s, "the synset's type is '%.*s', which does not belong in %s",
                         quoted(type.length), type.text, vlp_wordnet_file_names[s->part]);
    synset.type = type.text[0];
    VLP_TRY(read_words(s, &synset));
    VLP_TRY(take_number(s, &number, 10, 3, "number of pointers"));
    for (int32_t i = 0; i < number; i++) VLP_TRY(read_pointer(wordnet, s, &synset));
    VLP_TRY(read_gloss(s, &synset));
    if (wordnet->synset_count == INT32_MAX) return fail_line(s, "more than 2^31 - 1 synsets");
    VLP_TRY(vlp_grow(&wordnet->synsets, &wordnet->synset_capacity, wordnet->synset_count + 1,
                     sizeof *wordnet->synsets, "WordNet's synsets"));
    wordnet->synsets[wordnet->synset_count++] = synset;
    return VLP_OK;
}

/* ---- Index files --------------------------------------------------------------------------------- */

static bool is_above(field lemma, field before) {
    int shorter = lemma.length < before.length ? lemma.length : before.length;
    int order = shorter > 0 ? memcmp(lemma.text, before.text, (size_t)shorter) : 0;
    return order != 0 ? order > 0 : lemma.length > before.length;
}

/* The line of a word numbers the senses of the synsets that have it as their first word. */
static vlp_status read_index_line(vlp_wordnet *wordnet, scanner *s) {
    field lemma = take_field(s);
    field type = take_field(s);
    if (type.length != 1 || type.text[0] != part_types[s->part][0])
        return fail_line(s, "the part of speech is '%.*s' instead of '%c'", quoted(type.length),
                         type.text, part_types[s->part][0]);
    if (!is_above(lemma, s->lemma))
        return fail_line(s, "'%.*s' is not above the previous word", quoted(lemma.length), lemma.text);
    s->lemma = lemma;
    int32_t senses, number;
    VLP_TRY(take_number(s, &senses, 10, 0, "number of synsets"));
    VLP_TRY(take_number(s, &number, 10, 0, "number of pointer symbols"));
    for (int32_t i = 0; i < number; i++)
        if (take_field(s).length == 0) return fail_line(s, "the line ends within the pointer symbols");
    VLP_TRY(take_number(s, &number, 10, 0, "number of senses"));
    VLP_TRY(take_number(s, &number, 10, 0, "number of tagged senses"));
    for (int32_t sense = 1; sense <= senses; sense++) {
        int32_t offset;
        VLP_TRY(take_number(s, &offset, 10, 8, "synset offset of a sense"));
        int32_t found = find_synset(wordnet, s->part, offset);
        if (found < 0)
            return fail_line(s, "sense %d of '%.*s' is synset %08d, which %s does not have", sense,
                             quoted(lemma.length), lemma.text, offset, vlp_wordnet_file_names[s->part]);
        vlp_synset *synset = &wordnet->synsets[found];
        if (!starts_with_lemma(synset, lemma)) continue;
        if (synset->sense > 0)
            return fail_line(s, "synset %08d is listed for '%.*s' a second time", offset,
                             quoted(lemma.length), lemma.text);
        synset->sense = sense;
    }
    field rest = take_field(s);
    if (rest.length > 0)
        return fail_line(s, "'%.*s' after the last of %d senses", quoted(rest.length), rest.text,
                         senses);
    return VLP_OK;
}

static vlp_status read_file(vlp_wordnet *wordnet, const vlp_wordnet_file *file, int part,
                            vlp_status (*read)(vlp_wordnet *, scanner *)) {
    VLP_TRY(check_encoding(file));
    scanner s = {.file = file, .part = part, .next = vlp_bom_length(file->text, file->size)};
    for (bool more = false;;) {
        VLP_TRY(next_line(&s, &more));
        if (!more) return VLP_OK;
        VLP_TRY(read(wordnet, &s));
    }
}

/* ---- Checks across lines ------------------------------------------------------------------------- */

static const vlp_wordnet_file *file_of(const vlp_wordnet *wordnet, const vlp_wordnet_file *files,
                                       int64_t synset) {
    int part = 0;
    while (synset >= wordnet->first[part + 1]) part++;
    return &files[part];
}

static vlp_status resolve_pointers(vlp_wordnet *wordnet, const vlp_wordnet_file *files) {
    for (int64_t i = 0; i < wordnet->pointer_count; i++) {
        vlp_pointer *pointer = &wordnet->pointers[i];
        const vlp_wordnet_file *file = file_of(wordnet, files, pointer->head);
        int64_t line = wordnet->synsets[pointer->head].line;
        char cause[128];
        pointer->tail = find_synset(wordnet, pointer->part, pointer->offset);
        if (pointer->tail < 0) {
            snprintf(cause, sizeof cause, "a pointer leads to synset %08d, which %s does not have",
                     pointer->offset, vlp_wordnet_file_names[pointer->part]);
            return fail_at(file, line, cause);
        }
        int32_t words = wordnet->synsets[pointer->tail].word_count;
        if (pointer->word > words) {
            snprintf(cause, sizeof cause,
                     "a pointer leads to word %d of synset %08d, which has %d words", pointer->word,
                     pointer->offset, words);
            return fail_at(file, line, cause);
        }
    }
    return VLP_OK;
}

static vlp_status check_senses(const vlp_wordnet *wordnet, const vlp_wordnet_file *files) {
    for (int64_t i = 0; i < wordnet->synset_count; i++) {
        const vlp_synset *synset = &wordnet->synsets[i];
        if (synset->sense > 0) continue;
        const vlp_wordnet_file *file = file_of(wordnet, files, i);
        const char *at = NULL, *word = NULL;
        int length = 0;
        (void)vlp_wordnet_next_word(synset, &at, &word, &length);
        char cause[256];
        snprintf(cause, sizeof cause, "%s does not list synset %08d under its first word, '%.*s'",
                 vlp_wordnet_file_names[VLP_WORDNET_PARTS + (file - files)], synset->offset,
                 quoted(length), word);
        return fail_at(file, synset->line, cause);
    }
    return VLP_OK;
}

vlp_status vlp_wordnet_read(vlp_wordnet **out, const vlp_wordnet_file files[VLP_WORDNET_FILES]) {
    *out = NULL;
    vlp_wordnet *wordnet = vlp_alloc_zero(1, sizeof *wordnet);
    if (!wordnet) return vlp_fail_memory("WordNet");
    vlp_status status = VLP_OK;
    for (int part = 0; part < VLP_WORDNET_PARTS; part++) {
        wordnet->first[part] = wordnet->synset_count;
        VLP_CHECK(read_file(wordnet, &files[part], part, read_synset));
        wordnet->first[part + 1] = wordnet->synset_count;
    }
    for (int part = 0; part < VLP_WORDNET_PARTS; part++)
        VLP_CHECK(read_file(wordnet, &files[VLP_WORDNET_PARTS + part], part, read_index_line));
    VLP_CHECK(check_senses(wordnet, files));
    VLP_CHECK(resolve_pointers(wordnet, files));
    *out = wordnet;
    wordnet = NULL;
out:
    vlp_wordnet_free(wordnet);
    return status;
}

void vlp_wordnet_free(vlp_wordnet *wordnet) {
    if (!wordnet) return;
    vlp_free(wordnet->synsets);
    vlp_free(wordnet->pointers);
    vlp_free(wordnet);
}
