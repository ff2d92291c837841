/* boost -- train one part of a model: trees from feature rows to log(latency).
 *
 *   margin of a matrix row f = score + bias + slope * log(trips)
 *   program: L = log(sum over its matrix rows of exp(f)),  r = L - log(measured)
 *   row:     gradient g(r) * share, Hessian share;  share = exp(f - L)
 *
 * Slope and bias are fitted to the train part by least squares, rounds to the
 * validation part. The test part is not passed in. */
#ifndef CD_BOOST_H
#define CD_BOOST_H
#include "dataset/dataset.h"
#include "learner/config.h"
#include "learner/model_int.h"
#include "learner/tick.h"

/* Programs of one part of the split. */
typedef struct cd_boost_set {
    size_t n;
    const size_t *program;   /* (n) indices into the data set, borrowed */
    const double *log_s;     /* (n) log of the measured latency, borrowed */
} cd_boost_set;

/* "rows" or "program": the member name in a tick. */
const char *cd_boost_name(cd_form form);

/* Fills p (weight 1). Errors: EBACKEND, ENOMEM, ENUMERIC, EINTERRUPTED. */
cdmpp_status cd_boost(const cd_dataset *d, const uint32_t *device, const cd_boost_set *train, const cd_boost_set *valid,
                      const cd_config *c, cd_form form, int nthread, cd_tick_call *tick, void *ctx, cd_model_part *p,
                      cdmpp_err *err);
#endif
