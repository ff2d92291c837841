/* node_cost_bias -- how far off a model is for the fastest program of a task, as its training found (learner/train/selection_bias.h).
 *
 *   header "best" ──> ratio of tasks that it was trained on, ratio of others, names of the former
 *
 * A model without such a header, or of too few tasks, says nothing: ratio 1, spread -1. Read-only once read. */
#ifndef CD_NODE_COST_BIAS_H
#define CD_NODE_COST_BIAS_H
#include <stdbool.h>

#include "learner/model/model.h"

typedef struct cd_node_cost_bias {
    double ratio[2], spread[2];  /* [0] tasks that it does not know, [1] tasks that it was trained on */
    double within[2];           /* 0: the header does not say; else of a program whose slower ones are known: */
    double among[2], among_spread[2];
    uint64_t *task;             /* (n) sorted, owned */
    size_t n;
} cd_node_cost_bias;

/* device: whose figures are taken where the header has them apart; NULL, and for others: those of all devices. Errors: ESCHEMA,
 * ERANGE (the header), ENOMEM. Free after an error too. */
cdmpp_status cd_node_cost_bias_read(const cd_model *m, const char *device, cd_node_cost_bias *out, cdmpp_err *err);
void cd_node_cost_bias_free(cd_node_cost_bias *b);
/* The fastest of a task's records: its logarithm in the mean, given that the slower ones (log_s[1..n), each of them `times`
 * others) were predicted as they were, and it was predicted log_s[0]. */
double cd_node_cost_bias_correct(const cd_node_cost_bias *b, bool known, const double *log_s, size_t n, double times);
/* Was the model trained on programs of this task on this device of its? */
bool cd_node_cost_bias_knows(const cd_node_cost_bias *b, const char *key, const char *device);
#endif
