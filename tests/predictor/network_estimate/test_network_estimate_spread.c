/* What a device adds to the uncertainty of a network: nobody measured networks there, or another
 * device stands for it. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "predictor/network_estimate/network_estimate_internal.h"
#include "tmp.h"

#define MODEL "tests/golden/model_v3.cdmpp" /* zen5-avx2, zen5-avx512, with their descriptions */

static const char descriptions[] =
    "- {name: box, kind: cpu, clock_mhz: 4100, cores: 1, lanes: 16, simd_bits: 256, "
    "bandwidth_gb_s: 60, fp32_gflops: 131.2, warp: 1}\n"
    "- {name: zen5-avx2, kind: cpu, clock_mhz: 4100, cores: 1, lanes: 16, simd_bits: 256, "
    "bandwidth_gb_s: 64, warp: 1}\n"
    "- {name: zen5-avx512, kind: cpu, clock_mhz: 4100, cores: 1, lanes: 32, simd_bits: 512, "
    "bandwidth_gb_s: 64, warp: 1}\n"
    "- {name: swift, kind: cpu, clock_mhz: 4100, cores: 1, lanes: 64, simd_bits: 256, "
    "bandwidth_gb_s: 600, warp: 1}\n"
    "- {name: board, kind: gpu, clock_mhz: 1000, cores: 50, lanes: 64, bandwidth_gb_s: 400, "
    "fp32_gflops: 6400, warp: 32}\n";
static const char costs[] = "- {devices: [elsewhere], lift: 1.2, call_s: 0, networks: 5, spread: "
                            "0.3, source: \"made up\"}\n"
                            "- {devices: [zen5-avx512], lift: 1.5, call_s: 0, networks: 5, spread: "
                            "0.1, source: \"made up\"}\n";

static cdmpp_err err;
static tmp_dir dir;
static char described[256], *said;
static size_t n_said;
static cd_log lg;
static cd_network_estimate_options o;
static cd_network_estimate e;
static bool other; /* the device only stands for this machine */

static int set_up(void **state) {
    (void)state;
    unsetenv("CDMPP_MODELS");
    dir = tmp_make();
    snprintf(described, sizeof described, "%s",
             tmp_put(&dir, "devices.yaml", descriptions, sizeof descriptions - 1));
    setenv("CDMPP_NETWORK_COSTS", tmp_put(&dir, "costs.yaml", costs, sizeof costs - 1), 1);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static const cd_network_estimate_case *estimate(const char *device, bool alone) {
    static const char *model[] = {MODEL}, *network[] = {"gcn"};
    FILE *f = open_memstream(&said, &n_said);
    cd_log_init(&lg, "x", f);
    o = cd_network_estimate_defaults();
    o.cost_model = (cd_texts){1, model}, o.network = (cd_texts){1, network}, o.devices = described,
    o.device = device;
    o.cache = "", o.trials = 2, o.jobs = 1, o.alone = alone, o.log = &lg;
    e = (cd_network_estimate){0};
    assert_ok(cd_network_estimate_open(&o, &e, &err));
    e.device[0].guessed = other;
    assert_ok(cd_network_estimate_run(&e, &err));
    (void)fclose(f);
    return e.item;
}

static void end(void) {
    cd_network_estimate_free(&e);
    cd_log_done(&lg);
    free(said);
}

enum { MOST = 64 };
typedef struct {
    uint32_t n;
    double middle[MOST], low[MOST], high[MOST], interval[3];
} kept;

static kept keep(const cd_network_estimate_case *c) {
    kept k = {.n = c->cost[0]->n,
              .interval = {c->replay.makespan_s, c->interval.low_s, c->interval.high_s}};
    assert_true(k.n && k.n <= MOST);
    for (uint32_t i = 0; i < k.n; i++) {
        const cd_node_cost_entry *x = &c->cost[0]->node[i];
        const bool task = x->source == CD_COST_MODEL && c->source->graph->node[i].repeat;
        k.middle[i] = task ? x->seconds : 0, k.low[i] = x->low_s, k.high[i] = x->high_s;
    }
    return k;
}

static void both_ends(double middle, const double was[2], const double is[2], double more) {
    assert_close(log(middle / is[0]), hypot(log(middle / was[0]), more), 1e-9, 0);
    assert_close(log(is[1] / middle), hypot(log(was[1] / middle), more), 1e-9, 0);
}

static double z(double level) { return cd_normal_quantile(0.5 + level / 2); }

/* The variance of the logarithm grows by that of others' fits; the middle stays. */
TEST(without_a_fit_of_the_device) {
    const kept a = keep(estimate("zen5-avx2", true));
    assert_true(e.item->device_spread == 0 && e.item->spread[0] == 0);
    end();
    const cd_network_estimate_case *c = estimate("zen5-avx2", false);
    const kept b = keep(c);
    const double s = cd_network_cost_spread(e.models.costs);
    uint32_t n = 0;
    assert_true(s > 0);
    assert_close(c->spread[0], s, 1e-12, 0);
    assert_close(c->device_spread, s, 1e-9, 0); /* all of its time is of tasks */
    for (uint32_t i = 0; i < a.n; i++) {
        if (!(a.middle[i] > 0)) continue;
        n++;
        assert_close(b.middle[i], a.middle[i], 1e-12, 0);
        both_ends(a.middle[i], (const double[]){a.low[i], a.high[i]},
                  (const double[]){b.low[i], b.high[i]}, s * z(0.9));
    }
    assert_true(n > 2);
    assert_close(a.interval[0], b.interval[0], 1e-12, 0);
    assert_true(log(b.interval[0] / b.interval[1]) > s * z(o.level) &&
                log(b.interval[2] / b.interval[0]) > s * z(o.level));
    assert_non_null(strstr(
        said,
        "no network was measured on zen5-avx2: it is taken to cost the sum of its operators"));
    end();
}

/* The law of another device: its time is taken, and how far off it may be is not what it leaves
 * there. */
TEST(with_a_fit_that_is_lent) {
    static const char lent[] = "- {devices: [zen5-avx512], lent_to: [zen5-avx2], lift: 1.5, "
                               "networks: 5, spread: 0.1, adds: 0.4}\n";
    const kept alone = keep(estimate("zen5-avx2", true));
    end();
    setenv("CDMPP_NETWORK_COSTS", tmp_put(&dir, "lent.yaml", lent, sizeof lent - 1), 1);
    const cd_network_estimate_case *c = estimate("zen5-avx2", false);
    assert_true(c->replay.makespan_s > 1.3 * alone.interval[0]);
    assert_true(c->spread[0] > 0.4);
    assert_close(c->spread[0], cd_network_cost_spread(e.models.costs), 1e-12, 0);
    assert_non_null(strstr(said, "no network was measured on zen5-avx2: it is taken to add as much "
                                 "to its operators as on zen5-avx512"));
    end();
    c = estimate("zen5-avx512", false);
    assert_true(c->spread[0] == 0 && !strstr(said, "no network was measured"));
    end();
    setenv("CDMPP_NETWORK_COSTS", tmp_path(&dir, "costs.yaml"), 1);
}

/* A machine takes as much for its networks as its stand-in does, so that it is no faster than that;
 * how far off that may be is what networks add on other devices, not what its fit leaves there. */
TEST(with_the_fit_of_its_stand_in) {
    const kept alone = keep(estimate("zen5-avx512", true));
    end();
    const kept fitted = keep(estimate("zen5-avx512", false));
    assert_true(fitted.interval[0] > 1.01 * alone.interval[0]);
    assert_true(e.item->spread[0] == 0 && !strstr(said, "no network was measured"));
    end();
    other = true;
    const cd_network_estimate_case *c = estimate("zen5-avx512", false);
    other = false;
    const kept b = keep(c);
    assert_close(b.interval[0], fitted.interval[0], 1e-12, 0);
    assert_close(c->spread[0], cd_network_cost_spread(e.models.costs), 1e-12, 0);
    assert_non_null(strstr(said,
                           "no network was measured on this machine: it is taken to add as much to "
                           "its operators as on zen5-avx512"));
    end();
}

/* What the model's law adds for the box. */
static cd_device_doubt law_of(const cd_network_estimate_case *c,
                              const cd_network_estimate_device *d) {
    float want[CD_N_DEVICE_COL], has[CD_N_DEVICE_COL];
    const size_t at = (size_t)cd_model_find_device(d->model, d->stands, strlen(d->stands));
    cd_device_vector(d->about, want);
    assert_true(cd_model_set_vector(&e.models, d->model, at, has));
    const cd_device_doubt law = cd_model_device_doubt(d->model, at, want, has, false);
    assert_true(cd_device_law_peaks(want, has) > 0);
    assert_true(law.shift >= CD_DEVICE_LAW_LEAST_SHIFT &&
                law.shift * z(0.9) >= cd_device_law_peaks(want, has) - 1e-9);
    assert_true(law.own >= CD_DEVICE_LAW_LEAST_OWN - 1e-9);
    assert_close(c->spread[0], law.shift, 1e-9, 0);
    return law;
}

/* A program has both parts, the sum of many programs the shift. */
TEST(the_shift_stays_in_the_sum) {
    const kept a = keep(estimate("zen5-avx2", true));
    end();
    const cd_network_estimate_case *c = estimate("box", true);
    const cd_device_doubt law = law_of(c, c->device);
    const kept b = keep(c);
    uint32_t n = 0;
    for (uint32_t i = 0; i < b.n; i++) {
        if (!(b.middle[i] > 0)) continue;
        n++;
        assert_true(log(b.middle[i] / b.low[i]) > hypot(law.shift, law.own) * z(0.9) - 1e-9 ||
                    c->cost[0]->node[i].least_s > 0);
        assert_true(log(b.high[i] / b.middle[i]) > hypot(law.shift, law.own) * z(0.9) - 1e-9);
    }
    assert_true(n > 2);
    assert_true(log(b.interval[2] / b.interval[0]) >= law.shift * z(o.level) - 1e-9);
    /* the known device's is narrower */
    assert_true(log(b.interval[2] / b.interval[1]) > log(a.interval[2] / a.interval[1]) + 0.1);
    end();
}

/* Four times as fast as what stands for it: its times may be as short as its own peaks allow. */
TEST(the_peaks_of_a_stand_in_bound_nothing) {
    double least[MOST] = {0};
    const cd_network_estimate_case *c = estimate("box", true);
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->cost[0]->n && i < MOST; i++) least[i] = c->cost[0]->node[i].least_s;
    end();
    c = estimate("swift", true);
    assert_true(c->device->stands && !c->device->scaled);
    for (uint32_t i = 0; i < c->cost[0]->n && i < MOST; i++) {
        if (!(least[i] > 0)) continue;
        assert_true(c->cost[0]->node[i].least_s < 0.5 * least[i]);
        n++;
    }
    assert_true(n > 0);
    end();
}

/* All of its programs are unlike those of the training. */
TEST(another_device_stands_for_it) {
    const cd_network_estimate_case *c = estimate("box", true);
    const cd_network_estimate_device *d = c->device;
    assert_true(!d->scaled && d->stands);
    (void)law_of(c, d);
    for (uint32_t i = 0; i < c->cost[0]->n; i++)
        if (c->cost[0]->node[i].source == CD_COST_MODEL)
            assert_true(c->cost[0]->node[i].flags & CD_MODEL_OUT_OF_RANGE);
    char text[200], times[CD_MODEL_SET_TIMES_OFF];
    snprintf(text, sizeof text,
             "box is not in the model: %s stands in; for that alone times may be off by up to %sx, "
             "and intervals "
             "allow for it\n",
             d->stands, cd_model_set_times_off(c->spread[0], times));
    assert_non_null(strstr(said, text));
    const double alone = c->spread[0];
    end();
    c = estimate("box", false);
    assert_close(c->spread[0], hypot(alone, cd_network_cost_spread(e.models.costs)), 1e-9, 0);
    /* one warning of both, with the factor of both */
    snprintf(text, sizeof text,
             "box is not in the model: %s stands in; for that alone times may be off by up to %sx",
             c->device->stands, cd_model_set_times_off(c->spread[0], times));
    assert_non_null(strstr(said, text));
    assert_null(strstr(said, "no network was measured"));
    /* the table says what stands in, and its column of unlike programs does not count the device */
    assert_true(c->unlike_s > 0.99 * c->ops_s && cd_network_estimate_unlike_s(c) < c->unlike_s);
    end();
}

/* Of another kind: times by the rooflines, nine of ten at most so many times off. */
TEST(a_device_of_another_kind_stands_for_it) {
    const cd_network_estimate_case *c = estimate("board", true);
    /* programs are those of the device that stands for it */
    assert_true(c->device->scaled && !c->device->gpu);
    assert_close(c->spread[0], log(CD_MODEL_SET_BETWEEN_KINDS) / z(0.9), 1e-9, 0);
    assert_non_null(strstr(said, "no model knows board, nor another "));
    end();
}

TESTS(set_up, tear_down, without_a_fit_of_the_device, with_a_fit_that_is_lent,
      with_the_fit_of_its_stand_in, the_shift_stays_in_the_sum,
      the_peaks_of_a_stand_in_bound_nothing, another_device_stands_for_it,
      a_device_of_another_kind_stands_for_it)
