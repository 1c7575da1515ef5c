/* WordNet's files: the result is consistent, and line ends do not matter. The eight texts of an input
 * are separated by a byte that is invalid in them. */
#include "data/wordnet.h"
#include "fuzz.h"

UNCOUNTED_BEGIN

enum { SEPARATOR = 0x1c };

static void cut_files(vlp_wordnet_file files[VLP_WORDNET_FILES], const uint8_t *data, size_t size) {
    const char *text = (const char *)data, *end = text + size;
    for (int i = 0; i < VLP_WORDNET_FILES; i++) {
        const char *stop =
            i + 1 < VLP_WORDNET_FILES ? memchr(text, SEPARATOR, (size_t)(end - text)) : end;
        if (!stop) stop = end;
        files[i] = (vlp_wordnet_file){vlp_wordnet_file_names[i], text, (size_t)(stop - text)};
        text = stop < end ? stop + 1 : end;
    }
}

static bool within(const vlp_wordnet_file *file, const char *text, int32_t size) {
    return size >= 0 && text >= file->text && text + size <= file->text + file->size;
}

static void check_synset(const vlp_synset *synset, const vlp_wordnet_file *file, int part) {
    static const char types[] = "nvasr";
    static const int parts[] = {VLP_WORDNET_NOUN, VLP_WORDNET_VERB, VLP_WORDNET_ADJECTIVE,
                                VLP_WORDNET_ADJECTIVE, VLP_WORDNET_ADVERB};
    const char *type = synset->type ? strchr(types, synset->type) : NULL;
    REQUIRE(type && parts[type - types] == part);
    REQUIRE(synset->offset >= 0 && synset->offset <= 99999999);
    REQUIRE(synset->sense >= 1);
    REQUIRE(synset->line >= 1);
    REQUIRE(within(file, synset->words, synset->words_size));
    REQUIRE(within(file, synset->gloss, synset->gloss_size));
    const char *at = NULL, *word = NULL;
    int length = 0;
    int32_t count = 0;
    for (; vlp_wordnet_next_word(synset, &at, &word, &length); count++) {
        REQUIRE(length > 0 && within(file, word, length));
        REQUIRE(!memchr(word, ' ', (size_t)length));
    }
    REQUIRE(count == synset->word_count);
}

static char lower(char byte) {
    return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

/* An entity is named by its first word, part of speech and sense, which must be unique. */
static bool same_name(const vlp_synset *left, const vlp_synset *right) {
    const char *at = NULL, *word = NULL, *other_at = NULL, *other = NULL;
    int length = 0, other_length = 0;
    if (left->sense != right->sense) return false;
    REQUIRE(vlp_wordnet_next_word(left, &at, &word, &length));
    REQUIRE(vlp_wordnet_next_word(right, &other_at, &other, &other_length));
    if (length != other_length) return false;
    for (int i = 0; i < length; i++)
        if (lower(word[i]) != lower(other[i])) return false;
    return true;
}

static void check_wordnet(const vlp_wordnet *wordnet, const vlp_wordnet_file *files) {
    REQUIRE(wordnet->first[0] == 0 && wordnet->first[VLP_WORDNET_PARTS] == wordnet->synset_count);
    for (int part = 0; part < VLP_WORDNET_PARTS; part++) {
        REQUIRE(wordnet->first[part] <= wordnet->first[part + 1]);
        for (int64_t i = wordnet->first[part]; i < wordnet->first[part + 1]; i++) {
            const vlp_synset *synset = &wordnet->synsets[i];
            check_synset(synset, &files[part], part);
            for (int64_t j = wordnet->first[part]; j < i; j++) {
                REQUIRE(wordnet->synsets[j].offset < synset->offset);
                REQUIRE(!same_name(&wordnet->synsets[j], synset));
            }
        }
    }
    for (int64_t i = 0; i < wordnet->pointer_count; i++) {
        const vlp_pointer *pointer = &wordnet->pointers[i];
        REQUIRE(pointer->head >= 0 && pointer->head < wordnet->synset_count);
        REQUIRE(i == 0 || wordnet->pointers[i - 1].head <= pointer->head);
        REQUIRE(pointer->relation >= 0 && pointer->relation < VLP_WORDNET_RELATIONS);
        REQUIRE(pointer->part < VLP_WORDNET_PARTS);
        REQUIRE(pointer->tail >= wordnet->first[pointer->part]);
        REQUIRE(pointer->tail < wordnet->first[pointer->part + 1]);
        REQUIRE(wordnet->synsets[pointer->tail].offset == pointer->offset);
        REQUIRE(pointer->word <= wordnet->synsets[pointer->tail].word_count);
    }
}

/* An error names one of the files and a line of it. */
static void check_message(const vlp_wordnet_file *files) {
    const char *colon = strchr(vlp_error_message(), ':');
    REQUIRE(colon != NULL);
    size_t length = (size_t)(colon - vlp_error_message());
    const vlp_wordnet_file *file = files, *end = files + VLP_WORDNET_FILES;
    while (file < end &&
           (strlen(file->name) != length || strncmp(vlp_error_message(), file->name, length) != 0))
        file++;
    REQUIRE(file < end);
    long lines = 1;
    for (size_t i = 0; i < file->size; i++) lines += file->text[i] == '\n';
    char *cause = NULL;
    long line = strtol(colon + 1, &cause, 10);
    REQUIRE(line >= 1 && line <= lines);
    REQUIRE(strncmp(cause, ": ", 2) == 0 && cause[2]);
}

/* The same input with CR LF at the line ends; free() it. */
static uint8_t *with_carriage_returns(const uint8_t *data, size_t size, size_t *changed) {
    uint8_t *out = malloc(2 * size + 1);
    REQUIRE(out != NULL);
    *changed = 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '\n') out[(*changed)++] = '\r';
        out[(*changed)++] = data[i];
    }
    return out;
}

static void check_line_ends(const vlp_wordnet *wordnet, const uint8_t *data, size_t size) {
    if (memchr(data, '\r', size)) return;
    size_t changed;
    uint8_t *copy = with_carriage_returns(data, size, &changed);
    vlp_wordnet_file files[VLP_WORDNET_FILES];
    cut_files(files, copy, changed);
    vlp_wordnet *again = NULL;
    REQUIRE(vlp_wordnet_read(&again, files) == VLP_OK);
    REQUIRE(again->synset_count == wordnet->synset_count);
    REQUIRE(again->pointer_count == wordnet->pointer_count);
    for (int64_t i = 0; i < again->synset_count; i++) {
        const vlp_synset *left = &wordnet->synsets[i], *right = &again->synsets[i];
        REQUIRE(left->offset == right->offset && left->sense == right->sense);
        REQUIRE(left->gloss_size == right->gloss_size);
        REQUIRE(memcmp(left->gloss, right->gloss, (size_t)left->gloss_size) == 0);
    }
    vlp_wordnet_free(again);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vlp_wordnet_file files[VLP_WORDNET_FILES];
    cut_files(files, data, size);
    vlp_wordnet *wordnet = NULL;
    vlp_status status = vlp_wordnet_read(&wordnet, files);
    REQUIRE(status == VLP_OK || status == VLP_ERROR_FORMAT);
    REQUIRE((wordnet != NULL) == (status == VLP_OK));
    if (wordnet) {
        check_wordnet(wordnet, files);
        check_line_ends(wordnet, data, size);
    } else {
        check_message(files);
    }
    vlp_wordnet_free(wordnet);
    return 0;
}

UNCOUNTED_END
