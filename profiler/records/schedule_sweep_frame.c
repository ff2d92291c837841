/* Measures the variants of a sweep in frames, and compares each with the base before and behind its
 * frame. */
#include <math.h>

#include "profiler/records/schedule_sweep_internal.h"

enum { FRAME = 8, TRIES = 3 };
/* the base may change by so much between two measurements, or by what their intervals explain */
static const double SAME = 0.05;
/* times its least: more is no drift of clock and heat, something else runs */
static const double SLOW = 1.25;

static cdmpp_status measure_base(const cd_schedule_sweep_meter *m, cd_schedule_sweep_base *b,
                                 cdmpp_err *err) {
    CD_TRY(m->base(m->ctx, &b->last, err));
    if (b->last.error_no) return CDMPP_OK;
    const double s = b->last.time.median_s;
    b->low_s = b->n ? fmin(b->low_s, s) : s;
    b->high_s = b->n ? fmax(b->high_s, s) : s;
    b->n++;
    return CDMPP_OK;
}

/* An interval of 1 is that of a single repeat: nothing is known. */
static bool is_known(const cd_timing *t) { return t->ci < 1; }

static bool differ(const cd_timing *a, const cd_timing *b) {
    const double explained = is_known(a) && is_known(b) ? hypot(a->ci, b->ci) : 0;
    return fabs(log(a->median_s / b->median_s)) > fmax(SAME, explained);
}

/* The interval is that of the row's own time over that of both bases. */
static void compare(cd_schedule_sweep_row *r, const cd_timing *a, const cd_timing *b,
                    bool disturbed) {
    const cd_timing *t = &r->out.time;
    r->ratio = 0;
    r->ratio_low = r->ratio_high = NAN;
    r->base_s = sqrt(a->median_s * b->median_s);
    r->disturbed = disturbed;
    if (r->out.error_no) return;
    r->ratio = t->median_s / r->base_s;
    if (!is_known(t) || !is_known(a) || !is_known(b)) return;
    r->ratio_low =
        t->median_s * (1 - t->ci) / fmax(a->median_s * (1 + a->ci), b->median_s * (1 + b->ci));
    r->ratio_high =
        t->median_s * (1 + t->ci) / fmin(a->median_s * (1 - a->ci), b->median_s * (1 - b->ci));
}

/* Rows [at, at + n). */
static cdmpp_status frame(const cd_schedule_sweep_meter *m, cd_schedule_sweep_row *row, size_t at,
                          size_t n, cd_schedule_sweep_base *b, cdmpp_err *err) {
    for (int try = 1;; try++) {
        const cd_timing before = b->last.time;
        for (size_t i = at; i < at + n; i++) CD_TRY(m->variant(m->ctx, i, &row[i].out, err));
        CD_TRY(measure_base(m, b, err));
        if (b->last.error_no) return CDMPP_OK;
        const bool disturbed = differ(&before, &b->last.time) ||
                               fmax(before.median_s, b->last.time.median_s) > SLOW * b->low_s;
        for (size_t i = at; i < at + n; i++) compare(&row[i], &before, &b->last.time, disturbed);
        if (!disturbed || try == TRIES) return CDMPP_OK;
    }
}

cdmpp_status cd_schedule_sweep_frames(const cd_schedule_sweep_meter *m, cd_schedule_sweep_row *row,
                                      size_t n, cd_schedule_sweep_base *b, cdmpp_err *err) {
    /* where the base fails nobody knows them */
    for (size_t i = 0; i < n; i++) row[i].ratio_low = row[i].ratio_high = NAN;
    if (!b->n && !b->last.error_no) CD_TRY(measure_base(m, b, err));
    for (size_t at = 0; at < n; at += FRAME) {
        const size_t some = n - at < FRAME ? n - at : FRAME;
        if (b->last.error_no)
            for (size_t i = at; i < at + some; i++) CD_TRY(m->variant(m->ctx, i, &row[i].out, err));
        else CD_TRY(frame(m, row, at, some, b, err));
    }
    return CDMPP_OK;
}

void cd_schedule_sweep_mark(cd_schedule_sweep_row *row, size_t n, const cd_schedule_sweep_base *b) {
    for (size_t i = 0; i < n; i++) row[i].disturbed |= row[i].base_s > SLOW * b->low_s;
}
