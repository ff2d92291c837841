/* schedule_sweep_internal -- variants of a sweep measured between two measurements of the base.
 *
 *   base │ variant variant ... │ base │ variant variant ... │ base
 *        └──── a frame ────────┘
 *
 * A frame counts when the base takes as long behind it as before it, and not much longer than it
 * ever did. Else something disturbed one of the two, or both and the variants: the frame is
 * measured again, a few times, and at last its ratios are marked. */
#ifndef CD_SCHEDULE_SWEEP_INTERNAL_H
#define CD_SCHEDULE_SWEEP_INTERNAL_H
#include "profiler/records/schedule_sweep.h"

/* Who measures: a program with an error stays in error. Errors: those of cd_measure_run. */
typedef struct cd_schedule_sweep_meter {
    void *ctx;
    cdmpp_status (*base)(void *ctx, cd_measure_result *out, cdmpp_err *err);
    cdmpp_status (*variant)(void *ctx, size_t k, cd_measure_result *out, cdmpp_err *err);
} cd_schedule_sweep_meter;

/* Results, ratios and marks of row[0 .. n). *base goes on from call to call, zeroed before the
 * first. A base that fails leaves rows without ratios. */
cdmpp_status cd_schedule_sweep_frames(const cd_schedule_sweep_meter *m, cd_schedule_sweep_row *row,
                                      size_t n, cd_schedule_sweep_base *base, cdmpp_err *err);
/* Marks rows whose base was slow beside what it took later. */
void cd_schedule_sweep_mark(cd_schedule_sweep_row *row, size_t n,
                            const cd_schedule_sweep_base *base);
#endif
