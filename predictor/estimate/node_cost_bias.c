/* What a model's header says about its error on the fastest program of a task. The fastest of many
 * measured programs was lucky, so that its prediction is too high on average; training measured by
 * how much (learner/train/selection_bias.h). */
#include "predictor/estimate/estimate.h"

#include <math.h>
#include <string.h>

enum { FEW = 8 }; /* tasks that say too little about others */

/* Older model files say nothing of others. */
static cdmpp_status read_among(const cd_json *o, cd_node_cost_bias *out, int known,
                               cdmpp_err *err) {
    out->among[known] = 1;
    if (!cd_json_get(o, "within")) return CDMPP_OK;
    CD_TRY(cd_json_need_real(o, "within", 0, 1e3, &out->within[known], err));
    CD_TRY(cd_json_need_real(o, "among", 1e-6, 1e6, &out->among[known], err));
    return cd_json_need_real(o, "among_spread", 0, 1e3, &out->among_spread[known], err);
}

/* One object of the header into index `known`. */
static cdmpp_status read_one(const cd_json *best, const char *name, cd_node_cost_bias *out,
                             int known, cdmpp_err *err) {
    double *ratio = &out->ratio[known], *spread = &out->spread[known];
    const cd_json *o;
    CD_TRY(cd_json_need(best, name, &o, err));
    uint64_t n;
    CD_TRY(cd_err_key(err, cd_json_need_count(o, "n", &n, err), name));
    CD_TRY(cd_err_key(err, cd_json_need_real(o, "ratio", 1e-6, 1e6, ratio, err), name));
    CD_TRY(cd_err_key(err, cd_json_need_real(o, "spread", 0, 1e3, spread, err), name));
    CD_TRY(cd_err_key(err, read_among(o, out, known, err), name));
    if (n >= FEW) return CDMPP_OK;
    *ratio = 1;
    *spread = -1;
    out->within[known] = 0;
    return CDMPP_OK;
}

/* Those of the device in the place of all devices'. */
static cdmpp_status read_part(const cd_json *best, const char *all, const char *each,
                              const char *device, cd_node_cost_bias *out, int known,
                              cdmpp_err *err) {
    const cd_json *of = cd_json_get(best, each);
    if (of && device && cd_json_get(of, device))
        return cd_err_key(err, read_one(of, device, out, known, err), each);
    return read_one(best, all, out, known, err);
}

static cdmpp_status read_bias(const cd_json *header, const char *device, cd_node_cost_bias *out,
                              cdmpp_err *err) {
    const cd_json *best = cd_json_get(header, "best"), *list;
    if (!best) return CDMPP_OK;
    CD_TRY(read_part(best, "validation", "validation_of", device, out, 0, err));
    CD_TRY(read_part(best, "train", "train_of", device, out, 1, err));
    CD_TRY(cd_json_need(best, "tasks", &list, err));
    return cd_err_key(err, cd_trained_tasks_read(list, &out->tasks, err), "tasks");
}

cdmpp_status cd_node_cost_bias_read(const cd_model *m, const char *device, cd_node_cost_bias *out,
                                    cdmpp_err *err) {
    const char *text = cd_model_header(m);
    const cd_json *header;
    cd_arena a = {0};
    const cd_here *here = cd_model_here(m);
    *out = (cd_node_cost_bias){.ratio = {1, 1},
                               .spread = {-1, -1},
                               .picks =
                                   here && device && !strcmp(device, here->name) ? here->picks : 0};
    cdmpp_status st = cd_json_parse(&a, text, strlen(text), &header, err);
    if (!st) st = cd_err_key(err, read_bias(header, device, out, err), "best");
    cd_arena_free(&a);
    return st;
}

void cd_node_cost_bias_free(cd_node_cost_bias *b) { cd_trained_tasks_free(&b->tasks); }

double cd_node_cost_bias_correct(const cd_node_cost_bias *b, bool known, const double *log_s,
                                 size_t n, double times) {
    double stands[CD_SCHEDULE_DB_SLOWER + 1];
    for (size_t i = 0; i < n; i++) stands[i] = times;
    return cd_order_stat_mean(log_s, stands, n, 0, b->within[known]) + log(b->among[known]);
}

bool cd_node_cost_bias_knows(const cd_node_cost_bias *b, const char *key, const char *device) {
    return cd_trained_tasks_knows(&b->tasks, key, device);
}
