/* Intervals of operator models: a scale that depends on the predicted time, and quantiles of what is left. */
#include "learner/operators/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/inputs/inputs.h"

enum { MIN_OF_DEVICE = 100, MIN_ROWS = 30, MIN_DEVICES = 3, ROWS_A_KNOT = 50 };
#define LEAST_SCALE 1e-4 /* of tables whose times are a law: a width of 0 would be a lie */

const double cd_library_op_level[CD_LIBRARY_OP_LEVELS] = {0.5, 0.8, 0.9, 0.95, 0.99};

/* A residual with the weight that makes each class of each device count the same. */
typedef struct {
    double at, r, weight; /* at: what the scale depends on */
    uint32_t group, device;
} point;

static int by_at(const void *a, const void *b) {
    const point *x = a, *y = b;
    if (x->at < y->at || x->at > y->at) return x->at < y->at ? -1 : 1;
    return (x->r > y->r) - (x->r < y->r);
}

static int by_group(const void *a, const void *b) {
    const point *x = a, *y = b;
    return x->group != y->group ? (x->group < y->group ? -1 : 1) : by_at(a, b);
}

static int by_r(const void *a, const void *b) {
    const point *x = a, *y = b;
    return (x->r > y->r) - (x->r < y->r);
}

/* Points come sorted by group; returns how many devices they are of. */
static uint64_t weigh(point *p, size_t n) {
    uint64_t devices = 0;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && p[end].group == p[i].group; end++) {}
        for (size_t k = i; k < end; k++) p[k].weight = 1 / (double)(end - i);
        bool again = false;
        for (size_t k = 0; k < i && !again; k++) again = p[k].device == p[i].device;
        devices += !again;
    }
    return devices;
}

/* Part of the mean square that is the square of the devices' means. */
static double shared_of(const point *p, size_t n) {
    double squares = 0, means = 0;
    for (size_t i = 0, end; i < n; i = end) {
        double sum = 0, square = 0;
        for (end = i; end < n && p[end].group == p[i].group; end++) {
            sum += p[end].r * p[end].weight;
            square += p[end].r * p[end].r * p[end].weight;
        }
        means += sum * sum;
        squares += square;
    }
    return squares > 0 ? fmin(1, means / squares) : 0;
}

/* What the scale of an entry depends on. */
static double place(const cd_library_op_spread *s, double predicted_s, double reach) {
    return s->held == CD_LIBRARY_OP_HELD_LARGE ? reach : log(predicted_s);
}

/* Knots hold the same number of points each. Points come sorted by time. */
static void fit_scale(const point *p, size_t n, cd_library_op_spread *s) {
    const size_t most = n / ROWS_A_KNOT;
    const size_t want = most < 1 ? 1 : most > CD_LIBRARY_OP_KNOTS ? CD_LIBRARY_OP_KNOTS : most;
    for (size_t k = 0; k < want; k++) {
        double weight = 0, square = 0, at = 0;
        for (size_t i = k * n / want; i < (k + 1) * n / want; i++) {
            weight += p[i].weight;
            at += p[i].weight * p[i].at;
            square += p[i].weight * p[i].r * p[i].r;
        }
        at /= weight;
        if (s->n_knot && !(at > s->at[s->n_knot - 1])) continue; /* one time for all */
        s->at[s->n_knot] = at;
        s->scale[s->n_knot++] = fmax(sqrt(square / weight), LEAST_SCALE);
    }
}

/* What is farther away is never better known. */
static void make_rising(cd_library_op_spread *s) {
    for (size_t k = 1; k < s->n_knot; k++) s->scale[k] = fmax(s->scale[k], s->scale[k - 1]);
}

/* From the first knot to the last: a line through the middle knots would depend on which of them are there. */
static double slope_of(const cd_library_op_spread *s) {
    const size_t last = s->n_knot - 1;
    return last ? (s->scale[last] - s->scale[0]) / (s->at[last] - s->at[0]) : 0;
}

static double scale_at(const cd_library_op_spread *s, double at) {
    size_t k = 0;
    while (k < s->n_knot && at > s->at[k]) k++;
    if (!k) return s->scale[0];
    if (k == s->n_knot) return s->scale[k - 1] + (s->held == CD_LIBRARY_OP_HELD_LARGE ? slope_of(s) * (at - s->at[k - 1]) : 0);
    const double t = (at - s->at[k - 1]) / (s->at[k] - s->at[k - 1]);
    return s->scale[k - 1] * pow(s->scale[k] / s->scale[k - 1], t);
}

/* Weighted quantiles of |r| / scale; one point more at the far end makes up for the points being few. */
static void fit_times(point *p, size_t n, cd_library_op_spread *s) {
    double total = 0, sum = 0;
    for (size_t i = 0; i < n; i++) {
        p[i].r = fabs(p[i].r) / scale_at(s, p[i].at);
        total += p[i].weight;
    }
    qsort(p, n, sizeof *p, by_r);
    total *= 1 + 1 / (double)n;
    const double few = s->held == CD_LIBRARY_OP_HELD_DEVICE ? sqrt(1 + 1 / (double)s->n_device) : 1;
    for (size_t i = 0, k = 0; k < CD_LIBRARY_OP_LEVELS && i < n; i++) {
        sum += p[i].weight;
        while (k < CD_LIBRARY_OP_LEVELS && (sum >= cd_library_op_level[k] * total || i + 1 == n)) s->times[k++] = few * fmax(p[i].r, 1e-3);
    }
}

/* ---- entries ---- */
typedef struct {
    const cd_library_op_residual *r;
    size_t n;
    const cd_library_op_residual *without; /* NULL, or one whose part is left out */
    point *p;                              /* (n) */
    cd_library_op_spread *out;             /* (room) */
    size_t n_out, room;
} fitting;

static bool is_of(const fitting *f, const cd_library_op_residual *r, const cd_library_op_spread *s) {
    return r->held == s->held && (s->classes >> r->class & 1) && (s->device == CD_LIBRARY_OP_ANY_DEVICE || r->device == s->device) &&
           !(f->without && r->part == f->without->part && r->held == f->without->held);
}

static cdmpp_status put(fitting *f, const cd_library_op_spread *s, cdmpp_err *err) {
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

/* The entry that `s` names, if there are rows and devices enough. */
static cdmpp_status fit_one(fitting *f, cd_library_op_spread s, cdmpp_err *err) {
    const bool devices = s.held == CD_LIBRARY_OP_HELD_DEVICE;
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (is_of(f, &f->r[i], &s))
            f->p[n++] = (point){.at = place(&s, f->r[i].predicted_s, f->r[i].reach), .r = f->r[i].log_ratio, .device = f->r[i].device,
                                .group = f->r[i].device * CD_N_LIBRARY_OP_CLASS + (uint32_t)f->r[i].class};
    if (n < (s.device == CD_LIBRARY_OP_ANY_DEVICE ? MIN_ROWS : MIN_OF_DEVICE)) return CDMPP_OK;
    qsort(f->p, n, sizeof *f->p, by_group);
    s.n_row = n;
    s.n_device = weigh(f->p, n);
    if (devices && s.n_device < MIN_DEVICES) return CDMPP_OK;
    s.shared = devices ? shared_of(f->p, n) : 0;
    qsort(f->p, n, sizeof *f->p, by_at);
    fit_scale(f->p, n, &s);
    if (s.held == CD_LIBRARY_OP_HELD_LARGE) make_rising(&s);
    fit_times(f->p, n, &s);
    return put(f, &s, err);
}

/* From narrow to wide; a class alone in a wider entry is asked for before all classes. */
static cdmpp_status fit_all(fitting *f, cdmpp_err *err) {
    static const uint32_t products = 1u << CD_LIBRARY_OP_CLASS_BMM | 1u << CD_LIBRARY_OP_CLASS_LINEAR, all = (1u << CD_N_LIBRARY_OP_CLASS) - 1;
    uint32_t n_device = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->r[i].device >= n_device) n_device = f->r[i].device + 1;
    for (int h = 0; h < CD_LIBRARY_OP_N_HELD; h++) {
        const cd_library_op_held held = (cd_library_op_held)h;
        if (f->without && held != f->without->held) continue;
        for (uint32_t d = 0; d < n_device && held != CD_LIBRARY_OP_HELD_DEVICE; d++)
            for (uint32_t c = 0; c < CD_N_LIBRARY_OP_CLASS; c++)
                CD_TRY(fit_one(f, (cd_library_op_spread){.held = held, .classes = 1u << c, .device = d}, err));
        for (uint32_t c = 0; c < CD_N_LIBRARY_OP_CLASS; c++)
            CD_TRY(fit_one(f, (cd_library_op_spread){.held = held, .classes = 1u << c, .device = CD_LIBRARY_OP_ANY_DEVICE}, err));
        CD_TRY(fit_one(f, (cd_library_op_spread){.held = held, .classes = products, .device = CD_LIBRARY_OP_ANY_DEVICE}, err));
        CD_TRY(fit_one(f, (cd_library_op_spread){.held = held, .classes = all, .device = CD_LIBRARY_OP_ANY_DEVICE}, err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_library_op_spread_fit(const cd_library_op_residual *r, size_t n, cd_arena *a, cd_library_op_spread **out, size_t *n_out,
                                      cdmpp_err *err) {
    fitting f = {.r = r, .n = n, .p = cd_mem_zalloc(n + 1, sizeof *f.p)};
    *n_out = 0;
    cdmpp_status st = CDMPP_OK;
    if (!f.p) st = CD_FAIL(err, ENOMEM, "%zu residuals", n);
    if (!st) st = fit_all(&f, err);
    if (!st && !(*out = CD_NEWN(a, cd_library_op_spread, f.n_out + 1))) st = CD_FAIL(err, ENOMEM, "%zu intervals", f.n_out);
    if (!st && f.n_out) memcpy(*out, f.out, f.n_out * sizeof *f.out);
    if (!st) *n_out = f.n_out;
    cd_mem_free(f.p);
    cd_mem_free(f.out);
    return st;
}

const cd_library_op_spread *cd_library_op_spread_find(const cd_library_op_spread *v, size_t n, cd_library_op_held held, cd_library_op_class c,
                                                      uint32_t device) {
    for (size_t i = 0; i < n; i++)
        if (v[i].held == held && (v[i].classes >> c & 1) && (v[i].device == device || v[i].device == CD_LIBRARY_OP_ANY_DEVICE))
            return &v[i];
    return NULL;
}

/* Between levels the quantile goes straight over that of the normal distribution, below the first from 0, above the last as before it. */
double cd_library_op_spread_half(const cd_library_op_spread *s, double predicted_s, double reach, double level) {
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
    return scale_at(s, place(s, predicted_s, reach)) * times;
}

/* ---- check ---- */
static void count(const fitting *f, double level, cd_library_op_coverage *out) {
    const bool device = f->without->held == CD_LIBRARY_OP_HELD_DEVICE;
    bool any[CD_N_LIBRARY_OP_CLASS + 1] = {false};
    for (size_t i = 0; i < f->n; i++) {
        const cd_library_op_residual *r = &f->r[i];
        if (r->held != f->without->held || r->part != f->without->part) continue;
        const uint32_t of_device = device ? CD_LIBRARY_OP_ANY_DEVICE : r->device;
        const cd_library_op_spread *s = cd_library_op_spread_find(f->out, f->n_out, r->held, r->class, of_device);
        if (!s) continue;
        const bool inside = fabs(r->log_ratio) <= cd_library_op_spread_half(s, r->predicted_s, r->reach, level);
        const size_t of[] = {(size_t)r->class, CD_N_LIBRARY_OP_CLASS};
        for (size_t k = 0; k < 2; k++) {
            out[of[k]].n++;
            out[of[k]].inside += inside;
            any[of[k]] = true;
        }
    }
    for (size_t c = 0; c <= CD_N_LIBRARY_OP_CLASS; c++) out[c].parts += any[c];
}

cdmpp_status cd_library_op_spread_check(const cd_library_op_residual *r, size_t n, cd_library_op_held held, double level,
                                        cd_library_op_coverage out[CD_N_LIBRARY_OP_CLASS + 1], cdmpp_err *err) {
    fitting f = {.r = r, .n = n, .p = cd_mem_zalloc(n + 1, sizeof *f.p)};
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
        st = fit_all(&f, err);
        if (!st) count(&f, level, out);
    }
    cd_mem_free(f.p);
    cd_mem_free(f.out);
    return st;
}
