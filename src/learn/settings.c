/* The table of settings, and all that reads and writes single values by it.
 *
 * A value is text outside and a member of vlp_settings inside. Both directions go through the table, and
 * what one prints the other reads back to the same bits. The type of a row is taken from its member, so
 * that the two cannot disagree. */
#include "learn/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain_locale.h"
#include "base/text.h"

/* ---- The table ----------------------------------------------------------------------------------- */

static const char *const norms[] = {"l1", "l2", NULL};
static const char *const losses[] = {"negative-sampling", "cross-entropy", "kvsall", NULL};
static const char *const sources[] = {"uniform", "red", NULL};
static const char *const weights[] = {"uniform", "self-adversarial", "red", NULL};
static const char *const red_forms[] = {"published", "paper", NULL};
static const char *const optimizers[] = {"adam", "lazy-adam", "adagrad", NULL};
static const char *const schedules[] = {"constant", "step", "linear", "cosine", NULL};
static const char *const precisions[] = {"fp32", "bf16", NULL};
static const char *const trained[] = {"all", "aggregator", "path", NULL};
static const char *const states[] = {"reached", "all", NULL};
static const char *const hiding[] = {"edge", "pair", NULL};
static const char *const choosing[] = {"nearest", "nearest-random", "random", NULL};
/* A whole number may have choices too: words for 0 and what follows. */
static const char *const search_times[] = {"auto", "before", "ahead", NULL};
static const char *const all_candidates[] = {"all", NULL};

#define TYPE(member)                                                                                    \
    _Generic(((vlp_settings *)0)->member, int32_t                                                       \
             : VLP_SETTING_INTEGER, int64_t                                                             \
             : VLP_SETTING_LONG, uint64_t                                                               \
             : VLP_SETTING_SEED, double                                                                 \
             : VLP_SETTING_NUMBER, bool                                                                 \
             : VLP_SETTING_SWITCH)
#define ROW(member, type, least, most, choices, fallback, section, help, adjustable)                    \
    {                                                                                                   \
        .name = #member, type, offsetof(vlp_settings, member), least, most, choices, fallback, section, \
        help, adjustable                                                                                \
    }

#define VALUE(member, least, most, fallback, section, help)                                             \
    ROW(member, TYPE(member), least, most, NULL, fallback, section, help, false)
#define ADJUSTABLE(member, least, most, fallback, section, help)                                        \
    ROW(member, TYPE(member), least, most, NULL, fallback, section, help, true)
#define WORDED(member, least, most, words, fallback, section, help)                                     \
    ROW(member, TYPE(member), least, most, words, fallback, section, help, false)
#define SWITCH(member, fallback, section, help)                                                         \
    ROW(member, TYPE(member), 0, 1, NULL, fallback, section, help, false)
#define CHOICE(member, choices, fallback, section, help)                                                \
    ROW(member, VLP_SETTING_CHOICE, 0, 0, choices, fallback, section, help, false)

static const vlp_setting table[] = {
    CHOICE(model, vlp_model_names, "rotate", "model",
           "the score function of the embeddings; none: no embeddings, with path = on"),
    VALUE(dim, 1, 65536, "200", "model",
          "size of an embedding: numbers, complex numbers or quaternions"),
    VALUE(relation_dim, 0, 65536, "0", "model",
          "size of the space a relation projects to, where a model has one; 0: dim"),
    CHOICE(norm, norms, "l1", "model", "the norm of the models that leave it open"),
    VALUE(margin, 0, 1e5, "6", "model",
          "gamma: added to the score of distance models, and the range of initial values"),
    VALUE(init_scale, 0, 1e3, "0", "model",
          "deviation of normal initial values; 0: uniform in +-(margin + 2) / dim"),

    CHOICE(
        loss, losses, "negative-sampling", "loss",
        "what trains the embeddings; cross-entropy (1-to-All) and kvsall (by keys) are for dot models"),
    VALUE(negatives, 1, 1e6, "256", "loss", "negatives per query"),
    CHOICE(negatives_from, sources, "red", "loss",
           "distribution of negatives (p0): uniform, or likelier the nearer they are"),
    CHOICE(weights, weights, "red", "loss", "how negatives are weighted (p1)"),
    VALUE(alpha0, 0, 1e3, "1.1", "loss",
          "how fast the probability of a negative falls with its distance (negatives_from = red)"),
    VALUE(alpha1, 0, 1e3, "0.5", "loss",
          "how much a negative's score counts in its weight (self-adversarial, red)"),
    VALUE(alpha2, 0, 1e3, "0.5", "loss",
          "how much a score above the positive's by more than tau lowers the weight (red)"),
    VALUE(tau, 0, 1e5, "5", "loss",
          "how far above the positive's score a negative counts as likely false (red)"),
    CHOICE(red_form, red_forms, "published", "loss",
           "the weight of such a negative: as in the published code (continuous) or as in the paper"),
    SWITCH(query_weights, "on", "loss", "weight a query by 1 / sqrt(answers in both directions + 6)"),
    VALUE(n3, 0, 1e3, "0", "loss", "weight of the nuclear 3-norm, of dot models without matrices"),
    VALUE(relation_prediction, 0, 1e3, "0", "loss", "weight of predicting the relation (cross-entropy)"),
    VALUE(label_smoothing, 0, 0.99, "0", "loss",
          "kvsall: the target of an answer is 1 less this, which the other entities share"),
    VALUE(dropout, 0, 0.99, "0", "loss",
          "probability that a number of the query vector q is zero in a step, of dot models"),

    SWITCH(vertical, "on", "vertical", "train the vertical aggregator"),
    VALUE(references, 0, 1024, "8", "vertical",
          "references per query; 0: an aggregator without references, as a control"),
    VALUE(references_per_head, 0, 1024, "0", "vertical",
          "at most this many from one head entity other than the query's; 0: no limit"),
    VALUE(references_edges, 0, 1e12, "0", "vertical",
          "edges read for the references of a query at most, nearest entities first; 0: no limit"),
    CHOICE(references_choice, choosing, "nearest", "vertical",
           "nearest: ties by random-walk mass; nearest-random: ties at random; random: any (controls)"),
    SWITCH(references_own_edge, "off", "vertical",
           "a training query's own triple counts for distances, as in the published code; a control"),
    ROW(references_found, VLP_SETTING_CHOICE, 0, 0, search_times, "auto", "vertical",
        "before: of all queries; ahead: of one batch at a time; auto: ahead where all take a minute",
        true),
    VALUE(temperature, 1e-3, 1e5, "10", "vertical", "factor of the cosine before the softmax"),
    VALUE(vertical_weight, 0, 1e3, "0.5", "vertical", "alpha: weight of the vertical loss"),
    VALUE(vertical_rate, 0, 1e3, "0", "vertical", "learning rate of the aggregator's matrices; 0: rate"),
    SWITCH(vertical_gradient, "off", "vertical",
           "entities and relations receive the gradient of the vertical loss"),
    WORDED(candidates, 0, INT32_MAX, all_candidates, "all", "vertical",
           "entities in the softmax of the vertical loss: all, or this many sampled ones"),

    SWITCH(path, "off", "path", "train the path model, after the embeddings"),
    VALUE(path_layers, 1, VLP_PATH_MAX_LAYERS, "6", "path", "layers: the longest path that is read"),
    VALUE(path_dim, 8, VLP_PATH_MAX_DIM, "32", "path", "numbers per state; a multiple of 8"),
    CHOICE(path_states, states, "reached", "path",
           "entities that have a state in layer l: those within l hops of the head entity, or all"),
    CHOICE(path_hide, hiding, "edge", "path",
           "what is out of the graph for a hidden answer: its triple, or all between the pair"),
    VALUE(path_hidden, 0, 1, "0.5", "path",
          "probability that an answer of a key is hidden; at least one is"),
    VALUE(path_drop, 0, 0.99, "0", "path",
          "probability that a triple is out of the graph of a key, besides hidden ones"),
    VALUE(path_passes, 1e-6, 1e6, "1", "path",
          "passes over all keys (h, r), one of n answers sqrt(n) times: how long it trains"),
    VALUE(path_batch, 1, 4096, "32", "path", "keys per step"),
    VALUE(path_rate, 0, 1e3, "0.003", "path", "learning rate, before warm-up and cosine schedule"),
    VALUE(path_warmup, 0, 1e9, "200", "path", "first steps, in which the rate rises from 0"),
    VALUE(path_clip, 0, 1e5, "1", "path", "maximum norm of the gradient; 0: no limit"),
    VALUE(path_weight_decay, 0, 1e3, "0", "path", "what weight_decay is for embeddings"),
    VALUE(path_far, 1e-4, 1, "0.125", "path",
          "share of the candidates farther than path_near hops that the loss reads; 1: all"),
    VALUE(path_near, 0, VLP_PATH_MAX_LAYERS, "3", "path", "hops within which all are candidates"),
    VALUE(path_prune, 0, 1, "0.001", "path",
          "softmax weights below it are sampled in proportion; 0: all are kept"),
    VALUE(path_edges, 0, 1e12, "0", "path",
          "edges read for a query at most, nearest entities first (path_states = reached); 0: no limit"),

    CHOICE(trains, trained, "all", "training",
           "what is trained: all, or the vertical aggregator or the path model alone over a base"),
    ADJUSTABLE(steps, 1, 1e9, "10000", "training", "steps of the embeddings and the aggregator"),
    VALUE(batch, 1, 1e6, "512", "training", "queries per step; keys (h, r) with loss = kvsall"),
    CHOICE(precision, precisions, "fp32", "training",
           "bf16: products of bf16, where the GPU or CPU has them; sums and parameters stay fp32"),
    CHOICE(optimizer, optimizers, "adam", "training",
           "lazy-adam updates only the rows a step has touched"),
    VALUE(rate, 0, 1e3, "0.001", "training", "learning rate"),
    VALUE(beta1, 0, 0.999999, "0.9", "training", "adam: decay of the mean gradient"),
    VALUE(beta2, 0, 0.999999, "0.999", "training", "adam: decay of the mean square"),
    VALUE(epsilon, 1e-20, 1, "1e-08", "training", "added to the root of the mean square"),
    VALUE(weight_decay, 0, 1e3, "0", "training",
          "before each step, every number loses this share of itself times the rate"),
    CHOICE(schedule, schedules, "step", "training", "learning rate over the steps"),
    VALUE(decay_at, 0, 1e9, "0", "training",
          "the step at which schedule = step multiplies the rate by decay; 0: at 0.6 of steps"),
    VALUE(decay, 0, 1, "0.1", "training", "factor of the rate from that step on"),
    VALUE(warmup, 0, 1e9, "0", "training", "first steps, in which the rate rises from 0"),
    VALUE(clip, 0, 1e5, "0", "training", "maximum norm of the gradient; 0: no limit"),
    ADJUSTABLE(save_every, 0, 1e9, "1000", "training", "steps between saves; 0: at the end only"),
    ADJUSTABLE(eval_every, 0, 1e9, "1000", "training",
               "steps between evaluations on the validation split; 0: at the end only"),
    ADJUSTABLE(eval_triples, 0, 1e12, "0", "training",
               "triples of the validation split that these rank, spread over it; 0: all"),
    ADJUSTABLE(patience, 0, 1e6, "0", "training",
               "evaluations without a better validation MRR that end the run; 0: never"),
    VALUE(distance_memory, 1, 1 << 24, "2048", "training",
          "memory for the distances of all pairs, in MiB"),
    VALUE(device_memory, 0, 1 << 30, "0", "training",
          "MiB for entities while training; larger tables are trained in partitions; 0: all it has"),
    VALUE(seed, 0, 0x1p64, "0", "training", "seed of all randomness"),
    ADJUSTABLE(threads, 0, 1024, "0", "training", "threads; 0: as many as the machine has"),
};
enum { SETTINGS = sizeof table / sizeof *table };

const vlp_setting *vlp_settings_table(int32_t *count) {
    *count = SETTINGS;
    return table;
}

/* ---- Numbers as text ----------------------------------------------------------------------------- */

/* The shortest of a few forms that reads back to the same bits. */
static void print_number(char text[64], double value) {
    static const int digits[] = {6, 9, 17};
    vlp_plain_locale locale = vlp_plain_locale_begin();
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        snprintf(text, 64, "%.*g", digits[i], value);
        double back = strtod(text, NULL);
        if (back == value) break;
    }
    vlp_plain_locale_end(locale);
}

/* Decimals only: strtod would also take hexadecimals, infinities, words and leading space. */
static bool read_number(double *out, const char *text) {
    if (*text == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0') return false;
    vlp_plain_locale locale = vlp_plain_locale_begin();
    char *end;
    *out = strtod(text, &end);
    vlp_plain_locale_end(locale);
    return *end == '\0';
}

/* Digits only; false also when there are too many of them. */
static bool read_whole(uint64_t *out, const char *text) {
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    *out = value;
    return at > text && *at == '\0';
}

/* The index of a word among choices, -1 where it is not one of them. */
static int32_t find_choice(const char *const *choices, const char *word) {
    /* Runs of before the aggregator had its name. */
    if (choices == trained && strcmp(word, "head") == 0) word = "aggregator";
    for (int32_t i = 0; choices && choices[i]; i++)
        if (strcmp(choices[i], word) == 0) return i;
    return -1;
}

/* The word for a value, NULL without one. */
static const char *choice_name(const char *const *choices, int64_t value) {
    for (int64_t i = 0; choices && choices[i]; i++)
        if (i == value) return choices[i];
    return NULL;
}

/* ---- Members ------------------------------------------------------------------------------------- */

static size_t type_size(vlp_setting_type type) {
    switch (type) {
    case VLP_SETTING_LONG:
        return sizeof(int64_t);
    case VLP_SETTING_SEED:
        return sizeof(uint64_t);
    case VLP_SETTING_NUMBER:
        return sizeof(double);
    case VLP_SETTING_SWITCH:
        return sizeof(bool);
    case VLP_SETTING_INTEGER:
    case VLP_SETTING_CHOICE:
        break;
    }
    return sizeof(int32_t);
}

/* A member's value, in the field of its type. */
typedef union value {
    int32_t integer; /* also of a choice */
    int64_t wide;
    uint64_t seed;
    double number;
    bool on;
} value;

static value load(const vlp_settings *settings, const vlp_setting *setting) {
    value found = {.seed = 0};
    memcpy(&found, (const char *)settings + setting->offset, type_size(setting->type));
    return found;
}

static bool in_range(const vlp_setting *setting, value given) {
    switch (setting->type) {
    case VLP_SETTING_INTEGER:
        return given.integer >= setting->least && given.integer <= setting->most;
    case VLP_SETTING_LONG:
        return (double)given.wide >= setting->least && (double)given.wide <= setting->most;
    case VLP_SETTING_NUMBER:
        return given.number >= setting->least && given.number <= setting->most;
    case VLP_SETTING_CHOICE:
        return choice_name(setting->choices, given.integer) != NULL;
    case VLP_SETTING_SEED:
    case VLP_SETTING_SWITCH:
        break;
    }
    return true;
}

/* False where a text is not a value of the setting's type, or not within its range. */
static bool read_value(value *out, const vlp_setting *setting, const char *text) {
    *out = (value){.seed = 0};
    uint64_t whole = 0;
    int32_t word = find_choice(setting->choices, text);
    switch (setting->type) {
    case VLP_SETTING_INTEGER:
        if (word < 0 && (!read_whole(&whole, text) || whole > INT32_MAX)) return false;
        out->integer = word < 0 ? (int32_t)whole : word;
        break;
    case VLP_SETTING_LONG:
        if (!read_whole(&whole, text) || whole > INT64_MAX) return false;
        out->wide = (int64_t)whole;
        break;
    case VLP_SETTING_SEED:
        if (!read_whole(&out->seed, text)) return false;
        break;
    case VLP_SETTING_NUMBER:
        if (!read_number(&out->number, text)) return false;
        break;
    case VLP_SETTING_SWITCH:
        out->on = strcmp(text, "on") == 0;
        return out->on || strcmp(text, "off") == 0;
    case VLP_SETTING_CHOICE:
        out->integer = word;
        break;
    }
    return in_range(setting, *out);
}

static void store(vlp_settings *settings, const vlp_setting *setting, value given) {
    memcpy((char *)settings + setting->offset, &given, type_size(setting->type));
}

void vlp_settings_get(char text[64], const vlp_settings *settings, const vlp_setting *setting) {
    value found = load(settings, setting);
    const char *word = NULL;
    switch (setting->type) {
    case VLP_SETTING_INTEGER:
    case VLP_SETTING_CHOICE:
        word = choice_name(setting->choices, found.integer);
        if (word)
            snprintf(text, 64, "%s", word);
        else
            snprintf(text, 64, "%" PRId32, found.integer);
        break;
    case VLP_SETTING_LONG:
        snprintf(text, 64, "%" PRId64, found.wide);
        break;
    case VLP_SETTING_SEED:
        snprintf(text, 64, "%" PRIu64, found.seed);
        break;
    case VLP_SETTING_NUMBER:
        print_number(text, found.number);
        break;
    case VLP_SETTING_SWITCH:
        snprintf(text, 64, "%s", found.on ? "on" : "off");
        break;
    }
}

void vlp_settings_default(vlp_settings *settings) {
    memset(settings, 0, sizeof *settings); /* padding too: equal settings are equal bytes */
    for (int i = 0; i < SETTINGS; i++) {
        value given;
        bool good = read_value(&given, &table[i], table[i].fallback);
        assert(good);
        (void)good;
        store(settings, &table[i], given);
    }
}

/* ---- Setting by name ----------------------------------------------------------------------------- */

enum { SHOWN = 100, WORDS = 256 };

/* How much of a text from outside a message quotes: whole characters, and not all of a long text. */
static int shown_length(const char *text) {
    return (int)vlp_utf8_valid_prefix(text, strnlen(text, SHOWN));
}

static const char *shown_rest(const char *text) {
    return text[shown_length(text)] ? "..." : "";
}

/* "from 1 to 10" and the like: what a setting takes. */
static void describe(char text[WORDS], const vlp_setting *setting) {
    char least[64], most[64];
    const char *word = setting->choices ? setting->choices[0] : NULL;
    size_t used = 0;
    switch (setting->type) {
    case VLP_SETTING_INTEGER:
    case VLP_SETTING_LONG:
        snprintf(text, WORDS, "%s%sa whole number from %.0f to %.0f", word ? word : "",
                 word ? " or " : "", setting->least, setting->most);
        break;
    case VLP_SETTING_SEED:
        snprintf(text, WORDS, "a whole number from 0 to %" PRIu64, UINT64_MAX);
        break;
    case VLP_SETTING_NUMBER:
        print_number(least, setting->least);
        print_number(most, setting->most);
        snprintf(text, WORDS, "a number from %s to %s", least, most);
        break;
    case VLP_SETTING_SWITCH:
        snprintf(text, WORDS, "on or off");
        break;
    case VLP_SETTING_CHOICE:
        for (int i = 0; setting->choices[i]; i++) {
            const char *between = i == 0 ? "" : setting->choices[i + 1] ? ", " : " or ";
            int added = snprintf(text + used, WORDS - used, "%s%s", between, setting->choices[i]);
            used += (size_t)added;
            assert(used < WORDS);
        }
        break;
    }
}

/* The settings nearest to a name that is none; "" where nothing is near. */
static void suggest(char text[WORDS], const char *asked) {
    text[0] = '\0';
    size_t length = strnlen(asked, SHOWN), used = 0;
    /* A name that shares less than half with what was asked for is no help. */
    int nearest = (int)(length + 1) / 2;
    for (int i = 0; i < SETTINGS; i++) {
        int distance = vlp_edit_distance(asked, table[i].name, nearest);
        if (distance > nearest) continue;
        if (distance < nearest) used = 0;
        nearest = distance;
        int added =
            snprintf(text + used, WORDS - used, "%s%s", used ? ", " : "; the nearest: ", table[i].name);
        used += (size_t)added;
        if (used >= WORDS) used = WORDS - 1; /* cut short, and still a text */
    }
}

static const vlp_setting *find_setting(const char *key) {
    for (int i = 0; i < SETTINGS; i++)
        if (strcmp(table[i].name, key) == 0) return &table[i];
    return NULL;
}

vlp_status vlp_settings_set(vlp_settings *settings, const char *key, const char *text,
                            const char *where) {
    char words[WORDS];
    const char *place = where ? where : "", *colon = where ? ": " : "";
    const vlp_setting *setting = find_setting(key);
    if (!setting) {
        suggest(words, key);
        return vlp_fail(VLP_ERROR_UNKNOWN, "%s%sthere is no setting '%.*s%s'%s", place, colon,
                        shown_length(key), key, shown_rest(key), words);
    }
    value given;
    if (!read_value(&given, setting, text)) {
        describe(words, setting);
        return vlp_fail(VLP_ERROR_ARGUMENT, "%s%s%s takes %s, not '%.*s%s'", place, colon, setting->name,
                        words, shown_length(text), text, shown_rest(text));
    }
    store(settings, setting, given);
    return VLP_OK;
}

vlp_status vlp_settings_assign(vlp_settings *settings, const char *text) {
    const char *equals = text ? strchr(text, '=') : NULL;
    char key[64];
    if (!equals || (size_t)(equals - text) >= sizeof key)
        return vlp_fail(VLP_ERROR_ARGUMENT, "a setting is key=value, not '%.100s'",
                        text ? text : "NULL");
    memcpy(key, text, (size_t)(equals - text));
    key[equals - text] = '\0';
    return vlp_settings_set(settings, key, equals + 1, NULL);
}

/* ---- What no single range can say ---------------------------------------------------------------- */

/* A program may have filled the members by itself, past vlp_settings_set. */
static vlp_status check_ranges(const vlp_settings *settings) {
    for (int i = 0; i < SETTINGS; i++) {
        if (in_range(&table[i], load(settings, &table[i]))) continue;
        char text[64], words[WORDS];
        vlp_settings_get(text, settings, &table[i]);
        describe(words, &table[i]);
        return vlp_fail(VLP_ERROR_ARGUMENT, "%s takes %s, not '%s'", table[i].name, words, text);
    }
    return VLP_OK;
}

static bool has_relation_dim(const vlp_model_row *model) {
    return model->relation_dim_array != NULL;
}

/* The names of the models that have a property: "a, b and c". */
static const char *list_models(char out[WORDS], bool (*has)(const vlp_model_row *model)) {
    int32_t left = 0;
    size_t length = 0;
    for (int32_t kind = 0; kind < VLP_MODELS; kind++) left += has(vlp_model_row_of(kind));
    out[0] = 0;
    for (int32_t kind = 0; kind < VLP_MODELS; kind++) {
        const vlp_model_row *model = vlp_model_row_of(kind);
        if (!has(model)) continue;
        left--;
        const char *behind = left > 1 ? ", " : left == 1 ? " and " : "";
        length += (size_t)snprintf(out + length, WORDS - length, "%s%s", model->name, behind);
        assert(length < WORDS);
    }
    return out;
}

/* Settings that only some models have a use for. Those that have a default other than "none" (norm,
 * references, negatives) are no contradiction where they go unused. */
static vlp_status check_model(const vlp_settings *settings) {
    if (settings->model == VLP_MODEL_NONE) return VLP_OK;
    const vlp_model_row *model = vlp_model_row_of(settings->model);
    char names[WORDS];
    if (settings->loss != VLP_LOSS_NEGATIVES && !vlp_model_is_dot(model))
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "loss = %s is for %s, not for %s; use loss = negative-sampling",
                        losses[settings->loss], list_models(names, vlp_model_is_dot), model->name);
    if (settings->dropout > 0.0 && !vlp_model_is_dot(model))
        return vlp_fail(VLP_ERROR_ARGUMENT, "dropout is for %s, not for %s; set it to 0",
                        list_models(names, vlp_model_is_dot), model->name);
    if (settings->label_smoothing > 0.0 && settings->loss != VLP_LOSS_KVSALL)
        return vlp_fail(VLP_ERROR_ARGUMENT, "label_smoothing needs loss = kvsall, not %s",
                        losses[settings->loss]);
    if (settings->n3 > 0.0 && !vlp_model_has_n3(model))
        return vlp_fail(VLP_ERROR_ARGUMENT, "n3 is for %s, not for %s; set it to 0",
                        list_models(names, vlp_model_has_n3), model->name);
    if (settings->relation_prediction > 0.0 && settings->loss != VLP_LOSS_CROSS_ENTROPY)
        return vlp_fail(VLP_ERROR_ARGUMENT, "relation_prediction needs loss = cross-entropy, not %s",
                        losses[settings->loss]);
    if (settings->relation_prediction > 0.0 && !vlp_model_predicts_relations(model))
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "relation_prediction is for %s: the score of %s is not linear in the relation; "
                        "set it to 0",
                        list_models(names, vlp_model_predicts_relations), model->name);
    if (settings->relation_dim > 0 && !has_relation_dim(model))
        return vlp_fail(VLP_ERROR_ARGUMENT, "relation_dim is for %s, not for %s; set it to 0",
                        list_models(names, has_relation_dim), model->name);
    vlp_model_options sizes = {settings->model, settings->dim, settings->relation_dim, settings->norm,
                               settings->margin};
    return vlp_model_check(&sizes);
}

/* A step takes at most all of a number. */
static vlp_status check_decay(const char *name, double decay, const char *rate_name, double rate) {
    if (decay * rate <= 1) return VLP_OK;
    return vlp_fail(VLP_ERROR_ARGUMENT,
                    "%s = %g times %s = %g takes more of a number than there is: at most %g", name,
                    decay, rate_name, rate, 1 / rate);
}

static vlp_status check_training(const vlp_settings *settings) {
    if (settings->patience > 0 && settings->eval_every == 0)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "patience counts evaluations, and eval_every = 0 makes none before the end; set "
                        "eval_every");
    if (settings->candidates == 1)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "candidates = 1 leaves the softmax no choice; use all, or 2 or more");
    if (settings->model == VLP_MODEL_NONE || settings->trains == VLP_TRAINS_PATH) return VLP_OK;
    if (settings->rate == 0.0 && (!settings->vertical || settings->vertical_rate == 0.0))
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "rate = 0 trains nothing; only the vertical aggregator can do "
                        "without it, with a vertical_rate of its own");
    if (settings->schedule == VLP_STEP && settings->decay_at > settings->steps)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "decay_at = %" PRId64 " comes after the last of %" PRId64 " steps",
                        settings->decay_at, settings->steps);
    if (settings->warmup > settings->steps)
        return vlp_fail(VLP_ERROR_ARGUMENT, "warmup = %" PRId64 " is more than all of %" PRId64 " steps",
                        settings->warmup, settings->steps);
    VLP_TRY(check_decay("weight_decay", settings->weight_decay, "rate", settings->rate));
    if (settings->vertical)
        VLP_TRY(check_decay("weight_decay", settings->weight_decay, "vertical_rate",
                            settings->vertical_rate));
    if (settings->trains == VLP_TRAINS_AGGREGATOR &&
        (!settings->vertical || settings->vertical_gradient))
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "trains = aggregator does not change the embeddings: it needs vertical = on "
                        "and vertical_gradient = off");
    return VLP_OK;
}

static vlp_status check_references(const vlp_settings *settings) {
    if (settings->references_per_head == 0 || settings->references_choice == VLP_REFERENCES_NEAREST)
        return VLP_OK;
    return vlp_fail(VLP_ERROR_ARGUMENT,
                    "references_per_head needs references_choice = nearest, not %s; set it to 0",
                    choosing[settings->references_choice]);
}

static vlp_status check_path(const vlp_settings *settings) {
    if (settings->model == VLP_MODEL_NONE && !settings->path)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "model = none has no embeddings, and path = off no path model: nothing is left "
                        "to train; set path = on");
    if (settings->trains == VLP_TRAINS_PATH && !settings->path)
        return vlp_fail(VLP_ERROR_ARGUMENT, "trains = path trains the path model: set path = on");
    if (settings->trains == VLP_TRAINS_AGGREGATOR && settings->model == VLP_MODEL_NONE)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "trains = aggregator needs embeddings, and model = none has none");
    if (!settings->path) return VLP_OK;
    if (settings->path_dim % 8 != 0)
        return vlp_fail(VLP_ERROR_ARGUMENT, "path_dim = %d is not a multiple of 8; %d is",
                        settings->path_dim, (settings->path_dim + 7) / 8 * 8);
    if (settings->path_rate == 0.0) return vlp_fail(VLP_ERROR_ARGUMENT, "path_rate = 0 trains nothing");
    VLP_TRY(
        check_decay("path_weight_decay", settings->path_weight_decay, "path_rate", settings->path_rate));
    if (settings->path_edges > 0 && settings->path_states == VLP_PATH_STATES_ALL)
        return vlp_fail(VLP_ERROR_ARGUMENT,
                        "path_edges limits the entities that are reached: it needs path_states = "
                        "reached");
    return VLP_OK;
}

vlp_status vlp_settings_check(const vlp_settings *settings) {
    VLP_TRY(check_ranges(settings));
    VLP_TRY(check_model(settings));
    VLP_TRY(check_references(settings));
    VLP_TRY(check_path(settings));
    return check_training(settings);
}

vlp_model_shape vlp_settings_shape(const vlp_settings *settings, const vlp_dataset *dataset) {
    return (vlp_model_shape){.options = {settings->model, settings->dim, settings->relation_dim,
                                         settings->norm, settings->margin},
                             .entities = vlp_dataset_entity_count(dataset),
                             .relations = 2 * vlp_dataset_relation_count(dataset),
                             .components = vlp_settings_components(settings),
                             .path = {.layers = settings->path_layers,
                                      .dim = settings->path_dim,
                                      .reached_only = settings->path_states == VLP_PATH_STATES_REACHED,
                                      .edge_limit = settings->path_edges,
                                      .bf16 = settings->precision == VLP_PRECISION_BF16}};
}
