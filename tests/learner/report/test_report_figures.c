/* Figures against slow definitions, and against how the programs were made. */
#include "learner/report/report_internal.h"
#include "check.h"
#include "made_report.h"

TEST(quantiles) {
    double v[] = {3, 1, 4, 1, 5};
    cd_sort_doubles(v, 5);
    assert_close(cd_sort_quantile(v, 5, 0), 1, 0, 0);
    assert_close(cd_sort_quantile(v, 5, 0.5), 3, 0, 0);
    assert_close(cd_sort_quantile(v, 5, 0.9), 4.6, 1e-12, 0); /* numpy.quantile */
    assert_close(cd_sort_quantile(v, 5, 1), 5, 0, 0);
    assert_close(cd_sort_quantile(v, 1, 0.3), 1, 0, 0);
    assert_true(isnan(cd_sort_quantile(v, 0, 0.3)));
    /* scipy.stats.norm.ppf(0.95) */
    assert_close(cd_report_fig_z(0.9), 1.6448536269514722, 1e-9, 0);
    assert_close(cd_report_fig_z(0.5), 0.6744897501960817, 1e-9, 0);
}

/* Every figure of a group, by counting. */
static void check_dist(const cd_report_dist *d, const cd_report_part *p,
                       bool (*in)(const cd_report_part *, size_t, uint32_t), uint32_t key) {
    double sum = 0;
    size_t n = 0, in20 = 0, below[CD_REPORT_FIG_N_Q] = {0}, at_most[CD_REPORT_FIG_N_Q] = {0};
    for (size_t i = 0; i < p->n; i++) {
        if (!in(p, i, key)) continue;
        const double e = fabs(p->predicted_s[i] / p->measured_s[i] - 1);
        n++, sum += e, in20 += e <= 0.2;
        for (int q = 0; q < CD_REPORT_FIG_N_Q; q++)
            below[q] += e < d->ape[q], at_most[q] += e <= d->ape[q];
    }
    assert_int_equal(d->n, n);
    assert_close(d->mape, sum / (double)n, 1e-9, 0);
    assert_close(d->within_20, (double)in20 / (double)n, 1e-12, 0);
    /* of n-1 steps, the quantile's share is on its left */
    for (int q = 0; q < CD_REPORT_FIG_N_Q; q++) {
        const double at = cd_report_fig_quantile_at(q) * (double)(n - 1);
        assert_true((double)below[q] <= at + 1 && (double)at_most[q] >= at);
        assert_true(d->ratio[q] > 0 && (!q || d->ratio[q] >= d->ratio[q - 1]));
    }
}
static bool any(const cd_report_part *p, size_t i, uint32_t k) { return p && (i || !i) && !k; }
static bool of_task(const cd_report_part *p, size_t i, uint32_t k) { return p->task[i] == k; }
static bool of_device(const cd_report_part *p, size_t i, uint32_t k) { return p->device[i] == k; }
/* as made */
static bool of_network(const cd_report_part *p, size_t i, uint32_t k) {
    return p->task[i] % 5 == k;
}
static bool of_range(const cd_report_part *p, size_t i, uint32_t k) {
    return (p->out_of_range[i] != 0) == (k != 0);
}
static bool of_decade(const cd_report_part *p, size_t i, uint32_t k) {
    return p->measured_s[i] >= cd_report_fig_decade_s(k) &&
           p->measured_s[i] < cd_report_fig_decade_s(k + 1);
}

static void check_groups(const cd_report_fig_groups *g, const cd_report_part *p,
                         bool (*in)(const cd_report_part *, size_t, uint32_t)) {
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        assert_true(!i || g->v[i].key > g->v[i - 1].key);
        check_dist(&g->v[i].d, p, in, g->v[i].key);
        n += g->v[i].d.n;
    }
    assert_int_equal(n, p->n);
}

TEST(groups) {
    cdmpp_err err = {0};
    made_report m;
    cd_report_figures f;
    made_report_new(&m, 3000, 40, 3, 5);
    assert_ok(cd_report_figures_compute(&f, &m.r, &err));
    assert_int_equal(f.shown, CD_SPLIT_PART_TEST);
    for (int k = 0; k < CD_SPLIT_N_PART; k++) {
        const cd_report_part *p = &m.r.part[k];
        const cd_report_fig_part *g = &f.part[k];
        check_dist(&g->all, p, any, 0);
        assert_close(g->all.mape, p->metrics.mape, 1e-9, 0);
        assert_close(g->all.ape[2], p->metrics.median_ape, 1e-9, 0);
        check_groups(&g->task, p, of_task);
        check_groups(&g->device, p, of_device);
        check_groups(&g->network, p, of_network); /* each task is in one */
        check_groups(&g->decade, p, of_decade);
        check_groups(&g->range, p, of_range);
        assert_int_equal(g->n_no_network, 0);
        size_t n = 0;
        for (size_t i = 0; i < CD_REPORT_FIG_GRID * CD_REPORT_FIG_GRID; i++) n += g->grid[i];
        assert_int_equal(n, p->n);
        assert_string_equal(g->task.v[3].name, m.name[g->task.v[3].key]);
    }
    cd_report_figures_free(&f);
    made_report_free(&m);
}

/* A task in two networks counts in both, listed twice in one counts once. */
TEST(memberships) {
    cdmpp_err err = {0};
    made_report m;
    cd_report_figures f;
    made_report_new(&m, 500, 4, 1, 2);
    const uint32_t net[] = {0, 1, 1, 0}, task[] = {0, 0, 0, 1}; /* 2 and 3 in none */
    m.r.n_net_task = 4, m.r.net_network = net, m.r.net_task = task;
    assert_ok(cd_report_figures_compute(&f, &m.r, &err));
    const cd_report_fig_part *g = &f.part[CD_SPLIT_PART_TRAIN];
    assert_int_equal(g->task.n, 4);
    assert_int_equal(g->network.n, 2);
    assert_int_equal(g->network.v[0].d.n, g->task.v[0].d.n + g->task.v[1].d.n);
    assert_int_equal(g->network.v[1].d.n, g->task.v[0].d.n);
    assert_int_equal(g->n_no_network, g->task.v[2].d.n + g->task.v[3].d.n);
    cd_report_figures_free(&f);
    made_report_free(&m);
}

TEST(cumulative) {
    cdmpp_err err = {0};
    made_report m;
    cd_report_figures f;
    made_report_new(&m, 700, 10, 1, 0);
    assert_ok(cd_report_figures_compute(&f, &m.r, &err));
    const cd_report_part *p = &m.r.part[CD_SPLIT_PART_TEST];
    assert_close(cd_report_fig_cdf_x(0), 0.001, 1e-12, 0);
    assert_close(cd_report_fig_cdf_x(CD_REPORT_FIG_N_CDF - 1), 10, 1e-12, 0);
    for (int k = 0; k < CD_REPORT_FIG_N_CDF; k++) {
        size_t n = 0;
        for (size_t i = 0; i < p->n; i++)
            n += fabs(p->predicted_s[i] / p->measured_s[i] - 1) <= cd_report_fig_cdf_x(k);
        assert_close(f.part[CD_SPLIT_PART_TEST].cdf[k], (double)n / (double)p->n, 1e-12, 1e-12);
    }
    cd_report_figures_free(&f);
    made_report_free(&m);
}

/* The made-up model knows its sigma, so coverage is nominal but for chance: 3.5 sd of
 * a share of 7000 programs is 0.021. */
TEST(calibration) {
    cdmpp_err err = {0};
    made_report m;
    cd_report_figures a, b;
    made_report_new(&m, 10000, 40, 1, 0);
    assert_ok(cd_report_figures_compute(&a, &m.r, &err));
    const cd_report_fig_part *g = &a.part[CD_SPLIT_PART_TRAIN];
    assert_true(g->has_sigma && g->has_interval);
    for (int l = 0; l < CD_REPORT_FIG_N_LEVEL; l++)
        assert_close(g->cover[l], cd_report_fig_level(l), 0, 0.021);
    assert_close(g->interval_cover, 0.9, 0, 0.0126);
    assert_true(g->sigma_rank > 0.5 && g->sigma_rank < 0.8);
    assert_int_equal(g->unsure.n, 10);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(g->unsure.v[i].d.n, 700);
        assert_close(g->unsure.v[i].observed, g->unsure.v[i].sigma, 0.15, 0);
        assert_true(!i || g->unsure.v[i].sigma > g->unsure.v[i - 1].sigma);
    }
    const cd_uncertainty *u = &g->tenth; /* 700 of 7000 */
    assert_int_equal(u->n, 7000);
    assert_close(0.1 * u->least_certain + 0.9 * u->rest, g->all.mape, 1e-9, 0);
    assert_true(u->least_certain_log > 1.5 * u->rest_log && u->rest_log > 0);
    m.r.part[CD_SPLIT_PART_TRAIN].rel_std = NULL; /* read off the interval: the same */
    assert_ok(cd_report_figures_compute(&b, &m.r, &err));
    assert_true(isnan(b.part[CD_SPLIT_PART_TRAIN].tenth.least_certain_log));
    for (int l = 0; l < CD_REPORT_FIG_N_LEVEL; l++)
        assert_close(b.part[CD_SPLIT_PART_TRAIN].cover[l], g->cover[l], 0, 1e-3);
    cd_report_figures_free(&b);
    for (int k = 0; k < CD_SPLIT_N_PART; k++) m.r.part[k].low_s = m.r.part[k].high_s = NULL;
    assert_ok(cd_report_figures_compute(&b, &m.r, &err));
    assert_false(b.part[CD_SPLIT_PART_TRAIN].has_sigma);
    assert_true(b.part[CD_SPLIT_PART_TEST].has_sigma && !b.part[CD_SPLIT_PART_TEST].has_interval);
    cd_report_figures_free(&b);
    cd_report_figures_free(&a);
    made_report_free(&m);
}

/* Of independent programs both ways agree; tasks that err together give a wider one. */
TEST(interval_of_the_mape) {
    cdmpp_err err = {0};
    made_report m;
    cd_report_figures a, b;
    made_report_new(&m, 4000, 400, 1, 0);
    assert_ok(cd_report_figures_compute(&a, &m.r, &err));
    m.r.kind = CD_SPLIT_RECORD;
    assert_ok(cd_report_figures_compute(&b, &m.r, &err));
    const cd_report_fig_part *t = &a.part[CD_SPLIT_PART_TEST], *r = &b.part[CD_SPLIT_PART_TEST];
    assert_int_equal(t->n_unit, t->task.n);
    assert_int_equal(r->n_unit, 0);
    assert_true(t->mape_low < t->all.mape && t->all.mape < t->mape_high);
    assert_close(0.5 * (r->mape_low + r->mape_high), r->all.mape, 1e-12, 0);
    assert_true(t->mape_high - t->mape_low > r->mape_high - r->mape_low);
    assert_true(t->mape_high - t->mape_low < 4 * (r->mape_high - r->mape_low));
    cd_report_figures_free(&a);
    cd_report_figures_free(&b);
    made_report_free(&m);
}

TEST(errors_are_told) {
    cdmpp_err err = {0};
    made_report m;
    cd_report_figures f;
    cd_buf b = {0};
    made_report_new(&m, 100, 4, 1, 2);
    const struct {
        double *at;
        double bad;
    } value[] = {/* low */
                 {m.v[CD_SPLIT_PART_TEST] + 3, NAN},
                 {m.v[CD_SPLIT_PART_TEST] + 3, 0},
                 {m.v[CD_SPLIT_PART_VALID] + 12, INFINITY},
                 {m.v[CD_SPLIT_PART_TRAIN] + 2 * 70 + 1, -1},
                 {m.v[CD_SPLIT_PART_TRAIN] + 2 * 70 + 1, 0},
                 /* high below low */
                 {m.v[CD_SPLIT_PART_TRAIN] + 3 * 70 + 1, 0},
                 {m.v[CD_SPLIT_PART_TRAIN] + 3 * 70 + 1, INFINITY},
                 {m.v[CD_SPLIT_PART_TRAIN] + 4 * 70 + 1, -1},
                 {m.v[CD_SPLIT_PART_TRAIN] + 4 * 70 + 1, INFINITY},
                 /* sigma */
                 {m.v[CD_SPLIT_PART_TRAIN] + 4 * 70 + 1, NAN}};
    for (size_t k = 0; k < sizeof value / sizeof *value; k++) {
        const double was = *value[k].at;
        *value[k].at = value[k].bad;
        assert_status(cd_report_figures_compute(&f, &m.r, &err), CDMPP_ENUMERIC);
        cd_report_figures_free(&f);
        *value[k].at = was;
    }
    uint32_t *index[] = {m.k[CD_SPLIT_PART_TEST], m.k[CD_SPLIT_PART_TEST] + 20, m.net, m.net + 4};
    for (size_t k = 0; k < sizeof index / sizeof *index; k++) {
        const uint32_t was = *index[k];
        *index[k] = 4;
        assert_status(cd_report_figures_compute(&f, &m.r, &err), CDMPP_ERANGE);
        cd_report_figures_free(&f);
        if (k < 2) assert_status(cd_report_write_csv(&b, &m.r, &err), CDMPP_ERANGE);
        *index[k] = was;
    }
    cd_buf_free(&b);
    made_report_free(&m);
}

TESTS(NULL, NULL, quantiles, groups, memberships, cumulative, calibration, interval_of_the_mape,
      errors_are_told)
