/* The entities that may be answers: options of predict and mine, and the file of candidates that eval
 * takes too. */
#ifndef VLP_CLI_CANDIDATES_H
#define VLP_CLI_CANDIDATES_H

#include "cli.h"
#include "json.h"

enum { KEY_CANDIDATES = 0x300, KEY_SEEN, KEY_WHERE };
enum { CANDIDATES_CONDITIONS = 32 };

typedef struct chosen_candidates {
    const char *file; /* of names; NULL: none */
    bool seen;
    const char *where[CANDIDATES_CONDITIONS]; /* RELATION=ENTITY each */
    int32_t where_count;
    /* The same as ids, of candidates_find. */
    int32_t *list;
    int64_t list_count;
    vlp_condition conditions[CANDIDATES_CONDITIONS];
    vlp_candidate_options options;
} chosen_candidates;

/* Rows of an option table. */
#define OPTION_CANDIDATES                                                                               \
    {"candidates",                                                                                      \
     KEY_CANDIDATES,                                                                                    \
     "FILE",                                                                                            \
     0,                                                                                                 \
     "Only entities of this file are answers (- for standard input): a name or label on each line",     \
     0},                                                                                                \
        {"seen",                                                                                        \
         KEY_SEEN,                                                                                      \
         NULL,                                                                                          \
         0,                                                                                             \
         "Only entities that the graph has in that place of the relation are answers",                  \
         0},                                                                                            \
    {                                                                                                   \
        "where", KEY_WHERE, "RELATION=ENTITY", 0,                                                       \
            "Only entities x with the known triple (x, RELATION, ENTITY) are answers, or with "         \
            "^RELATION=ENTITY those with (ENTITY, RELATION, x); repeated: all of them hold",            \
            0                                                                                           \
    }
error_t candidates_parse(int key, char *value, struct argp_state *state, chosen_candidates *chosen);

/* Whether an option was given. */
bool candidates_chosen(const chosen_candidates *chosen);
/* Reads the file and finds the names; chosen->options is then what the library takes. False on failure,
 * after a message. */
bool candidates_find(chosen_candidates *chosen, const vlp_dataset *data);
void candidates_free(chosen_candidates *chosen);

/* What to do where no candidate is left. */
#define CANDIDATES_NEXT "loosen --candidates, --seen or --where"

/* "entities of names.txt, seen in that place of the relation, with (x, type, drug)"; printed. */
void candidates_print(const chosen_candidates *chosen, const vlp_dataset *data);
/* "restriction":{...}; nothing where no option was given. */
void candidates_json(json_out *json, const chosen_candidates *chosen, const vlp_dataset *data);

/* Reads the entities named in a file, one per line (text after a tab is ignored); to be freed. NULL on
 * failure, after a message. */
int32_t *candidates_read(int64_t *count, const vlp_dataset *data, const char *path);

#endif
