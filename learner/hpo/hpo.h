/* hpo -- search for a configuration: draw, train a little, keep the best, train more.
 *
 *   space + base --draw--> trials --asha--> (trial, rung) --objective--> error
 *        ^                                       |                         |
 *        |                                       +------- journal ---------+
 *        +-- the winner: the base with the trial's settings and the full budget
 *
 * Decisions and results as a sequence; decision k may know the results before k - L + 1
 * and no others, L = tune.in_flight:
 *
 *   decision  0 1 2 3 4 5 ...        L = 3: 3 waits for result 0, 4 for 0 and 1, ...
 *
 *   (1) so the outcome is the same for any number of workers; more than L have nothing
 *       to do;
 *   (2) a result is in the journal before it counts. After a kill at any moment the same
 *       call goes on: what is in the journal is not trained again, and the outcome is
 *       the one that a run in one piece has;
 *   (3) a training that fails, or whose error is not finite, is recorded with its reason
 *       and counts as the worst; only an interrupt (EINTERRUPTED) and a journal that
 *       cannot be written end the search;
 *   (4) the objective is the validation error. Nothing here sees a test part. */
#ifndef CD_HPO_H
#define CD_HPO_H
#include "base/core/core.h"
#include "learner/hpo/hpo_asha.h"
#include "learner/hpo/hpo_space.h"

/* Train with `c`, in which the budget is already set, and measure. Called by several
 * threads at once, `worker` < cd_threads_count tells them apart. */
typedef cdmpp_status cd_hpo_objective_fn(void *ctx, const cd_config *c, double budget, int worker, double *valid_error,
                                  cdmpp_err *err);

typedef enum { CD_HPO_RUNNING, CD_HPO_DONE, CD_HPO_FAILED } cd_hpo_state;

typedef struct cd_hpo_event {
    size_t trial;
    unsigned rung;
    double budget, error;   /* error: of DONE, else NaN */
    cd_hpo_state state;
    bool known;             /* from the journal */
    double seconds;
    const char *params;     /* JSON object */
    const char *reason;     /* of FAILED, else "" */
} cd_hpo_event;

typedef void cd_hpo_event_fn(void *ctx, const cd_hpo_event *e);

typedef struct cd_hpo_options {
    const cd_hpo_space *space;
    const cd_config *base;
    const char *journal;    /* path */
    const char *identity;   /* digest of the data: another one is another search */
    cd_hpo_objective_fn *objective;
    cd_hpo_event_fn *tell;     /* NULL is fine. One call at a time, from any thread */
    void *ctx;              /* of both */
} cd_hpo_options;

typedef struct cd_hpo_result {
    size_t n_trial;
    const cd_hpo_trial *trial;  /* (n_trial) */
    unsigned n_rung;
    double *error;          /* (n_trial, n_rung) NaN: not trained, INFINITY: failed */
    const char **reason;    /* (n_trial) of the failure, else NULL */
    size_t n_new, n_known, n_failed;  /* trainings of this call; from the journal; failed among both */
    size_t torn;            /* bytes of the journal that a kill had damaged */
    size_t best;            /* trial with the least error on the top rung */
    double best_error;
    cd_arena arena;
} cd_hpo_result;

/* `pool` NULL: one worker. Errors: those of cd_hpo_space_sample and cd_hpo_journal, EINTERRUPTED,
 * ENUMERIC (every trial failed; the first reason is in the message), ENOMEM. cd_hpo_result_free
 * it, also after an error. */
cdmpp_status cd_hpo(const cd_hpo_options *s, cd_threads *pool, cd_hpo_result *out, cdmpp_err *err);
void cd_hpo_result_free(cd_hpo_result *f);

/* One line: {"trial":..,"rung":..,"budget":..,"state":..,"valid_error":..,"params":{..}}. */
void cd_hpo_event_json(cd_buf *out, const cd_hpo_event *e);
/* A result as one line for people, without a line end; not for CD_HPO_RUNNING. */
void cd_hpo_event_text(cd_buf *out, const cd_hpo_event *e);
/* The best trials, one a line, at most `max` of them, and how many there were. */
void cd_hpo_result_table(cd_buf *out, const cd_hpo_result *f, const cd_hpo_space *s, size_t max);
/* The settings of a search as YAML; what its error is called. */
void cd_hpo_space_print(cd_buf *out, const cd_hpo_space *s);
const char *cd_hpo_metric_name(cd_hpo_metric e);

/* The other headers of the room that are open to other rooms. */
#include "learner/hpo/hpo_run.h"
#endif
