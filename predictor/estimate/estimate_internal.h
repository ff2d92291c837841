/* What the files of predictor/estimate share among themselves. */
#ifndef CD_PREDICTOR_ESTIMATE_INTERNAL_H
#define CD_PREDICTOR_ESTIMATE_INTERNAL_H
#include "predictor/estimate/node_cost.h"
#include "predictor/estimate/schedule_db.h"

/* What the files of node_cost share. */

/* Seconds that stand alone: known, without a spread. */
void cd_node_cost_known(cd_node_cost_entry *n, double seconds, cd_cost_source from);
/* Bytes that a node moves, and those of its result: the file's, else of the task's tensors; -1:
 * unknown. */
int64_t cd_node_cost_moved(const cd_network_graph *g, const cd_task_registry *t, uint32_t node,
                           int64_t *result);

/* ---- node_cost_size.c ---- */
typedef struct cd_node_cost_wait {
    bool known[CD_N_LIBRARY_OP_KIND];
    double seconds[CD_N_LIBRARY_OP_KIND]; /* 0 for products: their tables have no small ones */
} cd_node_cost_wait;
/* What a library operator takes in a queue of `d`, with its interval, into *n. w: zeroed at first,
 * of one model and device. Errors: those of cd_library_op_model_predict. */
cdmpp_status cd_node_cost_library(const cd_library_op_model *m, const cd_library_op_record *r,
                                  const cd_device *d, cd_node_cost_wait *w, cd_node_cost_entry *n,
                                  cdmpp_err *err);
/* A matrix product in 16 or 8 bits, or what is done element by element in 16; false: something
 * else. */
bool cd_node_cost_narrow_of(const cd_te_dag *d, cd_llm_op_record *out);
/* Its time on a GPU; false: it is no such task, or the model cannot answer. */
bool cd_node_cost_narrow(const cd_llm_op_asker *a, const cd_task *t, const cd_device *d,
                         cd_node_cost_entry *n);
/* Nodes of one such task are off alike: they share `like`, numbers from here on. */
void cd_node_cost_narrow_alike(cd_node_cost *c, const cd_network_graph *g, uint32_t like);
/* Times of tasks alone become times in a network. */
void cd_node_cost_in_place(cd_node_cost *c, const cd_network_graph *g,
                           const cd_node_cost_scaling_law *l);
/* The same by what each moves, at a rate that was measured. */
void cd_node_cost_refill(cd_node_cost *c, const cd_network_graph *g, double bytes_per_s);

/* What the files of schedule_db share. */

/* A measured record of a task, the best one too. */
typedef struct cd_schedule_db_trial {
    uint64_t hash; /* of its text */
    char *line;
    size_t len;
} cd_schedule_db_trial;

/* One task. Its texts are one block each, so that a faster record takes the place of a slower one
 * without growing the database. */
typedef struct cd_schedule_db_slot {
    cd_schedule_db_entry s;
    char *key, *line, *origin;
    uint32_t reading; /* in which it came; 0: added */
    bool says;        /* its line has the origin already */
    /* (n_tried) those of the least hashes, ascending: a draw that no order of reading changes */
    cd_schedule_db_trial *tried;
    uint32_t n_tried;
    uint64_t of_tried;           /* all that were seen */
    cd_schedule_db_line *slower; /* (CD_SCHEDULE_DB_SLOWER + 1) what `s` shows */
} cd_schedule_db_slot;

struct cd_schedule_db {
    cd_schedule_db_slot **entry; /* (n) in the order of the keys */
    size_t n, cap;
    uint32_t readings;
};

/* How candidates are looked for. */
typedef struct cd_schedule_db_search {
    uint32_t trials;  /* candidates */
    uint32_t drawn;   /* of them, those that are drawn */
    uint32_t round;   /* mutations before the next are made of who is best by then */
    uint32_t parents; /* those best */
    /* of which the whole model has the last word; 0: it alone is asked, about all */
    uint32_t last;
} cd_schedule_db_search;
/* cd_schedule_db_predict by another plan than its own. */
cdmpp_status cd_schedule_db_predict_by(cd_schedule_db *b, const cd_model *m,
                                       const cd_task_registry *t, const char *const *key, size_t n,
                                       const cd_schedule_db_pick *o,
                                       const cd_schedule_db_search *plan, cd_threads *pool,
                                       cdmpp_err *err);

/* A task's schedule; in the place of one that is there; what was tried in the same reading stays.
 * Everything is copied. Errors: ENOMEM, nothing has changed then. */
cdmpp_status cd_schedule_db_put(cd_schedule_db *b, cd_str key, cd_str line, cd_str origin,
                                bool says, double measured_s, uint32_t reading, cdmpp_err *err);
#endif
