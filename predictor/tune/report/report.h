/* The door of predictor/tune/report: other rooms include this header and no other of the room.
 *
 * What cdmpp-tune prints: tuners, tasks, spaces, the results of a session, comparisons and replays. Text for people, JSON and CSV for
 * programs, a drawing. All functions append to a buffer; b->oom is to be looked at once, at the end (cd_command_print does). */
#ifndef CD_PREDICTOR_TUNE_REPORT_DOOR_H
#define CD_PREDICTOR_TUNE_REPORT_DOOR_H
#include "predictor/tune/report/tune_replay_print.h"

/* ---- tune_session_print.c ---- */
/* A row for each task with its seconds before and after, the sums, the tuner's times; the same as a JSON object. */
void cd_tune_session_print_text(cd_buf *b, const cd_tune_session *s);
void cd_tune_session_print_json(cd_buf *b, const cd_tune_session *s);
/* The tasks before anything is tuned. */
void cd_tune_tasks_print_text(cd_buf *b, const cd_tune_tasks *t);
void cd_tune_tasks_print_json(cd_buf *b, const cd_tune_tasks *t);

/* ---- tune_compare_print.c ---- */
/* modelname,tuner,0,10,50 ...: milliseconds of each task, and of their weighted sum where there is more than one. `name`: of that
 * sum. Empty (CSV) or null (JSON): nothing ran yet. */
void cd_tune_compare_print_csv(cd_buf *b, const cd_tune_compare *c, const cd_tune_tasks *t, const char *name);
void cd_tune_compare_print_json(cd_buf *b, const cd_tune_compare *c, const cd_tune_tasks *t, const char *name);

/* ---- tune_space_print.c ---- */
/* The table of tuners. */
void cd_tune_tuner_print_text(cd_buf *b);
void cd_tune_tuner_print_json(cd_buf *b);
/* The spaces of all tasks as a JSON list. A task without a space is left out with a warning and counted in t->n_left_out.
 * Errors: ENOMEM. */
cdmpp_status cd_tune_space_print(cd_buf *b, cd_tune_tasks *t, cd_log *log, cdmpp_err *err);
#endif
