/* What the files of a sweep share. */
#ifndef CD_SERVING_SWEEP_INTERNAL_H
#define CD_SERVING_SWEEP_INTERNAL_H
#include "predictor/serving/serving.h"

/* What became of each configuration: OPEN where the sweep was stopped before, REFUSED + the number
 * of the error's key. */
enum { CD_SERVING_OPEN, CD_SERVING_ANSWERED, CD_SERVING_REFUSED };
typedef struct cd_serving_outcomes {
    cd_serving_point *v; /* (n) of those that are answered, without price and targets */
    uint8_t *of;         /* (n) */
    char key[CD_SERVING_REASONS][96];
    size_t n_key;
} cd_serving_outcomes;

/* v and of are zeroed. o->threads NULL: here alone. Errors: those that are not of one
 * configuration: ENOMEM. */
cdmpp_status cd_serving_sweep_share(cd_serving_session *s, const cd_serving_config *c, size_t n,
                                    const cd_serving_sweep_options *o, cd_serving_outcomes *out,
                                    cdmpp_err *err);

/* Sets ranked and news of a point of this configuration. Errors: those of cd_serving_step_rows. */
cdmpp_status cd_serving_sweep_rank(cd_serving_session *s, const cd_serving_config *c,
                                   cd_serving_point *p, cdmpp_err *err);
/* The best of those that meet the targets, else the nearest miss, with their intervals: each is
 * answered once more. Errors: those of cd_serving_answer_of. */
cdmpp_status cd_serving_sweep_choose(cd_serving_session *s, cd_serving_sweep *w, cdmpp_err *err);
#endif
