/* Intervals of operators: coverage on residuals of known noise, devices that were not seen, levels, what is too little. */
#include "learner/operators/operators.h"
#include "check.h"

#include <math.h>
#include <stdlib.h>

#include "base/core/core.h"

enum { ROWS = 400 };
typedef struct made {
    cd_library_op_residual *r;
    size_t n;
} made;

static double normal(uint64_t seed, uint64_t i) {
    return sqrt(-2 * log(1 - cd_rng_unit(seed, 2 * i))) * cos(6.283185307179586 * cd_rng_unit(seed, 2 * i + 1));
}

/* `rows` residuals of each device: an error that the device has in all rows, and noise that is 0.2 below 0.1 ms and 0.05 above. */
static made make(cd_library_op_held held, size_t devices, size_t rows, double of_device, double noise, uint64_t seed) {
    made m = {calloc(devices * rows, sizeof *m.r), devices * rows};
    for (size_t i = 0; i < m.n; i++) {
        const size_t d = i / rows;
        const double s = 1e-5 * pow(100, cd_rng_unit(seed, i)); /* 0.01 to 1 ms */
        const double width = noise * (s < 1e-4 ? 4 : 1);
        m.r[i] = (cd_library_op_residual){.held = held, .class = CD_LIBRARY_OP_CLASS_SOFTMAX, .device = (uint32_t)d, .part = (uint32_t)(held == CD_LIBRARY_OP_HELD_DEVICE ? d : i % 4),
                                          .predicted_s = s, .log_ratio = of_device * normal(seed + 1, d) + width * normal(seed + 2, i)};
    }
    return m;
}

static double covered(const made *m, const cd_library_op_spread *v, size_t n, uint32_t device, double level, double from, double to) {
    size_t inside = 0, all = 0;
    for (size_t i = 0; i < m->n; i++) {
        const cd_library_op_residual *r = &m->r[i];
        const cd_library_op_spread *s = cd_library_op_spread_find(v, n, r->held, r->class, device);
        assert_non_null(s);
        if (r->predicted_s < from || r->predicted_s >= to) continue;
        all++;
        inside += fabs(r->log_ratio) <= cd_library_op_spread_half(s, r->predicted_s, r->reach, level);
    }
    return (double)inside / (double)all;
}

TEST(rows_are_covered) {
    static const double level[] = {0.5, 0.6, 0.8, 0.9, 0.95};
    made m = make(CD_LIBRARY_OP_HELD_ROW, 4, ROWS, 0, 0.05, 1), fresh = make(CD_LIBRARY_OP_HELD_ROW, 4, 2000, 0, 0.05, 50);
    cd_arena a = {0};
    cd_library_op_spread *v;
    size_t n;
    cdmpp_err err = {0};
    assert_ok(cd_library_op_spread_fit(m.r, m.n, &a, &v, &n, &err));
    for (size_t k = 0; k < sizeof level / sizeof *level; k++) assert_close(covered(&fresh, v, n, 9, level[k], 0, 1), level[k], 0, 0.02);
    assert_close(covered(&fresh, v, n, 9, 0.9, 0, 5e-5), 0.9, 0, 0.04); /* and the noisy small ones apart from the others */
    assert_close(covered(&fresh, v, n, 9, 0.9, 2e-4, 1), 0.9, 0, 0.04);
    assert_true(cd_library_op_spread_find(v, n, CD_LIBRARY_OP_HELD_ROW, CD_LIBRARY_OP_CLASS_SOFTMAX, 2)->device == 2);
    assert_true(cd_library_op_spread_find(v, n, CD_LIBRARY_OP_HELD_ROW, CD_LIBRARY_OP_CLASS_SOFTMAX, 7)->device == CD_LIBRARY_OP_ANY_DEVICE);
    /* a class that no residual is of: what all classes have */
    const cd_library_op_spread *other = cd_library_op_spread_find(v, n, CD_LIBRARY_OP_HELD_ROW, CD_LIBRARY_OP_CLASS_CONV, 2);
    assert_true(other && other->classes == (1u << CD_N_LIBRARY_OP_CLASS) - 1);
    assert_null(cd_library_op_spread_find(v, n, CD_LIBRARY_OP_HELD_DEVICE, CD_LIBRARY_OP_CLASS_SOFTMAX, 2));
    free(m.r), free(fresh.r);
    cd_arena_free(&a);
}

/* Many sets of seven devices: an eighth is inside about as often as the level says. */
TEST(new_devices_are_covered) {
    double sum = 0, seen = 0, shared = 0;
    cdmpp_err err = {0};
    for (uint64_t k = 0; k < 60; k++) {
        made m = make(CD_LIBRARY_OP_HELD_DEVICE, 7, 100, 0.3, 0.05, 100 + 10 * k), fresh = make(CD_LIBRARY_OP_HELD_DEVICE, 1, 100, 0.3, 0.05, 9000 + 10 * k);
        cd_arena a = {0};
        cd_library_op_spread *v;
        size_t n;
        assert_ok(cd_library_op_spread_fit(m.r, m.n, &a, &v, &n, &err));
        sum += covered(&fresh, v, n, CD_LIBRARY_OP_ANY_DEVICE, 0.9, 0, 1);
        seen += cd_library_op_spread_half(v, 1e-3, 0, 0.9);
        shared += v->shared;
        assert_int_equal(v->n_device, 7);
        free(m.r), free(fresh.r);
        cd_arena_free(&a);
    }
    assert_in_range((int)(1000 * sum / 60), 830, 960);
    assert_true(seen / 60 > 0.3);                        /* noise alone would be 0.08 */
    assert_true(shared / 60 > 0.7 && shared / 60 <= 1);  /* 0.3^2 of 0.3^2 + the mean noise^2 */
}

TEST(levels_rise) {
    made m = make(CD_LIBRARY_OP_HELD_ROW, 3, ROWS, 0, 0.05, 3), law = make(CD_LIBRARY_OP_HELD_ROW, 3, ROWS, 0, 0, 3);
    cd_arena a = {0};
    cd_library_op_spread *v;
    size_t n;
    cdmpp_err err = {0};
    for (int k = 0; k < 2; k++) {
        assert_ok(cd_library_op_spread_fit(k ? law.r : m.r, m.n, &a, &v, &n, &err));
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++) {
            double last = 0;
            for (double level = 0.01; level < 0.9995; level += 0.01) {
                const double half = cd_library_op_spread_half(&v[i], 3e-4, 0, level);
                assert_true(isfinite(half) && (k ? half >= last : half > last));
                last = half;
            }
            assert_true(cd_library_op_spread_half(&v[i], 3e-4, 0, 0.5) > 0); /* no noise at all: narrow, but no point */
        }
    }
    free(m.r), free(law.r);
    cd_arena_free(&a);
}

TEST(too_little) {
    made rows = make(CD_LIBRARY_OP_HELD_ROW, 1, 29, 0, 0.05, 5), two = make(CD_LIBRARY_OP_HELD_DEVICE, 2, ROWS, 0.3, 0.05, 6);
    made three = make(CD_LIBRARY_OP_HELD_DEVICE, 3, ROWS, 0.3, 0.05, 6);
    cd_arena a = {0};
    cd_library_op_spread *v;
    size_t n;
    cdmpp_err err = {0};
    assert_ok(cd_library_op_spread_fit(rows.r, rows.n, &a, &v, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(cd_library_op_spread_fit(two.r, two.n, &a, &v, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(cd_library_op_spread_fit(NULL, 0, &a, &v, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(cd_library_op_spread_fit(three.r, three.n, &a, &v, &n, &err));
    assert_int_equal(n, 2); /* the class, and all classes */
    assert_close(v[0].times[2], v[1].times[2], 1e-12, 0);
    free(rows.r), free(two.r), free(three.r);
    cd_arena_free(&a);
}

/* Each part is asked of what was fitted without it: a device whose errors are ten times the others' is outside. */
TEST(check_leaves_the_part_out) {
    made m = make(CD_LIBRARY_OP_HELD_DEVICE, 5, 200, 0, 0.05, 8);
    cd_library_op_coverage c[CD_N_LIBRARY_OP_CLASS + 1];
    cdmpp_err err = {0};
    for (size_t i = 0; i < m.n; i++)
        if (m.r[i].device == 1) m.r[i].log_ratio = 3;
    assert_ok(cd_library_op_spread_check(m.r, m.n, CD_LIBRARY_OP_HELD_DEVICE, 0.9, c, &err));
    assert_true(c[CD_LIBRARY_OP_CLASS_SOFTMAX].n == 1000 && c[CD_N_LIBRARY_OP_CLASS].n == 1000 && c[CD_LIBRARY_OP_CLASS_BMM].n == 0);
    assert_int_equal(c[CD_LIBRARY_OP_CLASS_SOFTMAX].parts, 5);
    assert_int_equal(c[CD_LIBRARY_OP_CLASS_SOFTMAX].inside, 800); /* and the others, whose intervals know that device, inside */
    free(m.r);
}

/* Errors grow with the distance: 0.05 at the limit, 0.05 more an octave. Rows up to two octaves beyond tell what four octaves are like. */
TEST(far_beyond_is_wider) {
    made m = make(CD_LIBRARY_OP_HELD_LARGE, 3, 2000, 0, 0, 21);
    cd_arena a = {0};
    cd_library_op_spread *v;
    size_t n;
    cdmpp_err err = {0};
    for (size_t i = 0; i < m.n; i++) {
        m.r[i].reach = 2 * cd_rng_unit(22, i);
        m.r[i].log_ratio = 0.05 * (1 + m.r[i].reach) * normal(23, i);
    }
    assert_ok(cd_library_op_spread_fit(m.r, m.n, &a, &v, &n, &err));
    const cd_library_op_spread *s = cd_library_op_spread_find(v, n, CD_LIBRARY_OP_HELD_LARGE, CD_LIBRARY_OP_CLASS_SOFTMAX, 1);
    assert_non_null(s);
    for (int octaves = 0; octaves <= 5; octaves++) /* 1.645: of a normal distribution at 0.9 */
        assert_close(cd_library_op_spread_half(s, 1e-3, octaves, 0.9), 1.645 * 0.05 * (1 + octaves), octaves ? 0.2 : 0.4, 0);
    assert_close(cd_library_op_spread_half(s, 1e-9, 1, 0.9), cd_library_op_spread_half(s, 1, 1, 0.9), 1e-12, 0); /* whatever the time */
    /* the other way round: what is farther away is never better known */
    for (size_t i = 0; i < m.n; i++) m.r[i].log_ratio = 0.05 * (3 - m.r[i].reach) * normal(23, i);
    assert_ok(cd_library_op_spread_fit(m.r, m.n, &a, &v, &n, &err));
    for (size_t i = 0; i < n; i++)
        for (double reach = 0; reach < 6; reach += 0.25)
            assert_true(cd_library_op_spread_half(&v[i], 1e-3, reach + 0.25, 0.9) >= cd_library_op_spread_half(&v[i], 1e-3, reach, 0.9));
    free(m.r);
    cd_arena_free(&a);
}

TESTS(NULL, NULL, far_beyond_is_wider, rows_are_covered, new_devices_are_covered, levels_rise, too_little, check_leaves_the_part_out)
