/* What the files of operator training share. */
#ifndef CD_LIBRARY_OP_TRAIN_INTERNAL_H
#define CD_LIBRARY_OP_TRAIN_INTERNAL_H
#include "learner/train/library_op_train.h"

enum { CD_LIBRARY_OP_SET_UNSEEN = 1, CD_LIBRARY_OP_SET_SEEN = 2, CD_LIBRARY_OP_SET_BOTH = 3 }; /* trees of a family */

typedef struct cd_library_op_fitting {
    const cd_config *c;
    const cd_library_op_data *d;
    cd_threads *pool;
    cd_progress_event_fn *tick;
    void *ctx;
} cd_library_op_fitting;

/* A row in its group, an operator on a device; `number` is drawn from the row itself. */
typedef struct cd_library_op_place {
    uint64_t group, number;
    double work;
    size_t row;
} cd_library_op_place;
/* All rows, group by group, in the order of their numbers, or with the most work first. Free with cd_mem_free. Errors: ENOMEM. */
cdmpp_status cd_library_op_places(const cd_config *c, const cd_library_op_data *d, bool most_work_first, CD_GIVE cd_library_op_place **out,
                                  cdmpp_err *err);
/* use[row] = 1 for at most `most` rows of each group, 0 for the others. */
void cd_library_op_draw(const cd_library_op_place *p, size_t n, size_t most, uint8_t *use);
/* held[row] = 1 for the tenth of each group that stands first. */
void cd_library_op_first_tenth(const cd_library_op_place *p, size_t n, uint8_t *held);

/* A model of the rows in `use` with these sets of trees. Errors: those of cd_library_op_train. */
cdmpp_status cd_library_op_fit(const cd_library_op_fitting *a, const uint8_t *use, unsigned sets, CD_GIVE cd_library_op_model **out,
                               cdmpp_err *err);

/* ---- library_op_calibrate.c ---- */
/* Intervals of `m` from rows, sizes and devices that were held out of models of their own; `use`: the rows that m is trained on. Nothing
 * where operators.calibration_rows is 0. out: coverage of the level 0.9, each part by intervals fitted without it. Errors: those of
 * cd_library_op_train. */
cdmpp_status cd_library_op_calibrate(const cd_library_op_fitting *a, const uint8_t *use, cd_library_op_model *m,
                                     cd_library_op_coverage out[CD_LIBRARY_OP_N_HELD][CD_N_LIBRARY_OP_CLASS + 1], cdmpp_err *err);
#endif
