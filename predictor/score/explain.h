/* explain -- one record, and where its predicted time is thought to go.
 *
 *   line -> loop nest, rows, leaves -+- model ----------> seconds
 *                                    +- learner/share --> share of a row, of a leaf
 *                                    '- model, with a group of columns as in the middle of training
 *                                    -> seconds
 *
 * (1) Shares are >= 0 and sum to 1, over rows and over leaves, so share * latency_s sums to
 *     latency_s; what a share is: learner/model/model.h, docs/reference/explain.md.
 * (2) A group is asked about by itself: all its columns in all rows and leaves take the value
 *     halfway between the least and the largest of training. These do not add up.
 * Everything of a cd_explanation is in its arena. Asks the heap; one thread, model and tasks are
 * shared. */
#ifndef CD_EXPLAIN_H
#define CD_EXPLAIN_H
#include "base/core/core.h"
#include "predictor/score/scorer.h"

enum { CD_EXPLAIN_GROUPS = 5 };

typedef struct cd_explain_group {
    const char *name; /* as in features/rows/leaf_cols.def; "buffers": the five blocks */
    size_t n_col;
    double latency_s; /* with the group as in the middle of training */
} cd_explain_group;

typedef struct cd_explanation {
    cd_model_prediction pred;
    cd_unlike unlike; /* why it is out of range */
    const char *workload_key, *device;
    const char *nest; /* lines, as cdmpp-extract --print */
    size_t n_row, n_leaf;
    double *row_share;        /* (n_row) */
    double *leaf_share;       /* (n_leaf) */
    const int32_t *leaf_row;  /* (n_leaf) */
    const int32_t *leaf_line; /* (n_leaf) its line of the nest, from 0 */
    const char **buffer;      /* (n_row) name of the buffer that the row is about */
    bool has_groups;          /* not of a model of version 1 */
    cd_explain_group group[CD_EXPLAIN_GROUPS];
    cd_arena arena;
} cd_explanation;

/* Free *out after an error too. Errors: those of cd_scored.st; EUNSUPPORTED (a model that reads
 * steps); ENOMEM. */
cdmpp_status cd_explain(const cd_model *m, const cd_task_registry *tasks,
                        const cd_device_match_options *which, const cd_predict_line *line,
                        cd_explanation *out, cdmpp_err *err);
void cd_explain_free(cd_explanation *e);

/* The nest with shares before it, then rows and groups. */
void cd_explain_text(cd_buf *b, const cd_explanation *e);
/* One object of schema cdmpp.explain. */
void cd_explain_json(cd_buf *b, const cd_explanation *e, const cd_predict_line *line);
#endif
