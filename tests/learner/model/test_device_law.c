/* device_law: what a model says of devices that it never saw is never narrower than the least
 * spread, and the rest of the law. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "learner/inputs/inputs.h"
#include "learner/model/model.h"

static const cd_device_law none = {0};

/* With Student's quantile of three machines, of which the least spread is. */
TEST(a_model_of_one_device_has_the_least_spread) {
    const cd_device_doubt d = cd_device_law_at(&none, CD_DEVICE_LAW_DISTANCE, 0);
    assert_close(d.shift,
                 CD_DEVICE_LAW_LEAST_SHIFT * cd_normal_student(0.95, 2) / cd_normal_quantile(0.95),
                 1e-9, 0);
    assert_close(d.own, CD_DEVICE_LAW_LEAST_OWN, 1e-9, 0);
    const cd_device_doubt unknown = cd_device_law_at(&none, NAN, 0),
                          far = cd_device_law_at(&none, (double)INFINITY, 0);
    assert_true(unknown.shift == d.shift && far.shift == d.shift);
}

TEST(no_shift_is_less_than_the_least) {
    for (uint32_t n = 1; n < 30; n++) {
        const cd_device_law sure = {.n = n, .shift = 1e-3, .own = 0.1, .distance = 0.1};
        assert_true(cd_device_law_at(&sure, 0.1, 0).shift >= CD_DEVICE_LAW_LEAST_SHIFT);
        assert_true(cd_device_law_at(&sure, 0, 0).shift >= CD_DEVICE_LAW_LEAST_SHIFT);
    }
}

TEST(devices_that_differ_more_make_it_wider) {
    const cd_device_law a = {.n = 3, .shift = 0.5, .own = 0.6, .distance = 0.1};
    const cd_device_law b = {.n = 3, .shift = 0.8, .own = 0.9, .distance = 0.1};
    assert_true(cd_device_law_at(&b, 0.1, 0).shift > cd_device_law_at(&a, 0.1, 0).shift);
    assert_true(cd_device_law_at(&b, 0.1, 0).own > cd_device_law_at(&a, 0.1, 0).own);
    const cd_device_law many = {.n = 20, .shift = 0.5, .own = 0.6, .distance = 0.1};
    assert_close(cd_device_law_at(&many, 0.1, 0).own,
                 sqrt((2 * CD_DEVICE_LAW_LEAST_OWN * CD_DEVICE_LAW_LEAST_OWN + 20 * 0.36) / 22),
                 1e-9, 0);
    /* a law of many machines is surer */
    assert_true(cd_device_law_at(&many, 0.1, 0).shift < cd_device_law_at(&a, 0.1, 0).shift);
}

/* Half of the variance is there at any distance. */
TEST(a_distant_device_has_a_larger_shift) {
    const cd_device_law l = {.n = 3, .shift = 0.5, .own = 0.6, .distance = 0.1};
    const double usual = cd_device_law_at(&l, 0.1, 0).shift;
    assert_close(cd_device_law_at(&l, 0.3, 0).shift, usual * sqrt(2), 1e-9, 0);
    assert_close(cd_device_law_at(&l, 0.02, 0).shift, usual, 1e-9, 0);
    assert_close(cd_device_law_at(&l, 0.3, 0).own, cd_device_law_at(&l, 0.1, 0).own, 1e-12, 0);
}

TEST(peaks_are_an_end_of_the_interval) {
    const cd_device_law l = {.n = 3, .shift = 0.2, .own = 0.6, .distance = 0.1};
    assert_close(cd_device_law_at(&l, 0.1, log(16)).shift * cd_normal_quantile(0.95), log(16), 1e-9,
                 0);
    assert_close(cd_device_law_at(&l, 0.1, 0.01).shift, cd_device_law_at(&l, 0.1, 0).shift, 1e-12,
                 0);
}

/* Machines whose shifts are drawn from a normal law: of those that come behind the n that the law
 * is of, nine of ten are inside, or nearly. */
TEST(nine_of_ten_new_machines_are_inside) {
    enum { DRAWS = 4000 };
    static const double true_shift[] = {0.2, 0.3, 0.4};
    uint64_t at = 0;
    for (size_t s = 0; s < 3; s++)
        for (uint32_t n = 3; n <= 6; n++) {
            int inside = 0;
            for (int k = 0; k < DRAWS; k++) {
                cd_device_law l = {.n = n, .own = 0.2, .distance = 0.1};
                for (uint32_t i = 0; i < n; i++)
                    l.shift += pow(true_shift[s] * cd_normal_quantile(cd_rng_unit(7, at++)), 2) / n;
                l.shift = sqrt(l.shift);
                const double end = cd_device_law_at(&l, 0.1, 0).shift * cd_normal_quantile(0.95);
                inside += fabs(true_shift[s] * cd_normal_quantile(cd_rng_unit(7, at++))) < end;
            }
            assert_true(inside > 0.85 * DRAWS);
        }
}

/* Peaks that the law has seen do not count where analytic times are the device's own. Of another
 * lockstep width a model of one width is no surer than one of a single machine. */
TEST(peaks_that_were_seen_and_another_width) {
    uint8_t gpu = 1;
    cd_model m = {.n_device = 1, .device_is_gpu = &gpu};
    float has[CD_N_DEVICE_COL] = {1}, slow[CD_N_DEVICE_COL] = {1}, wide[CD_N_DEVICE_COL] = {1};
    const double z = cd_normal_quantile(0.95);
    m.law[CD_DEVICE_LAW_GPU] =
        (cd_device_law){.n = 3, .shift = 0.1, .own = 0.2, .distance = 1, .peaks = log(10)};
    slow[CD_N_DEVICE_KIND + CD_DEVICE_COL_flops] = -1;
    wide[CD_N_DEVICE_KIND + CD_DEVICE_COL_vector] = 0.301f;
    const double least = cd_device_law_at(&m.law[CD_DEVICE_LAW_GPU], 1, 0).shift;
    assert_close(cd_model_device_doubt(&m, 0, slow, has, true).shift, least, 1e-6, 0);
    assert_close(cd_model_device_doubt(&m, 0, slow, has, false).shift * z, log(10), 1e-6, 0);
    slow[CD_N_DEVICE_KIND + CD_DEVICE_COL_flops] = -2;
    /* a hundredth is ten times beyond a tenth */
    assert_close(cd_model_device_doubt(&m, 0, slow, has, true).shift * z, log(10), 1e-6, 0);
    assert_close(cd_model_device_doubt(&m, 0, wide, has, true).shift,
                 cd_device_law_at(&none, 0, 0).shift, 1e-12, 0);
    m.law[CD_DEVICE_LAW_WIDTH] =
        (cd_device_law){.n = 2, .shift = 0.5, .own = 0.2, .distance = 1, .peaks = log(10)};
    assert_close(cd_model_device_doubt(&m, 0, wide, has, true).shift,
                 cd_device_law_at(&m.law[CD_DEVICE_LAW_WIDTH], 0, 0).shift, 1e-12, 0);
}

/* Around the median, in logarithms; the answer stays. */
TEST(both_ends_move) {
    const cd_device_doubt d = {0.3, 0.4};
    cd_model_prediction p = {.latency_s = 0.9,
                             .median_s = 1,
                             .low_s = exp(-1),
                             .high_s = exp(2),
                             .rel_std = 1.2,
                             .like_std = 1.2};
    cd_device_doubt_widen(&d, &p);
    const double z = 0.5 * cd_normal_quantile(0.95);
    assert_close(log(p.low_s), -hypot(1, z), 1e-9, 0);
    assert_close(log(p.high_s), hypot(2, z), 1e-9, 0);
    assert_close(p.rel_std, 1.3, 1e-9, 0);
    assert_true(p.latency_s == 0.9 && p.median_s == 1 && p.like_std == 1.2);
}

/* A model of version 1 has no interval, and gets none. */
TEST(without_an_interval_there_is_none) {
    const cd_device_doubt d = {0.3, 0.4};
    cd_model_prediction p = {
        .latency_s = 1, .median_s = 1, .low_s = NAN, .high_s = NAN, .rel_std = NAN};
    cd_device_doubt_widen(&d, &p);
    assert_true(isnan(p.low_s) && isnan(p.high_s) && isnan(p.rel_std));
}

static cdmpp_status read(const char *text, cd_device_law law[CD_N_DEVICE_LAW], cdmpp_err *err) {
    cd_arena a = {0};
    const cd_json *v;
    cdmpp_status st = cd_json_parse(&a, text, strlen(text), &v, err);
    if (!st) st = cd_device_law_read(v, law, err);
    cd_arena_free(&a);
    return st;
}

TEST(written_and_read) {
    const cd_device_law law[CD_N_DEVICE_LAW] = {{0}, {4, 0.25, 0.5, 0.125, 0}, {0}};
    cd_device_law back[CD_N_DEVICE_LAW] = {0};
    cdmpp_err err = {0};
    cd_buf b = {0};
    assert_false(cd_device_law_any(back));
    cd_device_law_write(law, &b);
    assert_string_equal(b.p, "{\"gpu\":{\"n\":4,\"shift\":0.25,\"own\":0.5,\"distance\":0.125}}");
    assert_true(cd_device_law_any(law));
    assert_ok(read(b.p, back, &err));
    assert_memory_equal(back, law, sizeof law);
    const cd_device_law width[CD_N_DEVICE_LAW] = {
        [CD_DEVICE_LAW_WIDTH] = {2, 0.5, 0.25, 0.125, 1.5}};
    cd_buf_clear(&b);
    cd_device_law_write(width, &b);
    assert_string_equal(
        b.p, "{\"gpu of another "
             "width\":{\"n\":2,\"shift\":0.5,\"own\":0.25,\"distance\":0.125,\"peaks\":1.5}}");
    assert_true(cd_device_law_any(width));
    assert_ok(read(b.p, back, &err));
    assert_memory_equal(back, width, sizeof width);
    assert_int_equal(
        read("{\"cpu\":{\"n\":0,\"shift\":0.25,\"own\":0.5,\"distance\":0}}", back, &err),
        CDMPP_ERANGE);
    assert_int_equal(
        read("{\"cpu\":{\"n\":2,\"shift\":-1,\"own\":0.5,\"distance\":0}}", back, &err),
        CDMPP_ERANGE);
    assert_int_equal(read("{\"cpu\":{\"n\":2,\"own\":0.5,\"distance\":0}}", back, &err),
                     CDMPP_ESCHEMA);
    cd_buf_free(&b);
}

TESTS(NULL, NULL, a_model_of_one_device_has_the_least_spread, no_shift_is_less_than_the_least,
      devices_that_differ_more_make_it_wider, a_distant_device_has_a_larger_shift,
      peaks_are_an_end_of_the_interval, peaks_that_were_seen_and_another_width,
      nine_of_ten_new_machines_are_inside, both_ends_move, without_an_interval_there_is_none,
      written_and_read)
