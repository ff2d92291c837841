/* The door of predictor/tune/report: other rooms include this header and no other of the room.
 *
 * What cdmpp-tune prints: tuners, tasks, spaces, the results of a session, comparisons and replays.
 * Text for people, JSON and CSV for programs, a drawing. All functions append to a buffer; b->oom
 * is to be looked at once, at the end (cd_command_print does). */
#ifndef CD_PREDICTOR_TUNE_REPORT_DOOR_H
#define CD_PREDICTOR_TUNE_REPORT_DOOR_H
#include "predictor/tune/compare/compare.h"

/* tune_replay_print -- replays as tables, comma-separated curves, OpBench's files and a drawing.
 *
 * Everything but the columns search_s and seconds is the same for the same logs, tuners and
 * seeds. */

typedef struct cd_tune_replay_shown {
    const cd_tune_replay_logs *l;
    const cd_tune_replay *r;
    const cd_tune_replay_spec *spec;
    const size_t *at; /* (n_at) ascending */
    size_t n_at;
} cd_tune_replay_shown;

static inline cd_tune_replay_shown cd_tune_replay_show(const cd_tune_replay_set *s) {
    return (cd_tune_replay_shown){&s->logs, s->replay, &s->spec, s->o->plan->at, s->o->plan->n_at};
}

/* ---- a whole replay; row: of cd_tune_replay_table ---- */
void cd_tune_replay_print_text(cd_buf *b, const cd_tune_replay_set *s,
                               const cd_tune_replay_row *row);
void cd_tune_replay_print_json(cd_buf *b, const cd_tune_replay_set *s,
                               const cd_tune_replay_row *row);
/* Files with what the functions below make. Errors: EIO, ENOMEM. */
cdmpp_status cd_tune_replay_write_csv(const cd_tune_replay_set *s, const char *path,
                                      cdmpp_err *err);
/* also ENODATA */
cdmpp_status cd_tune_replay_write_svg(const cd_tune_replay_set *s, const char *path,
                                      cdmpp_err *err);
/* FOLDER/partial_res.csv, FOLDER/op_costs/replay_<tuner>_<device>/<task's number>.csv. Also ERANGE:
 * a path is too long. */
cdmpp_status cd_tune_replay_write_opbench(const cd_tune_replay_set *s, const char *folder,
                                          cdmpp_err *err);

/* ---- parts ---- */
/* The rows of cd_tune_replay_table, for people: lines with their ends; and as a JSON list. */
void cd_tune_replay_text(cd_buf *b, const cd_tune_replay_shown *s, const cd_tune_replay_row *row);
void cd_tune_replay_json(cd_buf *b, const cd_tune_replay_shown *s, const cd_tune_replay_row *row);
/* task,device,tuner,seed,trial,seconds,best_s,ratio,measure_s,search_s: one line a trial; the last
 * two add up. */
void cd_tune_replay_csv(cd_buf *b, const cd_tune_replay_shown *s);
/* OpBench's op_costs: task_name,trial,costs (s),all_cost (s, incl.
 * build),best_cost,best_all_cost,cmp of one task and tuner, first seed; cmp: best of all tuners at
 * this trial / of this one. all_cost: seconds that building and measuring took. */
void cd_tune_replay_op_costs(cd_buf *b, const cd_tune_replay_shown *s, size_t log, size_t tuner);
/* OpBench's partial_res: modelname,tuner,0,10,... of all tasks of one device: the sum over its
 * tasks of the mean over seeds of the best, ms. Column 0, untuned, is empty: logs do not tell;
 * others are empty where a task has nothing that ran yet. */
void cd_tune_replay_partial(cd_buf *b, const cd_tune_replay_shown *s);
/* An SVG file: ratio over trials and over simulated seconds, median and quartiles. Errors: ENODATA,
 * ENOMEM. */
cdmpp_status cd_tune_replay_svg(cd_buf *b, const cd_tune_replay_shown *s, cdmpp_err *err);

/* ---- tune_session_print.c ---- */
/* A row for each task with its seconds before and after, the sums, the tuner's times; the same as a
 * JSON object. */
void cd_tune_session_print_text(cd_buf *b, const cd_tune_session *s);
void cd_tune_session_print_json(cd_buf *b, const cd_tune_session *s);
/* The tasks before anything is tuned. */
void cd_tune_tasks_print_text(cd_buf *b, const cd_tune_tasks *t);
void cd_tune_tasks_print_json(cd_buf *b, const cd_tune_tasks *t);

/* ---- tune_space_print.c ---- */
/* modelname,tuner,0,10,50 ...: milliseconds of each task, and of their weighted sum where there is
 * more than one. `name`: of that sum. Empty (CSV) or null (JSON): nothing ran yet. */
void cd_tune_compare_print_csv(cd_buf *b, const cd_tune_compare *c, const cd_tune_tasks *t,
                               const char *name);
void cd_tune_compare_print_json(cd_buf *b, const cd_tune_compare *c, const cd_tune_tasks *t,
                                const char *name);
/* The table of tuners. */
void cd_tune_tuner_print_text(cd_buf *b);
void cd_tune_tuner_print_json(cd_buf *b);
/* The spaces of all tasks as a JSON list. A task without a space is left out with a warning and
 * counted in t->n_left_out. Errors: ENOMEM. */
cdmpp_status cd_tune_space_print(cd_buf *b, cd_tune_tasks *t, cd_log *log, cdmpp_err *err);

/* ---- tune_template_print.c ---- */
/* The first `most` templates of all tasks, as a table for each or as a JSON list; records of them
 * without times to the file `out` (NULL: not wanted), all or none. A task without one is said with
 * the reason; how many there are in `without`. Errors: EUSAGE, EBACKEND, EMODEL: of the processor;
 * EIO, ENOMEM. */
typedef struct cd_tune_template_shown {
    const cd_tune_tasks *tasks;
    cd_tune_template_options o;
    uint32_t most;
    bool json;
    const char *out;
    size_t without;
} cd_tune_template_shown;
cdmpp_status cd_tune_template_print(cd_buf *b, cd_tune_template_shown *s, cdmpp_err *err);
#endif
