/* online_adapt -- measured programs of a task correct what the model says about others.
 *
 *   device --+-- shift b (all tasks together)
 *            +-- task --+-- item: trait (CD_N_TRAIT), median_log, sigma, measured_log
 *                       +-- item ...                       e = measured_log - median_log
 *
 *   e of a program = b + sigma * z,   z ~ Gaussian process of the task,
 *   cov(z, z') = 0.1 + 0.5 exp(-d/2) + 0.4 [same program],
 *   d = mean over traits of ((t - t')/4)^2 + (median_log - median_log')^2
 *
 * The prior is the model's own: sigma is what it expects of its error for that program, so nothing is
 * trained and nothing measured means nothing changed. The shares were chosen on held-out tasks of a CPU set:
 * half of the errors' variance lies within a task and is shared by like programs (docs/reference/api.md
 * has the figures). b has variance 0.01 for a device that the model was trained on, 1 for another that
 * it stands for.
 *
 * (1) Robust: items beyond 1.5 noise deviations of their fit count less (Huber, four rounds).
 * (2) The result depends on the items of each task, not on their order, up to rounding; of a task
 *     with more than CD_ONLINE_ADAPT_MAX the oldest are forgotten.
 * (3) The answer's shift against the median and its interval shrink with the variance that is left, which is
 *     scaled by how well the items of the task agree with the prior.
 * (4) add changes what fit uses; apply sees the last fit. apply: any number of threads and no heap,
 *     add and fit: one thread, and none in apply meanwhile. */
#ifndef CD_ONLINE_ADAPT_H
#define CD_ONLINE_ADAPT_H
#include "base/core/core.h"
#include "base/text/text.h"
#include "learner/model/model.h"

enum { CD_N_TRAIT = 13, CD_ONLINE_ADAPT_MAX = 128 };

typedef struct cd_online_adapt cd_online_adapt;

typedef struct cd_online_adapt_item {
    double median_log, sigma, measured_log; /* ln s; sigma > 0 */
    float trait[CD_N_TRAIT];
} cd_online_adapt_item;

/* What makes programs of a task like or unlike, from its rows, n_row >= 1. */
void cd_online_adapt_traits(const float *row, size_t n_row, float trait[CD_N_TRAIT]);
/* Of a prediction and its measurement, both > 0 s. */
cd_online_adapt_item cd_online_adapt_item_of(const cd_model_prediction *p, const float trait[CD_N_TRAIT], double measured_s);

/* Nothing measured yet. Errors: ENOMEM. */
cdmpp_status cd_online_adapt_new(CD_GIVE cd_online_adapt **out, cdmpp_err *err);
void cd_online_adapt_free(CD_TAKE cd_online_adapt *a); /* NULL is fine */
/* `unknown`: the model does not know the device. Errors: ENOMEM; then nothing is entered. */
cdmpp_status cd_online_adapt_add(cd_online_adapt *a, const char *device, bool unknown, const char *task, const cd_online_adapt_item *item,
                          cdmpp_err *err);
/* Errors: ENOMEM; then the last fit stands for the tasks that were not reached. */
cdmpp_status cd_online_adapt_fit(cd_online_adapt *a, cdmpp_err *err);
/* Correct *p; false: nothing was measured on that device, *p is as it was. */
bool cd_online_adapt_apply(const cd_online_adapt *a, const char *device, const char *task, const float trait[CD_N_TRAIT], cd_model_prediction *p);
/* Items kept. */
size_t cd_online_adapt_count(const cd_online_adapt *a);

/* ---- adapt_file.c: {"schema":"cdmpp.observer","schema_version":1,"model":"...","devices":[{"name","unknown",
 * "tasks":[{"key","items":[[median_log, sigma, measured_log, 13 traits], ...]}]}]} ---- */
/* `model`: which one the items belong to. Out of memory is in out->oom. */
void cd_online_adapt_write(const cd_online_adapt *a, const char *model, cd_buf *out);
/* Fitted. Errors: EPARSE, ESCHEMA, ERANGE, EUNSUPPORTED (version), EMODEL (of another model), ENOMEM. */
cdmpp_status cd_online_adapt_read(const char *text, size_t n, const char *model, CD_GIVE cd_online_adapt **out, cdmpp_err *err);
#endif
