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
#ifndef CD_REPORT_DATA_H
#define CD_REPORT_DATA_H
#include "dataset/split/split.h"
#include "learner/report/metric.h"

/* Nominal coverage of low_s .. high_s. */
#define CD_REPORT_LEVEL 0.9

typedef struct cd_report_part {
    size_t n;
    const double *measured_s, *predicted_s; /* (n) finite, > 0 */
    const double *low_s, *high_s;           /* (n) 90 % interval; NULL: none (both or neither) */
    const double *rel_std;                  /* (n) predicted standard deviation of log(latency); NULL: none */
    const uint8_t *out_of_range;            /* (n) 1: unlike what was trained on; NULL: not told */
    const uint32_t *task, *device;          /* (n) into the names */
    cd_metric metrics;
} cd_report_part;

/* Losses of one member of the model, by round or step. */
typedef struct cd_report_curve {
    const char *name;            /* "rows", "member 3" */
    size_t n;
    const double *step;          /* (n) increasing */
    const double *train, *valid; /* (n) NaN: not computed at that step */
} cd_report_curve;

typedef struct cd_report {
    cd_report_part part[CD_SPLIT_N_PART];
    size_t n_task, n_device, n_network;
    char *const *task_name, *const *device_name, *const *network_name;
    size_t n_net_task;           /* coordinate form, as in cd_dataset */
    const uint32_t *net_network, *net_task;

    size_t n_curve;
    const cd_report_curve *curve;
    const char *step_name, *loss_name; /* axes of the curves: "round", "huber" */

    cd_split_kind kind;
    uint64_t seed;
    const char *split_digest;
    const char *split_note;      /* lines of cd_split_notes; NULL: none */
    size_t n_target_task;        /* DEVICE: tasks of the held-out device that train, too */
    size_t n_task_of[CD_SPLIT_N_PART];
    cd_filter_count filter;
    const char *title;           /* "quickstart" */
    const char *command;         /* shell line that repeats it; "" for none */
    const char *config;          /* YAML */
    const char *content_digest;  /* of the data */
    const char *version;         /* of the tool */
} cd_report;

/* Append to `out`. Errors: ENUMERIC (a latency that is not finite and > 0), ERANGE
 * (an index that has no name), ENOMEM; `out` may then hold part of the text. */
cdmpp_status cd_report_write_html(cd_buf *out, const cd_report *r, cdmpp_err *err);
cdmpp_status cd_report_write_json(cd_buf *out, const cd_report *r, cdmpp_err *err);
cdmpp_status cd_report_write_csv(cd_buf *out, const cd_report *r, cdmpp_err *err);
#endif
