/* What each address of the API answers. A handler reads the parameters of a request and fills its reply;
 * it may be called by any thread. */
#ifndef VLP_SERVER_HANDLERS_H
#define VLP_SERVER_HANDLERS_H

#include "served.h"

typedef struct http_handling {
    served *run;
    const http_request *request;
    http_reply *reply;
    const vlp_observer *observer; /* asks to stop when the time of the request is over */
    double uptime;                /* seconds */
    double deadline;              /* of a request that a worker answers, on the clock of work_now */
    struct work_force *workers;   /* whose thread of predictions it may use; NULL: none */
} http_handling;

typedef void handler(http_handling *handling);

/* handlers_graph.c */
handler answer_health, answer_run, answer_entities, answer_entity, answer_relations;
/* handlers_query.c */
handler answer_explain, answer_what_if;
/* evaluation.c: starts the evaluation on the first demand and says how far it is. */
handler answer_evaluation;
/* map.c */
handler answer_map;

/* A prediction is read first, and answered together with others. */
enum { PREDICTION_CONDITIONS = 16, PREDICTION_LIMIT = 1000 };
typedef struct asked_prediction {
    vlp_query query;
    int32_t count;
    bool hide, seen;
    bool restricted; /* by candidates or conditions: it is not answered together with others */
    int32_t *candidates;
    int64_t candidate_count;
    vlp_condition conditions[PREDICTION_CONDITIONS];
    int32_t condition_count;
    /* Not a reply is wanted, but the rank of an entity: NaN where it is not among the answers. NULL: a
     * reply. */
    double *rank;
    int32_t rank_of;
} asked_prediction;
/* False: the reply says what is wrong. */
bool prediction_read(asked_prediction *out, http_handling *handling);
void prediction_free(asked_prediction *prediction);
/* Whether two may be answered by one call of the library. */
bool prediction_fits(const asked_prediction *left, const asked_prediction *right);
/* Answers predictions that fit, of the same run: predictions[i] to replies[i]. */
void predictions_answer(const asked_prediction *const *predictions, http_reply *const *replies,
                        int count, const served *run, const vlp_observer *observer);

/* The reply to a call of the library that failed. */
void answer_failure(http_reply *reply, vlp_status status);

#endif
