/* train_artifacts -- what a training leaves behind for its report, copied and owned.
 *
 *   cd_train_artifacts_data   names, split, configuration     when the data are split
 *   cd_train_artifacts_loss   one point of a learning curve   after each round, any thread
 *   cd_train_artifacts_part   predictions of one part         after they were scored
 *   cd_train_artifacts_write  FILE.html, FILE.json, FILE.csv  at the very end
 *
 *   (1) nothing is borrowed: the data set may be freed before writing;
 *   (2) curves come out in the order of their names, whatever thread was first;
 *   (3) every call but _new takes NULL and then does nothing: no report is wanted.
 * One thread, but _loss. */
#ifndef CD_TRAIN_ARTIFACTS_H
#define CD_TRAIN_ARTIFACTS_H
#include "learner/config/config.h"
#include "learner/fit/fit.h"
#include "learner/report/report_data.h"

typedef struct cd_train_artifacts cd_train_artifacts;

/* What a model says about the programs of a part; "NULL:" as in cd_report_part. */
typedef struct cd_train_artifacts_score {
    const double *predicted_s, *low_s, *high_s, *rel_std;
    const uint8_t *out_of_range;
} cd_train_artifacts_score;

/* Collects nothing yet. Errors: ENOMEM. */
cdmpp_status cd_train_artifacts_new(CD_GIVE cd_train_artifacts **out, cdmpp_err *err);
void cd_train_artifacts_free(CD_TAKE cd_train_artifacts *k);

/* Errors: ENOMEM. */
cdmpp_status cd_train_artifacts_data(cd_train_artifacts *k, const cd_config *c, const cd_dataset *d, const cd_split *s,
                               const cd_filter_count *f, cdmpp_err *err);
/* One point of the curve of a member. Out of memory is reported by _write. */
void cd_train_artifacts_loss(cd_train_artifacts *k, const cd_progress_event *t);
/* Programs program[0] .. program[n-1] of `d`, in that order. Errors: ENOMEM. */
cdmpp_status cd_train_artifacts_part(cd_train_artifacts *k, cd_split_part p, const cd_dataset *d, const uint32_t *program, size_t n,
                               const cd_train_artifacts_score *s, const cd_metric *m, cdmpp_err *err);

/* The report so far; borrows from k. Errors: ENOMEM (now or earlier). */
cdmpp_status cd_train_artifacts_report(cd_train_artifacts *k, cd_report *out, cdmpp_err *err);
/* Before anything is trained: the files beside the page are none, or those of an earlier report. "" is fine. Errors: EUSAGE. */
cdmpp_status cd_train_artifacts_check(const char *path, cdmpp_err *err);
/* `path` is the page; .json and .csv replace its ending (or follow it when that is
 * not .html). Each file is replaced in one step. `command`: as in cd_report.
 * Errors: EIO, ENOMEM, ENUMERIC. */
cdmpp_status cd_train_artifacts_write(cd_train_artifacts *k, const char *path, const char *command, cdmpp_err *err);
#endif
