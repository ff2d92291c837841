/* Rules read, matched and paid for: against brute force on drawn chains, and every contradiction by
 * its lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "predictor/partition/offload/offload_rules.h"
#include "predictor/partition/placement/place.h"

static cdmpp_err err;
static const char rules[] = "# a little npu\n"
                            "host cpu\n"
                            "pattern npu conv_bias_relu: conv2d -> bias_add -> relu|clip? where "
                            "dtype=float16|int8, 1.groups=1  # fused\n"
                            "pattern npu conv_bias: conv2d -> bias_add\n"
                            "support npu conv2d dense where dtype=float16|int8, c%16\n"
                            "support npu relu\n"
                            "refuse npu conv2d where kernel>=11\n"
                            "place head.* cpu\n";

static cd_offload_rules *parsed(const char *text) {
    cd_offload_rules *r;
    assert_ok(cd_offload_parse("x.rules", text, strlen(text), &r, &err));
    return r;
}

static void refused(const char *text, cdmpp_status want, long line, const char *part) {
    cd_offload_rules *r;
    assert_status(cd_offload_parse("x.rules", text, strlen(text), &r, &err), want);
    assert_null(r);
    assert_string_equal(err.path, "x.rules");
    if (err.line != line || !strstr(err.msg, part))
        fail_msg("line %ld: %s: expected line %ld, \"%s\"", err.line, err.msg, line, part);
}

static void bad_files(void **state) {
    (void)state;
    refused("", CDMPP_EPARSE, 1, "host");
    refused("support npu relu\n", CDMPP_EPARSE, 1, "first line must name the host");
    refused("host cpu\nhost npu\n", CDMPP_EPARSE, 2, "once");
    refused("host cpu\nsuport npu relu\n", CDMPP_EPARSE, 2,
            "expected one of host|pattern|support|refuse|place");
    refused("host cpu\nsupport npu\n", CDMPP_EPARSE, 2, "no operator");
    refused("host cpu\nsupport npu relu where\n", CDMPP_EPARSE, 2, "no condition");
    refused("host cpu\nsupport npu relu where c\n", CDMPP_EPARSE, 2, "expected key");
    refused("host cpu\nsupport npu relu where c<x\n", CDMPP_EPARSE, 2, "expected a number");
    refused("host cpu\nsupport npu relu where c%0\n", CDMPP_EPARSE, 2, "expected a number");
    refused("host cpu\npattern npu p: a b\n", CDMPP_EPARSE, 2, "expected ->");
    refused("host cpu\npattern npu p: a? -> b\n", CDMPP_EPARSE, 2, "first operator");
    refused("host cpu\npattern npu p a -> b\n", CDMPP_EPARSE, 2, "colon");
    refused("host cpu\npattern npu p: a -> b where 3.k=1\n", CDMPP_EPARSE, 2, "operator 3 of 2");
    refused("host cpu\nrefuse cpu relu\n", CDMPP_EINVALID, 2, "host must run everything");
    refused("host cpu\nsupport npu relu where c>1\n\nrefuse npu relu where c>1\n", CDMPP_EINVALID,
            4, "contradicts line 2");
    refused("host cpu\nsupport npu relu\nplace x npu\nplace y dsp\n", CDMPP_EINVALID, 4,
            "no support or pattern line of dsp");
    cd_offload_free(parsed("host cpu\nsupport npu relu where c>1\nrefuse npu relu where c>2\n"));
}

/* ---- one graph by hand ---- */

static const cd_offload_attr
    half[] = {{"dtype", "float16"}, {"groups", "1.0"}, {"c", "32"}, {"kernel", "3"}},
    grouped[] = {{"dtype", "float16"}, {"groups", "8"}, {"c", "30"}, {"kernel", "3"}},
    big[] = {{"dtype", "float16"}, {"groups", "1"}, {"c", "32"}, {"kernel", "11"}};
static const uint32_t in[] = {0, 1, 2, 3, 4, 5, 6};
static const cd_offload_op by_hand[] = {
    {"stem.conv", "conv2d", 4, 0, 0, half},   {"stem.bias", "bias_add", 4, 0, 1, half},
    {"stem.relu", "relu", 4, 1, 1, half},     {"b.conv", "conv2d", 4, 2, 1, grouped},
    {"b.bias", "bias_add", 4, 3, 1, grouped}, {"c.conv", "conv2d", 4, 4, 1, big},
    {"c.bias", "bias_add", 4, 5, 1, big},     {"head.relu", "relu", 4, 6, 1, half},
};

static void by_the_book(void **state) {
    (void)state;
    cd_offload_rules *r = parsed(rules);
    const cd_offload_graph g = {8, 7, by_hand, in};
    cd_offload o;
    const char *const *device;
    assert_int_equal(cd_offload_devices(r, &device), 2);
    assert_string_equal(device[1], "npu");
    assert_ok(cd_offload_apply(r, &g, &o, &err));
    assert_int_equal(o.n_match, 3);
    assert_string_equal(o.match[0].pattern, "conv_bias_relu");
    assert_true(o.match[0].n_op == 3 && o.match[0].taken && o.match[0].line == 3);
    assert_string_equal(o.match[1].pattern, "conv_bias"); /* overlaps: kept, not taken */
    assert_true(o.member[o.match[1].first] == 0 && !o.match[1].taken);
    /* the grouped one; the big one is refused */
    assert_true(o.member[o.match[2].first] == 3 && o.match[2].taken);
    static const bool able[] = {true, false, true, false, false, false, false, true};
    for (uint32_t k = 0; k < 8; k++) assert_true(o.able[k * 2] && o.able[k * 2 + 1] == able[k]);
    assert_string_equal(o.why[1 * 2 + 1], "no support line for bias_add");
    assert_string_equal(o.why[3 * 2 + 1], "x.rules:5: conditions are not met");
    assert_string_equal(o.why[5 * 2 + 1], "x.rules:7: refuse");
    assert_true(o.place[7] == 0 && o.place_line[7] == 8 && o.place[0] == UINT32_MAX);
    cd_offload_done(&o);
    cd_offload_free(r);
}

static void contradicts(const char *text, cdmpp_status want, long line, const char *part) {
    cd_offload_rules *r = parsed(text);
    const cd_offload_graph g = {8, 7, by_hand, in};
    cd_offload o;
    assert_status(cd_offload_apply(r, &g, &o, &err), want);
    if (err.line != line || !strstr(err.msg, part))
        fail_msg("line %ld: %s: expected line %ld, \"%s\"", err.line, err.msg, line, part);
    cd_offload_done(&o);
    cd_offload_free(r);
}

static void contradictions(void **state) {
    (void)state;
    contradicts(
        "host cpu\nsupport npu conv2d\nrefuse npu conv2d where kernel>=11\nplace c.conv npu\n",
        CDMPP_EINVALID, 4, "c.conv (conv2d) cannot be on npu: x.rules:3: refuse");
    contradicts("host cpu\nsupport npu relu\nplace b.bias npu\n", CDMPP_EINVALID, 3,
                "b.bias (bias_add) cannot be on npu: no support line");
    contradicts("host cpu\nsupport npu relu\nplace *.relu npu\nplace head.* cpu\n", CDMPP_EINVALID,
                4, "line 3 places head.relu on npu");
    contradicts("host cpu\nsupport npu relu\nplace tail.* npu\n", CDMPP_ESCHEMA, 3,
                "no operator of that name");
    /* by a pattern it can */
    cd_offload_rules *r =
        parsed("host cpu\npattern npu p: conv2d -> bias_add\nplace stem.bias npu\n");
    const cd_offload_graph g = {8, 7, by_hand, in};
    cd_offload o;
    assert_ok(cd_offload_apply(r, &g, &o, &err));
    cd_offload_done(&o);
    static const uint32_t after[] = {1};
    const cd_offload_op two[] = {{"a", "relu", 0, 0, 1, NULL}, {"b", "relu", 0, 0, 0, NULL}};
    assert_status(cd_offload_apply(r, &(cd_offload_graph){2, 1, two, after}, &o, &err),
                  CDMPP_EINVALID);
    cd_offload_done(&o);
    cd_offload_free(r);
}

/* ---- what pays ---- */

enum { N = 9 };
typedef struct {
    cd_offload_op op[N];
    uint32_t in[N * 3];
    cd_offload_graph g;
    char name[N][16];
    int64_t bytes[N];
    uint64_t seed;
} drawn;

static const char *const type[] = {"a", "b", "c", "d"};
static const char drawn_rules[] =
    "host cpu\npattern npu abc: a -> b -> c?\npattern npu bc: b|a -> c\npattern npu cd: c -> "
    "d\nsupport npu a b\nrefuse npu d where never=1\n";

static void draw(drawn *m, uint64_t seed) {
    memset(m, 0, sizeof *m);
    m->seed = seed;
    m->g = (cd_offload_graph){1 + (uint32_t)seed % N, 0, m->op, m->in};
    for (uint32_t k = 0; k < m->g.n_op; k++) {
        snprintf(m->name[k], sizeof m->name[k], "op%u", k);
        m->op[k] = (cd_offload_op){
            m->name[k], type[(int)(cd_rng_unit(seed, k) * 4)], 0, m->g.n_in, 0, NULL};
        for (uint32_t j = 0; j < k && m->op[k].n_in < 3; j++)
            if (j + 1 == k ? cd_rng_unit(seed, 99 + k) < 0.85
                           : cd_rng_unit(seed, 200 + k * N + j) < 0.1)
                m->in[m->g.n_in++] = j, m->op[k].n_in++;
        m->bytes[k] = (int64_t)(cd_rng_unit(seed, 500 + k) * 1000);
    }
}

static double seconds(const cd_offload_match *match, const uint32_t *op, uint32_t n,
                      uint32_t device, void *ctx) {
    const drawn *m = ctx;
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (0.2 + cd_rng_unit(m->seed, 300 + op[i])) *
               (device ? 0.2 + cd_rng_unit(m->seed, 400 + op[i]) : 1);
    return match ? sum * 0.6 : sum;
}

/* Brute force: every set of matches that do not overlap, every place of the rest. */
static double slow_choose(const drawn *m, const cd_offload *o, const cd_place_link *link) {
    double least = (double)INFINITY;
    for (uint32_t set = 0; set < 1u << o->n_match; set++) {
        uint32_t by[N], where[N];
        bool ok = true;
        memset(by, 0xff, sizeof by);
        for (uint32_t i = 0; i < o->n_match; i++)
            for (uint32_t j = 0; j < o->match[i].n_op && (set >> i & 1); j++) {
                ok = ok && by[o->member[o->match[i].first + j]] == UINT32_MAX;
                by[o->member[o->match[i].first + j]] = i;
            }
        for (uint32_t places = 0; ok && places < 1u << m->g.n_op; places++) {
            double sum = 0;
            for (uint32_t k = 0; k < m->g.n_op; k++) {
                where[k] = places >> k & 1;
                if (by[k] == UINT32_MAX)
                    sum += o->able[k * 2 + where[k]]
                               ? seconds(NULL, &k, 1, where[k], (void *)(uintptr_t)m)
                               : (double)INFINITY;
                else if (where[k] != o->match[by[k]].device) sum = (double)INFINITY;
            }
            for (uint32_t i = 0; i < o->n_match; i++)
                if (set >> i & 1)
                    sum += seconds(&o->match[i], o->member + o->match[i].first, o->match[i].n_op,
                                   o->match[i].device, (void *)(uintptr_t)m);
            for (uint32_t k = 0; k < m->g.n_op; k++) {
                bool crosses = false;
                for (uint32_t e = 0; e < m->g.n_op; e++)
                    for (uint32_t j = 0; j < m->op[e].n_in; j++)
                        crosses =
                            crosses || (m->in[m->op[e].first + j] == k && where[e] != where[k]);
                for (uint32_t l = 0; l < 2 && crosses; l++)
                    if (link[l].from == where[k])
                        sum += link[l].latency_s + (double)m->bytes[k] / link[l].bytes_per_s;
            }
            least = fmin(least, sum);
        }
    }
    return least;
}

static void equals_every_cover(void **state) {
    (void)state;
    static drawn m;
    cd_offload_rules *r = parsed(drawn_rules);
    const cd_place_link link[] = {{0, 1, 0.1, 5000, 0, 0, 0}, {1, 0, 0.05, 3000, 0, 0, 0}};
    int better = 0, matched = 0;
    for (uint64_t s = 0; s < 1000; s++) {
        cd_offload o;
        cd_offload_plan p;
        draw(&m, s);
        assert_ok(cd_offload_apply(r, &m.g, &o, &err));
        bool used[N] = {false}; /* greedy, once more: nobody twice, in order, all who can */
        for (uint32_t i = 0; i < o.n_match; i++) {
            bool can = true;
            for (uint32_t j = 0; j < o.match[i].n_op; j++)
                can = can && !used[o.member[o.match[i].first + j]];
            assert_true(o.match[i].taken == can);
            for (uint32_t j = 0; j < o.match[i].n_op && can; j++)
                used[o.member[o.match[i].first + j]] = true;
        }
        const cd_offload_options ask = {seconds, &m, m.bytes, link, 2};
        assert_ok(cd_offload_choose(r, &m.g, &o, &ask, &p, &err));
        assert_true(p.exact);
        assert_close(p.sum_s, slow_choose(&m, &o, link), 1e-9, 0);
        assert_true(p.sum_s <= p.byoc_s * (1 + 1e-9) && p.sum_s <= p.host_s * (1 + 1e-9));
        for (uint32_t k = 0; k < m.g.n_op; k++)
            assert_true(p.match[k] == UINT32_MAX ? o.able[k * 2 + p.where[k]]
                                                 : p.where[k] == o.match[p.match[k]].device);
        better += p.sum_s<fmin(p.byoc_s, p.host_s) * (1 - 1e-9), matched += o.n_match> 0;
        cd_offload_plan_free(&p);
        cd_offload_done(&o);
    }
    print_message("better than greedy and than the host alone: %d of 1000; %d with matches\n",
                  better, matched);
    assert_true(better > 100 && matched > 300);
    cd_offload_free(r);
}

/* Too many covers for all of them: never worse than either baseline. */
static void many_covers(void **state) {
    (void)state;
    enum { M = 120 };
    static cd_offload_op op[M];
    static uint32_t inputs[M];
    static int64_t bytes[M];
    static drawn ctx;
    cd_offload_rules *r = parsed(drawn_rules);
    const cd_place_link link[] = {{0, 1, 0.1, 5000, 0, 0, 0}, {1, 0, 0.05, 3000, 0, 0, 0}};
    for (uint32_t k = 0; k < M; k++)
        op[k] = (cd_offload_op){"op", type[(int)(cd_rng_unit(7, k) * 4)], 0, k ? k - 1 : 0, k > 0,
                                NULL},
        inputs[k] = k, bytes[k] = 100;
    const cd_offload_graph g = {M, M - 1, op, inputs};
    const cd_offload_options ask = {seconds, &ctx, bytes, link, 2};
    cd_offload o;
    cd_offload_plan p;
    assert_ok(cd_offload_apply(r, &g, &o, &err));
    assert_true(o.n_match > 15);
    assert_ok(cd_offload_choose(r, &g, &o, &ask, &p, &err));
    assert_false(p.exact);
    assert_true(p.sum_s <= p.byoc_s * (1 + 1e-9) && p.sum_s <= p.host_s * (1 + 1e-9));
    cd_offload_plan_free(&p);
    cd_offload_done(&o);
    cd_offload_free(r);
}

TESTS(NULL, NULL, bad_files, by_the_book, contradictions, equals_every_cover, many_covers)
