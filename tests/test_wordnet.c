/* Importing WordNet: a database small enough to know by heart, what becomes of it when single lines are
 * wrong, cut short or missing, and the real one where it is installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "data/wordnet.h"
#include "failing_allocator.h"

static const char real_folder[] = "/usr/share/wordnet";

/* ---- A small database ---- */

enum { NOUN, VERB, ADJ, ADV, INDEX_NOUN, INDEX_VERB, INDEX_ADJ, INDEX_ADV };

/* entity and dog point at each other, as hyponym and hypernym; rex points at dog without being pointed
 * at; of pack and dog only the inverse pointer is there; two pairs of words relate dog and bark, either
 * way; fast also sees quick, not the other way round; nothing has no pointers. */
static const char *const small[VLP_WORDNET_FILES] = {
    [NOUN] = "  1 This is the licence.  \n"
             "00000100 03 n 01 entity 0 001 ~ 00000200 n 0000 | that which exists  \n"
             "00000200 05 n 02 Dog 0 domestic_dog 0 005 @ 00000100 n 0000 #m 00000400 n 0000 "
             "+ 00000100 v 0101 + 00000100 v 0201 ~ 00000500 n 0000 | a pet; \"the dog barked\"  \n"
             "00000300 05 n 01 Rex 0 001 @i 00000200 n 0000 | a name  \n"
             "00000400 14 n 01 pack 0 000 | many | of them  \n"
             "00000500 05 n 01 dog 1 001 @ 00000200 n 0000 | a small one  \n"
             "00000600 05 n 01 nothing 0 000 |\n",
    [VERB] =
        "00000100 39 v 02 bark 0 bay 0 003 + 00000200 n 0101 + 00000200 n 0102 ! 00000200 v 0101 02 "
        "+ 01 00 + 02 01 | make a sound  \n"
        "00000200 39 v 01 hush 0 001 ! 00000100 v 0101 01 + 01 00 | make none  \n",
    [ADJ] = "00000100 00 a 01 fast 0 002 & 00000200 s 0000 ^ 00000200 a 0000 | swift  \n"
            "00000200 00 s 02 Quick(p) 0 prompt(ip) 0 001 & 00000100 a 0000 | soon  \n",
    [ADV] = "00000900 02 r 01 fast 0 001 \\ 00000100 a 0101 | swiftly",
    [INDEX_NOUN] = "  1 This is the licence.  \n"
                   "dog n 2 2 @ ~ 2 1 00000500 00000200  \n"
                   "domestic_dog n 1 0 1 0 00000200  \n"
                   "entity n 1 1 ~ 1 1 00000100  \n"
                   "nothing n 1 0 1 0 00000600  \n"
                   "pack n 1 0 1 0 00000400  \n"
                   "rex n 1 1 @i 1 0 00000300  \n",
    [INDEX_VERB] =
        "bark v 1 2 + ! 1 1 00000100  \nbay v 1 0 1 0 00000100  \nhush v 1 1 ! 1 1 00000200  \n",
    [INDEX_ADJ] = "fast a 1 2 & ^ 1 1 00000100  \nprompt a 1 1 & 1 1 00000200  \n"
                  "quick a 1 1 & 1 1 00000200  \n",
    [INDEX_ADV] = "fast r 1 1 \\ 1 0 00000900",
};

/* Texts end where their memory ends, so that a sanitizer sees a read past it. */
static vlp_status read_texts(vlp_wordnet **out, char *copies[VLP_WORDNET_FILES],
                             const char *const texts[VLP_WORDNET_FILES],
                             const size_t sizes[VLP_WORDNET_FILES]) {
    vlp_wordnet_file files[VLP_WORDNET_FILES];
    for (int i = 0; i < VLP_WORDNET_FILES; i++) {
        copies[i] = malloc(sizes[i] ? sizes[i] : 1);
        assert_non_null(copies[i]);
        memcpy(copies[i], texts[i], sizes[i]);
        files[i] = (vlp_wordnet_file){vlp_wordnet_file_names[i], copies[i], sizes[i]};
    }
    return vlp_wordnet_read(out, files);
}

static vlp_status read_and_free(const char *const texts[VLP_WORDNET_FILES],
                                const size_t sizes[VLP_WORDNET_FILES]) {
    vlp_wordnet *wordnet = NULL;
    char *copies[VLP_WORDNET_FILES];
    vlp_status status = read_texts(&wordnet, copies, texts, sizes);
    assert_true((status == VLP_OK) == (wordnet != NULL));
    vlp_wordnet_free(wordnet);
    for (int i = 0; i < VLP_WORDNET_FILES; i++) free(copies[i]);
    return status;
}

static void measure(size_t sizes[VLP_WORDNET_FILES], const char *const texts[VLP_WORDNET_FILES]) {
    for (int i = 0; i < VLP_WORDNET_FILES; i++) sizes[i] = strlen(texts[i]);
}

static void test_reads_synsets(void **state) {
    (void)state;
    vlp_wordnet *wordnet = NULL;
    char *copies[VLP_WORDNET_FILES];
    size_t sizes[VLP_WORDNET_FILES];
    measure(sizes, small);
    assert_int_equal(read_texts(&wordnet, copies, small, sizes), VLP_OK);
    assert_int_equal(wordnet->synset_count, 11);
    assert_int_equal(wordnet->pointer_count, 16);
    static const int64_t first[] = {0, 6, 8, 10, 11};
    assert_memory_equal(wordnet->first, first, sizeof first);

    const vlp_synset *dog = &wordnet->synsets[1];
    assert_int_equal(dog->offset, 200);
    assert_int_equal(dog->sense, 2);
    assert_int_equal(dog->type, 'n');
    assert_int_equal(dog->line, 3);
    assert_int_equal(dog->gloss_size, strlen("a pet; \"the dog barked\""));
    assert_memory_equal(dog->gloss, "a pet; \"the dog barked\"", (size_t)dog->gloss_size);
    assert_int_equal(wordnet->synsets[4].sense, 1);
    assert_int_equal(wordnet->synsets[5].gloss_size, 0);

    const vlp_synset *quick = &wordnet->synsets[9];
    assert_int_equal(quick->type, 's');
    const char *at = NULL, *word = NULL;
    int length = 0;
    assert_true(vlp_wordnet_next_word(quick, &at, &word, &length));
    assert_int_equal(length, 5);
    assert_memory_equal(word, "Quick", 5);
    assert_true(vlp_wordnet_next_word(quick, &at, &word, &length));
    assert_int_equal(length, 6);
    assert_memory_equal(word, "prompt", 6);
    assert_false(vlp_wordnet_next_word(quick, &at, &word, &length));
    vlp_wordnet_free(wordnet);
    for (int i = 0; i < VLP_WORDNET_FILES; i++) free(copies[i]);
}

/* CR LF and a byte-order mark change nothing. */
static void test_reads_other_line_ends(void **state) {
    (void)state;
    const char *texts[VLP_WORDNET_FILES];
    size_t sizes[VLP_WORDNET_FILES];
    memcpy(texts, small, sizeof texts);
    texts[INDEX_ADV] = "\xef\xbb\xbf"
                       "fast r 1 1 \\ 1 0 00000900\r\n";
    texts[ADV] = "\xef\xbb\xbf"
                 "00000900 02 r 01 fast 0 001 \\ 00000100 a 0101 | swiftly\r\n";
    measure(sizes, texts);
    assert_int_equal(read_and_free(texts, sizes), VLP_OK);
}

/* ---- What is wrong ---- */

typedef struct mistake {
    int file;
    const char *text;
    const char *message;
} mistake;

/* Lines of nouns that go on well start like this. */
#define SYNSET "00000100 03 n 01 entity 0 "

static const mistake mistakes[] = {
    /* Data files */
    {NOUN, "\n", "data.noun:1: the line ends before the synset offset"},
    {NOUN, "  1 licence\n\n", "data.noun:2: the line ends before the synset offset"},
    {NOUN, "0000100 03 n\n",
     "data.noun:1: the synset offset is '0000100', which is not a decimal number of 8 digits"},
    {NOUN, "0000010x 03 n\n",
     "data.noun:1: the synset offset is '0000010x', which is not a decimal number of 8 digits"},
    {NOUN, "00000100", "data.noun:1: the line ends before the lexicographer file"},
    {NOUN, "00000100 03", "data.noun:1: the synset's type is '', which does not belong in data.noun"},
    {NOUN, "00000100 03 v 01",
     "data.noun:1: the synset's type is 'v', which does not belong in data.noun"},
    {NOUN, "00000100 03 nn 01",
     "data.noun:1: the synset's type is 'nn', which does not belong in data.noun"},
    {NOUN, "00000100 03 n", "data.noun:1: the line ends before the number of words"},
    {NOUN, "00000100 03 n 1 entity",
     "data.noun:1: the number of words is '1', which is not a hexadecimal number of 2 digits"},
    {NOUN, "00000100 03 n 00 000 | x", "data.noun:1: the synset has no words"},
    {NOUN, "00000100 03 n 02 entity 0", "data.noun:1: the line ends before word 2 of 2"},
    {NOUN, "00000100 03 n 01 entity", "data.noun:1: the line ends before the lex_id of a word"},
    {NOUN, "00000100 03 n 01 entity z 000 | x",
     "data.noun:1: the lex_id of a word is 'z', which is not a hexadecimal number"},
    {NOUN, SYNSET, "data.noun:1: the line ends before the number of pointers"},
    {NOUN, SYNSET "1 @",
     "data.noun:1: the number of pointers is '1', which is not a decimal number of 3 digits"},
    {NOUN, SYNSET "001", "data.noun:1: the line ends before the symbol of a pointer"},
    {NOUN, SYNSET "001 @@ 00000100 n 0000 | x", "data.noun:1: unknown pointer symbol '@@'"},
    {NOUN, SYNSET "001 @", "data.noun:1: the line ends before the synset offset of a pointer"},
    {NOUN, SYNSET "001 @ 00000100 q 0000 | x",
     "data.noun:1: a pointer leads to part of speech 'q', which is not one of n v a s r"},
    {NOUN, SYNSET "001 @ 00000100 n 000 | x",
     "data.noun:1: the source/target of a pointer is '000', which is not a hexadecimal number of 4 "
     "digits"},
    {NOUN, SYNSET "001 @ 00000100 n 0201 | x", "data.noun:1: a pointer starts at word 2 of 1"},
    {NOUN, SYNSET "000", "data.noun:1: the line ends before the '|' of the gloss"},
    {NOUN, SYNSET "000 01 + 02 00 | x", "data.noun:1: '01' where the '|' of the gloss should be"},
    {NOUN, SYNSET "000 | x\n" SYNSET "000 | y\n",
     "data.noun:2: synset offset 00000100 is not above the previous one"},
    {NOUN, SYNSET "000 | a\tb\n", "data.noun:1: control character 0x09"},
    {NOUN, SYNSET "000 | a\xff\n", "data.noun:1: invalid UTF-8"},
    {NOUN, "  1 licence\n" SYNSET "000 | a\xc3", "data.noun:2: invalid UTF-8"},
    {VERB, "00000100 39 v 01 bark 0 000", "data.verb:1: the line ends before the number of frames"},
    {VERB, "00000100 39 v 01 bark 0 000 x | y",
     "data.verb:1: the number of frames is 'x', which is not a decimal number"},
    {VERB, "00000100 39 v 01 bark 0 000 01 - 01 00 | y",
     "data.verb:1: frame 1 of 1 does not start with '+'"},
    {VERB, "00000100 39 v 01 bark 0 000 01 + x 00 | y",
     "data.verb:1: the number of a frame is 'x', which is not a decimal number"},
    {VERB, "00000100 39 v 01 bark 0 000 01 + 01 0 | y",
     "data.verb:1: the word of a frame is '0', which is not a hexadecimal number of 2 digits"},
    {VERB, "00000100 39 v 01 bark 0 000 01 + 01 00",
     "data.verb:1: the line ends before the '|' of the gloss"},
    /* Index files */
    {INDEX_NOUN, "\n", "index.noun:1: the part of speech is '' instead of 'n'"},
    {INDEX_ADJ, "fast s 1 0 1 1 00000100", "index.adj:1: the part of speech is 's' instead of 'a'"},
    {INDEX_NOUN, "dog n x", "index.noun:1: the number of synsets is 'x', which is not a decimal number"},
    {INDEX_NOUN, "dog n 1", "index.noun:1: the line ends before the number of pointer symbols"},
    {INDEX_NOUN, "dog n 1 3 @ ~", "index.noun:1: the line ends within the pointer symbols"},
    {INDEX_NOUN, "dog n 1 1 @", "index.noun:1: the line ends before the number of senses"},
    {INDEX_NOUN, "dog n 1 1 @ 1", "index.noun:1: the line ends before the number of tagged senses"},
    {INDEX_NOUN, "dog n 2 0 2 0 00000200",
     "index.noun:1: the line ends before the synset offset of a sense"},
    {INDEX_NOUN, "dog n 1 0 1 0 00000200 00000500",
     "index.noun:1: '00000500' after the last of 1 senses"},
    {INDEX_NOUN, "dog n 1 0 1 0 00000250",
     "index.noun:1: sense 1 of 'dog' is synset 00000250, which data.noun does not have"},
    /* The synset behind the last adjective is an adverb. */
    {INDEX_ADJ, "fast a 1 0 1 1 00000900",
     "index.adj:1: sense 1 of 'fast' is synset 00000900, which data.adj does not have"},
    {INDEX_NOUN, "dog n 2 0 2 0 00000200 00000200",
     "index.noun:1: synset 00000200 is listed for 'dog' a second time"},
    {INDEX_ADV, "fast r 1 0 1 0 00000900\nfast r 1 0 1 0 00000900\n",
     "index.adv:2: 'fast' is not above the previous word"},
    {INDEX_ADV, "fast r 1 0 1 0 00000900\nfas r 1 0 1 0 00000900\n",
     "index.adv:2: 'fas' is not above the previous word"},
    /* What only all the files together tell */
    {INDEX_NOUN, "",
     "data.noun:2: index.noun does not list synset 00000100 under its first word, 'entity'"},
    {INDEX_ADJ, "fast a 1 0 1 1 00000100\nprompt a 1 0 1 1 00000200\n",
     "data.adj:2: index.adj does not list synset 00000200 under its first word, 'Quick'"},
    {ADV, "00000900 02 r 01 fast 0 001 \\ 00000300 a 0101 | x",
     "data.adv:1: a pointer leads to synset 00000300, which data.adj does not have"},
    {ADV, "00000900 02 r 01 fast 0 001 \\ 00000100 a 0102 | x",
     "data.adv:1: a pointer leads to word 2 of synset 00000100, which has 1 words"},
};

static void test_refuses_mistakes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const char *texts[VLP_WORDNET_FILES];
        size_t sizes[VLP_WORDNET_FILES];
        memcpy(texts, small, sizeof texts);
        texts[mistakes[i].file] = mistakes[i].text;
        measure(sizes, texts);
        assert_int_equal(read_and_free(texts, sizes), VLP_ERROR_FORMAT);
        assert_string_equal(vlp_error_message(), mistakes[i].message);
    }
}

static void test_refuses_zero_bytes_and_long_lines(void **state) {
    (void)state;
    const char *texts[VLP_WORDNET_FILES];
    size_t sizes[VLP_WORDNET_FILES];
    memcpy(texts, small, sizeof texts);
    measure(sizes, texts);
    texts[ADV] = "00000100 02 \0 01";
    sizes[ADV] = 16;
    assert_int_equal(read_and_free(texts, sizes), VLP_ERROR_FORMAT);
    assert_string_equal(vlp_error_message(), "data.adv:1: control character 0x00");

    sizes[ADV] = (size_t)3 << 20;
    char *spaces = malloc(sizes[ADV]);
    assert_non_null(spaces);
    memset(spaces, ' ', sizes[ADV]);
    texts[ADV] = spaces;
    assert_int_equal(read_and_free(texts, sizes), VLP_ERROR_FORMAT);
    assert_string_equal(vlp_error_message(), "data.adv:1: the line is too long for a WordNet file");
    free(spaces);
}

/* Wherever a file ends, reading ends with it. */
static void test_survives_cuts(void **state) {
    (void)state;
    for (int file = 0; file < VLP_WORDNET_FILES; file++) {
        size_t sizes[VLP_WORDNET_FILES];
        measure(sizes, small);
        for (size_t size = sizes[file]; size-- > 0;) {
            sizes[file] = size;
            vlp_status status = read_and_free(small, sizes);
            assert_true(status == VLP_OK || status == VLP_ERROR_FORMAT);
        }
    }
}

/* ---- Folders ---- */

typedef struct fixture {
    char root[64], source[80], folder[80];
} fixture;

static void write_file(const char *folder, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* "" for a file that does not exist. */
static char *read_file(const char *folder, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t size = 0, capacity = 0, got = 0;
    do {
        size += got;
        if (size + 1 >= capacity) text = realloc(text, capacity = 2 * capacity + 4096);
        assert_non_null(text);
    } while (file && (got = fread(text + size, 1, capacity - size - 1, file)) > 0);
    text[size] = '\0';
    if (file) fclose(file);
    return text;
}

static void remove_output(const fixture *f) {
    static const char *const names[] = {"train.txt", "valid.txt", "test.txt", "labels.tsv"};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", f->folder, names[i]);
        unlink(path);
    }
    rmdir(f->folder);
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    strcpy(f->root, "/tmp/vlp-test-wordnet-XXXXXX");
    if (!mkdtemp(f->root)) return -1;
    snprintf(f->source, sizeof f->source, "%s/source", f->root);
    snprintf(f->folder, sizeof f->folder, "%s/out", f->root);
    if (mkdir(f->source, 0777) != 0) return -1;
    for (int i = 0; i < VLP_WORDNET_FILES; i++)
        write_file(f->source, vlp_wordnet_file_names[i], small[i]);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    char path[256];
    remove_output(f);
    for (int i = 0; i < VLP_WORDNET_FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", f->source, vlp_wordnet_file_names[i]);
        unlink(path);
    }
    rmdir(f->source);
    /* Fails if an import left anything beside the folder. */
    int left = rmdir(f->root);
    free(f);
    return left;
}

static void assert_text(const fixture *f, const char *name, const char *expected) {
    char *text = read_file(f->folder, name);
    assert_string_equal(text, expected);
    free(text);
}

static vlp_status import_small(const fixture *f, vlp_import_report *report, bool keep_inverses) {
    vlp_split_options options = VLP_SPLIT_OPTIONS_INIT;
    options.valid = options.test = 0;
    return vlp_import_wordnet(report, f->source, f->folder, keep_inverses, &options);
}

static void test_imports_without_inverses(void **state) {
    const fixture *f = *state;
    vlp_import_report report;
    assert_int_equal(import_small(f, &report, false), VLP_OK);
    assert_int_equal(report.entities, 10);
    assert_int_equal(report.relations, 8);
    assert_int_equal(report.triples[VLP_TRAIN], 9);
    assert_int_equal(report.triples[VLP_VALID], 0);
    assert_int_equal(report.triples[VLP_TEST], 0);
    assert_int_equal(report.labels, 10);
    /* The second pair of words of dog and bark. */
    assert_int_equal(report.duplicates, 1);
    /* Two hyponyms, bark and dog from bark's side (twice), hush's antonym, and fast as similar to quick.
     */
    assert_int_equal(report.skipped, 6);
    assert_text(f, "train.txt",
                "dog.n.02\thypernym\tentity.n.01\n"
                "pack.n.01\tmember_meronym\tdog.n.02\n"
                "dog.n.02\tderivationally_related_form\tbark.v.01\n"
                "dog.n.01\thypernym\tdog.n.02\n"
                "rex.n.01\tinstance_hypernym\tdog.n.02\n"
                "bark.v.01\tantonym\thush.v.01\n"
                "fast.a.01\tsimilar_to\tquick.s.01\n"
                "fast.a.01\talso_see\tquick.s.01\n"
                "fast.r.01\tpertainym\tfast.a.01\n");
    assert_text(f, "labels.tsv",
                "entity.n.01\tentity\tthat which exists\n"
                "dog.n.02\tDog, domestic dog\ta pet; \"the dog barked\"\n"
                "rex.n.01\tRex\ta name\n"
                "pack.n.01\tpack\tmany | of them\n"
                "dog.n.01\tdog\ta small one\n"
                "bark.v.01\tbark, bay\tmake a sound\n"
                "hush.v.01\thush\tmake none\n"
                "fast.a.01\tfast\tswift\n"
                "quick.s.01\tQuick, prompt\tsoon\n"
                "fast.r.01\tfast\tswiftly\n");
}

static void test_imports_with_inverses(void **state) {
    const fixture *f = *state;
    vlp_import_report report;
    assert_int_equal(import_small(f, &report, true), VLP_OK);
    assert_int_equal(report.entities, 10);
    assert_int_equal(report.relations, 9);
    assert_int_equal(report.triples[VLP_TRAIN], 14);
    assert_int_equal(report.duplicates, 2);
    assert_int_equal(report.skipped, 0);
    assert_text(f, "train.txt",
                "entity.n.01\thyponym\tdog.n.02\n"
                "dog.n.02\thypernym\tentity.n.01\n"
                "dog.n.02\tmember_holonym\tpack.n.01\n"
                "dog.n.02\tderivationally_related_form\tbark.v.01\n"
                "dog.n.02\thyponym\tdog.n.01\n"
                "rex.n.01\tinstance_hypernym\tdog.n.02\n"
                "dog.n.01\thypernym\tdog.n.02\n"
                "bark.v.01\tderivationally_related_form\tdog.n.02\n"
                "bark.v.01\tantonym\thush.v.01\n"
                "hush.v.01\tantonym\tbark.v.01\n"
                "fast.a.01\tsimilar_to\tquick.s.01\n"
                "fast.a.01\talso_see\tquick.s.01\n"
                "quick.s.01\tsimilar_to\tfast.a.01\n"
                "fast.r.01\tpertainym\tfast.a.01\n");
}

static void test_names_the_line_of_a_file(void **state) {
    const fixture *f = *state;
    char message[256];
    write_file(f->source, "index.verb", "bark v 1 0 1 1 00000300\n");
    vlp_import_report report = {.entities = -1};
    assert_int_equal(import_small(f, &report, false), VLP_ERROR_FORMAT);
    snprintf(message, sizeof message,
             "%s/index.verb:1: sense 1 of 'bark' is synset 00000300, which data.verb does not have",
             f->source);
    assert_string_equal(vlp_error_message(), message);
    assert_int_equal(report.entities, -1);
    assert_int_equal(access(f->folder, F_OK), -1);
}

static void test_needs_all_files(void **state) {
    const fixture *f = *state;
    char path[256], message[512];
    for (int i = 0; i < VLP_WORDNET_FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", f->source, vlp_wordnet_file_names[i]);
        assert_int_equal(unlink(path), 0);
        vlp_import_report report;
        assert_int_equal(import_small(f, &report, false), VLP_ERROR_IO);
        snprintf(message, sizeof message,
                 "%s: No such file or directory; WordNet's database files come "
                 "with Debian's package wordnet-base, in /usr/share/wordnet",
                 path);
        assert_non_null(strstr(vlp_error_message(), message));
        assert_int_equal(access(f->folder, F_OK), -1);
        write_file(f->source, vlp_wordnet_file_names[i], small[i]);
    }
}

static void test_refuses_nothing_to_say(void **state) {
    const fixture *f = *state;
    for (int i = 0; i < VLP_WORDNET_FILES; i++) write_file(f->source, vlp_wordnet_file_names[i], "");
    vlp_import_report report;
    char message[256];
    assert_int_equal(import_small(f, &report, false), VLP_ERROR_FORMAT);
    snprintf(message, sizeof message, "%s: the WordNet database has no pointers", f->source);
    assert_string_equal(vlp_error_message(), message);
}

static void test_refuses_a_full_folder(void **state) {
    const fixture *f = *state;
    vlp_import_report report;
    assert_int_equal(import_small(f, &report, false), VLP_OK);
    assert_int_equal(import_small(f, &report, true), VLP_ERROR_EXISTS);
    assert_non_null(strstr(vlp_error_message(), f->folder));
    char *train = read_file(f->folder, "train.txt");
    assert_null(strstr(train, "hyponym"));
    free(train);
}

static bool stop_at_once(void *user) {
    (void)user;
    return true;
}

static void test_stops(void **state) {
    const fixture *f = *state;
    vlp_observer observer = {.stop = stop_at_once};
    vlp_split_options options = VLP_SPLIT_OPTIONS_INIT;
    options.observer = &observer;
    vlp_import_report report;
    assert_int_equal(vlp_import_wordnet(&report, f->source, f->folder, false, &options),
                     VLP_ERROR_STOPPED);
    assert_int_equal(access(f->folder, F_OK), -1);
}

/* ---- Memory that runs out at every place in turn ---- */

static void test_survives_lack_of_memory(void **state) {
    const fixture *f = *state;
    failing_allocator memory;
    int64_t call = 0;
    do {
        failing_allocator_install(&memory, ++call);
        vlp_import_report report;
        vlp_status status = import_small(f, &report, false);
        failing_allocator_remove(&memory);
        assert_true(status == VLP_OK || (memory.failed && status == VLP_ERROR_MEMORY));
        assert_int_equal(access(f->folder, F_OK), status == VLP_OK ? 0 : -1);
        remove_output(f);
    } while (memory.failed);
    assert_true(call > 20);
}

/* ---- The real one ---- */

static bool has_real(void) {
    char path[64];
    snprintf(path, sizeof path, "%s/data.noun", real_folder);
    return access(path, R_OK) == 0;
}

typedef struct lines {
    char *texts[VLP_SPLITS];
    char **items; /* sorted */
    size_t count;
} lines;

static int compare_lines(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* All triples of all splits. */
static void lines_read(lines *all, const fixture *f) {
    static const char *const names[] = {"train.txt", "valid.txt", "test.txt"};
    size_t capacity = 400000;
    all->count = 0;
    all->items = malloc(capacity * sizeof *all->items);
    assert_non_null(all->items);
    for (int i = 0; i < VLP_SPLITS; i++) {
        all->texts[i] = read_file(f->folder, names[i]);
        char *rest = NULL;
        for (char *line = strtok_r(all->texts[i], "\n", &rest); line;
             line = strtok_r(NULL, "\n", &rest)) {
            assert_true(all->count < capacity);
            all->items[all->count++] = line;
        }
    }
    qsort(all->items, all->count, sizeof *all->items, compare_lines);
    for (size_t i = 1; i < all->count; i++) assert_string_not_equal(all->items[i - 1], all->items[i]);
}

static void lines_free(lines *all) {
    for (int i = 0; i < VLP_SPLITS; i++) free(all->texts[i]);
    free(all->items);
}

static bool has_line(const lines *all, const char *line) {
    return bsearch(&line, all->items, all->count, sizeof line, compare_lines);
}

/* Of how many triples the reverse, by the same relation, is there as well; triples of something with
 * itself not counted. */
static int64_t count_reversed(const lines *all) {
    int64_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        char head[256], relation[64], tail[256], reverse[600];
        assert_int_equal(sscanf(all->items[i], "%255[^\t]\t%63[^\t]\t%255[^\t]", head, relation, tail),
                         3);
        snprintf(reverse, sizeof reverse, "%s\t%s\t%s", tail, relation, head);
        if (strcmp(head, tail) != 0) count += has_line(all, reverse);
    }
    return count;
}

static void test_real_synsets(void **state) {
    (void)state;
    if (!has_real()) skip();
    vlp_map maps[VLP_WORDNET_FILES];
    vlp_wordnet_file files[VLP_WORDNET_FILES];
    for (int i = 0; i < VLP_WORDNET_FILES; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", real_folder, vlp_wordnet_file_names[i]);
        assert_int_equal(vlp_map_open(&maps[i], path), VLP_OK);
        files[i] = (vlp_wordnet_file){vlp_wordnet_file_names[i], maps[i].data, maps[i].size};
    }
    vlp_wordnet *wordnet = NULL;
    assert_int_equal(vlp_wordnet_read(&wordnet, files), VLP_OK);
    static const int64_t first[] = {0, 82115, 95882, 114038, 117659};
    assert_memory_equal(wordnet->first, first, sizeof first);
    assert_int_equal(wordnet->synset_count, 117659);
    assert_int_equal(wordnet->pointer_count, 377592);
    vlp_wordnet_free(wordnet);
    for (int i = 0; i < VLP_WORDNET_FILES; i++) vlp_map_close(&maps[i]);
}

static void test_real_triples(void **state) {
    const fixture *f = *state;
    if (!has_real()) skip();
    vlp_import_report report;
    assert_int_equal(vlp_import_wordnet(&report, real_folder, f->folder, false, NULL), VLP_OK);
    /* 117,659 synsets, of which 1,009 have no pointers; 377,592 pointers. */
    assert_int_equal(report.entities, 116650);
    assert_int_equal(report.labels, 116650);
    assert_int_equal(report.relations, 18);
    assert_int_equal(report.triples[VLP_TRAIN] + report.triples[VLP_VALID] + report.triples[VLP_TEST],
                     186334);
    assert_int_equal(report.duplicates, 7245);
    assert_int_equal(report.skipped, 184013);
    assert_true(report.triples[VLP_VALID] > 0 && report.triples[VLP_TEST] > 0);

    static const char *const known[] = {
        "dog.n.01\thypernym\tcanine.n.02",
        "dog.n.01\thypernym\tdomestic_animal.n.01",
        "physical_entity.n.01\thypernym\tentity.n.01",
        "einstein.n.01\tinstance_hypernym\tphysicist.n.01",
        "canis.n.01\tmember_meronym\tdog.n.01",
        "dog.n.01\tpart_meronym\tflag.n.07",
        "water.n.01\tsubstance_meronym\thydrogen.n.01",
        "snore.v.01\tentailment\tsleep.v.01",
        "kill.v.01\tcause\tdie.v.01",
        "able.a.01\tantonym\tunable.a.01",
        "hardly.r.02\tpertainym\tscarce.a.01",
    };
    lines all;
    lines_read(&all, f);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!has_line(&all, known[i])) fail_msg("%s is missing", known[i]);
    /* Each is the other's domain: two pointers, not one and its inverse. */
    assert_true(has_line(&all, "computer.n.01\tsynset_domain_topic_of\tcomputer_science.n.01"));
    assert_true(has_line(&all, "computer_science.n.01\tsynset_domain_topic_of\tcomputer.n.01"));
    assert_int_equal(count_reversed(&all), 2);
    lines_free(&all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_synsets),
        cmocka_unit_test(test_reads_other_line_ends),
        cmocka_unit_test(test_refuses_mistakes),
        cmocka_unit_test(test_refuses_zero_bytes_and_long_lines),
        cmocka_unit_test(test_survives_cuts),
        cmocka_unit_test_setup_teardown(test_imports_without_inverses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_imports_with_inverses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_the_line_of_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_needs_all_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_nothing_to_say, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_a_full_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stops, setup, teardown),
        cmocka_unit_test_setup_teardown(test_survives_lack_of_memory, setup, teardown),
        cmocka_unit_test(test_real_synsets),
        cmocka_unit_test_setup_teardown(test_real_triples, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
