/* scorer -- candidates to latencies, the only place that knows the order of stages:
 *
 *   line  -> record -> task -> loop nest -> rows --+
 *   steps ------------> task -> loop nest -> rows -+--> one call of the model
 *   rows ------------------------------------------+      -> seconds, in order
 *
 *   start, then line or add for each candidate, then finish
 *
 * (1) A bad candidate costs only itself: its cd_scored says why, the others go on.
 * (2) The model is called when CD_SCORER_ROWS rows are there and at the end: memory is bounded by
 *     that and by the longest candidate, and the calls depend on the candidates only.
 * (3) After the largest batch was seen, nothing asks the heap.
 * (4) A task that is known is compared with the kinds that the model was trained on
 *     (learner/model/model.h), and a device that it does not know counts as unlike. Of bare rows
 *     only the range of the features is known.
 * (5) A task that is known never takes less than its least work at the described peaks of the
 *     device that answers (features/device/device.h).
 * A scorer holds what one thread needs; model and tasks are shared. */
#ifndef CD_SCORER_H
#define CD_SCORER_H
#include "features/program/program.h"
#include "learner/model/model.h"
#include "predictor/score/device_match.h"
#include "predictor/score/launch.h"

typedef struct cd_scorer cd_scorer;

enum { CD_SCORER_ROWS = 16384 };

/* What became of one candidate. */
typedef struct cd_scored {
    cdmpp_status st;
    cd_model_prediction pred; /* when st is OK */
    double measured_s;   /* lines: median of the record's repeats; NaN: the measurement failed */
    const cd_task *task; /* NULL until it is known */
    /* when st is OK: the workload key, "" when nobody told; lives with tasks or aim */
    const char *key;
    float trait[CD_N_TRAIT]; /* when st is OK and they are wanted */
    cd_launch launch;        /* when st is OK and it is wanted; of records and steps */
    cd_device_pick which;    /* when st is OK */
    bool truncated;          /* more leaves than the model tells apart */
    /* when st is OK: seconds that the device needs at best, of an unknown one by its own
     * description; 0: nobody knows */
    double least_s;
    /* when st is OK: pred.median_s without that bound. Candidates are ordered by pred.order_s,
     * which no bound moves */
    double model_s;
    /* when st is OK: why it is unlike what the model was trained on; pred has the reasons too */
    cd_unlike unlike;
    cdmpp_err err; /* when st is not OK; place and path filled in */
} cd_scored;

/* Is told each answer of the model alone, and which program of the view it is of; NULL: nobody
 * listens. */
typedef struct cd_scorer_tap {
    void (*see)(void *ctx, const cd_scored *o, const cd_program_view *v, size_t p);
    void *ctx;
} cd_scorer_tap;

typedef struct cd_scorer_options {
    cd_device_match_options which;
    size_t max_rows; /* of a candidate; 0: no limit */
    /* learner/model/model.h; the caller corrects the answer with them, and then calls
     * cd_score_bound */
    bool traits;
    /* without the correction of a machine (learner/model/here.h), and without comparing
     * instructions with those that the device saw: it stands for another one, or candidates are put
     * in order */
    bool uncorrected;
    bool launch;
    bool sketch; /* cd_model_sketch in the place of cd_model_predict */
    cd_scorer_tap tap;
    /* what analytic times are computed with; NULL: with those of the device that is asked about */
    CD_KEEP const cd_device_numbers *numbers;
    /* descriptions of the model's devices: no answer is below what a device can at best; NULL: none
     * is compared */
    const cd_device_table *peaks;
} cd_scorer_options;

/* tasks NULL: neither lines nor steps. Errors: EMODEL (unknown device), ENOMEM. */
cdmpp_status cd_scorer_new(CD_KEEP const cd_model *m, CD_KEEP const cd_task_registry *tasks,
                           const cd_scorer_options *o, CD_GIVE cd_scorer **out, cdmpp_err *err);
void cd_scorer_free(CD_TAKE cd_scorer *s); /* NULL is fine */
/* NULL: each candidate has its own */
CD_KEEP const cd_device_pick *cd_scorer_fixed(const cd_scorer *s);

/* One line of a file; `len` bytes. */
typedef struct cd_predict_line {
    const char *text;
    size_t len;
    const char *source; /* path, "" if none; borrowed */
    long number;        /* 1-based */
} cd_predict_line;

/* A task as a tuner has it, and a device that the candidate names itself. */
typedef struct cd_aim {
    const char *workload_key;
    const cd_task *task; /* NULL: no definition, rows only */
    cd_str target;       /* n == 0: none */
    bool has_hardware;
    cd_hardware hardware;
    double flop;   /* -1: unknown */
    cd_str device; /* n == 0: that of cd_device_match */
} cd_aim;

/* A candidate in whatever form it comes; everything borrowed until finish. */
typedef enum cd_candidate_form {
    CD_CANDIDATE_REFUSED, /* known to be bad: why */
    CD_CANDIDATE_LINE,    /* text: a line of a measure log */
    /* text, costs, version: its members "i", "r", "v"; the last two may be empty */
    CD_CANDIDATE_PARTS,
    CD_CANDIDATE_STEPS,    /* text: steps as JSON; aim */
    CD_CANDIDATE_SCHEDULE, /* step, n_step; aim */
    CD_CANDIDATE_ROWS_F32, /* row (n_row, CD_N_COL), aligned in any way */
    CD_CANDIDATE_ROWS_F64,
    CD_CANDIDATE_ROWS_TEXT /* text: [[CD_N_COL numbers], ...] */
} cd_candidate_form;
typedef struct cd_candidate {
    cd_candidate_form form;
    const cd_aim *aim; /* NULL: nothing known; of LINE and PARTS only its device counts */
    cd_str text, costs, version;
    const cd_record_step *step;
    uint32_t n_step;
    const void *row;
    size_t n_row;
    const cdmpp_err *why;
} cd_candidate;

void cd_scorer_start(cd_scorer *s); /* begin a new batch */
/* *out is written now or by finish and must stay where it is until then. Errors (of the
 * whole call): ENOMEM; EBACKEND, ENUMERIC (of the model, see (2)). */
cdmpp_status cd_scorer_line(cd_scorer *s, const cd_predict_line *line, cd_scored *out,
                            cdmpp_err *err);
cdmpp_status cd_scorer_add(cd_scorer *s, const cd_candidate *ask, cd_scored *out, cdmpp_err *err);
cdmpp_status cd_scorer_finish(cd_scorer *s, cdmpp_err *err);

/* All of that for n lines; out (n). */
cdmpp_status cd_scorer_run(cd_scorer *s, const cd_predict_line *line, size_t n, cd_scored *out,
                           cdmpp_err *err);

/* Nothing of the prediction is below least_s afterwards. Where the point was, it has the reason
 * CD_UNLIKE_PEAK. Of a program in the range of training it moves to least_s. Beyond that range the
 * model saw nothing like it: the lower end moves there, and the point keeps its distance from
 * there, but not above twice least_s: good kernels reach about half of a peak. Where nothing tells
 * a lower end (NaN) it moves there. like_std is 0 then: what the model takes for its error says
 * nothing here. */
void cd_score_bound(cd_scored *o);

struct cd_log;
/* Where the model is one of earlier versions, which does not say what it was trained on: a warning
 * that programs unlike that cannot be told. */
void cd_score_warn(const cd_model *m, const char *path, struct cd_log *log);
/* The same by the text of its header. */
void cd_score_warn_header(const char *header, const char *path, struct cd_log *log);
#endif
