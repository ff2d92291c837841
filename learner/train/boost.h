/* boost -- train the trees of one member: trees from feature rows to an objective.
 *
 *   margin of a matrix row f = score + bias + slope * log(trips)
 *   program: L = log(sum over its matrix rows of exp(f)),  r = L - log(measured)
 *   row:     gradient g(r) * share, Hessian share;  share = exp(f - L)
 *
 * That is train.objective = log_latency; learner/loss/objective.h has the others. Slope and bias
 * are fitted to the train part by least squares before the first tree (and the map to
 * seconds of the others after the last), rounds to the validation part. The test part is
 * not passed in. Of a view on disk (cd_program_view.spool) the
 * matrix to train on has bins alone, cut at those of some rows, and is filled by pages. With train.together trees are those of learner/distributed/distributed_trees.h, for any number of ranks. */
#ifndef CD_BOOST_H
#define CD_BOOST_H
#include "learner/config/config.h"
#include "learner/distributed/distributed.h"
#include "learner/model/model.h"
#include "learner/fit/fit.h"

/* Some programs of a view. */
typedef struct cd_boost_set {
    size_t n;
    const uint32_t *program; /* (n) borrowed */
    const double *log_s;     /* (n) ln of the measured latency, borrowed */
    const uint32_t *group;   /* (n) its task on its device, borrowed; NULL: log_latency only */
} cd_boost_set;

typedef struct cd_boost_run {
    const char *name;        /* member name in a tick */
    int nthread;             /* of XGBoost */
    cd_progress_event_fn *tick;      /* NULL: none; called from this thread after each round */
    void *ctx;
    const cd_process_group *ranks;     /* all its ranks make this call, and grow the trees together; NULL: this process alone */
} cd_boost_run;

/* Trees, slope and bias of m, whose kind says what the trees see. To be freed by the
 * caller after an error too. Errors: EBACKEND, ENOMEM, ENUMERIC, EINTERRUPTED, EUNSUPPORTED (together, of a view on disk), ERANGE (a part
 * without two programs of one task, where the objective compares such). */
cdmpp_status cd_boost(const cd_program_view *v, const cd_boost_set *train, const cd_boost_set *valid, const cd_config *c,
                      const cd_boost_run *run, cd_member *m, cdmpp_err *err);
#endif
