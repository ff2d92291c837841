/* What classes tell of one another: how far devices differ, and by how much more where no device of
 * the stack was trained on. */
#include <math.h>

#include "learner/operators/library_op_interval_internal.h"

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
        of[c].any = cd_library_op_entries_raw(f, &w, -1, &s) && s.n_device > 1;
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
        if (!of[c].any || !cd_library_op_entries_raw(f, &w, of[c].far, &s)) continue;
        to->between += mean_square(s.between, s.n_knot) / of[c].between;
        to->rest += mean_square(s.scale, s.n_knot) / of[c].rest;
        to->n++;
    }
}

static uint32_t count(const cd_library_op_entries *f, bool stacks) {
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
    for (uint32_t s = 0; s < count(f, true); s++) {
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
    for (uint32_t d = 0; d < count(f, false); d++) {
        ratio one = {0, 0, 0};
        add(f, of, (cd_library_op_want){CD_LIBRARY_OP_HELD_DEVICE, 0, d, CD_LIBRARY_OP_ANY_DEVICE},
            &one);
        if (!(one.n > 0)) continue;
        f->other[0] = fmax(f->other[0], sqrt(one.between / one.n));
        f->other[1] = fmax(f->other[1], sqrt(one.rest / one.n));
    }
}

void cd_library_op_entries_pool(cd_library_op_entries *f) {
    base large[CD_N_LIBRARY_OP_CLASS] = {{0}}, device[CD_N_LIBRARY_OP_CLASS] = {{0}};
    f->prior[CD_LIBRARY_OP_HELD_ROW] = 0;
    pool_classes(f, CD_LIBRARY_OP_HELD_LARGE, large);
    pool_classes(f, CD_LIBRARY_OP_HELD_DEVICE, device);
    pool_stacks(f, device);
}
