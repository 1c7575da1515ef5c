/* Predictions, their explanations, and what they would be without some known triples. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "handlers.h"
#include "objects.h"
#include "results_json.h"
#include "work.h"

void answer_failure(http_reply *reply, vlp_status status) {
    switch (status) {
    case VLP_ERROR_STOPPED:
        reply->retry_after = 1;
        reply_error(reply, 503,
                    "The answer took longer than a request may; try again, or ask for less.");
        return;
    case VLP_ERROR_MEMORY:
        reply->retry_after = 1;
        reply_error(reply, 503, "The server is short of memory; try again.");
        return;
    case VLP_ERROR_ARGUMENT:
        reply_error(reply, 400, "The request makes no sense: %s.", vlp_error_message());
        return;
    case VLP_ERROR_UNKNOWN:
        reply_error(reply, 404, "A name is not known: %s.", vlp_error_message());
        return;
    case VLP_OK:
    case VLP_ERROR_IO:
    case VLP_ERROR_FORMAT:
    case VLP_ERROR_DIVERGED:
    case VLP_ERROR_DEVICE:
    case VLP_ERROR_EXISTS:
    case VLP_ERROR_BUSY:
        break;
    }
    reply_error(reply, 500, "The library failed: %s.", vlp_error_message());
}

/* ---- Queries ------------------------------------------------------------------------------------- */

/* Reads `head` or `tail`, and `relation`. */
static bool read_query(vlp_query *out, http_handling *handling) {
    const http_request *request = handling->request;
    http_reply *reply = handling->reply;
    const char *head = request_text(request, reply, "head");
    const char *tail = request_text(request, reply, "tail");
    if (!reply_failed(reply) && (head != NULL) == (tail != NULL))
        reply_error(reply, 400, "Give the entity that is known, either 'head' or 'tail'.");
    const char *relation = reply_failed(reply) ? NULL : request_needed(request, reply, "relation");
    if (!relation) return false;
    int32_t entity = served_entity(handling->run, reply, head ? head : tail);
    int32_t id = entity < 0 ? -1 : served_relation(handling->run, reply, relation);
    *out = (vlp_query){entity, head ? id : id + handling->run->relations, -1};
    return id >= 0;
}

/* Also the `answer`. Where the triple is known, it is left out of the graph. */
static bool read_answer(vlp_query *out, int32_t *answer, http_handling *handling) {
    const char *name = request_needed(handling->request, handling->reply, "answer");
    if (!name || !read_query(out, handling)) return false;
    *answer = served_entity(handling->run, handling->reply, name);
    if (*answer < 0) return false;
    int32_t relations = handling->run->relations;
    bool tail = out->relation < relations;
    vlp_triple triple = {tail ? out->entity : *answer, out->relation % relations,
                         tail ? *answer : out->entity};
    out->left_out = served_edge(handling->run, triple);
    return true;
}

/* ---- Restrictions -------------------------------------------------------------------------------- */

/* A relation by name, or with ^ before it inverted, where no relation has the whole name. */
static int32_t condition_relation(const served *run, http_reply *failure, const char *name) {
    int32_t relation;
    if (vlp_dataset_find_relation(&relation, run->data, name) == VLP_OK) return relation;
    relation = served_relation(run, failure, name + (name[0] == '^'));
    return relation < 0 ? -1 : relation + run->relations;
}

static bool add_condition(asked_prediction *to, http_handling *handling, const char *relation,
                          const char *entity) {
    if (to->condition_count == PREDICTION_CONDITIONS) {
        reply_error(handling->reply, 400, "The parameter 'where' is given more than %d times.",
                    PREDICTION_CONDITIONS);
        return false;
    }
    vlp_condition *condition = &to->conditions[to->condition_count];
    condition->relation = condition_relation(handling->run, handling->reply, relation);
    if (condition->relation < 0) return false;
    condition->entity = served_entity(handling->run, handling->reply, entity);
    if (condition->entity < 0) return false;
    to->condition_count++;
    return true;
}

/* "relation=entity"; names may contain '=': the first one behind a known relation separates, of the
 * first few that there are, since each costs a search for the nearest relation. */
enum { SEPARATORS = 8 };
static bool add_where(asked_prediction *to, http_handling *handling, const char *text) {
    char *copy = strdup(text);
    bool added = false;
    char *at = copy ? strchr(copy, '=') : NULL;
    for (int i = 0; i < SEPARATORS && at && !added; i++, at = strchr(at + 1, '=')) {
        *at = '\0';
        http_reply ignored = {0};
        struct http_handling trial = *handling;
        trial.reply = &ignored;
        added = add_condition(to, &trial, copy, at + 1);
        /* What is wrong with the first is what is said. */
        if (!added && !reply_failed(handling->reply)) {
            reply_free(handling->reply);
            *handling->reply = ignored;
        } else {
            reply_free(&ignored);
        }
        *at = '=';
    }
    free(copy);
    if (added)
        reply_free(handling->reply);
    else if (!reply_failed(handling->reply))
        reply_error(handling->reply, 400, "The parameter 'where' takes relation=entity.");
    return added;
}

static bool read_conditions(asked_prediction *out, http_handling *handling) {
    int index = -1;
    for (const char *text; (text = request_next(handling->request, "where", &index));)
        if (!add_where(out, handling, text)) return false;
    body_value list = body_member(handling->request->body, "where");
    for (size_t i = 0; i < list.count; i++) {
        body_value item = body_item(list.json, i);
        body_value relation = {0}, entity = {0};
        if (item.kind == BODY_OBJECT) {
            relation = body_member(item.json, "relation");
            entity = body_member(item.json, "entity");
        }
        if (relation.kind != BODY_TEXT || entity.kind != BODY_TEXT) {
            reply_error(handling->reply, 400,
                        "Each item of 'where' is an object with 'relation' and 'entity'.");
            return false;
        }
        if (!add_condition(out, handling, relation.text, entity.text)) return false;
    }
    if (list.kind != BODY_LIST && list.kind != BODY_MISSING)
        reply_error(handling->reply, 400, "The parameter 'where' has to be a list of objects.");
    return !reply_failed(handling->reply);
}

static bool read_candidates(asked_prediction *out, http_handling *handling) {
    body_value list = body_member(handling->request->body, "candidates");
    if (list.kind == BODY_MISSING) return true;
    if (list.kind != BODY_LIST || list.count == 0) {
        reply_error(handling->reply, 400,
                    "The parameter 'candidates' has to be a list of names, at least one.");
        return false;
    }
    out->candidates = malloc(list.count * sizeof *out->candidates);
    if (!out->candidates) {
        answer_failure(handling->reply, VLP_ERROR_MEMORY);
        return false;
    }
    for (size_t i = 0; i < list.count; i++) {
        body_value name = body_item(list.json, i);
        if (name.kind != BODY_TEXT)
            reply_error(handling->reply, 400, "The parameter 'candidates' has to be a list of names.");
        int32_t entity =
            name.kind == BODY_TEXT ? served_entity(handling->run, handling->reply, name.text) : -1;
        if (entity < 0) return false;
        out->candidates[out->candidate_count++] = entity;
    }
    return true;
}

/* ---- Predictions --------------------------------------------------------------------------------- */

bool prediction_read(asked_prediction *out, http_handling *handling) {
    const http_request *request = handling->request;
    http_reply *reply = handling->reply;
    *out = (asked_prediction){.count = 10};
    const char *known = request_text(request, reply, "known");
    if (!reply_failed(reply) && known && strcmp(known, "mark") != 0 && strcmp(known, "hide") != 0)
        reply_error(reply, 400, "The parameter 'known' takes mark or hide.");
    if (reply_failed(reply) || !request_integer(&out->count, request, reply, "k", 1, PREDICTION_LIMIT) ||
        !request_bool(&out->seen, request, reply, "seen") || !read_query(&out->query, handling) ||
        !read_conditions(out, handling) || !read_candidates(out, handling)) {
        prediction_free(out);
        return false;
    }
    out->hide = known && known[0] == 'h';
    out->restricted = out->candidates || out->condition_count > 0;
    return true;
}

void prediction_free(asked_prediction *prediction) {
    free(prediction->candidates);
    prediction->candidates = NULL;
}

bool prediction_fits(const asked_prediction *left, const asked_prediction *right) {
    return !left->restricted && !right->restricted && left->hide == right->hide &&
           left->seen == right->seen;
}

static void prediction_json(http_reply *reply, const served *run, const vlp_answers *answers,
                            int32_t wanted) {
    json_out json = reply_begin(reply, 200);
    json_object(&json, NULL);
    query_json(&json, run, answers->query);
    weights_json(&json, run);
    json_integer(&json, "candidates", answers->candidate_count);
    json_array(&json, "predictions");
    for (int32_t i = 0; i < answers->prediction_count && i < wanted; i++) {
        const vlp_prediction *found = &answers->predictions[i];
        json_object(&json, NULL);
        json_integer(&json, "rank", i + 1);
        entity_json(&json, "entity", run, found->entity);
        json_number(&json, "score", found->score);
        component_parts_json(&json, found->parts);
        json_bool(&json, "known", found->known);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    reply_end(reply);
}

/* The filtered, realistic rank of an entity in a list of answers that has the known ones; NaN where the
 * list may end before it. */
static double rank_in(const vlp_answers *answers, int32_t entity, int32_t limit) {
    int32_t at = 0, count = answers->prediction_count;
    while (at < count && answers->predictions[at].entity != entity) at++;
    if (at == count) return NAN;
    double score = answers->predictions[at].score, above = 0, tied = 0;
    if (count == limit && answers->predictions[count - 1].score == score) return NAN;
    for (int32_t i = 0; i < count; i++) {
        const vlp_prediction *other = &answers->predictions[i];
        if (other->known || i == at) continue;
        above += other->score > score;
        tied += other->score == score;
    }
    return 1 + above + tied / 2;
}

void predictions_answer(const asked_prediction *const *predictions, http_reply *const *replies,
                        int count, const served *run, const vlp_observer *observer) {
    const asked_prediction *first = predictions[0];
    vlp_candidate_options candidates = VLP_CANDIDATE_OPTIONS_INIT;
    candidates.entities = first->candidates;
    candidates.entity_count = first->candidate_count;
    candidates.conditions = first->conditions;
    candidates.condition_count = first->condition_count;
    candidates.seen = first->seen;
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.known = !first->hide;
    options.observer = observer;
    options.candidates = first->restricted || first->seen ? &candidates : NULL;
    /* The best of more are the best of fewer. */
    options.count = 1;
    vlp_query *queries = malloc((size_t)count * sizeof *queries);
    vlp_predictions *answers = NULL;
    vlp_status status = queries ? VLP_OK : VLP_ERROR_MEMORY;
    for (int i = 0; status == VLP_OK && i < count; i++) {
        queries[i] = predictions[i]->query;
        if (predictions[i]->count > options.count) options.count = predictions[i]->count;
    }
    if (status == VLP_OK) status = vlp_run_predict(&answers, run->run, queries, count, &options);
    for (int i = 0; i < count; i++) {
        const vlp_answers *found = status == VLP_OK ? vlp_predictions_get(answers, i) : NULL;
        if (found && predictions[i]->rank)
            *predictions[i]->rank = rank_in(found, predictions[i]->rank_of, options.count);
        else if (found)
            prediction_json(replies[i], run, found, predictions[i]->count);
        else
            answer_failure(replies[i], status);
    }
    vlp_predictions_free(answers);
    free(queries);
}

/* ---- Explanations -------------------------------------------------------------------------------- */

static void references_json(json_out *json, const served *run, const vlp_answers *answers) {
    const double *contributions = answers->predictions[0].contributions;
    json_array(json, "references");
    for (int32_t i = 0; i < answers->reference_count; i++) {
        json_object(json, NULL);
        triple_json(json, "triple", run, answers->references[i].triple);
        json_integer(json, "distance", answers->references[i].distance);
        json_number(json, "contribution", contributions ? contributions[i] : NAN);
        json_end_object(json);
    }
    json_end_array(json);
}

static void paths_json(json_out *json, const served *run, const vlp_prediction *prediction) {
    json_array(json, "paths");
    for (int32_t i = 0; i < prediction->path_count; i++) {
        const vlp_path *path = &prediction->paths[i];
        json_object(json, NULL);
        json_number(json, "weight", path->weight);
        json_array(json, "triples");
        for (int32_t j = 0; j < path->count; j++) {
            json_object(json, NULL);
            triple_json(json, "triple", run, path->triples[j].triple);
            json_bool(json, "forward", path->triples[j].forward);
            json_end_object(json);
        }
        json_end_array(json);
        json_end_object(json);
    }
    json_end_array(json);
}

static void support_json(json_out *json, const served *run, const vlp_support *support) {
    if (!support || support->count == 0) {
        json_string(json, "without", NULL);
        return;
    }
    json_object(json, "without");
    json_array(json, "triples");
    for (int32_t i = 0; i < support->count; i++) triple_json(json, NULL, run, support->triples[i]);
    json_end_array(json);
    json_number(json, "rank_before", support->rank_before);
    json_number(json, "rank", support->rank);
    json_number(json, "score", support->score);
    json_number(json, "path", support->path);
    json_end_object(json);
}

static void explanation_json(http_reply *reply, const served *run, const vlp_answers *answers,
                             double rank) {
    const vlp_prediction *prediction = &answers->predictions[0];
    json_out json = reply_begin(reply, 200);
    json_object(&json, NULL);
    query_json(&json, run, answers->query);
    weights_json(&json, run);
    json_object(&json, "prediction");
    entity_json(&json, "entity", run, prediction->entity);
    json_number(&json, "score", prediction->score);
    component_parts_json(&json, prediction->parts);
    json_bool(&json, "known", prediction->known);
    json_number(&json, "rank", rank);
    json_end_object(&json);
    references_json(&json, run, answers);
    paths_json(&json, run, prediction);
    support_json(&json, run, prediction->support);
    json_end_object(&json);
    reply_end(reply);
}

/* Asks for the best `count` answers, and where the answer is among them; together with predictions where
 * that is possible. False: the reply says why it failed. */
static bool rank_among(double *out, http_handling *handling, vlp_query query, int32_t entity,
                       int32_t count) {
    asked_prediction asked = {.query = query, .count = count, .rank = out, .rank_of = entity};
    const asked_prediction *one = &asked;
    if (count > PREDICTION_LIMIT || !handling->workers ||
        !workers_predict(handling->workers, &asked, handling->reply, handling))
        predictions_answer(&one, &handling->reply, 1, handling->run, handling->observer);
    return !reply_failed(handling->reply);
}

/* The rank of the answer. The search for its support finds it. Otherwise the best answers are asked for,
 * which costs much less than vlp_run_what_if; that is asked where it is not among them. */
static bool find_rank(double *out, http_handling *handling, const vlp_answers *answers) {
    const vlp_prediction *prediction = &answers->predictions[0];
    if (prediction->support) {
        *out = prediction->support->rank_before;
        return true;
    }
    static const int32_t limits[] = {PREDICTION_LIMIT, 50000};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        *out = NAN;
        if (!rank_among(out, handling, answers->query, prediction->entity, limits[i])) return false;
        if (!isnan(*out)) return true;
    }
    vlp_what_if found = {0};
    vlp_status status =
        vlp_run_what_if(&found, handling->run->run, answers->query, prediction->entity, NULL, 0, NULL);
    if (status != VLP_OK) answer_failure(handling->reply, status);
    *out = found.rank_before;
    return status == VLP_OK;
}

void answer_explain(http_handling *handling) {
    vlp_predict_options options = VLP_PREDICT_OPTIONS_INIT;
    options.observer = handling->observer;
    vlp_query query;
    int32_t answer;
    if (!request_integer(&options.paths, handling->request, handling->reply, "paths", 0,
                         VLP_MAX_PATHS) ||
        !read_answer(&query, &answer, handling))
        return;
    vlp_predictions *answers = NULL;
    double rank = NAN;
    vlp_status status = vlp_run_explain(&answers, handling->run->run, &query, &answer, 1, &options);
    if (status != VLP_OK)
        answer_failure(handling->reply, status);
    else if (find_rank(&rank, handling, vlp_predictions_get(answers, 0)))
        explanation_json(handling->reply, handling->run, vlp_predictions_get(answers, 0), rank);
    vlp_predictions_free(answers);
}

/* ---- Without some triples ------------------------------------------------------------------------ */

/* Reads a triple of the graph, by names. */
static bool read_triple(vlp_triple *out, int64_t *edge, http_handling *handling, body_value item) {
    static const char *const places[] = {"head", "relation", "tail"};
    const char *texts[3];
    *out = (vlp_triple){-1, -1, -1};
    for (int i = 0; i < 3; i++) {
        body_value text = {0};
        if (item.kind == BODY_OBJECT) text = body_member(item.json, places[i]);
        texts[i] = text.text;
        if (text.kind == BODY_TEXT) continue;
        reply_error(handling->reply, 400,
                    "Each item of 'without' is an object with 'head', 'relation' and 'tail'.");
        return false;
    }
    out->head = served_entity(handling->run, handling->reply, texts[0]);
    if (out->head >= 0) out->relation = served_relation(handling->run, handling->reply, texts[1]);
    if (!reply_failed(handling->reply))
        out->tail = served_entity(handling->run, handling->reply, texts[2]);
    if (reply_failed(handling->reply)) return false;
    *edge = served_edge(handling->run, *out);
    if (*edge < 0)
        reply_error(handling->reply, 400, "The graph has no triple (%.80s, %.80s, %.80s) to leave out.",
                    texts[0], texts[1], texts[2]);
    return *edge >= 0;
}

/* Reads the triples to leave out, each once; the query's own is left out in any case. */
static bool read_without(vlp_triple *out, int32_t *count, http_handling *handling, int64_t own) {
    body_value list = body_member(handling->request->body, "without");
    if (list.kind != BODY_LIST || list.count > VLP_MAX_REMOVED) {
        reply_error(handling->reply, 400,
                    "The parameter 'without' has to be a list of at most %d triples.", VLP_MAX_REMOVED);
        return false;
    }
    int64_t edges[VLP_MAX_REMOVED];
    *count = 0;
    for (size_t i = 0; i < list.count; i++) {
        if (!read_triple(&out[*count], &edges[*count], handling, body_item(list.json, i))) return false;
        bool repeated = edges[*count] == own;
        for (int32_t j = 0; j < *count; j++) repeated |= edges[j] == edges[*count];
        if (!repeated) ++*count;
    }
    return true;
}

static void state_json(json_out *json, const char *key, double rank, double score, const double *parts) {
    json_object(json, key);
    json_number(json, "rank", rank);
    json_number(json, "score", score);
    component_parts_json(json, parts);
    json_end_object(json);
}

void answer_what_if(http_handling *handling) {
    vlp_triple triples[VLP_MAX_REMOVED];
    int32_t count, answer;
    vlp_query query;
    if (!read_answer(&query, &answer, handling) ||
        !read_without(triples, &count, handling, query.left_out))
        return;
    vlp_what_if found;
    vlp_status status = vlp_run_what_if(&found, handling->run->run, query, answer, triples, count, NULL);
    if (status != VLP_OK) {
        answer_failure(handling->reply, status);
        return;
    }
    json_out json = reply_begin(handling->reply, 200);
    json_object(&json, NULL);
    state_json(&json, "before", found.rank_before, found.score_before, found.parts_before);
    state_json(&json, "after", found.rank, found.score, found.parts);
    json_end_object(&json);
    reply_end(handling->reply);
}
