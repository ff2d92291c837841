/* What the files of predictor/network_estimate share. */
#ifndef CD_NETWORK_ESTIMATE_INTERNAL_H
#define CD_NETWORK_ESTIMATE_INTERNAL_H
#include "predictor/network_estimate/network_estimate.h"

/* "v100,k80" as its parts, in the arena. Errors: EUSAGE (an empty part), ENOMEM. */
cdmpp_status cd_network_estimate_split_list(cd_arena *a, const char *list,
                                            CD_KEEP const char ***out, size_t *n, cdmpp_err *err);

/* ---- network_estimate_plan.c, network_estimate_case.c ---- */
/* Fills e->batch, e->over and e->size from the options. Errors: EUSAGE, ENOMEM. */
cdmpp_status cd_network_estimate_sizes(cd_network_estimate *e, cdmpp_err *err);
/* The dimensions of a source: the range's has the source's size. Errors: ENOMEM. */
cdmpp_status cd_network_estimate_dims(cd_network_estimate *e, cd_network_estimate_source *s,
                                      cd_onnx_options *onnx, cdmpp_err *err);
/* Fills e->curve from the cases. Errors: ENOMEM, EINTERRUPTED. */
cdmpp_status cd_network_estimate_curves(cd_network_estimate *e, cdmpp_err *err);
/* Fills has_one and what follows. Errors: those of cd_node_cost_of, EINTERRUPTED, ENOMEM. */
cdmpp_status cd_network_estimate_one_schedule(cd_network_estimate *e, cd_network_estimate_curve *c,
                                              cdmpp_err *err);

/* ---- network_estimate_devices.c ---- */
/* Fills e->device: those asked for, else what graphs, models or logs agree on. Errors: EUSAGE,
 * EMODEL, ENOMEM. */
cdmpp_status cd_network_estimate_devices(cd_network_estimate *e, cdmpp_err *err);
/* One that a graph names. Errors: EMODEL (no model knows it), ENOMEM. */
cdmpp_status cd_network_estimate_device_get(cd_network_estimate *e, const char *name,
                                            CD_KEEP cd_network_estimate_device **out,
                                            cdmpp_err *err);
/* The device's queue: its own, where the options do not say. */
cd_replay_device cd_network_estimate_queue(const cd_network_estimate_options *o,
                                           const cd_model_set *m, const char *name);

/* ---- network_estimate_plan.c, network_estimate_measure.c ---- */
/* Renames networks so that no two have one name. Errors: ENOMEM. */
cdmpp_status cd_network_estimate_unique_names(cd_network_estimate *e, cdmpp_err *err);

/* ---- network_estimate_spread.c ---- */
/* Fills d->model and d->stands where a described device of the same kind may answer. Errors: those
 * of cd_model_load. */
cdmpp_status cd_network_estimate_stand_in(cd_network_estimate *e, cd_network_estimate_device *d,
                                          cdmpp_err *err);
/* Fills c->spread, widens the intervals of operators. Errors: ENOMEM. */
cdmpp_status cd_network_estimate_spreads(cd_network_estimate *e, cd_network_estimate_case *c,
                                         cdmpp_err *err);
/* Widens the interval of the network, to no more than the ends of its operators' intervals make.
 * Errors: those of cd_replay_run. */
cdmpp_status cd_network_estimate_widen(const cd_network_estimate *e, cd_network_estimate_case *c,
                                       cdmpp_err *err);

/* ---- network_estimate_case.c ---- */
/* Where the file does not say on which device its times were measured, its folder may. */
void cd_network_estimate_times_of(const cd_network_estimate *e, const char *path,
                                  cd_network_graph *g);
/* Fills the case; what fails stays in c->st and c->err. */
void cd_network_estimate_case_run(cd_network_estimate *e, cd_network_estimate_case *c);
void cd_network_estimate_case_free(cd_network_estimate_case *c);

/* ---- network_estimate_memory.c ---- */
/* Fills weight_bytes and input_bytes: what stays in memory between runs. */
void cd_network_estimate_weights(cd_network_estimate_source *s);
/* Fills use and fullest of a case that was replayed. Errors: ENOMEM. */
cdmpp_status cd_network_estimate_memory(cd_network_estimate *e, cd_network_estimate_case *c,
                                        cdmpp_err *err);

/* ---- network_estimate_schedules.c ---- */
/* Candidates that are drawn of each task that has no schedule; 0: none are. */
uint32_t cd_network_estimate_draws(const cd_network_estimate_options *o,
                                   const cd_network_estimate_device *d);
/* Completes d->schedules for the tasks that the case runs on d. Errors: ESCHEMA (none of them has a
 * schedule in the logs that were given), those of cd_schedule_db_read_logs and
 * cd_schedule_db_predict. */
cdmpp_status cd_network_estimate_schedules(cd_network_estimate *e, cd_network_estimate_case *c,
                                           cd_network_estimate_device *d, cdmpp_err *err);

/* ---- network_estimate_measure.c: options.run ---- */
/* Forks the measuring process; nothing without options.run. Errors: those of cd_measure_open. */
cdmpp_status cd_network_estimate_measure_open(cd_network_estimate *e, cdmpp_err *err);
/* Runs the case's network here. What cannot be run is a message: the estimate stands. */
void cd_network_estimate_measure(cd_network_estimate *e, cd_network_estimate_case *c);
#endif
