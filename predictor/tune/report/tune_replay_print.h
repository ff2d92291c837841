/* tune_replay_print -- replays as tables, comma-separated curves, OpBench's files and a drawing.
 *
 * Everything but the columns search_s and seconds is the same for the same logs, tuners and seeds. */
#ifndef CD_TUNE_REPLAY_PRINT_H
#define CD_TUNE_REPLAY_PRINT_H
#include "predictor/tune/compare/compare.h"

typedef struct cd_tune_replay_shown {
    const cd_tune_replay_logs *l;
    const cd_tune_replay *r;
    const cd_tune_replay_spec *spec;
    const size_t *at;           /* (n_at) ascending */
    size_t n_at;
} cd_tune_replay_shown;

static inline cd_tune_replay_shown cd_tune_replay_show(const cd_tune_replay_set *s) {
    return (cd_tune_replay_shown){&s->logs, s->replay, &s->spec, s->o->plan->at, s->o->plan->n_at};
}

/* ---- a whole replay; row: of cd_tune_replay_table ---- */
void cd_tune_replay_print_text(cd_buf *b, const cd_tune_replay_set *s, const cd_tune_replay_row *row);
void cd_tune_replay_print_json(cd_buf *b, const cd_tune_replay_set *s, const cd_tune_replay_row *row);
/* Files with what the functions below make. Errors: EIO, ENOMEM. */
cdmpp_status cd_tune_replay_write_csv(const cd_tune_replay_set *s, const char *path, cdmpp_err *err);
cdmpp_status cd_tune_replay_write_svg(const cd_tune_replay_set *s, const char *path, cdmpp_err *err); /* also ENODATA */
/* FOLDER/partial_res.csv, FOLDER/op_costs/replay_<tuner>_<device>/<task's number>.csv. Also ERANGE: a path is too long. */
cdmpp_status cd_tune_replay_write_opbench(const cd_tune_replay_set *s, const char *folder, cdmpp_err *err);

/* ---- parts ---- */
/* The rows of cd_tune_replay_table, for people: lines with their ends; and as a JSON list. */
void cd_tune_replay_text(cd_buf *b, const cd_tune_replay_shown *s, const cd_tune_replay_row *row);
void cd_tune_replay_json(cd_buf *b, const cd_tune_replay_shown *s, const cd_tune_replay_row *row);
/* task,device,tuner,seed,trial,seconds,best_s,ratio,measure_s,search_s: one line a trial; the last two add up. */
void cd_tune_replay_csv(cd_buf *b, const cd_tune_replay_shown *s);
/* OpBench's op_costs: task_name,trial,costs (s),all_cost (s, incl. build),best_cost,best_all_cost,cmp of one task and tuner, first
 * seed; cmp: best of all tuners at this trial / of this one. all_cost: seconds that building and measuring took. */
void cd_tune_replay_op_costs(cd_buf *b, const cd_tune_replay_shown *s, size_t log, size_t tuner);
/* OpBench's partial_res: modelname,tuner,0,10,... of all tasks of one device: the sum over its tasks of the mean over seeds of the best,
 * ms. Column 0, untuned, is empty: logs do not tell; others are empty where a task has nothing that ran yet. */
void cd_tune_replay_partial(cd_buf *b, const cd_tune_replay_shown *s);
/* An SVG file: ratio over trials and over simulated seconds, median and quartiles. Errors: ENODATA, ENOMEM. */
cdmpp_status cd_tune_replay_svg(cd_buf *b, const cd_tune_replay_shown *s, cdmpp_err *err);
#endif
