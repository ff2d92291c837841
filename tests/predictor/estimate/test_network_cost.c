/* Fits of what networks cost over their operators: read, found, written, and laws that a fit has to
 * find again. */
#include <math.h>
#include <string.h>

#include "base/core/core.h"
#include "learner/inputs/inputs.h"
#include <stdlib.h>

#include "check.h"
#include "tmp.h"
#include "predictor/estimate/estimate.h"

static cd_network_cost *read_text(const char *text) {
    cd_diag diag = {0};
    cdmpp_err err = {0};
    cd_network_cost *l;
    assert_ok(cd_network_cost_read("t.yaml", text, strlen(text), &diag, &l, &err));
    return l;
}

static void test_device_without_a_fit_gets_the_spread_of_the_others(void **state) {
    (void)state;
    cd_network_cost *l = read_text(
        "- devices: [one, uno]\n  lift: 1.2\n  spread: 0.05\n- devices: two\n  lift: 0.9\n");
    assert_int_equal(l->n, 2);
    assert_ptr_equal(cd_network_cost_find(l, "UNO", NULL), &l->v[0]);
    const cd_device d = {.name = "two", .l3_kb = 10};
    assert_ptr_equal(cd_network_cost_find(l, "alias", &d), &l->v[1]);
    assert_null(cd_network_cost_find(l, "three", NULL));
    assert_null(cd_network_cost_find(l, NULL, NULL));
    assert_null(cd_network_cost_find(NULL, "one", NULL));
    /* its own comes before that of a stand-in, which comes before none */
    assert_string_equal(cd_network_cost_whose(l, "three", NULL, "one"), "one");
    assert_string_equal(cd_network_cost_whose(l, "two", NULL, "one"), "two");
    assert_string_equal(cd_network_cost_whose(l, "alias", &d, "one"), "alias");
    assert_string_equal(cd_network_cost_whose(l, "three", NULL, NULL), "three");
    const double few = cd_normal_student(0.95, 2) / cd_normal_quantile(0.95);
    assert_true(few > 1.7);
    assert_close(cd_network_cost_spread(l),
                 few * sqrt((log(1.2) * log(1.2) + 0.0025 + log(0.9) * log(0.9)) / 2), 1e-12, 0);
    assert_true(isnan(cd_network_cost_spread(NULL)));
    cd_node_cost_scaling_law law =
        cd_node_cost_law(l, "three", NULL, (cd_node_cost_bytes){1e9, 1e9});
    assert_close(cd_node_cost_law_s(&law, 2, 100), 2, 0, 0);
    /* lift_from 0: of all networks, whatever is known of caches */
    law = cd_node_cost_law(l, "one", NULL, (cd_node_cost_bytes){0, 0});
    assert_close(cd_node_cost_law_s(&law, 2, 100), 2.4, 1e-12, 0);
    cd_network_cost_free(l);
    l = read_text("");
    assert_true(isnan(cd_network_cost_spread(l)));
    cd_network_cost_free(l);
}

/* Networks of a device that nobody measured may add as much as those of any that somebody did. A
 * refill adds time too, and has no lift. */
static void test_the_spread_holds_what_measured_devices_add(void **state) {
    cd_network_cost *l = read_text(
        "- devices: [a]\n  refill_bytes_per_s: 1e9\n  spread: 0.03\n  adds: 0.4\n- devices: [b]\n  "
        "lift: 1.05\n- devices: [c]\n- devices: [d]\n- devices: [e]\n- devices: [f]\n");
    (void)state;
    assert_close(cd_network_cost_spread(l), 0.4, 1e-12, 0);
    l->n = 2;
    assert_true(cd_network_cost_spread(l) > 0.5);
    l->n = 1; /* one device says little of another */
    assert_close(cd_network_cost_spread(l),
                 0.4 * cd_normal_student(0.95, 1) / cd_normal_quantile(0.95), 1e-12, 0);
    cd_network_cost_free(l);
}

/* A law is lent to a device where nobody measured: it is found last, and told from a measured
 * one. */
static void test_a_law_is_lent(void **state) {
    (void)state;
    cd_network_cost *l = read_text("- devices: [one, uno]\n  lent_to: [like]\n  lift: 1.2\n- "
                                   "devices: [two]\n  lent_to: [one]\n  lift: 1.5\n");
    const cd_device d = {.name = "like"}, measured = {.name = "one"};
    const cd_network_cost_fit *one = &l->v[0];
    assert_ptr_equal(cd_network_cost_find(l, "one", NULL), one);
    assert_null(cd_network_cost_lender(one, "UNO", NULL));
    assert_null(cd_network_cost_lender(one, "mine", &measured));
    assert_null(cd_network_cost_lender(NULL, "mine", NULL));
    assert_ptr_equal(cd_network_cost_find(l, "like", NULL), one);
    assert_ptr_equal(cd_network_cost_find(l, "alias", &d), one);
    assert_string_equal(cd_network_cost_lender(one, "like", &d), "one");
    assert_false(cd_network_cost_names(one, "like"));
    assert_ptr_equal(cd_network_cost_find(l, "like", &measured), one);
    const cd_node_cost_scaling_law law =
        cd_node_cost_law(l, "like", NULL, (cd_node_cost_bytes){1e9, 1e9});
    assert_close(cd_node_cost_law_s(&law, 2, 100), 2.4, 1e-12, 0);
    cd_network_cost *copy = NULL;
    cdmpp_err err = {0};
    assert_ok(cd_network_cost_add(&copy, one, &err));
    cd_network_cost_free(l);
    assert_string_equal(copy->v[0].lent_to.v[0], "like");
    cd_network_cost_free(copy);
}

static void test_mistakes_are_told_with_their_line(void **state) {
    static const char *const wrong[][2] = {
        {"lift: 1", "expected a list"},
        {"- 7", "expected the keys of a fit"},
        {"- lift: 1", "devices"},
        {"- devices: [a]\n  lift: 0", "t.yaml:2"},
        {"- devices: [a]\n  lifts: 1", "lifts"},
        {"- devices: [a]\n- devices: [b, A]", "'A' has a fit already"},
        {"- devices: [a]\n  spread: -1", "spread"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        cd_diag diag = {0};
        cdmpp_err err = {0};
        cd_network_cost *l;
        assert_true(cd_network_cost_read("t.yaml", wrong[k][0], strlen(wrong[k][0]), &diag, &l,
                                         &err) != CDMPP_OK);
        assert_non_null(diag.text.p);
        if (!strstr(diag.text.p, wrong[k][1])) fail_msg("%s: %s", wrong[k][0], diag.text.p);
        cd_diag_free(&diag);
    }
}

static void test_saving_replaces_the_device(void **state) {
    (void)state;
    tmp_dir dir = tmp_make();
    cd_diag diag = {0};
    cdmpp_err err = {0};
    const char *name = "one", *other = "two";
    char path[256];
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "fits.yaml"));
    cd_network_cost_fit f = {.devices = {1, &name},
                             .lift = 1.25,
                             .lift_from = 0.5,
                             .call_s = 2e-7,
                             .networks = 7,
                             .spread = 0.125,
                             .source = "a \"quoted\": source"};
    assert_ok(cd_network_cost_save(path, &f, &diag, &err));
    f.devices.v = &other;
    const char *like = "like two";
    f.lent_to = (cd_texts){1, &like};
    assert_ok(cd_network_cost_save(path, &f, &diag, &err));
    f.lent_to.n = 0; /* a new fit does not know who takes it */
    f.lift = 1.5;
    assert_ok(cd_network_cost_save(path, &f, &diag, &err));
    cd_network_cost *l;
    assert_ok(cd_network_cost_load(path, &diag, &l, &err));
    assert_int_equal(l->n, 2);
    const cd_network_cost_fit *one = cd_network_cost_find(l, "one", NULL),
                              *two = cd_network_cost_find(l, "two", NULL);
    assert_close(one->lift, 1.25, 0, 0);
    assert_close(two->lift, 1.5, 0, 0);
    assert_ptr_equal(cd_network_cost_find(l, like, NULL), two);
    assert_close(one->call_s, 2e-7, 0, 0);
    assert_close(one->lift_from, 0.5, 0, 0);
    assert_close(one->spread, 0.125, 0, 0);
    assert_int_equal(one->networks, 7);
    assert_string_equal(one->source, f.source);
    cd_network_cost_free(l);
    assert_status(cd_network_cost_save("/nowhere/at/all.yaml", &f, &diag, &err), CDMPP_EIO);
    tmp_remove(&dir);
}

/* A law that was measured here is found before that of the file, whichever of its names that has;
 * devices that share its entry keep it. */
static void test_an_entry_comes_first(void **state) {
    static const char text[] = "- {devices: [a, b], lent_to: [c], lift: 2}\n- {devices: [e], lift: "
                               "3, refill_bytes_per_s: 1e9, refill_from: 4}\n";
    const char *name = "a";
    cd_network_cost_fit f = {.devices = {1, &name}, .lift = 5, .source = "", .here = true};
    cd_network_cost *l;
    cd_diag diag = {0};
    cdmpp_err err = {0};
    (void)state;
    assert_ok(cd_network_cost_read("t.yaml", text, sizeof text - 1, &diag, &l, &err));
    assert_close(cd_network_cost_find(l, "e", NULL)->refill_from, 4, 0, 0);
    assert_close(cd_network_cost_find(l, "a", NULL)->refill_from, 0, 0, 0);
    assert_ok(cd_network_cost_add_first(&l, &f, &err));
    assert_close(cd_network_cost_find(l, "a", NULL)->lift, 5, 0, 0);
    assert_true(cd_network_cost_find(l, "a", NULL)->here);
    assert_close(cd_network_cost_find(l, "b", NULL)->lift, 2, 0, 0);
    assert_close(cd_network_cost_find(l, "c", NULL)->lift, 2, 0, 0);
    assert_close(cd_network_cost_find(l, "e", NULL)->lift, 3, 0, 0);
    cd_network_cost_free(l);
    l = NULL;
    assert_ok(cd_network_cost_add_first(&l, &f, &err));
    assert_int_equal(l->n, 1);
    cd_network_cost_free(l);
    setenv("CDMPP_NETWORK_COSTS", "", 1);
    assert_null(cd_network_cost_named());
    setenv("CDMPP_NETWORK_COSTS", "mine.yaml", 1);
    assert_string_equal(cd_network_cost_named(), "mine.yaml");
    unsetenv("CDMPP_NETWORK_COSTS");
    assert_null(cd_network_cost_named());
}

/* ---- fitting ---- */
enum { N = 24 };

/* Networks by a law, measured with noise. */
static void make_to(cd_network_cost_row *row, double lift, double from, double call_s,
                    double refill, int limit, double noise, uint64_t seed) {
    uint64_t at = 0;
    for (int i = 0; i < N; i++) {
        cd_network_cost_row *r = &row[i];
        *r = (cd_network_cost_row){.alone_s = exp(log(1e-5) + cd_rng_unit(seed, at++) * log(1e4)),
                                   .calls = 5 + (double)(cd_rng_at(seed, at++) % 100),
                                   .moved_caches =
                                       exp(log(0.01) + cd_rng_unit(seed, at++) * log(1e4))};
        for (int k = 0; k < CD_NETWORK_COST_LIMITS; k++)
            r->refill_bytes[k] = 1e9 * r->alone_s * cd_rng_unit(seed, at++);
        r->rest_s = 0.1 * r->alone_s * cd_rng_unit(seed, at++);
        const double s = r->alone_s * (r->moved_caches > from ? lift : 1) + r->calls * call_s +
                         (refill > 0 ? r->refill_bytes[limit] / refill : 0) + r->rest_s;
        r->measured_s = s * exp(noise * (2 * cd_rng_unit(seed, at++) - 1));
    }
}

static void make(cd_network_cost_row *row, double lift, double from, double call_s, double refill,
                 double noise, uint64_t seed) {
    make_to(row, lift, from, call_s, refill, 0, noise, seed);
}

static void test_laws_are_found_again(void **state) {
    cd_network_cost_row row[N];
    cd_network_cost_fit f;
    cdmpp_err err = {0};
    (void)state;
    make(row, 1.3, 0, 0, 0, 0.01, 1);
    assert_ok(cd_network_cost_fit_rows(row, N, &f, &err));
    assert_close(f.lift, 1.3, 0, 0.01);
    assert_close(f.adds, 0.25, 0, 0.02); /* ln 1.3, but a little of each network is no task */
    assert_true(f.spread < 0.012 && f.spread > 0.002);
    assert_int_equal(f.networks, N);
    make(row, 1.3, 2, 0, 0, 0.01, 2); /* only of large ones */
    assert_ok(cd_network_cost_fit_rows(row, N, &f, &err));
    assert_close(f.lift, 1.3, 0, 0.02);
    assert_true(f.lift_from > 0.5 && f.lift_from < 8);
    make(row, 1.1, 0, 4e-6, 8e9, 0.005, 3);
    assert_ok(cd_network_cost_fit_rows(row, N, &f, &err));
    assert_close(f.lift, 1.1, 0, 0.01);
    assert_close(f.call_s, 4e-6, 0.05, 0);
    assert_close(f.refill_bytes_per_s, 8e9, 0.15, 0);
    make_to(row, 1, 0, 0, 8e9, 2, 0.005, 7);
    assert_ok(cd_network_cost_fit_rows(row, N, &f, &err));
    assert_close(f.lift, 1, 0, 0);
    assert_close(f.refill_bytes_per_s, 8e9, 0.15, 0);
    assert_close(f.refill_to, cd_network_cost_limit[2], 0, 0);
    assert_true(f.adds > 0.05);  /* without any lift */
    make(row, 1, 0, 0, 0, 0, 4); /* nothing is added */
    assert_ok(cd_network_cost_fit_rows(row, N, &f, &err));
    assert_close(f.lift, 1, 0, 1e-9);
    assert_close(f.call_s, 0, 0, 1e-12);
    assert_close(f.adds, 0, 0, 1e-9);
    assert_true(f.spread < 1e-9);
}

/* What the description says costs no choice: few networks suffice to see that it holds, and that it
 * does not. */
static void test_a_described_refill(void **state) {
    cd_network_cost_row row[N];
    cd_network_cost_fit f;
    cdmpp_err err = {0};
    (void)state;
    for (uint64_t seed = 50; seed < 60; seed++) {
        make(row, 1, 0, 0, 0, 0.01, seed);
        for (int i = 0; i < N; i++) {
            row[i].fetch_bytes_per_s = 2e10, row[i].fetch_to = 32;
            row[i].fetch_s = row[i].moved_caches > 1 ? 0.1 * row[i].alone_s * (1 + i % 3) : 0;
        }
        assert_ok(cd_network_cost_fit_rows(row, 6, &f, &err));
        assert_close(f.refill_bytes_per_s, 0, 0, 0); /* nothing of it was measured */
        for (int i = 0; i < N; i++) row[i].measured_s += row[i].fetch_s;
        assert_ok(cd_network_cost_fit_rows(row, 6, &f, &err));
        assert_close(f.refill_bytes_per_s, 2e10, 0, 0);
        assert_close(f.refill_to, 32, 0, 0);
        assert_close(f.refill_from, CD_NETWORK_COST_KEEPS, 0, 0);
        assert_close(f.lift, 1, 0, 0.02);
        assert_true(f.spread < 0.02);
    }
}

/* Noise alone earns no terms: the best of many candidates is taken only where it is better by what
 * it costs to have had the choice. */
static void test_few_networks_carry_few_terms(void **state) {
    cd_network_cost_row row[N];
    cd_network_cost_fit f;
    cdmpp_err err = {0};
    int terms = 0;
    (void)state;
    for (uint64_t seed = 20; seed < 40; seed++) {
        make(row, 1.1, 0, 0, 0, 0.1, seed);
        assert_ok(cd_network_cost_fit_rows(row, 6, &f, &err));
        terms += (f.lift_from > 0) + (f.call_s > 0) + (f.refill_bytes_per_s > 0);
    }
    assert_true(terms <= 6); /* one at most, where six networks carry one */
}

/* The spread is that of networks that were left out: it holds for new ones. */
static void test_spread_is_of_networks_left_out(void **state) {
    cd_network_cost_row row[N], fresh[N];
    cd_network_cost_fit f;
    cdmpp_err err = {0};
    double sum = 0;
    (void)state;
    make(row, 1.2, 0, 0, 0, 0.2, 5);
    make(fresh, 1.2, 0, 0, 0, 0.2, 6);
    assert_ok(cd_network_cost_fit_rows(row, N, &f, &err));
    for (int i = 0; i < N; i++) {
        const cd_network_cost_row *r = &fresh[i];
        const double e =
            log(r->measured_s /
                (r->alone_s * (r->moved_caches > f.lift_from || f.lift_from <= 0 ? f.lift : 1) +
                 r->calls * f.call_s + r->rest_s +
                 (f.refill_bytes_per_s > 0 ? r->refill_bytes[0] / f.refill_bytes_per_s : 0)));
        sum += e * e;
    }
    const double seen = sqrt(sum / N);
    assert_true(f.spread > 0.6 * seen && f.spread < 1.6 * seen);
}

static void test_too_few_or_wrong_networks_are_refused(void **state) {
    cd_network_cost_row row[N];
    cd_network_cost_fit f;
    cdmpp_err err = {0};
    (void)state;
    make(row, 1.3, 0, 0, 0, 0.01, 1);
    assert_status(cd_network_cost_fit_rows(row, CD_NETWORK_COST_FEWEST - 1, &f, &err),
                  CDMPP_ERANGE);
    assert_ok(cd_network_cost_fit_rows(row, CD_NETWORK_COST_FEWEST, &f, &err));
    row[2].measured_s = NAN;
    assert_status(cd_network_cost_fit_rows(row, N, &f, &err), CDMPP_ERANGE);
    row[2].measured_s = 0;
    assert_status(cd_network_cost_fit_rows(row, N, &f, &err), CDMPP_ERANGE);
}

TESTS(NULL, NULL, test_device_without_a_fit_gets_the_spread_of_the_others,
      test_the_spread_holds_what_measured_devices_add, test_a_law_is_lent,
      test_mistakes_are_told_with_their_line, test_saving_replaces_the_device,
      test_an_entry_comes_first, test_laws_are_found_again, test_a_described_refill,
      test_spread_is_of_networks_left_out, test_few_networks_carry_few_terms,
      test_too_few_or_wrong_networks_are_refused)
