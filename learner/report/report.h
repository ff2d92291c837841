/* The door of learner/report: other rooms include this header and no other of the room.
 *
 * Figures of a training: metrics, uncertainty, plots, the HTML report, artifacts. */
#ifndef CD_LEARNER_REPORT_DOOR_H
#define CD_LEARNER_REPORT_DOOR_H
#include <stdint.h>

#include "base/draw/draw.h"
#include "learner/config/config.h"

/* metric -- how far predictions are from measurements.
 *
 *   y measured, p predicted, both seconds, both finite and > 0
 *   e = p/y - 1
 *
 * Ranking figures are per group (a task on a device) because only programs of
 * one task compete with each other:
 *   spearman   rank correlation (ties: mean rank), mean over groups with at
 *              least two different values on both sides; a group where all
 *              predictions are equal counts as 0
 *   pairwise   share of pairs with y_i != y_j that are in the right order, a tie
 *              in p counts 1/2; all pairs of all groups together, so that a
 *              group weighs by its pairs
 *   top-k      TenSet's score: sum over groups of weight * (best y), divided by
 *              the sum of weight * (best y among the k best by p); weight =
 *              occurrences of the task in the networks; among equal p the worst y counts as
 *              first. Only groups with more
 *              than k programs: the others score 1 whatever is predicted.
 * O(n log n). No state, any thread. */

typedef struct cd_metric {
    size_t n, n_group;
    double mape, median_ape; /* fractions: 0.1 is 10 % */
    double rmse_s, rmse_log; /* seconds; natural logarithm */
    /* mean |ln(p/y)|: twice too slow and twice too fast count the same, where MAPE makes light of
     *too fast */
    double mae_log;
    double within_5, within_10, within_20; /* share with |e| <= 5, 10, 20 % */
    double spearman, pairwise, top1, top5; /* NaN where no group qualifies */
    size_t n_spearman, n_top1, n_top5;     /* groups behind each */
    uint64_t n_pair;
} cd_metric;

/* `group` (n) any numbers; `weight` (n) of the item's group, NULL: all 1.
 * n = 0 gives NaNs. Errors: ENUMERIC (a value that is not finite and > 0),
 * ENOMEM. */
cdmpp_status cd_metric_compute(const double *y, const double *p, const uint32_t *group,
                               const double *weight, size_t n, cd_metric *out, cdmpp_err *err);
/* The same, but programs of a group are ranked by `order` (n) > 0, the medians: an answer of least
 * MAPE lies below its median by more where it is less sure, which is no order. */
cdmpp_status cd_metric_compute_ranked(const double *y, const double *p, const double *order,
                                      const uint32_t *group, const double *weight, size_t n,
                                      cd_metric *out, cdmpp_err *err);

/* One JSON object; NaN becomes null. */
void cd_metric_json(cd_buf *out, const cd_metric *m);
/* Table lines "test (split=task, n=1234): ..." for people; n 0: "test (split=task): no row was
 * scored". */
void cd_metric_text(cd_buf *out, const char *part, const char *split, const cd_metric *m);

/* report_data -- what a training came to: one page of HTML, the same as JSON and CSV.
 *
 *   part[train, validation, test]   n programs: measured, predicted, how sure, which
 *        |                          task and device          (+ names, networks, curves)
 *        v
 *   figures (one struct, computed once) -> HTML  plots as SVG, tables, no other file
 *                                       -> JSON  the numbers behind every plot
 *   the programs themselves             -> CSV   one line each
 *
 *   (1) everything is borrowed; the caller's arrays live until the call returns;
 *   (2) a part may be empty (n = 0) and everything marked "NULL:" may be missing: the
 *       page then says so where the plot would be;
 *   (3) the same input gives the same bytes: no time, no host, no address;
 *   (4) errors are relative: e = predicted/measured - 1;
 *   (5) the page needs no network, no script and no other file; its size depends on
 *       the numbers of tasks, networks and devices, not on n.
 * No state, any thread. */

/* Nominal coverage of low_s .. high_s. */
#define CD_REPORT_LEVEL 0.9

typedef struct cd_report_part {
    size_t n;
    const double *measured_s, *predicted_s; /* (n) finite, > 0 */
    const double *low_s, *high_s;           /* (n) 90 % interval; NULL: none (both or neither) */
    /* (n) predicted standard deviation of log(latency); NULL: none */
    const double *rel_std;
    const uint8_t *out_of_range;   /* (n) 1: unlike what was trained on; NULL: not told */
    const double *order_s;         /* (n) less comes first in its task; NULL: not told */
    const uint32_t *task, *device; /* (n) into the names */
    /* (n) into source_name: the log of the record; NULL: not told */
    const uint32_t *source_file;
    const uint64_t *source_line; /* (n) its line; NULL like source_file */
    cd_metric metrics;
} cd_report_part;

/* Losses of one member of the model, by round or step. */
typedef struct cd_report_curve {
    const char *name; /* "rows", "member 3" */
    size_t n;
    const double *step;          /* (n) increasing */
    const double *train, *valid; /* (n) NaN: not computed at that step */
} cd_report_curve;

typedef struct cd_report {
    cd_report_part part[CD_SPLIT_N_PART];
    size_t n_task, n_device, n_network, n_source;
    char *const *task_name, *const *device_name, *const *network_name, *const *source_name;
    size_t n_net_task; /* coordinate form, as in cd_dataset */
    const uint32_t *net_network, *net_task;

    size_t n_curve;
    const cd_report_curve *curve;
    const char *step_name, *loss_name; /* axes of the curves: "round", "huber" */

    cd_split_kind kind;
    uint64_t seed;
    const char *split_digest;
    const char *split_note; /* lines of cd_split_notes; NULL: none */
    size_t n_target_task;   /* DEVICE: tasks of the held-out device that train, too */
    size_t n_task_of[CD_SPLIT_N_PART];
    cd_filter_count filter;
    const char *title;          /* "quickstart" */
    const char *command;        /* shell line that repeats it; "" for none */
    const char *config;         /* YAML */
    const char *content_digest; /* of the data */
    const char *version;        /* of the tool */
} cd_report;

/* Append to `out`. Errors: ENUMERIC (a latency that is not finite and > 0), ERANGE
 * (an index that has no name), ENOMEM; `out` may then hold part of the text. */
cdmpp_status cd_report_write_html(cd_buf *out, const cd_report *r, cdmpp_err *err);
cdmpp_status cd_report_write_json(cd_buf *out, const cd_report *r, cdmpp_err *err);
cdmpp_status cd_report_write_csv(cd_buf *out, const cd_report *r, cdmpp_err *err);

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

typedef struct cd_train_artifacts cd_train_artifacts;

/* What a model says about the programs of a part; "NULL:" as in cd_report_part. */
typedef struct cd_train_artifacts_score {
    const double *predicted_s, *low_s, *high_s, *rel_std;
    const uint8_t *out_of_range;
    const double *order_s;
} cd_train_artifacts_score;

/* Collects nothing yet. Errors: ENOMEM. */
cdmpp_status cd_train_artifacts_new(CD_GIVE cd_train_artifacts **out, cdmpp_err *err);
void cd_train_artifacts_free(CD_TAKE cd_train_artifacts *k);

/* Errors: ENOMEM. */
cdmpp_status cd_train_artifacts_data(cd_train_artifacts *k, const cd_config *c, const cd_dataset *d,
                                     const cd_split *s, const cd_filter_count *f, cdmpp_err *err);
/* One point of the curve of a member. Out of memory is reported by _write. */
void cd_train_artifacts_loss(cd_train_artifacts *k, const cd_progress_event *t);
/* Programs program[0] .. program[n-1] of `d`, in that order. Errors: ENOMEM. */
cdmpp_status cd_train_artifacts_part(cd_train_artifacts *k, cd_split_part p, const cd_dataset *d,
                                     const uint32_t *program, size_t n,
                                     const cd_train_artifacts_score *s, const cd_metric *m,
                                     cdmpp_err *err);

/* The report so far; borrows from k. Errors: ENOMEM (now or earlier). */
cdmpp_status cd_train_artifacts_report(cd_train_artifacts *k, cd_report *out, cdmpp_err *err);
/* Before anything is trained: the files beside the page are none, or those of an earlier report. ""
 * is fine. Errors: EUSAGE. */
cdmpp_status cd_train_artifacts_check(const char *path, cdmpp_err *err);
/* `path` is the page; .json and .csv replace its ending (or follow it when that is
 * not .html). Each file is replaced in one step. `command`: as in cd_report.
 * Errors: EIO, ENOMEM, ENUMERIC. */
cdmpp_status cd_train_artifacts_write(cd_train_artifacts *k, const char *path, const char *command,
                                      cdmpp_err *err);

/* uncertainty -- does a model know when it is wrong?
 *
 *   |-----low======median======high-----|   covered: low <= measured <= high
 *
 * e = |predicted/measured - 1|, l = |ln(predicted/measured)|: e makes light of a prediction
 * far too low, l does not. Programs are ordered by rel_std; the least certain
 * tenth is the round(n/10), at least one, with the largest, ties by position. */

typedef struct cd_uncertainty {
    size_t n;
    double coverage;                    /* share of programs inside their interval */
    double width;                       /* median of high/low */
    double least_certain;               /* mean e of the least certain tenth */
    double rest;                        /* mean e of the others; NaN when there are none */
    double least_certain_log, rest_log; /* the same two of l */
    double out_of_range;                /* share of programs flagged */
} cd_uncertainty;

/* measured_s (n) and what the model says of the same programs. Without intervals every
 * figure is NaN. Errors: ENOMEM. */
cdmpp_status cd_uncertainty_compute(const double *measured_s, const cd_train_artifacts_score *s,
                                    size_t n, cd_uncertainty *out, cdmpp_err *err);
/* One JSON object; NaN becomes null. */
void cd_uncertainty_json(cd_buf *out, const cd_uncertainty *u);
/* A line "  test, n=12, 90 % interval holds ..." for people; nothing when there are no intervals.
 *           */
void cd_uncertainty_text(cd_buf *out, const char *part, double level, const cd_uncertainty *u);
#endif
