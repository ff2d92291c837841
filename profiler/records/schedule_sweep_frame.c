/* Measures the variants of a sweep in frames, and compares each with the base before and behind its frame. */
#include <math.h>

#include "profiler/records/schedule_sweep_internal.h"

enum { FRAME = 8, TRIES = 3 };
static const double SAME = 0.05; /* the base may change by so much between two measurements, or by what their intervals explain */

static cdmpp_status measure_base(const cd_schedule_sweep_meter *m, cd_schedule_sweep_base *b, cdmpp_err *err) {
    CD_TRY(m->base(m->ctx, &b->last, err));
    if (b->last.error_no) return CDMPP_OK;
    const double s = b->last.time.median_s;
    b->low_s = b->n ? fmin(b->low_s, s) : s;
    b->high_s = b->n ? fmax(b->high_s, s) : s;
    b->n++;
    return CDMPP_OK;
}

static bool differ(const cd_timing *a, const cd_timing *b) { return fabs(log(a->median_s / b->median_s)) > fmax(SAME, hypot(a->ci, b->ci)); }

/* The interval is that of the row's own time over that of both bases. */
static void compare(cd_schedule_sweep_row *r, const cd_timing *a, const cd_timing *b, bool disturbed) {
    const cd_timing *t = &r->out.time;
    r->ratio = r->ratio_low = r->ratio_high = 0;
    r->disturbed = disturbed;
    if (r->out.error_no) return;
    r->ratio = t->median_s / sqrt(a->median_s * b->median_s);
    r->ratio_low = t->median_s * (1 - t->ci) / fmax(a->median_s * (1 + a->ci), b->median_s * (1 + b->ci));
    r->ratio_high = t->median_s * (1 + t->ci) / fmax(fmin(a->median_s * (1 - a->ci), b->median_s * (1 - b->ci)), 1e-30);
}

/* Rows [at, at + n). */
static cdmpp_status frame(const cd_schedule_sweep_meter *m, cd_schedule_sweep_row *row, size_t at, size_t n, cd_schedule_sweep_base *b, cdmpp_err *err) {
    for (int try = 1;; try++) {
        const cd_timing before = b->last.time;
        for (size_t i = at; i < at + n; i++) CD_TRY(m->variant(m->ctx, i, &row[i].out, err));
        CD_TRY(measure_base(m, b, err));
        if (b->last.error_no) return CDMPP_OK;
        const bool disturbed = differ(&before, &b->last.time);
        for (size_t i = at; i < at + n; i++) compare(&row[i], &before, &b->last.time, disturbed);
        if (!disturbed || try == TRIES) return CDMPP_OK;
    }
}

cdmpp_status cd_schedule_sweep_frames(const cd_schedule_sweep_meter *m, cd_schedule_sweep_row *row, size_t n, cd_schedule_sweep_base *b, cdmpp_err *err) {
    if (!b->n && !b->last.error_no) CD_TRY(measure_base(m, b, err));
    for (size_t at = 0; at < n; at += FRAME) {
        const size_t some = n - at < FRAME ? n - at : FRAME;
        if (b->last.error_no)
            for (size_t i = at; i < at + some; i++) CD_TRY(m->variant(m->ctx, i, &row[i].out, err));
        else CD_TRY(frame(m, row, at, some, b, err));
    }
    return CDMPP_OK;
}
