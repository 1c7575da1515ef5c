/* Every setting of a run, defined once: name, type, default, range and help are in one table
 * (settings.c) that recipes, the program, config.ini and the manual all read. */
#ifndef VLP_LEARN_SETTINGS_H
#define VLP_LEARN_SETTINGS_H

#include "base/base.h"
#include "graph/dataset.h"
#include "graph/reference.h"
#include "model/model.h"

typedef enum vlp_loss_kind {
    VLP_LOSS_NEGATIVES = 0,
    VLP_LOSS_CROSS_ENTROPY,
    VLP_LOSS_KVSALL
} vlp_loss_kind;
typedef enum vlp_negative_source { VLP_NEGATIVES_UNIFORM = 0, VLP_NEGATIVES_RED } vlp_negative_source;
typedef enum vlp_negative_weight {
    VLP_WEIGHT_UNIFORM = 0,
    VLP_WEIGHT_SELF_ADVERSARIAL,
    VLP_WEIGHT_RED
} vlp_negative_weight;
typedef enum vlp_red_form { VLP_RED_PUBLISHED = 0, VLP_RED_PAPER } vlp_red_form;
typedef enum vlp_optimizer_kind { VLP_ADAM = 0, VLP_LAZY_ADAM, VLP_ADAGRAD } vlp_optimizer_kind;
typedef enum vlp_schedule { VLP_CONSTANT = 0, VLP_STEP, VLP_LINEAR, VLP_COSINE } vlp_schedule;

/* The entities that have a state in layer l: those within l hops of the head entity, or all. */
typedef enum vlp_path_states { VLP_PATH_STATES_REACHED = 0, VLP_PATH_STATES_ALL } vlp_path_states;

typedef enum vlp_precision { VLP_PRECISION_FP32 = 0, VLP_PRECISION_BF16 } vlp_precision;
typedef enum vlp_references_found {
    VLP_REFERENCES_AUTO = 0,
    VLP_REFERENCES_BEFORE,
    VLP_REFERENCES_AHEAD
} vlp_references_found;
typedef enum vlp_trains { VLP_TRAINS_ALL = 0, VLP_TRAINS_AGGREGATOR, VLP_TRAINS_PATH } vlp_trains;

typedef struct vlp_settings {
    /* the model */
    int32_t model;        /* vlp_model_kind */
    int32_t dim;          /* units per row: numbers, complex numbers or quaternions */
    int32_t relation_dim; /* 0: dim; of a model that has one */
    int32_t norm;         /* vlp_norm; of a model that leaves it open */
    double margin;        /* of distance models; range of initial values of all */
    double init_scale;    /* 0: +-(margin + 2) / dim uniform; else normal with this deviation */
    /* the horizontal loss */
    int32_t loss;           /* vlp_loss_kind */
    int32_t negatives;      /* per query */
    int32_t negatives_from; /* vlp_negative_source, p0 */
    int32_t weights;        /* vlp_negative_weight, p1 */
    double alpha0, alpha1, alpha2, tau;
    int32_t red_form;           /* vlp_red_form */
    bool query_weights;         /* 1 / sqrt(n(h, r) + n(t, r-1) + 6) */
    double n3;                  /* weight of the nuclear 3-norm */
    double relation_prediction; /* weight of predicting the relation; 0: none */
    double label_smoothing;     /* of kvsall's targets */
    double dropout;             /* of q, in training */
    /* the vertical aggregator and its loss */
    bool vertical;
    int32_t references; /* N; 0: an aggregator without references (the control) */
    int32_t references_per_head;
    int64_t references_edges;  /* that are read for a query's references; 0: no limit */
    int32_t references_choice; /* vlp_reference_choice */
    bool references_own_edge;
    int32_t references_found; /* vlp_references_found */
    double temperature;
    double vertical_weight; /* alpha */
    double vertical_rate;   /* of the aggregator's matrices; 0: rate */
    bool vertical_gradient; /* entities and relations receive the gradient of the vertical loss */
    int32_t candidates;     /* of the vertical loss's softmax, sampled; 0: all entities */
    /* the path model and its loss */
    bool path;
    int32_t path_layers, path_dim;
    int32_t path_states; /* vlp_path_states */
    int32_t path_hide;   /* vlp_path_hiding */
    double path_hidden;  /* probability that an answer of a key is hidden */
    double path_drop;    /* probability that a triple is out of a key's graph */
    double path_passes;  /* over all keys */
    int32_t path_batch;  /* keys per step */
    double path_rate;
    int64_t path_warmup;
    double path_clip;
    double path_weight_decay;
    double path_far; /* share of the candidates farther than path_near hops; 1: all */
    int32_t path_near;
    double path_prune;  /* softmax weights below it are sampled; 0: none */
    int64_t path_edges; /* at most this many edges are read for a query; 0: no limit */
    /* training */
    int32_t trains; /* vlp_trains */
    int64_t steps;
    int32_t batch;
    int32_t precision; /* vlp_precision */
    int32_t optimizer; /* vlp_optimizer_kind */
    double rate, beta1, beta2, epsilon, weight_decay;
    int32_t schedule; /* vlp_schedule */
    int64_t decay_at; /* schedule = step: the rate is multiplied by decay from here on; 0: at 0.6 of the
                         steps */
    double decay;
    int64_t warmup;
    double clip;                    /* maximum norm of the gradient; 0: none */
    int64_t save_every, eval_every; /* steps; 0: at the end only */
    int64_t eval_triples;           /* of the validation split that are ranked; 0: all */
    int32_t patience;        /* evaluations without a better validation MRR that end the run; 0: never */
    int32_t distance_memory; /* MiB for distances of all pairs */
    int32_t device_memory;   /* MiB for the entities' tables; 0: what the device has */
    uint64_t seed;
    int32_t threads;
} vlp_settings;

typedef enum vlp_setting_type {
    VLP_SETTING_INTEGER = 0, /* int32_t */
    VLP_SETTING_LONG,        /* int64_t */
    VLP_SETTING_SEED,        /* uint64_t */
    VLP_SETTING_NUMBER,      /* double */
    VLP_SETTING_SWITCH,      /* bool: on, off */
    VLP_SETTING_CHOICE       /* int32_t, by name */
} vlp_setting_type;

typedef struct vlp_setting {
    const char *name;
    vlp_setting_type type;
    size_t offset;              /* in vlp_settings */
    double least, most;         /* of numbers, both included */
    const char *const *choices; /* of a choice, ended by NULL */
    const char *fallback;       /* the default, as text */
    const char
        *section; /* "model", "loss", "vertical", "path", "training": headings in config.ini and help */
    const char *help; /* one line */
    bool adjustable;  /* may change when a run is resumed, and is no part of the digest */
} vlp_setting;

/* The table, in the order of the manual. */
const vlp_setting *vlp_settings_table(int32_t *count);

void vlp_settings_default(vlp_settings *settings);

/* The components of a run with these settings, as bits. */
static inline unsigned vlp_settings_components(const vlp_settings *settings) {
    bool embeds = settings->model != VLP_MODEL_NONE;
    return (embeds ? 1u << VLP_HORIZONTAL : 0) |
           (embeds && settings->vertical ? 1u << VLP_VERTICAL : 0) |
           (settings->path ? 1u << VLP_PATH : 0);
}

/* How an aggregator with these settings finds its references. */
static inline vlp_reference_rule vlp_settings_reference_rule(const vlp_settings *settings) {
    return (vlp_reference_rule){.edges = settings->references_edges,
                                .choice = (vlp_reference_choice)settings->references_choice,
                                .own_edge = settings->references_own_edge,
                                .seed = settings->seed};
}

/* The model of a run with these settings on a data set. */
vlp_model_shape vlp_settings_shape(const vlp_settings *settings, const vlp_dataset *dataset);

/* Sets one; the error names the key (and the nearest known one), or the value and what it may be.
 * `where` goes before the message ("recipe.ini:12"); NULL: nothing. */
vlp_status vlp_settings_set(vlp_settings *settings, const char *key, const char *value,
                            const char *where);

/* Sets one from "key=value". */
vlp_status vlp_settings_assign(vlp_settings *settings, const char *text);

/* Text of one value, as vlp_settings_set reads it: vlp_settings_get then vlp_settings_set gives the same
 * bits. `text` holds 64 bytes. */
void vlp_settings_get(char text[64], const vlp_settings *settings, const vlp_setting *setting);

/* The settings that determine a run's results, all but the adjustable ones, as text: "model=rotate dim=8
 * ..." in the order of the table. `digest`: 32 hex digits over it. */
enum { VLP_SETTINGS_TEXT = 4096 };
void vlp_settings_describe(char text[VLP_SETTINGS_TEXT], char digest[33], const vlp_settings *settings);

/* Whether settings have the digest of a run's weights; where they have another, the text that is stored
 * with them tells what differs. VLP_ERROR_FORMAT: "WHERE: margin = 9, not 6; ...". */
vlp_status vlp_settings_verify(const vlp_settings *settings, const char *text, const char *digest,
                               const char *where);

/* A recipe: an INI file of `key = value`; sections are headings only. Later lines win; a key given twice
 * is an error. vlp_recipe_parse takes the text from memory (for fuzzing); `name` is for messages. */
vlp_status vlp_recipe_read(vlp_settings *settings, const char *path);
/* The settings that are not the defaults, as a recipe. */
vlp_status vlp_recipe_write(const char *path, const vlp_settings *settings);
/* The same for a recipe that is read over other settings than the defaults: with those that differ from
 * them. */
vlp_status vlp_recipe_write_over(const char *path, const vlp_settings *settings,
                                 const vlp_settings *start);
vlp_status vlp_recipe_parse(vlp_settings *settings, const char *name, const char *text, size_t size);

/* The lines of such a file, without the meaning of their values: `take` receives each `key = value` with
 * its place ("recipe.ini:12"). A key given twice is an error before `take` sees it; an unknown key is
 * for `take` to refuse. The second reads a file of at most 1 MiB. */
typedef vlp_status (*vlp_recipe_take)(void *user, const char *where, const char *key, const char *value);
vlp_status vlp_recipe_each(const char *name, const char *text, size_t size, vlp_recipe_take take,
                           void *user);
vlp_status vlp_recipe_each_of(const char *path, vlp_recipe_take take, void *user);

/* Checks what no single range can say: relation prediction needs cross-entropy, n3 and losses over all
 * entities need a dot model, and so on. */
vlp_status vlp_settings_check(const vlp_settings *settings);

#endif
