/* Intervals of operator models: entries of residuals, from one class of one device to all, and how
 * often they hold. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/inputs/inputs.h"
#include "learner/operators/operators.h"

enum { CD_LIBRARY_OP_MIN_ROWS = 30 };
/* How many devices the other classes count for in what devices differ by. */
#define CD_LIBRARY_OP_PRIOR_DEVICES 2.0

/* A residual with the weight that makes each class of each device count the same. */
typedef struct cd_library_op_point {
    double at, r, weight, distance; /* at: what the scale depends on */
    uint32_t group, device;
} cd_library_op_point;

/* Residuals of which an entry, or a part of one, is made. */
typedef struct cd_library_op_want {
    cd_library_op_held held;
    uint32_t classes, device, stack; /* CD_LIBRARY_OP_ANY_DEVICE: any */
} cd_library_op_want;

typedef struct cd_library_op_entries {
    const cd_library_op_residual *r;
    size_t n;
    const cd_library_op_residual *without; /* NULL, or one whose part is left out */
    cd_library_op_point *p;                /* (n) scratch */
    /* median over classes of between^2; 0: one class tells nothing of another */
    double prior[CD_LIBRARY_OP_N_ENTRY];
    double other[2], other_freedom;
    cd_library_op_spread *out; /* (n_out), owned */
    size_t n_out, room;
} cd_library_op_entries;

/* Points to knots: scales around a place, what the rows of a device have in common there, and the
 * width of an interval. */

enum { ROWS_A_KNOT = 50 };
#define LEAST_SCALE 1e-4 /* of tables whose times are a law: a width of 0 would be a lie */

const double cd_library_op_level[CD_LIBRARY_OP_LEVELS] = {0.5, 0.8, 0.9, 0.95, 0.99};

static int by_at(const void *a, const void *b) {
    const cd_library_op_point *x = a, *y = b;
    if (x->at < y->at || x->at > y->at) return x->at < y->at ? -1 : 1;
    return (x->r > y->r) - (x->r < y->r);
}

static int by_group_knots(const void *a, const void *b) {
    const cd_library_op_point *x = a, *y = b;
    return x->group != y->group ? (x->group < y->group ? -1 : 1) : by_at(a, b);
}

static int by_r(const void *a, const void *b) {
    const cd_library_op_point *x = a, *y = b;
    return (x->r > y->r) - (x->r < y->r);
}

/* By what between^2 grows at a distance.
 *
 * Half of what devices differ by depends on how far they are: docs/internals/learner-choices.md. */
static double library_op_grow(double distance, double far) {
    return far > 0 && distance >= 0 ? (1 + distance / far) / 2 : 1;
}

/* Rows of one device and class, sorted together: their mean, and the variance of what is left,
 * which takes the mean's place in p[].r. Of one row alone nobody knows what is its device's: it
 * stays. */
static void take_mean(cd_library_op_point *p, size_t n, double *mean, double *variance) {
    *mean = *variance = 0;
    for (size_t i = 0; i < n; i++) *mean += p[i].r / (double)n;
    if (n < 2) return;
    for (size_t i = 0; i < n; i++)
        *variance += (p[i].r - *mean) * (p[i].r - *mean) / (double)(n - 1);
    for (size_t i = 0; i < n; i++) p[i].r = (p[i].r - *mean) * sqrt((double)n / (double)(n - 1));
}

/* Means and rests of a slice as mean squares. The mean of few rows has a part of their own noise:
 * that does not count for the device. */
static void split(cd_library_op_point *p, size_t n, double far, double *between, double *rest) {
    double weight = 0;
    *between = *rest = 0;
    qsort(p, n, sizeof *p, by_group_knots);
    for (size_t i = 0, end; i < n; i = end) {
        double mean, variance, w = 0;
        for (end = i; end < n && p[end].group == p[i].group; end++) w += p[end].weight;
        take_mean(p + i, end - i, &mean, &variance);
        *between += w * fmax(0, mean * mean - variance / (double)(end - i)) /
                    library_op_grow(p[i].distance, far);
        *rest += w * variance;
        weight += w;
    }
    *between /= weight;
    *rest /= weight;
}

static void add_knot(cd_library_op_point *p, size_t n, bool common, cd_library_op_spread *s) {
    double weight = 0, square = 0, at = 0, between = 0;
    for (size_t i = 0; i < n; i++) {
        weight += p[i].weight;
        at += p[i].weight * p[i].at;
        square += p[i].weight * p[i].r * p[i].r;
    }
    at /= weight;
    square /= weight;
    if (common) split(p, n, s->far, &between, &square);
    if (s->n_knot && !(at > s->at[s->n_knot - 1])) return; /* one time for all */
    s->at[s->n_knot] = at;
    s->between[s->n_knot] = common ? fmax(sqrt(between), LEAST_SCALE) : 0;
    s->scale[s->n_knot++] = fmax(sqrt(square), LEAST_SCALE);
}

/* Knots of points that come in any order; with `common` the means of devices leave p[].r and go to
 * s->between.
 *
 * Knots hold the same number of points each. */
static void library_op_knots_fit(cd_library_op_point *p, size_t n, bool common,
                                 cd_library_op_spread *s) {
    const size_t most = n / ROWS_A_KNOT;
    const size_t want = most < 1 ? 1 : most > CD_LIBRARY_OP_KNOTS ? CD_LIBRARY_OP_KNOTS : most;
    qsort(p, n, sizeof *p, by_at);
    for (size_t k = 0; k < want; k++)
        add_knot(p + k * n / want, (k + 1) * n / want - k * n / want, common, s);
}

/* What is farther away is never better known. */
static void library_op_knots_rise(cd_library_op_spread *s) {
    for (size_t k = 1; k < s->n_knot; k++) {
        s->scale[k] = fmax(s->scale[k], s->scale[k - 1]);
        s->between[k] = fmax(s->between[k], s->between[k - 1]);
    }
}

/* From the first knot to the last: a line through the middle knots would depend on which of them
 * are there. */
static double slope_of(const cd_library_op_spread *s, const double *v) {
    const size_t last = s->n_knot - 1;
    return last ? (v[last] - v[0]) / (s->at[last] - s->at[0]) : 0;
}

/* v: the entry's scale or between. */
static double value_at(const cd_library_op_spread *s, const double *v, double at) {
    size_t k = 0;
    while (k < s->n_knot && at > s->at[k]) k++;
    if (!k) return v[0];
    if (k == s->n_knot)
        return v[k - 1] +
               (s->held == CD_LIBRARY_OP_HELD_LARGE ? slope_of(s, v) * (at - s->at[k - 1]) : 0);
    const double t = (at - s->at[k - 1]) / (s->at[k] - s->at[k - 1]);
    return v[k - 1] * pow(v[k] / v[k - 1], t);
}

/* Weighted quantiles of |p[].r| / scale.
 *
 * One point more at the far end makes up for the points being few. */
static void library_op_knots_times(cd_library_op_point *p, size_t n, cd_library_op_spread *s) {
    double total = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        p[i].r = fabs(p[i].r) / value_at(s, s->scale, p[i].at);
        total += p[i].weight;
    }
    qsort(p, n, sizeof *p, by_r);
    total *= 1 + 1 / (double)n;
    for (size_t i = 0, k = 0; k < CD_LIBRARY_OP_LEVELS && i < n; i++) {
        sum += p[i].weight;
        while (k < CD_LIBRARY_OP_LEVELS && (sum >= cd_library_op_level[k] * total || i + 1 == n))
            s->times[k++] = fmax(p[i].r, 1e-3);
    }
}

/* ---- the width ---- */
/* Between levels the quantile goes straight over that of the normal distribution, below the first
 * from 0, above the last as before it. */
static double times_at(const cd_library_op_spread *s, double level) {
    const double z = cd_normal_quantile((1 + level) / 2);
    double z0 = 0, t0 = 0, times = 0;
    for (size_t k = 0; k < CD_LIBRARY_OP_LEVELS; k++) {
        const double z1 = cd_normal_quantile((1 + cd_library_op_level[k]) / 2);
        times = t0 + (s->times[k] - t0) * (z - z0) / (z1 - z0);
        if (z <= z1) break;
        z0 = z1;
        t0 = s->times[k];
        if (k + 1 == CD_LIBRARY_OP_LEVELS) times = s->times[k] * z / z1;
    }
    return times;
}

/* Standard deviations there: of what the rows of a device have in common, and of what is left. */
static void parts_at(const cd_library_op_spread *s, double predicted_s,
                     const cd_library_op_apart *a, double *between, double *rest) {
    const double at = s->held == CD_LIBRARY_OP_HELD_LARGE ? a->reach : log(predicted_s);
    const bool other = a->other && s->other_freedom > 0;
    *rest = value_at(s, s->scale, at) * (other ? s->other[1] : 1);
    *between = s->freedom > 0
                   ? value_at(s, s->between, at) * sqrt(library_op_grow(a->distance, s->far)) *
                         (other ? s->other[0] : 1)
                   : 0;
}

double cd_library_op_spread_half(const cd_library_op_spread *s, double predicted_s,
                                 const cd_library_op_apart *a, double level) {
    double between, rest;
    parts_at(s, predicted_s, a, &between, &rest);
    rest *= times_at(s, level);
    if (!(s->freedom > 0)) return rest;
    const double freedom =
        a->other && s->other_freedom > 0 ? fmin(s->other_freedom, s->freedom) : s->freedom;
    return hypot(rest, between * cd_normal_student((1 + level) / 2, freedom));
}

/* Of the interval of 0.9, in which few devices make the common part wider. */
double cd_library_op_spread_shared(const cd_library_op_spread *s, double predicted_s,
                                   const cd_library_op_apart *a) {
    double between, rest;
    if (!(s->freedom > 0)) return s->shared;
    parts_at(s, predicted_s, a, &between, &rest);
    const double own = rest * times_at(s, 0.9) / cd_library_op_spread_half(s, predicted_s, a, 0.9);
    return 1 - own * own;
}

/* What classes tell of one another: how far devices differ, and by how much more where no device of
 * the stack was trained on. */

#define LEAST_SQUARE 1e-8

/* Mean squares of a class, devices held out. */
typedef struct {
    double between, rest, far;
    bool any;
} base;

static double mean_square(const double *v, size_t n) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += v[k] * v[k] / (double)n;
    return fmax(sum, LEAST_SQUARE);
}

static size_t library_op_entries_raw(cd_library_op_entries *f, const cd_library_op_want *w,
                                     double far, cd_library_op_spread *s);

/* The median: a class that no tree extrapolates well, or whose devices agree by chance, says little
 * of the others. */
static void pool_classes(cd_library_op_entries *f, cd_library_op_held held,
                         base of[CD_N_LIBRARY_OP_CLASS]) {
    double between[CD_N_LIBRARY_OP_CLASS];
    size_t n = 0;
    for (uint32_t c = 0; c < CD_N_LIBRARY_OP_CLASS; c++) {
        cd_library_op_spread s;
        const cd_library_op_want w = {held, 1u << c, CD_LIBRARY_OP_ANY_DEVICE,
                                      CD_LIBRARY_OP_ANY_DEVICE};
        of[c].any = library_op_entries_raw(f, &w, -1, &s) && s.n_device > 1;
        if (!of[c].any) continue;
        of[c] =
            (base){mean_square(s.between, s.n_knot), mean_square(s.scale, s.n_knot), s.far, true};
        between[n++] = of[c].between;
    }
    cd_sort_doubles(between, n);
    f->prior[held] = n > 1 ? cd_sort_median(between, n) : 0;
}

typedef struct {
    double between, rest, n; /* sums of ratios to the class's own mean squares */
} ratio;

static void add(cd_library_op_entries *f, const base of[CD_N_LIBRARY_OP_CLASS],
                cd_library_op_want w, ratio *to) {
    for (uint32_t c = 0; c < CD_N_LIBRARY_OP_CLASS; c++) {
        cd_library_op_spread s;
        w.classes = 1u << c;
        if (!of[c].any || !library_op_entries_raw(f, &w, of[c].far, &s)) continue;
        to->between += mean_square(s.between, s.n_knot) / of[c].between;
        to->rest += mean_square(s.scale, s.n_knot) / of[c].rest;
        to->n++;
    }
}

static uint32_t count_pool(const cd_library_op_entries *f, bool stacks) {
    uint32_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        const cd_library_op_residual *r = &f->r[i];
        const uint32_t v = stacks ? r->stack : r->device;
        if (r->held == (stacks ? CD_LIBRARY_OP_HELD_STACK : CD_LIBRARY_OP_HELD_DEVICE) && v >= n)
            n = v + 1;
    }
    return n;
}

/* Stacks held out, each stack and class the same; else the device that errs most. */
static void pool_stacks(cd_library_op_entries *f, const base of[CD_N_LIBRARY_OP_CLASS]) {
    ratio all = {0, 0, 0};
    double stacks = 0;
    for (uint32_t s = 0; s < count_pool(f, true); s++) {
        const double before = all.n;
        add(f, of, (cd_library_op_want){CD_LIBRARY_OP_HELD_STACK, 0, CD_LIBRARY_OP_ANY_DEVICE, s},
            &all);
        stacks += all.n > before;
    }
    f->other_freedom = CD_LIBRARY_OP_PRIOR_DEVICES + (stacks > 0 ? stacks - 1 : 0);
    if (all.n > 0) {
        f->other[0] = sqrt(fmax(1, all.between / all.n));
        f->other[1] = sqrt(fmax(1, all.rest / all.n));
        return;
    }
    f->other[0] = f->other[1] = 1;
    for (uint32_t d = 0; d < count_pool(f, false); d++) {
        ratio one = {0, 0, 0};
        add(f, of, (cd_library_op_want){CD_LIBRARY_OP_HELD_DEVICE, 0, d, CD_LIBRARY_OP_ANY_DEVICE},
            &one);
        if (!(one.n > 0)) continue;
        f->other[0] = fmax(f->other[0], sqrt(one.between / one.n));
        f->other[1] = fmax(f->other[1], sqrt(one.rest / one.n));
    }
}

/* Fill f->prior, f->other. */
static void library_op_entries_pool(cd_library_op_entries *f) {
    base large[CD_N_LIBRARY_OP_CLASS] = {{0}}, device[CD_N_LIBRARY_OP_CLASS] = {{0}};
    f->prior[CD_LIBRARY_OP_HELD_ROW] = 0;
    pool_classes(f, CD_LIBRARY_OP_HELD_LARGE, large);
    pool_classes(f, CD_LIBRARY_OP_HELD_DEVICE, device);
    pool_stacks(f, device);
}

enum { MIN_OF_DEVICE = 100, MIN_DEVICES = 3 };

/* ---- points ---- */
static int by_group(const void *a, const void *b) {
    const cd_library_op_point *x = a, *y = b;
    return (x->group > y->group) - (x->group < y->group);
}

/* Points come sorted by group; returns how many devices they are of. */
static uint64_t weigh(cd_library_op_point *p, size_t n) {
    uint64_t devices = 0;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && p[end].group == p[i].group; end++) {
        }
        for (size_t k = i; k < end; k++) p[k].weight = 1 / (double)(end - i);
        bool again = false;
        for (size_t k = 0; k < i && !again; k++) again = p[k].device == p[i].device;
        devices += !again;
    }
    return devices;
}

/* A stack that is left out is so with its devices that were held out alone. */
static bool is_of(const cd_library_op_entries *f, const cd_library_op_residual *r,
                  const cd_library_op_want *w) {
    const cd_library_op_residual *x = f->without;
    if (x && r->held == x->held && r->part == x->part) return false;
    if (x && x->held == CD_LIBRARY_OP_HELD_STACK && r->held == CD_LIBRARY_OP_HELD_DEVICE &&
        r->stack == x->part)
        return false;
    return r->held == w->held && (w->classes >> r->class & 1) &&
           (w->device == CD_LIBRARY_OP_ANY_DEVICE || r->device == w->device) &&
           (w->stack == CD_LIBRARY_OP_ANY_DEVICE || r->stack == w->stack);
}

static double mean_distance(const cd_library_op_point *p, size_t n) {
    double sum = 0, weight = 0;
    for (size_t i = 0; i < n; i++) {
        sum += p[i].weight * p[i].distance;
        weight += p[i].weight;
    }
    return sum / weight;
}

/* Scales of the wanted residuals, before other classes count; the points are f->p, less what the
 * rows of a device have in common. far: as in the entry; below 0: the mean of these residuals.
 * Returns how many; 0: too few. */
static size_t library_op_entries_raw(cd_library_op_entries *f, const cd_library_op_want *w,
                                     double far, cd_library_op_spread *s) {
    const bool large = w->held == CD_LIBRARY_OP_HELD_LARGE,
               alone = w->held == CD_LIBRARY_OP_HELD_ROW;
    size_t n = 0;
    *s = (cd_library_op_spread){.held = w->held, .classes = w->classes, .device = w->device};
    for (size_t i = 0; i < f->n; i++)
        if (is_of(f, &f->r[i], w))
            f->p[n++] = (cd_library_op_point){
                .at = large ? f->r[i].reach : log(f->r[i].predicted_s),
                .r = f->r[i].log_ratio,
                .distance = large || alone ? 0 : f->r[i].distance,
                .device = f->r[i].device,
                .group = f->r[i].device * CD_N_LIBRARY_OP_CLASS + (uint32_t)f->r[i].class};
    if (n < CD_LIBRARY_OP_MIN_ROWS) return 0;
    qsort(f->p, n, sizeof *f->p, by_group);
    s->n_row = n;
    s->n_device = weigh(f->p, n);
    s->far = far < 0 ? mean_distance(f->p, n) : far;
    library_op_knots_fit(f->p, n, !alone && (!large || s->n_device > 1), s);
    return n;
}

/* ---- entries ---- */
static cdmpp_status put(cd_library_op_entries *f, const cd_library_op_spread *s, cdmpp_err *err) {
    if (f->n_out == f->room) {
        const size_t room = f->room ? 2 * f->room : 64;
        cd_library_op_spread *v = cd_mem_realloc(f->out, f->room * sizeof *v, room * sizeof *v);
        if (!v) return CD_FAIL(err, ENOMEM, "%zu intervals", room);
        f->out = v;
        f->room = room;
    }
    f->out[f->n_out++] = *s;
    return CDMPP_OK;
}

/* The other classes count as some devices more. The mean square is around 0, so each device gives a
 * degree of freedom. */
static void pool(const cd_library_op_entries *f, cd_library_op_spread *s) {
    const double n = (double)s->n_device, prior = f->prior[s->held],
                 more = prior > 0 ? CD_LIBRARY_OP_PRIOR_DEVICES : 0;
    for (size_t k = 0; k < s->n_knot; k++)
        s->between[k] = sqrt((n * s->between[k] * s->between[k] + more * prior) / (n + more));
    s->freedom = n + more;
    if (s->held != CD_LIBRARY_OP_HELD_DEVICE) return;
    memcpy(s->other, f->other, sizeof s->other);
    s->other_freedom = f->other_freedom;
}

/* The entry that is wanted, if there are rows and devices enough. */
static cdmpp_status fit_one(cd_library_op_entries *f, cd_library_op_held held, uint32_t classes,
                            uint32_t device, cdmpp_err *err) {
    const cd_library_op_want w = {held, classes, device, CD_LIBRARY_OP_ANY_DEVICE};
    cd_library_op_spread s;
    const size_t n = library_op_entries_raw(f, &w, -1, &s);
    if (!n || (device != CD_LIBRARY_OP_ANY_DEVICE && n < MIN_OF_DEVICE)) return CDMPP_OK;
    if (held == CD_LIBRARY_OP_HELD_DEVICE && s.n_device < MIN_DEVICES) return CDMPP_OK;
    if (s.between[0] > 0) pool(f, &s);
    if (held == CD_LIBRARY_OP_HELD_LARGE) library_op_knots_rise(&s);
    library_op_knots_times(f->p, n, &s);
    return put(f, &s, err);
}

static uint32_t n_device(const cd_library_op_entries *f) {
    uint32_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->r[i].device >= n) n = f->r[i].device + 1;
    return n;
}

/* Who answers for what is held out. */
static cd_library_op_held entry_of(cd_library_op_held h) {
    return h == CD_LIBRARY_OP_HELD_STACK ? CD_LIBRARY_OP_HELD_DEVICE : h;
}

/* All entries into f->out. Errors: ENOMEM.
 *
 * From narrow to wide; a class alone in a wider entry is asked for before all classes. What a
 * device has in common with itself is one draw, so only rows of like sizes have entries of one
 * device. */
static cdmpp_status library_op_entries_fit(cd_library_op_entries *f, cdmpp_err *err) {
    static const uint32_t products =
                              1u << CD_LIBRARY_OP_CLASS_BMM | 1u << CD_LIBRARY_OP_CLASS_LINEAR,
                          all = (1u << CD_N_LIBRARY_OP_CLASS) - 1;
    if (!f->without || f->without->held != CD_LIBRARY_OP_HELD_ROW) library_op_entries_pool(f);
    for (int h = 0; h < CD_LIBRARY_OP_N_ENTRY; h++) {
        const cd_library_op_held held = (cd_library_op_held)h;
        if (f->without && held != entry_of(f->without->held)) continue;
        for (uint32_t d = 0; held == CD_LIBRARY_OP_HELD_ROW && d < n_device(f); d++)
            for (uint32_t c = 0; c < CD_N_LIBRARY_OP_CLASS; c++)
                CD_TRY(fit_one(f, held, 1u << c, d, err));
        for (uint32_t c = 0; c < CD_N_LIBRARY_OP_CLASS; c++)
            CD_TRY(fit_one(f, held, 1u << c, CD_LIBRARY_OP_ANY_DEVICE, err));
        CD_TRY(fit_one(f, held, products, CD_LIBRARY_OP_ANY_DEVICE, err));
        CD_TRY(fit_one(f, held, all, CD_LIBRARY_OP_ANY_DEVICE, err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_library_op_spread_fit(const cd_library_op_residual *r, size_t n, cd_arena *a,
                                      cd_library_op_spread **out, size_t *n_out, cdmpp_err *err) {
    cd_library_op_entries f = {.r = r, .n = n, .p = cd_mem_zalloc(n + 1, sizeof *f.p)};
    *n_out = 0;
    cdmpp_status st = CDMPP_OK;
    if (!f.p) st = CD_FAIL(err, ENOMEM, "%zu residuals", n);
    if (!st) st = library_op_entries_fit(&f, err);
    if (!st && !(*out = CD_NEWN(a, cd_library_op_spread, f.n_out + 1)))
        st = CD_FAIL(err, ENOMEM, "%zu intervals", f.n_out);
    if (!st && f.n_out) memcpy(*out, f.out, f.n_out * sizeof *f.out);
    if (!st) *n_out = f.n_out;
    cd_mem_free(f.p);
    cd_mem_free(f.out);
    return st;
}

const cd_library_op_spread *cd_library_op_spread_find(const cd_library_op_spread *v, size_t n,
                                                      cd_library_op_held held,
                                                      cd_library_op_class c, uint32_t device) {
    for (size_t i = 0; i < n; i++)
        if (v[i].held == held && (v[i].classes >> c & 1) &&
            (v[i].device == device || v[i].device == CD_LIBRARY_OP_ANY_DEVICE))
            return &v[i];
    return NULL;
}

/* ---- check ---- */
static void count(const cd_library_op_entries *f, double level, cd_library_op_coverage *out) {
    const cd_library_op_held held = f->without->held, entry = entry_of(held);
    bool any[CD_N_LIBRARY_OP_CLASS + 1] = {false};
    for (size_t i = 0; i < f->n; i++) {
        const cd_library_op_residual *r = &f->r[i];
        if (r->held != held || r->part != f->without->part) continue;
        const uint32_t of_device =
            entry == CD_LIBRARY_OP_HELD_DEVICE ? CD_LIBRARY_OP_ANY_DEVICE : r->device;
        const cd_library_op_apart apart = {r->reach, r->distance, held == CD_LIBRARY_OP_HELD_STACK};
        const cd_library_op_spread *s =
            cd_library_op_spread_find(f->out, f->n_out, entry, r->class, of_device);
        if (!s) continue;
        const bool inside =
            fabs(r->log_ratio) <= cd_library_op_spread_half(s, r->predicted_s, &apart, level);
        const size_t of[] = {(size_t)r->class, CD_N_LIBRARY_OP_CLASS};
        for (size_t k = 0; k < 2; k++) {
            out[of[k]].n++;
            out[of[k]].inside += inside;
            any[of[k]] = true;
        }
    }
    for (size_t c = 0; c <= CD_N_LIBRARY_OP_CLASS; c++) out[c].parts += any[c];
}

cdmpp_status cd_library_op_spread_check(const cd_library_op_residual *r, size_t n,
                                        cd_library_op_held held, double level,
                                        cd_library_op_coverage out[CD_N_LIBRARY_OP_CLASS + 1],
                                        cdmpp_err *err) {
    cd_library_op_entries f = {.r = r, .n = n, .p = cd_mem_zalloc(n + 1, sizeof *f.p)};
    cdmpp_status st = CDMPP_OK;
    if (!f.p) st = CD_FAIL(err, ENOMEM, "%zu residuals", n);
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++)
        if (r[i].held == held && r[i].part >= top) top = r[i].part + 1;
    memset(out, 0, (CD_N_LIBRARY_OP_CLASS + 1) * sizeof *out);
    for (uint32_t part = 0; !st && part < top; part++) {
        const cd_library_op_residual without = {.held = held, .part = part};
        f.without = &without;
        f.n_out = 0;
        st = library_op_entries_fit(&f, err);
        if (!st) count(&f, level, out);
    }
    cd_mem_free(f.p);
    cd_mem_free(f.out);
    return st;
}
