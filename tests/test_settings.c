/* Settings: the table against the struct, values there and back, every message, recipes line by line. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "failing_allocator.h"
#include "learn/settings.h"
#include "oracle.h"
#include "support.h"

enum { SEED = 72, RECIPE = 8192 };

static void expect_same(const vlp_settings *left, const vlp_settings *right) {
    assert_memory_equal(left, right, sizeof *left);
}

static const vlp_setting *setting_named(const char *name) {
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    for (int32_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    fail();
    return NULL;
}

static size_t size_of_type(vlp_setting_type type) {
    static const size_t sizes[] = {4, 8, 8, 8, sizeof(bool), 4};
    return sizes[type];
}

/* ---- The table ----------------------------------------------------------------------------------- */

/* Every member in its order, by place: a member that is added has to come here, or the compiler warns of
 * the one that is missing. None has its default. */
static const vlp_settings every_member = {
    /* model */
    0, 7, 3, 1, 1.5, 0.25,
    /* loss */
    2, 9, 0, 1, 0.1, 0.2, 0.3, 0.4, 1, false, 0.5, 0.6, 0.65, 0.35,
    /* vertical */
    false, 4, 2, 26, 1, true, 2, 0.7, 0.8, 0.9, true, 11,
    /* path */
    true, 5, 16, 1, 1, 0.15, 0.26, 2.5, 22, 0.07, 23, 0.08, 0.12, 0.09, 6, 0.11, 24,
    /* training */
    1, 12, 13, 1, 2, 0.01, 0.02, 0.03, 0.04, 0.13, 3, 14, 0.05, 15, 0.06, 16, 17, 25, 18, 19, 27, 20,
    21};
static const char every_text[] =
    "rescal 7 3 l2 1.5 0.25 "
    "kvsall 9 uniform self-adversarial 0.1 0.2 0.3 0.4 paper off "
    "0.5 0.6 0.65 0.35 "
    "off 4 2 26 nearest-random on ahead 0.7 0.8 0.9 on 11 "
    "on 5 16 all pair 0.15 0.26 2.5 22 0.07 23 0.08 0.12 0.09 6 0.11 24 "
    "aggregator 12 13 bf16 adagrad 0.01 0.02 0.03 0.04 0.13 cosine 14 0.05 15 0.06 16 17 25 18 19 "
    "27 20 21";

static void test_every_member(void **state) {
    (void)state;
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    char words[sizeof every_text], *rest = NULL;
    memcpy(words, every_text, sizeof words);
    vlp_settings settings, before;
    vlp_settings_default(&settings);
    size_t end = 0;
    for (int32_t i = 0; i < count; i++) {
        char text[64];
        vlp_settings_get(text, &every_member, &table[i]);
        assert_string_equal(text, strtok_r(i == 0 ? words : NULL, " ", &rest));
        /* The table has the order of the struct, and nothing lies between two members but padding. */
        size_t size = size_of_type(table[i].type);
        assert_int_equal(table[i].offset, (end + size - 1) / size * size);
        end = table[i].offset + size;

        memcpy(&before, &settings, sizeof before);
        assert_string_not_equal(text, table[i].fallback);
        assert_int_equal(vlp_settings_set(&settings, table[i].name, text, NULL), VLP_OK);
        for (size_t at = 0; at < sizeof settings; at++)
            if (at < table[i].offset || at >= end)
                assert_true(((char *)&settings)[at] == ((char *)&before)[at]);
        assert_true(
            memcmp((char *)&settings + table[i].offset, (char *)&before + table[i].offset, size) != 0);
        assert_memory_equal((char *)&settings + table[i].offset,
                            (const char *)&every_member + table[i].offset, size);
    }
    assert_null(strtok_r(NULL, " ", &rest));
    assert_true(sizeof settings - end < 8);
}

static void test_table(void **state) {
    (void)state;
    static const char *const sections[] = {"model", "loss", "vertical", "path", "training"};
    int32_t count, section = 0;
    const vlp_setting *table = vlp_settings_table(&count);
    vlp_settings settings, again;
    vlp_settings_default(&settings);
    memset(&again, 0xff, sizeof again);
    vlp_settings_default(&again);
    expect_same(&settings, &again);
    assert_int_equal(vlp_settings_check(&settings), VLP_OK);
    for (int32_t i = 0; i < count; i++) {
        const vlp_setting *setting = &table[i];
        assert_ptr_equal(setting_named(setting->name), setting);
        while (strcmp(setting->section, sections[section]) != 0) assert_true(++section < 5);
        assert_true(strlen(setting->help) > 0 && strlen(setting->help) < 100);
        assert_null(strchr(setting->help, '\n'));
        if (setting->type != VLP_SETTING_CHOICE) assert_true(setting->least < setting->most);
        char text[64];
        vlp_settings_get(text, &settings, setting);
        assert_string_equal(text, setting->fallback);
        assert_int_equal(vlp_settings_set(&again, setting->name, setting->fallback, NULL), VLP_OK);
        for (int32_t j = 0; setting->choices && setting->choices[j]; j++) {
            assert_int_equal(vlp_settings_set(&again, setting->name, setting->choices[j], NULL), VLP_OK);
            assert_int_equal(*(int32_t *)((char *)&again + setting->offset), j);
            vlp_settings_get(text, &again, setting);
            assert_string_equal(text, setting->choices[j]);
        }
        assert_int_equal(vlp_settings_set(&again, setting->name, setting->fallback, NULL), VLP_OK);
        expect_same(&settings, &again);
    }
    assert_int_equal(section, 4);
}

/* "rescal, transe, .. or rotate" */
static const char *all_models(void) {
    static char words[256];
    size_t length = 0;
    for (int i = 0; i <= VLP_MODEL_NONE; i++)
        length += (size_t)snprintf(words + length, sizeof words - length, "%s%s", vlp_model_names[i],
                                   i + 1 < VLP_MODEL_NONE    ? ", "
                                   : i + 1 == VLP_MODEL_NONE ? " or "
                                                             : "");
    return words;
}

/* Names by number, as the code uses them. */
static void test_choices(void **state) {
    (void)state;
    static const struct {
        const char *key, *name;
        int32_t value;
    } choices[] = {
#define MODEL(NAME, name) {"model", #name, VLP_MODEL_##NAME},
        VLP_MODEL_LIST(MODEL)
#undef MODEL
            {"model", "none", VLP_MODEL_NONE},
        {"path_states", "reached", VLP_PATH_STATES_REACHED},
        {"path_states", "all", VLP_PATH_STATES_ALL},
        {"path_hide", "edge", VLP_PATH_HIDE_EDGE},
        {"path_hide", "pair", VLP_PATH_HIDE_PAIR},
        {"trains", "all", VLP_TRAINS_ALL},
        {"trains", "aggregator", VLP_TRAINS_AGGREGATOR},
        {"trains", "path", VLP_TRAINS_PATH},
        {"norm", "l1", VLP_NORM_L1},
        {"norm", "l2", VLP_NORM_L2},
        {"loss", "negative-sampling", VLP_LOSS_NEGATIVES},
        {"loss", "cross-entropy", VLP_LOSS_CROSS_ENTROPY},
        {"loss", "kvsall", VLP_LOSS_KVSALL},
        {"negatives_from", "uniform", VLP_NEGATIVES_UNIFORM},
        {"negatives_from", "red", VLP_NEGATIVES_RED},
        {"weights", "uniform", VLP_WEIGHT_UNIFORM},
        {"weights", "self-adversarial", VLP_WEIGHT_SELF_ADVERSARIAL},
        {"weights", "red", VLP_WEIGHT_RED},
        {"red_form", "published", VLP_RED_PUBLISHED},
        {"red_form", "paper", VLP_RED_PAPER},
        {"optimizer", "adam", VLP_ADAM},
        {"optimizer", "lazy-adam", VLP_LAZY_ADAM},
        {"optimizer", "adagrad", VLP_ADAGRAD},
        {"schedule", "constant", VLP_CONSTANT},
        {"schedule", "step", VLP_STEP},
        {"schedule", "linear", VLP_LINEAR},
        {"schedule", "cosine", VLP_COSINE},
        {"candidates", "all", 0},
        {"candidates", "0", 0},
    };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        vlp_settings settings;
        vlp_settings_default(&settings);
        assert_int_equal(vlp_settings_set(&settings, choices[i].key, choices[i].name, NULL), VLP_OK);
        const vlp_setting *setting = setting_named(choices[i].key);
        assert_int_equal(*(int32_t *)((char *)&settings + setting->offset), choices[i].value);
    }
}

/* ---- Values -------------------------------------------------------------------------------------- */

static void expect_number(const char *text, double expected) {
    vlp_settings settings;
    vlp_settings_default(&settings);
    assert_int_equal(vlp_settings_set(&settings, "margin", text, NULL), VLP_OK);
    assert_true(settings.margin == expected);
}

static void test_values(void **state) {
    (void)state;
    expect_number("0", 0);
    expect_number("12.5", 12.5);
    expect_number(".5", 0.5);
    expect_number("5.", 5);
    expect_number("+3", 3);
    expect_number("1e-3", 1e-3);
    expect_number("1E+2", 100);
    expect_number("007", 7);
    vlp_settings settings;
    char text[64];
    vlp_settings_default(&settings);
    assert_int_equal(vlp_settings_set(&settings, "seed", "18446744073709551615", NULL), VLP_OK);
    assert_true(settings.seed == UINT64_MAX);
    vlp_settings_get(text, &settings, setting_named("seed"));
    assert_string_equal(text, "18446744073709551615");
    assert_int_equal(vlp_settings_set(&settings, "steps", "1000000000", NULL), VLP_OK);
    assert_true(settings.steps == 1000000000);
    assert_int_equal(vlp_settings_set(&settings, "candidates", "2147483647", NULL), VLP_OK);
    assert_true(settings.candidates == INT32_MAX);
    assert_int_equal(vlp_settings_set(&settings, "decay", "1", NULL), VLP_OK);
    assert_int_equal(vlp_settings_set(&settings, "epsilon", "1e-20", NULL), VLP_OK);
    settings.margin = 1.0 / 3;
    vlp_settings_get(text, &settings, setting_named("margin"));
    assert_string_equal(text, "0.33333333333333331");
    settings.margin = 1e-3;
    vlp_settings_get(text, &settings, setting_named("margin"));
    assert_string_equal(text, "0.001");
    settings.margin = 0.12345678;
    vlp_settings_get(text, &settings, setting_named("margin"));
    assert_string_equal(text, "0.12345678");
}

/* What is not a value, for a setting of each type; nothing changes and the message says what is. */
static void test_wrong_values(void **state) {
    (void)state;
    const char *const wrong[][12] = {
        {"steps", "a whole number from 1 to 1000000000", "x", "", "0", "-1", "1.5", "1e3", "0x10", " 5",
         "1000000001", "99999999999999999999999"},
        {"threads", "a whole number from 0 to 1024", "5 ", "+5", "-0", "1025", "4294967296", "all"},
        {"candidates", "all or a whole number from 0 to 2147483647", "al", "All", "2147483648", "-1"},
        {"seed", "a whole number from 0 to 18446744073709551615", "18446744073709551616", "-1", "",
         "1."},
        {"margin", "a number from 0 to 100000", "", "-1", "nan", "inf", "0x1p3", "1e", "1e400", "1,5",
         " 1", "1e5x"},
        {"temperature", "a number from 0.001 to 100000", "0", "0.0009", "1 ", ".", "+", "e5", "1e1e1"},
        {"beta1", "a number from 0 to 0.999999", "1"},
        {"epsilon", "a number from 1e-20 to 1", "0"},
        {"vertical", "on or off", "", "On", "true", "1", "offf"},
        {"norm", "l1 or l2", "", "l3", "L1", "0"},
        {"model", all_models(), "RotatE", "5", "rotat"},
    };
    vlp_settings settings, before;
    vlp_settings_default(&settings);
    memcpy(&before, &settings, sizeof before);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int j = 2; j < 12 && wrong[i][j]; j++) {
            char expected[256];
            assert_int_equal(vlp_settings_set(&settings, wrong[i][0], wrong[i][j], "here:3"),
                             VLP_ERROR_ARGUMENT);
            snprintf(expected, sizeof expected, "here:3: %s takes %s, not '%s'", wrong[i][0],
                     wrong[i][1], wrong[i][j]);
            assert_string_equal(vlp_error_message(), expected);
            expect_same(&settings, &before);
        }
}

static void expect_unknown(const char *key, const char *message) {
    vlp_settings settings, before;
    vlp_settings_default(&settings);
    memcpy(&before, &settings, sizeof before);
    assert_int_equal(vlp_settings_set(&settings, key, "1", NULL), VLP_ERROR_UNKNOWN);
    assert_string_equal(vlp_error_message(), message);
    expect_same(&settings, &before);
}

static void test_unknown_names(void **state) {
    (void)state;
    expect_unknown("stepz", "there is no setting 'stepz'; the nearest: steps");
    expect_unknown("Steps", "there is no setting 'Steps'; the nearest: steps");
    expect_unknown("rates", "there is no setting 'rates'; the nearest: rate"); /* batch is near too */
    expect_unknown("dmi", "there is no setting 'dmi'; the nearest: dim");
    expect_unknown("alpha", "there is no setting 'alpha'; the nearest: alpha0, alpha1, alpha2");
    expect_unknown("", "there is no setting ''");
    expect_unknown("quite_another_thing", "there is no setting 'quite_another_thing'");
    /* Long texts are cut between characters, broken ones where they break. */
    char key[400], message[600], a[100];
    memset(a, 'a', 99);
    a[99] = '\0';
    snprintf(key, sizeof key, "%s\xc3\xa9%s", a, a);
    snprintf(message, sizeof message, "there is no setting '%s...'", a);
    expect_unknown(key, message);
    expect_unknown("ab\xff", "there is no setting 'ab...'");
    vlp_settings settings;
    vlp_settings_default(&settings);
    assert_int_equal(vlp_settings_set(&settings, "stepz", "1", "here:3"), VLP_ERROR_UNKNOWN);
    assert_string_equal(vlp_error_message(), "here:3: there is no setting 'stepz'; the nearest: steps");
}

/* A value anywhere in the setting's range, as bits. */
static void randomize(vlp_settings *settings, const vlp_setting *setting, oracle_random *random) {
    char *member = (char *)settings + setting->offset;
    vlp_random4 bits = vlp_random(random->seed, VLP_STREAM_TEST, 77, random->index++);
    uint64_t wide = (uint64_t)bits.v[0] << 32 | bits.v[1];
    double share = (double)(wide >> 11) * 0x1p-53;
    if (oracle_chance(random, 8)) share = oracle_below(random, 2);
    double number = setting->least + share * (setting->most - setting->least);
    /* Small ones are as likely as large ones, and some are round. */
    for (int32_t i = oracle_below(random, 10); i > 0 && number / 10 >= setting->least; i--) number /= 10;
    int32_t integer = (int32_t)(number < INT32_MAX ? number : INT32_MAX), choices = 0;
    int64_t whole = (int64_t)(number < 0x1p62 ? number : 0x1p62);
    bool on = share > 0.5;
    switch (setting->type) {
    case VLP_SETTING_INTEGER:
        memcpy(member, &integer, sizeof integer);
        break;
    case VLP_SETTING_LONG:
        memcpy(member, &whole, sizeof whole);
        break;
    case VLP_SETTING_SEED:
        memcpy(member, &wide, sizeof wide);
        break;
    case VLP_SETTING_NUMBER:
        memcpy(member, &number, sizeof number);
        break;
    case VLP_SETTING_SWITCH:
        memcpy(member, &on, sizeof on);
        break;
    case VLP_SETTING_CHOICE:
        while (setting->choices[choices]) choices++;
        integer = oracle_below(random, choices);
        memcpy(member, &integer, sizeof integer);
        break;
    }
}

static void write_recipe(char text[RECIPE], const vlp_settings *settings) {
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    size_t used = 0;
    for (int32_t i = 0; i < count; i++) {
        char value[64];
        vlp_settings_get(value, settings, &table[i]);
        if (i == 0 || strcmp(table[i].section, table[i - 1].section) != 0)
            used += (size_t)snprintf(text + used, RECIPE - used, "[%s]\n", table[i].section);
        used += (size_t)snprintf(text + used, RECIPE - used, "%s = %s\n", table[i].name, value);
        assert_true(used < RECIPE);
    }
}

static void round_trips(int rounds) {
    oracle_random random = {SEED, 0, 0};
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    for (int round = 0; round < rounds; round++) {
        vlp_settings settings, back;
        vlp_settings_default(&settings);
        vlp_settings_default(&back);
        for (int32_t i = 0; i < count; i++) randomize(&settings, &table[i], &random);
        char text[RECIPE];
        write_recipe(text, &settings);
        if (vlp_recipe_parse(&back, "text", text, strlen(text)) != VLP_OK)
            print_error("%s\n", vlp_error_message());
        expect_same(&settings, &back);
    }
}

static void test_round_trip(void **state) {
    (void)state;
    round_trips(500);
}

/* Where decimals have a comma, files are still the same. */
static void test_locale(void **state) {
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "pt_BR.UTF-8", "ru_RU.UTF-8"};
    const char *set = NULL;
    for (int i = 0; i < 4 && !set; i++) set = setlocale(LC_ALL, names[i]);
    if (!set) skip();
    char text[64];
    vlp_settings settings;
    vlp_settings_default(&settings);
    vlp_settings_get(text, &settings, setting_named("alpha0"));
    round_trips(20);
    bool comma = strcmp(localeconv()->decimal_point, ",") == 0;
    setlocale(LC_ALL, "C");
    assert_true(comma);
    assert_string_equal(text, "1.1");
}

/* ---- Recipes ------------------------------------------------------------------------------------- */

static void parse_ok(vlp_settings *settings, const char *text) {
    vlp_settings_default(settings);
    vlp_status status = vlp_recipe_parse(settings, "r.ini", text, strlen(text));
    if (status != VLP_OK) print_error("%s\n", vlp_error_message());
    assert_int_equal(status, VLP_OK);
}

static void test_recipe(void **state) {
    (void)state;
    vlp_settings settings, defaults, expected;
    vlp_settings_default(&defaults);
    parse_ok(&settings, "");
    expect_same(&settings, &defaults);
    parse_ok(&settings, "\xef\xbb\xbf");
    expect_same(&settings, &defaults);
    parse_ok(&settings, "; a comment\n\n  # another\n\t\n[model]\n [anything at all] ; yes\r\n\r\n#");
    expect_same(&settings, &defaults);

    memcpy(&expected, &defaults, sizeof expected);
    expected.steps = 77;
    expected.rate = 0.25;
    expected.model = VLP_MODEL_COMPLEX;
    expected.vertical = false;
    parse_ok(&settings, "steps = 77\nrate = 0.25\nmodel = complex\nvertical = off\n");
    expect_same(&settings, &expected);
    parse_ok(&settings, "\xef\xbb\xbfsteps=77\r\n  rate\t=\t0.25  \r\n[x]\r\n model =complex\r\n"
                        "vertical= off");
    expect_same(&settings, &expected);
    parse_ok(&settings, "steps = 77 ; long enough\nrate = 0.25\t# e = mc2\n;steps = 9\nmodel = complex\n"
                        "vertical = off # ; #");
    expect_same(&settings, &expected);
    /* Long lines are lines. */
    char *text = malloc(30000);
    assert_non_null(text);
    snprintf(text, 30000, "steps =%9000s\nrate = 0.25 ;%9000d\nmodel = complex\n%9000s= off\n", "77", 1,
             "vertical");
    parse_ok(&settings, text);
    expect_same(&settings, &expected);
    free(text);
    /* What is not in the recipe stays. */
    assert_int_equal(vlp_recipe_parse(&settings, "r.ini", "steps = 5\n", 10), VLP_OK);
    expected.steps = 5;
    expect_same(&settings, &expected);
}

static void expect_bytes_refused(const char *text, size_t size, const char *message) {
    vlp_settings settings, before;
    vlp_settings_default(&settings);
    settings.steps = 123;
    memcpy(&before, &settings, sizeof before);
    assert_int_equal(vlp_recipe_parse(&settings, "r.ini", text, size), VLP_ERROR_FORMAT);
    assert_string_equal(vlp_error_message(), message);
    expect_same(&settings, &before);
}

static void expect_refused(const char *text, const char *message) {
    expect_bytes_refused(text, strlen(text), message);
}

static void test_wrong_recipes(void **state) {
    (void)state;
    expect_refused("dim = 5\n\nstepz = 5\n", "r.ini:3: there is no setting 'stepz'; the nearest: steps");
    expect_refused("[model]\r\ndim = 5\r\nsteps = x\r\n",
                   "r.ini:3: steps takes a whole number from 1 to 1000000000, not 'x'");
    expect_refused("steps =\n", "r.ini:1: steps takes a whole number from 1 to 1000000000, not ''");
    expect_refused("steps = 5;6\n",
                   "r.ini:1: steps takes a whole number from 1 to 1000000000, not '5;6'");
    expect_refused("steps = 5 = 6\n",
                   "r.ini:1: steps takes a whole number from 1 to 1000000000, not '5 = 6'");
    expect_refused("steps = 5\rdim = 6\n",
                   "r.ini:1: steps takes a whole number from 1 to 1000000000, not '5\\u000ddim = 6'");
    expect_refused("steps = 5\n[other]\nrate = 1\n steps = 5\n",
                   "r.ini:4: steps was given already on line 1");
    static const char no_equals[] =
        "r.ini:2: there is no '='; a line is 'key = value', '[heading]' or a comment after ';' or '#'";
    expect_refused("dim = 5\nsteps 5", no_equals);
    expect_refused("dim = 5\nsteps: 5", no_equals);
    expect_refused("dim = 5\nsteps ; = 5", no_equals);
    expect_refused("dim = 5\n\r\r\n", no_equals);
    expect_refused(" = 5\n", "r.ini:1: there is no key before '='");
    expect_refused("\n[model\ndim = 5\n", "r.ini:2: the heading has no ']'");
    expect_refused("[model] dim = 5\n", "r.ini:1: there is something behind the heading's ']'");
    expect_refused("[a]b]\n", "r.ini:1: there is something behind the heading's ']'");
    expect_refused("dim = 5\n; caf\xe9\n", "r.ini:2: invalid UTF-8");
    expect_refused("dim = 5\n\xef\xbb\xbfsteps = 5\n",
                   "r.ini:2: there is no setting '\xef\xbb\xbfsteps'; the nearest: steps");
    expect_bytes_refused("dim = 5\nsteps\0 = 5\n", 18, "r.ini:2: a NUL byte");
    expect_bytes_refused("\0", 1, "r.ini:1: a NUL byte");
}

static void test_files(void **state) {
    (void)state;
    const char *folder = support_folder();
    vlp_settings settings, defaults;
    char expected[600];
    vlp_settings_default(&settings);
    vlp_settings_default(&defaults);
    support_write_text(folder, "good.ini", "[training]\nsteps = 77\n");
    assert_int_equal(vlp_recipe_read(&settings, support_path(folder, "good.ini")), VLP_OK);
    assert_true(settings.steps == 77);

    vlp_settings_default(&settings);
    support_write_text(folder, "bad.ini", "steps = 77\nrate = fast\n");
    const char *path = support_path(folder, "bad.ini");
    assert_int_equal(vlp_recipe_read(&settings, path), VLP_ERROR_FORMAT);
    snprintf(expected, sizeof expected, "%s:2: rate takes a number from 0 to 1000, not 'fast'", path);
    assert_string_equal(vlp_error_message(), expected);
    expect_same(&settings, &defaults);

    path = support_path(folder, "none.ini");
    assert_int_equal(vlp_recipe_read(&settings, path), VLP_ERROR_IO);
    snprintf(expected, sizeof expected, "cannot open %s: No such file or directory", path);
    assert_string_equal(vlp_error_message(), expected);
    assert_int_equal(vlp_recipe_read(&settings, folder), VLP_ERROR_IO);

    char *large = malloc((1 << 20) + 1);
    assert_non_null(large);
    memset(large, '\n', (1 << 20) + 1);
    support_write(folder, "full.ini", large, 1 << 20);
    assert_int_equal(vlp_recipe_read(&settings, support_path(folder, "full.ini")), VLP_OK);
    support_write(folder, "large.ini", large, (1 << 20) + 1);
    path = support_path(folder, "large.ini");
    assert_int_equal(vlp_recipe_read(&settings, path), VLP_ERROR_FORMAT);
    snprintf(expected, sizeof expected, "%s is larger than 1 MiB: not a recipe", path);
    assert_string_equal(vlp_error_message(), expected);
    free(large);
    expect_same(&settings, &defaults);
    support_remove(folder);
}

static void test_memory(void **state) {
    (void)state;
    const char *folder = support_folder();
    support_write_text(folder, "r.ini", "steps = 77\n; a line longer than the first allocation\n");
    const char *path = support_path(folder, "r.ini");
    failing_allocator memory;
    int64_t call = 0;
    do {
        vlp_settings settings, defaults;
        vlp_settings_default(&settings);
        vlp_settings_default(&defaults);
        failing_allocator_install(&memory, ++call);
        vlp_status status = vlp_recipe_read(&settings, path);
        failing_allocator_remove(&memory);
        assert_int_equal(status, memory.failed ? VLP_ERROR_MEMORY : VLP_OK);
        if (memory.failed) expect_same(&settings, &defaults);
    } while (memory.failed);
    assert_true(call > 5);
    support_remove(folder);
}

/* ---- Settings that do not go together ------------------------------------------------------------ */

static void expect_together(const char *recipe, const char *message) {
    vlp_settings settings;
    parse_ok(&settings, recipe);
    vlp_status status = vlp_settings_check(&settings);
    if (message) {
        assert_int_equal(status, VLP_ERROR_ARGUMENT);
        assert_string_equal(vlp_error_message(), message);
    } else {
        if (status != VLP_OK) print_error("%s: %s\n", recipe, vlp_error_message());
        assert_int_equal(status, VLP_OK);
    }
}

/* What the messages name: the models of each kind. */
#define DOT_MODELS "rescal, distmult, complex and quate"
#define N3_MODELS "distmult, complex and quate"
#define BILINEAR_MODELS "rescal, distmult and complex"

static bool named(const char *models, const char *model) {
    return strstr(models, model) != NULL;
}

static void test_check_model(void **state) {
    (void)state;
    for (int i = 0; i < VLP_MODELS; i++) {
        char recipe[100], message[200];
        const char *model = vlp_model_row_of(i)->name;
        assert_string_equal(model, setting_named("model")->choices[i]);
        assert_string_equal(model, vlp_model_names[i]);
        snprintf(recipe, sizeof recipe, "model = %s\nnorm = l2\nvertical = off\n", model);
        expect_together(recipe, NULL);
        snprintf(recipe, sizeof recipe, "model = %s\nloss = cross-entropy\n", model);
        snprintf(message, sizeof message,
                 "loss = cross-entropy is for " DOT_MODELS ", not for %s; use loss = negative-sampling",
                 model);
        expect_together(recipe, named(DOT_MODELS, model) ? NULL : message);
        snprintf(recipe, sizeof recipe, "model = %s\nloss = kvsall\nlabel_smoothing = 0.1\n", model);
        snprintf(message, sizeof message,
                 "loss = kvsall is for " DOT_MODELS ", not for %s; use loss = negative-sampling", model);
        expect_together(recipe, named(DOT_MODELS, model) ? NULL : message);
        snprintf(recipe, sizeof recipe, "model = %s\ndropout = 0.1\n", model);
        snprintf(message, sizeof message, "dropout is for " DOT_MODELS ", not for %s; set it to 0",
                 model);
        expect_together(recipe, named(DOT_MODELS, model) ? NULL : message);
        snprintf(recipe, sizeof recipe, "model = %s\nn3 = 0.1\n", model);
        snprintf(message, sizeof message, "n3 is for " N3_MODELS ", not for %s; set it to 0", model);
        expect_together(recipe, named(N3_MODELS, model) ? NULL : message);
        snprintf(recipe, sizeof recipe, "model = %s\nrelation_dim = 50\n", model);
        snprintf(message, sizeof message, "relation_dim is for transr, not for %s; set it to 0", model);
        expect_together(recipe, i == VLP_MODEL_TRANSR ? NULL : message);
        if (!named(DOT_MODELS, model)) continue;
        snprintf(recipe, sizeof recipe, "model = %s\nloss = cross-entropy\nrelation_prediction = 1\n",
                 model);
        snprintf(message, sizeof message,
                 "relation_prediction is for " BILINEAR_MODELS
                 ": the score of %s is not linear in the relation; set it to 0",
                 model);
        expect_together(recipe, named(BILINEAR_MODELS, model) ? NULL : message);
    }
    expect_together("model = complex\nrelation_prediction = 4\n",
                    "relation_prediction needs loss = cross-entropy, not negative-sampling");
    expect_together("model = complex\nrelation_prediction = 4\nloss = kvsall\n",
                    "relation_prediction needs loss = cross-entropy, not kvsall");
    expect_together("model = complex\nlabel_smoothing = 0.1\nloss = cross-entropy\n",
                    "label_smoothing needs loss = kvsall, not cross-entropy");
    expect_together("references_per_head = 1\nreferences_choice = nearest\n", NULL);
    expect_together("references_per_head = 1\nreferences_choice = random\n",
                    "references_per_head needs references_choice = nearest, not random; set it to 0");
    expect_together("references_own_edge = on\nreferences_choice = nearest-random\n", NULL);
    expect_together("model = complex\nrelation_prediction = 4\nloss = cross-entropy\nn3 = 0.05\n", NULL);
}

static void test_check_training(void **state) {
    (void)state;
    expect_together("steps = 100\ndecay_at = 100\nwarmup = 100\n", NULL);
    expect_together("steps = 100\ndecay_at = 101\n", "decay_at = 101 comes after the last of 100 steps");
    expect_together("steps = 100\ndecay_at = 101\nschedule = cosine\n", NULL);
    expect_together("steps = 100\nwarmup = 101\n", "warmup = 101 is more than all of 100 steps");
    expect_together("candidates = 1\n",
                    "candidates = 1 leaves the softmax no choice; use all, or 2 or more");
    expect_together("candidates = 2\n", NULL);
    expect_together("candidates = all\n", NULL);
    static const char frozen[] =
        "rate = 0 trains nothing; only the vertical aggregator can do without it, "
        "with a vertical_rate of its own";
    expect_together("rate = 0\n", frozen);
    expect_together("rate = 0\nvertical_rate = 0.1\nvertical = off\n", frozen);
    expect_together("rate = 0\nvertical_rate = 0.1\n", NULL);
    expect_together("patience = 3\n", NULL);
    expect_together("patience = 3\neval_every = 0\n",
                    "patience counts evaluations, and eval_every = 0 makes none before the end; set "
                    "eval_every");
    expect_together("references = 0\n", NULL);
}

/* Members that were filled past vlp_settings_set are held to the table as well. */
static void test_check_ranges(void **state) {
    (void)state;
    vlp_settings settings;
    vlp_settings_default(&settings);
    settings.model = 17;
    assert_int_equal(vlp_settings_check(&settings), VLP_ERROR_ARGUMENT);
    char message[300];
    snprintf(message, sizeof message, "model takes %s, not '17'", all_models());
    assert_string_equal(vlp_error_message(), message);
    vlp_settings_default(&settings);
    settings.rate = strtod("nan", NULL);
    assert_int_equal(vlp_settings_check(&settings), VLP_ERROR_ARGUMENT);
    assert_string_equal(vlp_error_message(), "rate takes a number from 0 to 1000, not 'nan'");
    vlp_settings_default(&settings);
    settings.save_every = -5;
    assert_int_equal(vlp_settings_check(&settings), VLP_ERROR_ARGUMENT);
    assert_string_equal(vlp_error_message(),
                        "save_every takes a whole number from 0 to 1000000000, not '-5'");
    vlp_settings_default(&settings);
    settings.batch = 0;
    assert_int_equal(vlp_settings_check(&settings), VLP_ERROR_ARGUMENT);
}

/* What a run's weights carry: the settings that determine its results, and no others. */
static void test_digest(void **state) {
    (void)state;
    int32_t count;
    const vlp_setting *table = vlp_settings_table(&count);
    char text[VLP_SETTINGS_TEXT], digest[33], other[33], name[80];
    vlp_settings_describe(text, digest, &every_member);
    assert_int_equal(strlen(digest), 32);
    assert_int_equal(vlp_settings_verify(&every_member, text, digest, "here"), VLP_OK);
    int32_t adjustable = 0;
    for (int32_t i = 0; i < count; i++) {
        vlp_settings changed = every_member;
        char value[64];
        vlp_settings_get(value, &every_member, &table[i]);
        assert_int_equal(vlp_settings_set(&changed, table[i].name, table[i].fallback, NULL), VLP_OK);
        vlp_settings_describe(text, other, &changed);
        vlp_settings_describe(text, digest, &every_member);
        adjustable += table[i].adjustable;
        /* As a later version would see it that has no digest of these texts. */
        const char *digests[] = {digest, "of another spelling"};
        for (int j = 0; j < 2; j++) {
            vlp_status status = vlp_settings_verify(&changed, text, digests[j], "here");
            assert_int_equal(status, table[i].adjustable ? VLP_OK : VLP_ERROR_FORMAT);
            if (status == VLP_OK) continue;
            snprintf(name, sizeof name, "here: %s = %s, not %s", table[i].name, table[i].fallback,
                     value);
            assert_string_equal(vlp_error_message(), name);
        }
        assert_true((strcmp(digest, other) == 0) == table[i].adjustable);
    }
    assert_int_equal(adjustable, 7);
    assert_true(setting_named("steps")->adjustable && setting_named("threads")->adjustable);

    /* A value that has another name now, and settings that were not there yet. */
    vlp_settings settings;
    vlp_settings_default(&settings);
    assert_int_equal(vlp_settings_set(&settings, "trains", "head", NULL), VLP_OK);
    assert_int_equal(settings.trains, VLP_TRAINS_AGGREGATOR);
    assert_int_equal(vlp_settings_verify(&settings, "trains=head dim=200", "", "here"), VLP_OK);
    assert_int_equal(vlp_settings_verify(&settings, "dim=9  trains=all", "", "here"), VLP_ERROR_FORMAT);
    assert_string_equal(vlp_error_message(), "here: dim = 200, not 9; trains = aggregator, not all");
    assert_int_equal(vlp_settings_verify(&settings, "dim", "", "here"), VLP_ERROR_FORMAT);
    assert_int_equal(vlp_settings_verify(&settings, "dims=3", "", "here"), VLP_ERROR_FORMAT);
    assert_non_null(strstr(vlp_error_message(), "here: there is no setting 'dims'"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_member), cmocka_unit_test(test_table),
        cmocka_unit_test(test_choices),      cmocka_unit_test(test_values),
        cmocka_unit_test(test_wrong_values), cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_locale),
        cmocka_unit_test(test_recipe),       cmocka_unit_test(test_wrong_recipes),
        cmocka_unit_test(test_files),        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_check_model),  cmocka_unit_test(test_check_training),
        cmocka_unit_test(test_check_ranges), cmocka_unit_test(test_digest),
    };
    return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
