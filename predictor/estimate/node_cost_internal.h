/* What the files of node_cost share. */
#ifndef CD_NODE_COST_INTERNAL_H
#define CD_NODE_COST_INTERNAL_H
#include "predictor/estimate/node_cost.h"

/* Seconds that stand alone: known, without a spread. */
void cd_node_cost_known(cd_node_cost_entry *n, double seconds, cd_cost_source from);
/* Bytes that a node moves, and those of its result: the file's, else of the task's tensors; -1: unknown. */
int64_t cd_node_cost_moved(const cd_network_graph *g, const cd_task_registry *t, uint32_t node, int64_t *result);

/* ---- node_cost_library.c ---- */
typedef struct cd_node_cost_wait {
    bool known[CD_N_LIBRARY_OP_KIND];
    double seconds[CD_N_LIBRARY_OP_KIND]; /* 0 for products: their tables have no small ones */
} cd_node_cost_wait;
/* What a library operator takes in a queue of `d`, with its interval, into *n. w: zeroed at first, of one model and device. Errors: those
 * of cd_library_op_model_predict. */
cdmpp_status cd_node_cost_library(const cd_library_op_model *m, const cd_library_op_record *r, const cd_device *d, cd_node_cost_wait *w,
                                  cd_node_cost_entry *n, cdmpp_err *err);
/* Times of tasks alone become times in a network. */
void cd_node_cost_in_place(cd_node_cost *c, const cd_network_graph *g, const cd_node_cost_scaling_law *l);
/* The same by what each moves, at a rate that was measured. */
void cd_node_cost_refill(cd_node_cost *c, const cd_network_graph *g, double bytes_per_s);
#endif
