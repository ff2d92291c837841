/* predict -- records to latencies, the only place that knows the order of stages:
 *
 *   line -> record -> task -> loop nest -> rows --+
 *   line -> ...                                   +--> one call of the model
 *   line -> ...                                 --+      -> seconds, in order
 *
 * A scorer holds what one thread needs; model and tasks are shared. */
#ifndef CD_PREDICT_H
#define CD_PREDICT_H
#include "features/program.h"
#include "learner/model.h"

typedef struct cd_scorer cd_scorer;

/* What became of one line. */
typedef struct cd_scored {
    cdmpp_status st;
    cd_pred pred;           /* when st is OK */
    double measured_s;      /* median of the record's repeats; NaN: the measurement failed */
    const cd_task *task;    /* NULL until it is known */
    uint32_t device;        /* number in the model */
    cdmpp_err err;          /* when st is not OK; place and path filled in */
} cd_scored;

/* `device`: name that stands for every record, or NULL to take each record's own:
 * -model= of its target, else the folder of its file. A model of a single device
 * also takes records that do not say theirs. Errors: EMODEL (unknown name), ENOMEM. */
cdmpp_status cd_scorer_new(CD_KEEP const cd_model *m, CD_KEEP const cd_tasks *tasks, const char *device,
                           CD_GIVE cd_scorer **out, cdmpp_err *err);
void cd_scorer_free(CD_TAKE cd_scorer *s); /* NULL is fine */

/* One line of a file; `len` bytes. */
typedef struct cd_line {
    const char *text;
    size_t len;
    const char *source;     /* path, "" if none; borrowed */
    long number;            /* 1-based */
} cd_line;

/* Score n lines with one call of the model; out (n). A bad line costs only
 * itself. Errors (of the whole call): ENOMEM, EBACKEND. */
cdmpp_status cd_scorer_run(cd_scorer *s, const cd_line *line, size_t n, cd_scored *out, cdmpp_err *err);
#endif
