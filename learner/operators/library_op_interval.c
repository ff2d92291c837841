/* Intervals of operator models: entries of residuals, from one class of one device to all, and how
 * often they hold. */
#include "learner/operators/library_op_interval_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

size_t cd_library_op_entries_raw(cd_library_op_entries *f, const cd_library_op_want *w, double far,
                                 cd_library_op_spread *s) {
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
    cd_library_op_knots_fit(f->p, n, !alone && (!large || s->n_device > 1), s);
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
    const size_t n = cd_library_op_entries_raw(f, &w, -1, &s);
    if (!n || (device != CD_LIBRARY_OP_ANY_DEVICE && n < MIN_OF_DEVICE)) return CDMPP_OK;
    if (held == CD_LIBRARY_OP_HELD_DEVICE && s.n_device < MIN_DEVICES) return CDMPP_OK;
    if (s.between[0] > 0) pool(f, &s);
    if (held == CD_LIBRARY_OP_HELD_LARGE) cd_library_op_knots_rise(&s);
    cd_library_op_knots_times(f->p, n, &s);
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

/* From narrow to wide; a class alone in a wider entry is asked for before all classes. What a
 * device has in common with itself is one draw, so only rows of like sizes have entries of one
 * device. */
cdmpp_status cd_library_op_entries_fit(cd_library_op_entries *f, cdmpp_err *err) {
    static const uint32_t products =
                              1u << CD_LIBRARY_OP_CLASS_BMM | 1u << CD_LIBRARY_OP_CLASS_LINEAR,
                          all = (1u << CD_N_LIBRARY_OP_CLASS) - 1;
    if (!f->without || f->without->held != CD_LIBRARY_OP_HELD_ROW) cd_library_op_entries_pool(f);
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
    if (!st) st = cd_library_op_entries_fit(&f, err);
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
        st = cd_library_op_entries_fit(&f, err);
        if (!st) count(&f, level, out);
    }
    cd_mem_free(f.p);
    cd_mem_free(f.out);
    return st;
}
