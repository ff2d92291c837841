/* Plans as JSON: both ways, and what is refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "made_snet_kinds.h"

static char *text_of(const cd_shard_plan *p, cd_buf *b) {
    cd_buf_clear(b);
    cd_shard_plan_write(p, b);
    assert_false(b->oom);
    return b->p;
}

static cd_shard_plan *made(ms_net *m, uint64_t seed) {
    const uint32_t apart[] = {0, 1, 1};
    cd_shard_plan *p;
    ms_begin(m, seed);
    assert_ok(ms_machine(m, 2 + (uint32_t)seed % 2, apart, 1e-7, 1e-9, &err));
    ms_draw(m, &kinds, 6);
    ms_speeds(m);
    if (seed % 3 == 0) m->op[2].allowed = 1;
    const cd_shard_plan_options a = ms_ask(m);
    assert_ok(cd_shard_plan_make(&a, &p, NULL, &err));
    return p;
}

static void same_op(const cd_shard_plan_op *a, const cd_shard_plan_op *b) {
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->dim, b->dim);
    assert_string_equal(a->why, b->why);
    assert_true(a->reduce == b->reduce && a->way_op == b->way_op && a->axis == b->axis &&
                a->join == b->join && a->n_part == b->n_part);
    assert_true(a->seconds == b->seconds && a->exchange_s == b->exchange_s &&
                a->ceiling == b->ceiling && a->join_s == b->join_s);
    for (uint32_t i = 0; i < a->n_part; i++)
        assert_true(a->part[i].device == b->part[i].device && a->part[i].lo == b->part[i].lo &&
                    a->part[i].hi == b->part[i].hi && a->part[i].seconds == b->part[i].seconds);
}

static void same_copy(const cd_shard_plan_copy *a, const cd_shard_plan_copy *b) {
    assert_true(a->tensor == b->tensor && a->from == b->from && a->to == b->to &&
                a->bytes == b->bytes && a->seconds == b->seconds && a->before == b->before);
}

/* One that a model knows, one that another stands for, one of which nothing is known. */
static const cd_shard_plan_source source[] = {{.as = "zen5",
                                               .model = "a.cdmpp",
                                               .by_default = true,
                                               .host = "AMD EPYC, zen4",
                                               .unlike = 0.25,
                                               .unlike_of = {0.25, 0, 0.125}},
                                              {.as = "tpu",
                                               .model = "b.cdmpp",
                                               .stands = "v100",
                                               .scaled = true,
                                               .guessed = true,
                                               .stands_spread = 0.5,
                                               .costs_spread = (double)NAN,
                                               .left = 0.375},
                                              {.costs_spread = 0.25, .unlike = (double)NAN}};

static void same_source(const cd_shard_plan_source *a, const cd_shard_plan_source *b) {
    const char *const text[][2] = {
        {a->as, b->as}, {a->model, b->model}, {a->stands, b->stands}, {a->host, b->host}};
    for (size_t k = 0; k < 4; k++)
        assert_true(text[k][0] && text[k][1] ? !strcmp(text[k][0], text[k][1])
                                             : text[k][0] == text[k][1]);
    assert_true(a->scaled == b->scaled && a->guessed == b->guessed &&
                a->by_default == b->by_default && a->stands_spread == b->stands_spread &&
                a->left == b->left);
    assert_true(a->unlike == b->unlike || (isnan(a->unlike) && isnan(b->unlike)));
    assert_true(a->costs_spread == b->costs_spread ||
                (isnan(a->costs_spread) && isnan(b->costs_spread)));
    assert_memory_equal(a->unlike_of, b->unlike_of, sizeof a->unlike_of);
}

static void both_ways(void **state) {
    (void)state;
    static ms_net m;
    cd_buf once = {0}, twice = {0};
    for (uint64_t seed = 0; seed < 30; seed++) {
        cd_shard_plan *p = made(&m, seed), *q;
        p->measured_s = seed % 2 ? (double)NAN : 0.5;
        p->source = seed % 4 ? source : NULL;
        if (seed % 3) p->low_s = 0.25, p->high_s = 0.75, p->others = 0.5;
        else p->no_interval = "nobody knows";
        text_of(p, &once);
        assert_ok(cd_shard_plan_read_text("p.json", once.p, once.n, &q, &err));
        assert_string_equal(once.p, text_of(q, &twice));
        assert_true(p->n_op == q->n_op && p->n_copy == q->n_copy && p->n_base == q->n_base &&
                    p->rho == q->rho && p->predicted_s == q->predicted_s);
        assert_true(seed % 3 ? q->low_s == 0.25 && q->high_s == 0.75 && q->others == 0.5 &&
                                   !q->no_interval
                             : isnan(q->low_s) && isnan(q->high_s) && isnan(q->others) &&
                                   !strcmp(q->no_interval, "nobody knows"));
        assert_int_equal(p->source != NULL, q->source != NULL);
        for (uint32_t d = 0; p->source && d < p->n_device; d++)
            same_source(&p->source[d], &q->source[d]);
        for (uint32_t k = 0; k < p->n_op; k++) same_op(&p->op[k], &q->op[k]);
        for (uint32_t i = 0; i < p->n_copy; i++) same_copy(&p->copy[i], &q->copy[i]);
        cd_shard_plan_free(p);
        cd_shard_plan_free(q);
        ms_free(&m);
    }
    cd_buf_free(&once);
    cd_buf_free(&twice);
}

#define HEAD                                                                                       \
    "{\"schema\": \"cdmpp.plan\", \"version\": 1, \"network\": \"n\", \"batch\": 1, \"devices\": " \
    "[\"a\", \"b\"], \"verdict\": \"v\", \"split\": true, \"exact\": true, "                       \
    "\"rho\": null, \"ceiling\": 2, \"predicted_s\": 1, \"bound_s\": 1, \"measured_s\": null, "    \
    "\"predicted_gain\": 1, \"measured_gain\": null, \"operators\": ["
#define PART(d, lo, hi) "{\"device\": \"" d "\", \"lo\": " #lo ", \"hi\": " #hi ", \"seconds\": 1}"
#define OP(dim, extra, parts, join)                                                                \
    "{\"name\": \"conv\", \"type\": \"\", \"key\": \"\", \"dim\": \"" dim "\", " extra             \
    "\"parts\": [" parts "], \"join\": " join ", \"join_s\": 0, "                                  \
    "\"seconds\": 1, \"exchange_s\": 0, \"alone_s\": [1, null], \"ceiling\": 2, \"why\": \"\"}"
#define WAY "\"reduce\": false, \"way_op\": 1, \"axis\": 0, \"extent\": 8, "
#define SUM "\"reduce\": true, \"way_op\": 1, \"axis\": 0, \"extent\": 8, "
#define TAIL                                                                                       \
    "], \"copies\": [], \"baselines\": [{\"name\": \"a\", \"predicted_s\": null, \"measured_s\": " \
    "null}]}"

static void refused(const char *text, cdmpp_status want, const char *key, const char *says) {
    cd_shard_plan *p;
    err = (cdmpp_err){0};
    assert_status(cd_shard_plan_read_text("plan.json", text, strlen(text), &p, &err), want);
    assert_null(p);
    if (!strstr(err.msg, says) || !strstr(err.key, key) || strcmp(err.path, "plan.json"))
        fail_msg("%s: %s: %s, expected %s: %s", err.path, err.key, err.msg, key, says);
}

static void what_is_refused(void **state) {
    (void)state;
    cd_shard_plan *p;
    const char *good = HEAD OP("H", WAY, PART("a", 0, 3) ", " PART("b", 3, 8), "null") TAIL;
    assert_ok(cd_shard_plan_read_text("plan.json", good, strlen(good), &p, &err));
    assert_true(p->split && p->op[0].part[1].lo == 3 && isinf(p->op[0].alone_s[1]) &&
                isinf(p->base[0].predicted_s) && isnan(p->measured_s));
    /* it has none of them */
    assert_true(isnan(p->low_s) && isnan(p->others) && strstr(p->no_interval, "earlier version"));
    cd_shard_plan_free(p);
    refused(HEAD OP("H", WAY, PART("a", 0, 4) ", " PART("b", 3, 8), "null") TAIL, CDMPP_ERANGE,
            "operators.conv[0]", "overlaps");
    refused(HEAD OP("H", WAY, PART("a", 0, 3) ", " PART("b", 4, 8), "null") TAIL, CDMPP_ERANGE,
            "conv", "expected one from 3 within 8");
    refused(HEAD OP("H", WAY, PART("a", 0, 3) ", " PART("b", 3, 9), "null") TAIL, CDMPP_ERANGE,
            "conv", "expected one from 3 within 8");
    refused(HEAD OP("H", WAY, PART("a", 0, 3) ", " PART("b", 3, 7), "null") TAIL, CDMPP_ERANGE,
            "conv", "parts end at 7 of 8");
    refused(HEAD OP("H", WAY, PART("a", 0, 3) ", " PART("a", 3, 8), "null") TAIL, CDMPP_ERANGE,
            "conv", "two parts on a");
    refused(HEAD OP("H", WAY, PART("a", -1, 3) ", " PART("b", 3, 8), "null") TAIL, CDMPP_ERANGE,
            "parts[0].lo", "outside");
    refused(HEAD OP("H", WAY, PART("c", 0, 8), "null") TAIL, CDMPP_ESCHEMA, "parts[0].device",
            "device c is not among");
    refused(HEAD OP("H", WAY, PART("a", 0, 8), "null") TAIL, CDMPP_ERANGE, "conv",
            "two parts or more");
    refused(HEAD OP("H", WAY, PART("a", 0, 3) ", " PART("b", 3, 8), "\"a\"") TAIL, CDMPP_ESCHEMA,
            "conv", "joins");
    refused(HEAD OP("K", SUM, PART("a", 0, 3) ", " PART("b", 3, 8), "null") TAIL, CDMPP_ESCHEMA,
            "conv", "joins");
    refused(HEAD OP("", "", PART("a", 0, 3), "null") TAIL, CDMPP_ERANGE, "conv", "0 to 0");
    refused(HEAD OP("", "", PART("a", 0, 0), "null") TAIL, CDMPP_ESCHEMA, "",
            "its operators say otherwise");
    refused("{\"schema\": \"cdmpp.plan\", \"version\": 2}", CDMPP_ESCHEMA, "", "version 2");
    refused("{\"schema\": \"other\"}", CDMPP_ESCHEMA, "", "cdmpp.plan");
    refused("[1, 2", CDMPP_EPARSE, "", "");
    refused("", CDMPP_EPARSE, "", "");
    assert_status(cd_shard_plan_read("/nowhere/plan.json", &p, &err), CDMPP_EIO);
}

/* Any bytes: an error or a plan that keeps its rules and can be written. */
static void any_bytes(void **state) {
    (void)state;
    static ms_net m;
    cd_buf b = {0}, c = {0};
    cd_shard_plan *p = made(&m, 3), *q;
    unsigned read = 0;
    text_of(p, &b);
    for (uint64_t i = 0, at = 0; i < 3000; i++) {
        cd_buf_clear(&c);
        cd_buf_put(&c, b.p, b.n);
        for (uint32_t k = 0; k < 1 + i % 3; k++) {
            static const char some[] = "0123456789-.eE{}[],:\"ntabc \\";
            const char put = some[(size_t)(cd_rng_unit(7, at++) * (sizeof some - 1))];
            c.p[(size_t)(cd_rng_unit(7, at++) * (double)c.n)] = put;
        }
        const size_t n = i % 5 ? c.n : (size_t)(cd_rng_unit(7, at++) * (double)c.n);
        if (cd_shard_plan_read_text("any", c.p, n, &q, &err)) {
            assert_true(!q && err.code && err.msg[0]);
            continue;
        }
        read++;
        for (uint32_t k = 0; k < q->n_op; k++)
            assert_true(q->op[k].n_part >= 1 && q->op[k].seconds >= 0 &&
                        q->op[k].part[0].device < q->n_device);
        for (uint32_t k = 0; k < q->n_copy; k++)
            assert_true(q->copy[k].from < q->n_device && q->copy[k].to < q->n_device &&
                        q->copy[k].before <= q->n_op);
        cd_arena a = {0};
        cd_replay_net net;
        cd_replay r = {0};
        /* a time of 1e200 s */
        if (!cd_shard_plan_replay(q, &m.net, &m.machine, &a, &net, &err) &&
            cd_replay_run(&net, &r, &err))
            assert_int_equal(err.code, CDMPP_ERANGE);
        cd_replay_free(&r);
        cd_arena_free(&a);
        cd_buf_clear(&c);
        cd_shard_plan_write(q, &c);
        cd_shard_plan_free(q);
        assert_ok(cd_shard_plan_read_text("again", c.p, c.n, &q, &err));
        cd_shard_plan_free(q);
    }
    print_message("%u of 3000 damaged plans could be read\n", read);
    cd_shard_plan_free(p);
    ms_free(&m);
    cd_buf_free(&b);
    cd_buf_free(&c);
}

TESTS(ms_up, ms_down, both_ways, what_is_refused, any_bytes)
