/* The learning rate of a step: schedules as pure functions of the step's number. */
#include "learner/fit/learning_rate.h"

#include <math.h>

cd_learning_rate cd_learning_rate_of(cd_learning_rate_kind kind, double lr) {
    return (cd_learning_rate){.kind = kind,
                              .lr = lr,
                              .low = kind == CD_LEARNING_RATE_COSINE ? 0 : 0.1,
                              .high = 10,
                              .gamma = 0.9,
                              .up = 2000,
                              .down = 2000,
                              .per = 1,
                              .total = 1};
}

static cdmpp_status want(bool ok, const char *key, const char *what, double found, cdmpp_err *err) {
    return ok ? CDMPP_OK
              : cd_err_key(err, CD_FAIL(err, ERANGE, "expected %s, found %g", what, found), key);
}

cdmpp_status cd_learning_rate_check(const cd_learning_rate *r, cdmpp_err *err) {
    CD_TRY(want(r->lr > 0 && r->lr <= 1e3, "lr", "above 0 and at most 1000", r->lr, err));
    CD_TRY(want(r->low >= 0 && r->low <= 1, "low", "0 to 1", r->low, err));
    CD_TRY(want(r->high >= 1 && r->high <= 1e6, "high", "1 to 1e6", r->high, err));
    CD_TRY(want(r->gamma > 0 && r->gamma <= 1, "gamma", "above 0 and at most 1", r->gamma, err));
    CD_TRY(want(r->up > 0, "up", "at least 1 step", (double)r->up, err));
    CD_TRY(want(r->down > 0, "down", "at least 1 step", (double)r->down, err));
    CD_TRY(want(r->per > 0, "per", "at least 1 step", (double)r->per, err));
    const bool bounded =
        r->kind == CD_LEARNING_RATE_ONE_CYCLE || r->kind == CD_LEARNING_RATE_COSINE;
    return want(!bounded || r->total > 0, "total", "at least 1 step", (double)r->total, err);
}

/* From a to b along half a cosine, 0 <= share <= 1. */
static double swing(double a, double b, double share) {
    return b + 0.5 * (a - b) * (1 + cos(M_PI * share));
}

static double cyclic(const cd_learning_rate *r, uint64_t step) {
    const uint64_t at = step % (r->up + r->down);
    const double share =
        at <= r->up ? (double)at / (double)r->up : (double)(r->up + r->down - at) / (double)r->down;
    return r->lr * (r->low + (r->high - r->low) * share);
}

static double one_cycle(const cd_learning_rate *r, uint64_t step) {
    const double first = r->lr / 25, last = first / 1e4, end = (double)r->total - 1,
                 at = fmin((double)step, end);
    const double top = fmax(0, 0.3 * (double)r->total - 1);
    if (at < top) return swing(first, r->lr, at / top);
    return end > top ? swing(r->lr, last, (at - top) / (end - top)) : r->lr;
}

static double cosine(const cd_learning_rate *r, uint64_t step) {
    const double span = r->total > r->warmup ? (double)(r->total - r->warmup) : 1;
    const double at = step > r->warmup ? (double)(step - r->warmup) : 0;
    return r->lr * swing(1, r->low, fmin(at / span, 1));
}

double cd_learning_rate_at(const cd_learning_rate *r, uint64_t step) {
    const double rise = step < r->warmup ? ((double)step + 1) / (double)r->warmup : 1;
    switch (r->kind) {
    case CD_LEARNING_RATE_CONSTANT: break;
    case CD_LEARNING_RATE_CYCLIC: return cyclic(r, step);
    case CD_LEARNING_RATE_ONE_CYCLE: return one_cycle(r, step);
    case CD_LEARNING_RATE_COSINE: return rise * cosine(r, step);
    case CD_LEARNING_RATE_EXPONENTIAL:
        return rise * r->lr * pow(r->gamma, (double)step / (double)r->per);
    }
    return rise * r->lr;
}
