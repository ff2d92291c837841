/* Intervals of operators: coverage on residuals of known noise, devices that were not seen, levels,
 * what is too little. */
#include "learner/operators/operators.h"
#include "check.h"
#include "fault.h"

#include <math.h>
#include <stdlib.h>

#include "base/core/core.h"

enum { ROWS = 400 };
typedef struct made {
    cd_library_op_residual *r;
    size_t n;
} made;

static double normal(uint64_t seed, uint64_t i) {
    return sqrt(-2 * log(1 - cd_rng_unit(seed, 2 * i))) *
           cos(6.283185307179586 * cd_rng_unit(seed, 2 * i + 1));
}

static double half(const cd_library_op_spread *s, double predicted_s, double reach, double level) {
    const cd_library_op_apart a = {.reach = reach, .distance = -1};
    return cd_library_op_spread_half(s, predicted_s, &a, level);
}

/* `rows` residuals of each device: an error that the device has in all rows, and noise that is 0.2
 * below 0.1 ms and 0.05 above. */
static made make(cd_library_op_held held, size_t devices, size_t rows, double of_device,
                 double noise, uint64_t seed) {
    made m = {calloc(devices * rows, sizeof *m.r), devices * rows};
    for (size_t i = 0; i < m.n; i++) {
        const size_t d = i / rows;
        const double s = 1e-5 * pow(100, cd_rng_unit(seed, i)); /* 0.01 to 1 ms */
        const double width = noise * (s < 1e-4 ? 4 : 1);
        m.r[i] = (cd_library_op_residual){
            .held = held,
            .class = CD_LIBRARY_OP_CLASS_SOFTMAX,
            .device = (uint32_t)d,
            .part = (uint32_t)(held == CD_LIBRARY_OP_HELD_DEVICE ? d : i % 4),
            .predicted_s = s,
            .log_ratio = of_device * normal(seed + 1, d) + width * normal(seed + 2, i)};
    }
    return m;
}

static double covered(const made *m, const cd_library_op_spread *v, size_t n, uint32_t device,
                      double level, double from, double to) {
    size_t inside = 0, all = 0;
    for (size_t i = 0; i < m->n; i++) {
        const cd_library_op_residual *r = &m->r[i];
        const cd_library_op_spread *s = cd_library_op_spread_find(v, n, r->held, r->class, device);
        assert_non_null(s);
        if (r->predicted_s < from || r->predicted_s >= to) continue;
        all++;
        inside += fabs(r->log_ratio) <= half(s, r->predicted_s, r->reach, level);
    }
    return (double)inside / (double)all;
}

TEST(rows_are_covered) {
    static const double level[] = {0.5, 0.6, 0.8, 0.9, 0.95};
    made m = make(CD_LIBRARY_OP_HELD_ROW, 4, ROWS, 0, 0.05, 1),
         fresh = make(CD_LIBRARY_OP_HELD_ROW, 4, 2000, 0, 0.05, 50);
    cd_arena a = {0};
    cd_library_op_spread *v;
    size_t n;
    cdmpp_err err = {0};
    assert_ok(cd_library_op_spread_fit(m.r, m.n, &a, &v, &n, &err));
    for (size_t k = 0; k < sizeof level / sizeof *level; k++)
        assert_close(covered(&fresh, v, n, 9, level[k], 0, 1), level[k], 0, 0.02);
    /* and the noisy small ones apart from the others */
    assert_close(covered(&fresh, v, n, 9, 0.9, 0, 5e-5), 0.9, 0, 0.04);
    assert_close(covered(&fresh, v, n, 9, 0.9, 2e-4, 1), 0.9, 0, 0.04);
    assert_true(
        cd_library_op_spread_find(v, n, CD_LIBRARY_OP_HELD_ROW, CD_LIBRARY_OP_CLASS_SOFTMAX, 2)
            ->device == 2);
    assert_true(
        cd_library_op_spread_find(v, n, CD_LIBRARY_OP_HELD_ROW, CD_LIBRARY_OP_CLASS_SOFTMAX, 7)
            ->device == CD_LIBRARY_OP_ANY_DEVICE);
    /* a class that no residual is of: what all classes have */
    const cd_library_op_spread *other =
        cd_library_op_spread_find(v, n, CD_LIBRARY_OP_HELD_ROW, CD_LIBRARY_OP_CLASS_CONV, 2);
    assert_true(other && other->classes == (1u << CD_N_LIBRARY_OP_CLASS) - 1);
    assert_null(
        cd_library_op_spread_find(v, n, CD_LIBRARY_OP_HELD_DEVICE, CD_LIBRARY_OP_CLASS_SOFTMAX, 2));
    free(m.r), free(fresh.r);
    cd_arena_free(&a);
}

/* Mean over many sets of devices, of one class and so without others to learn from: share of a
 * further device's rows that are inside. */
static double new_devices(size_t devices, size_t sets, double of_device, double *width,
                          double *shared) {
    double sum = 0;
    cdmpp_err err = {0};
    *width = *shared = 0;
    for (uint64_t k = 0; k < sets; k++) {
        made m = make(CD_LIBRARY_OP_HELD_DEVICE, devices, 60, of_device, 0.05, 100 + 10 * k);
        made fresh = make(CD_LIBRARY_OP_HELD_DEVICE, 1, 60, of_device, 0.05, 900000 + 10 * k);
        const cd_library_op_apart a = {.distance = -1};
        cd_arena arena = {0};
        cd_library_op_spread *v;
        size_t n;
        assert_ok(cd_library_op_spread_fit(m.r, m.n, &arena, &v, &n, &err));
        sum += covered(&fresh, v, n, CD_LIBRARY_OP_ANY_DEVICE, 0.9, 0, 1);
        *width += half(v, 1e-3, 0, 0.9) / (double)sets;
        *shared += cd_library_op_spread_shared(v, 1e-3, &a) / (double)sets;
        assert_true(v->n_device == devices && v->freedom >= (double)devices);
        free(m.r), free(fresh.r);
        cd_arena_free(&arena);
    }
    return sum / (double)sets;
}

/* A device more is inside about as often as the level says, also where three devices tell. A
 * device's rows are in or out together, so the share has the noise of as many draws as sets: 0.3 /
 * sqrt(300) = 0.017, three times that is allowed. */
TEST(new_devices_are_covered) {
    double width[3], shared[3];
    assert_close(new_devices(7, 300, 0.3, &width[0], &shared[0]), 0.9, 0, 0.052);
    assert_close(new_devices(3, 300, 0.3, &width[1], &shared[1]), 0.9, 0, 0.052);
    /* devices that are all alike */
    assert_close(new_devices(7, 300, 0, &width[2], &shared[2]), 0.9, 0, 0.052);
    /* fewer devices tell less */
    assert_true(width[0] > 1.645 * 0.3 && width[1] > width[0]);
    /* above 0.1 ms the noise alone */
    assert_close(width[2], 1.645 * 0.05, 0.2, 0);
    assert_true(shared[0] > 0.9 && shared[2] < 0.1);
}

/* Never narrower than what the rows of one device differ by; wider the farther the device is, and
 * where its stack is new. */
TEST(farther_devices_are_wider) {
    made m = make(CD_LIBRARY_OP_HELD_DEVICE, 6, ROWS, 0.2, 0.05, 31),
         near = make(CD_LIBRARY_OP_HELD_DEVICE, 6, ROWS, 0, 0.05, 31);
    cd_arena a = {0};
    cd_library_op_spread *v, *w;
    size_t n, n_near;
    cdmpp_err err = {0};
    for (size_t i = 0; i < m.n; i++)
        m.r[i].distance = near.r[i].distance = 0.05 + 0.02 * m.r[i].device;
    assert_ok(cd_library_op_spread_fit(m.r, m.n, &a, &v, &n, &err));
    assert_ok(cd_library_op_spread_fit(near.r, near.n, &a, &w, &n_near, &err));
    assert_close(v->far, 0.1, 1e-9, 0);
    cd_library_op_spread own = *v;
    own.freedom = 0;
    for (double level = 0.1; level < 1; level += 0.2)
        for (double s = 1e-5; s < 1e-3; s *= 2) {
            double last = 0;
            for (double distance = 0; distance < 1; distance += 0.05) {
                const cd_library_op_apart at = {.distance = distance};
                const cd_library_op_apart other = {.distance = distance, .other = true};
                const double same = cd_library_op_spread_half(v, s, &at, level);
                assert_true(same > last && same > cd_library_op_spread_half(&own, s, &at, level));
                assert_true(cd_library_op_spread_half(v, s, &other, level) > same &&
                            cd_library_op_spread_half(w, s, &at, level) < same);
                last = same;
            }
        }
    free(m.r), free(near.r);
    cd_arena_free(&a);
}

/* The devices of one stack were held out together once, and missed by three times as much: what a
 * further stack gets. */
TEST(another_stack_is_wider) {
    made m = make(CD_LIBRARY_OP_HELD_DEVICE, 6, ROWS, 0.1, 0.05, 41),
         far = make(CD_LIBRARY_OP_HELD_STACK, 6, ROWS, 0.1, 0.05, 41);
    cd_library_op_residual *r = calloc(m.n + far.n, sizeof *r);
    cd_library_op_coverage c[CD_N_LIBRARY_OP_CLASS + 1];
    cd_arena a = {0};
    cd_library_op_spread *v;
    size_t n;
    cdmpp_err err = {0};
    for (size_t i = 0; i < m.n; i++) {
        r[i] = m.r[i];
        r[m.n + i] = far.r[i];
        r[i].stack = r[m.n + i].stack = r[m.n + i].part = m.r[i].device > 2;
        r[m.n + i].log_ratio *= 3;
    }
    /* one stack: the device that errs most */
    assert_ok(cd_library_op_spread_fit(r, m.n, &a, &v, &n, &err));
    assert_true(v->other[0] > 1 && v->other[1] >= 1 && v->other_freedom < v->freedom);
    assert_ok(cd_library_op_spread_fit(r, 2 * m.n, &a, &v, &n, &err));
    assert_true(v->held == CD_LIBRARY_OP_HELD_DEVICE && n == 2); /* no entries of stacks */
    assert_close(v->other[0], 3, 0.05, 0);
    assert_close(v->other[1], 3, 0.05, 0);
    assert_ok(cd_library_op_spread_check(r, 2 * m.n, CD_LIBRARY_OP_HELD_STACK, 0.9, c, &err));
    assert_true(c[CD_N_LIBRARY_OP_CLASS].parts == 2 && c[CD_N_LIBRARY_OP_CLASS].n == m.n);
    assert_in_range(c[CD_N_LIBRARY_OP_CLASS].inside, m.n * 3 / 4, m.n);
    /* a stack far off: who is asked for it knows nothing of its devices */
    for (size_t i = 0; i < 2 * m.n; i++) r[i].log_ratio = r[i].stack ? 0.05 * normal(43, i) : 3;
    assert_ok(cd_library_op_spread_check(r, 2 * m.n, CD_LIBRARY_OP_HELD_STACK, 0.9, c, &err));
    assert_int_equal(c[CD_N_LIBRARY_OP_CLASS].inside, m.n / 2);
    free(m.r), free(far.r), free(r);
    cd_arena_free(&a);
}

/* Three devices that agree by chance are not taken for all devices: other classes tell how far
 * devices differ. */
TEST(classes_tell_of_one_another) {
    made m = make(CD_LIBRARY_OP_HELD_DEVICE, 3, 4 * ROWS, 0.3, 0.05, 51);
    cd_arena a = {0};
    cd_library_op_spread *v;
    size_t n;
    cdmpp_err err = {0};
    double with[2];
    for (size_t i = 0; i < m.n; i++) {
        m.r[i].class = i % 4 ? (cd_library_op_class)(i % 4 - 1) : CD_LIBRARY_OP_CLASS_CONV;
        if (!(i % 4)) m.r[i].log_ratio = 0.05 * normal(53, i);
    }
    for (int alone = 0; alone < 2; alone++) {
        for (size_t i = 0; alone && i < m.n / 4; i++) m.r[i] = m.r[4 * i];
        assert_ok(cd_library_op_spread_fit(m.r, alone ? m.n / 4 : m.n, &a, &v, &n, &err));
        const cd_library_op_spread *s = cd_library_op_spread_find(
            v, n, CD_LIBRARY_OP_HELD_DEVICE, CD_LIBRARY_OP_CLASS_CONV, CD_LIBRARY_OP_ANY_DEVICE);
        with[alone] = half(s, 1e-3, 0, 0.9);
    }
    assert_true(with[1] < 0.12 && with[0] > 2 * with[1]);
    free(m.r);
    cd_arena_free(&a);
}

/* What the larger rows of a device have in common is a draw, too: another device's are inside as
 * often as the level says. */
TEST(larger_rows_of_a_device_err_together) {
    double sum = 0;
    cdmpp_err err = {0};
    for (uint64_t k = 0; k < 300; k++) {
        made m = make(CD_LIBRARY_OP_HELD_LARGE, 6, 60, 0.2, 0.05, 5000 + 10 * k),
             fresh = make(CD_LIBRARY_OP_HELD_LARGE, 1, 60, 0.2, 0.05, 700000 + 10 * k);
        cd_arena a = {0};
        cd_library_op_spread *v;
        size_t n;
        for (size_t i = 0; i < m.n; i++) m.r[i].reach = (double)(i % 3);
        assert_ok(cd_library_op_spread_fit(m.r, m.n, &a, &v, &n, &err));
        for (size_t i = 0; i < n; i++) assert_true(v[i].device == CD_LIBRARY_OP_ANY_DEVICE);
        sum += covered(&fresh, v, n, 0, 0.9, 0, 1);
        free(m.r), free(fresh.r);
        cd_arena_free(&a);
    }
    assert_close(sum / 300, 0.91, 0, 0.06);
}

TEST(levels_rise) {
    made m = make(CD_LIBRARY_OP_HELD_ROW, 3, ROWS, 0, 0.05, 3),
         law = make(CD_LIBRARY_OP_HELD_ROW, 3, ROWS, 0, 0, 3);
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
                const double wide = half(&v[i], 3e-4, 0, level);
                assert_true(isfinite(wide) && (k ? wide >= last : wide > last));
                last = wide;
            }
            assert_true(half(&v[i], 3e-4, 0, 0.5) > 0); /* no noise at all: narrow, but no point */
        }
    }
    free(m.r), free(law.r);
    cd_arena_free(&a);
}

TEST(too_little) {
    made rows = make(CD_LIBRARY_OP_HELD_ROW, 1, 29, 0, 0.05, 5),
         two = make(CD_LIBRARY_OP_HELD_DEVICE, 2, ROWS, 0.3, 0.05, 6);
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

/* Each part is asked of what was fitted without it: a device whose errors are ten times the others'
 * is outside. */
TEST(check_leaves_the_part_out) {
    made m = make(CD_LIBRARY_OP_HELD_DEVICE, 5, 200, 0, 0.05, 8);
    cd_library_op_coverage c[CD_N_LIBRARY_OP_CLASS + 1];
    cdmpp_err err = {0};
    for (size_t i = 0; i < m.n; i++)
        if (m.r[i].device == 1) m.r[i].log_ratio = 3;
    assert_ok(cd_library_op_spread_check(m.r, m.n, CD_LIBRARY_OP_HELD_DEVICE, 0.9, c, &err));
    assert_true(c[CD_LIBRARY_OP_CLASS_SOFTMAX].n == 1000 && c[CD_N_LIBRARY_OP_CLASS].n == 1000 &&
                c[CD_LIBRARY_OP_CLASS_BMM].n == 0);
    assert_int_equal(c[CD_LIBRARY_OP_CLASS_SOFTMAX].parts, 5);
    /* and the others, whose intervals know that device, inside */
    assert_int_equal(c[CD_LIBRARY_OP_CLASS_SOFTMAX].inside, 800);
    free(m.r);
}

/* Errors grow with the distance: 0.05 at the limit, 0.05 more an octave. Rows up to two octaves
 * beyond tell what four octaves are like. */
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
    const cd_library_op_spread *s =
        cd_library_op_spread_find(v, n, CD_LIBRARY_OP_HELD_LARGE, CD_LIBRARY_OP_CLASS_SOFTMAX, 1);
    assert_non_null(s);
    for (int octaves = 0; octaves <= 5; octaves++) /* 1.645: of a normal distribution at 0.9 */
        assert_close(half(s, 1e-3, octaves, 0.9), 1.645 * 0.05 * (1 + octaves), octaves ? 0.2 : 0.4,
                     0);
    assert_close(half(s, 1e-9, 1, 0.9), half(s, 1, 1, 0.9), 1e-12, 0); /* whatever the time */
    /* the other way round: what is farther away is never better known */
    for (size_t i = 0; i < m.n; i++) m.r[i].log_ratio = 0.05 * (3 - m.r[i].reach) * normal(23, i);
    assert_ok(cd_library_op_spread_fit(m.r, m.n, &a, &v, &n, &err));
    for (size_t i = 0; i < n; i++)
        for (double reach = 0; reach < 6; reach += 0.25)
            assert_true(half(&v[i], 1e-3, reach + 0.25, 0.9) >= half(&v[i], 1e-3, reach, 0.9));
    free(m.r);
    cd_arena_free(&a);
}

TEST(any_allocation_may_fail) {
    made m = make(CD_LIBRARY_OP_HELD_DEVICE, 4, 100, 0.1, 0.05, 61);
    FAULT_SWEEP(w, 3) {
        cd_library_op_coverage c[CD_N_LIBRARY_OP_CLASS + 1];
        cd_library_op_spread *v;
        cd_arena a = {0};
        size_t n;
        w.st = cd_library_op_spread_fit(m.r, m.n, &a, &v, &n, &w.err);
        if (!w.st)
            w.st = cd_library_op_spread_check(m.r, m.n, CD_LIBRARY_OP_HELD_DEVICE, 0.9, c, &w.err);
        cd_arena_free(&a);
    }
    free(m.r);
}

TESTS(NULL, NULL, any_allocation_may_fail, far_beyond_is_wider, rows_are_covered,
      new_devices_are_covered, farther_devices_are_wider, another_stack_is_wider,
      classes_tell_of_one_another, larger_rows_of_a_device_err_together, levels_rise, too_little,
      check_leaves_the_part_out)
