/* Estimates of graphs whose times are given: memory, shares, names and messages against numbers
 * worked out by hand. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "predictor/network_estimate/network_estimate.h"
#include "tmp.h"

static cdmpp_err err;
static tmp_dir dir;

static int set_up(void **state) {
    (void)state;
    dir = tmp_make();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

/* Two GPUs of 1 and 2 GiB. */
static const char devices[] = "- {name: little, kind: gpu, clock_mhz: 1000, cores: 10, mem_gb: 1, "
                              "bandwidth_gb_s: 100, fp32_gflops: 1000}\n"
                              "- {name: large, kind: gpu, clock_mhz: 1000, cores: 10, mem_gb: 2, "
                              "bandwidth_gb_s: 100, fp32_gflops: 1000}\n";

typedef struct {
    cd_network_estimate_options o;
    cd_network_estimate e;
    char path[2][256], list[256];
    const char *graph[2];
} bench;

/* nodes: of the network "n"; a second file with the same name where `twice`. */
static cd_network_estimate_case *estimate(bench *b, const char *device, const char *nodes,
                                          bool twice) {
    memset(b, 0, sizeof *b);
    for (int k = 0; k < 2; k++) {
        /* is a key that is not there */
        static const char *const unknown[] = {"\"read_bytes\": null,", "\"write_bytes\": null,"};
        char name[32];
        cd_buf text = {0};
        cd_buf_putf(&text,
                    "{\"schema\": \"cdmpp.netgraph\", \"version\": 1, \"networks\": [{\"name\": "
                    "\"n\", \"batch\": 8, \"device\": \"%s\", \"nodes\": [%s]}]}",
                    device, nodes);
        for (int u = 0; u < 2; u++)
            for (char *at; (at = strstr(text.p, unknown[u]));) memset(at, ' ', strlen(unknown[u]));
        snprintf(name, sizeof name, "g%d.json", k);
        snprintf(b->path[k], sizeof b->path[k], "%s", tmp_put(&dir, name, text.p, text.n));
        b->graph[k] = b->path[k];
        cd_buf_free(&text);
    }
    snprintf(b->list, sizeof b->list, "%s",
             tmp_put(&dir, "devices.yaml", devices, strlen(devices)));
    b->o = cd_network_estimate_defaults();
    b->o.graph = (cd_texts){twice ? 2 : 1, b->graph};
    b->o.devices = b->list, b->o.replay_given = b->o.allow_missing = true, b->o.issue_s = 0,
    b->o.gap_s = 0;
    assert_ok(cd_network_estimate_open(&b->o, &b->e, &err));
    assert_ok(cd_network_estimate_run(&b->e, &err));
    return b->e.item;
}

#define FREE(name, bytes, after)                                                                   \
    "{\"name\": \"" name "\", \"kind\": \"free\", \"write_bytes\": " bytes ", \"after\": [" after  \
    "]},"
#define OP(name, s, read, write, more, after)                                                      \
    "{\"name\": \"" name "\", \"op\": \"op\", \"kind\": \"given\", \"given_s\": " s                \
    ", \"read_bytes\": " read ", \"write_bytes\": " write "," more " \"after\": [" after "]}"

static void use_is(const cd_network_estimate_use *u, int64_t weights, int64_t peak, int64_t least,
                   cd_network_fits fits) {
    assert_int_equal(u->weights, weights);
    assert_int_equal(u->peak, peak);
    assert_int_equal(u->least, least);
    assert_int_equal(cd_network_estimate_use_fits(u), fits);
}

/* x is read by a, whose result b reads through a view of unknown size; u is read by nobody. */
static void test_memory_of_a_chain(void **state) {
    bench b;
    (void)state;
    const cd_network_estimate_case *c =
        estimate(&b, "little",
                 FREE("x", "1000", "") FREE("u", "77", "")
                     OP("a", "1", "1500", "2000", "", "\"x\"") "," FREE("v", "null", "\"a\"")
                         OP("b", "2", "2300", "100", " \"repeat\": 3,", "\"v\""),
                 false);
    /* weights: x 1000, what a reads beyond it 500, b beyond the view 300; results: a and b at
     * once */
    use_is(&c->use[0], 1800, 1800 + 2100, 1800 + 2100, CD_NETWORK_FITS_YES);
    assert_int_equal(c->use[0].memory, (int64_t)1 << 30);
    assert_close(c->ops_s, 1 + 3 * 2, 1e-12, 0);
    assert_close(c->given_s, 7, 1e-12, 0);
    assert_close(c->replay.makespan_s, 7, 1e-12, 0);
    assert_close(cd_network_estimate_throughput(c), 8 / 7.0, 1e-12, 0);
    assert_close(cd_network_estimate_error(c, 3.5), 1, 1e-12, 0);
    assert_true(isnan(cd_network_estimate_error(c, 0)));
    assert_true(c->unlike_s == 0 && c->missing_share == 0);
    cd_network_estimate_free(&b.e);
}

/* Where a file says which part is weights, the rest of what the first operator reads is the input;
 * a sees it before b. */
static void test_weights_that_are_said(void **state) {
    bench b;
    (void)state;
    const cd_network_estimate_case *c =
        estimate(&b, "little",
                 OP("a", "1", "1500", "2000", " \"weight_bytes\": 400,", "") "," OP(
                     "a2", "1", "900", "10", " \"weight_bytes\": 100,",
                     "") "," OP("b", "2", "2310", "100", " \"weight_bytes\": 50,", "\"a\""),
                 false);
    /* 400 + 100 + 50 weights; the larger input of 1100 and 800; b reads more beyond a than its
     * weights: read before */
    assert_int_equal(c->use[0].weights, 550 + 1100);
    cd_network_estimate_free(&b.e);
}

static void test_unknown_sizes(void **state) {
    bench b;
    (void)state;
    const cd_network_estimate_case *c = estimate(
        &b, "little",
        OP("a", "1", "500", "null", "", "") "," OP("b", "2", "null", "100", "", "\"a\""), false);
    assert_int_equal(c->use[0].peak, -1); /* a's result is of unknown size */
    assert_int_equal(c->use[0].weights, -1);
    assert_int_equal(cd_network_estimate_fits(c), CD_NETWORK_FITS_UNKNOWN);
    cd_network_estimate_free(&b.e);
    /* too much whatever is unknown */
    c = estimate(&b, "little", OP("a", "1", "1500000000", "null", "", ""), false);
    assert_int_equal(cd_network_estimate_fits(c), CD_NETWORK_FITS_NO);
    cd_network_estimate_free(&b.e);
}

/* b runs on the other device: memory of each, a copy between them, and the fullest is the one that
 * has too little. */
static void test_two_devices(void **state) {
    bench b;
    (void)state;
    const cd_network_estimate_case *c =
        estimate(&b, "little",
                 OP("a", "1", "700000000", "100000000", " \"device\": \"little\",",
                    "") "," OP("b", "2", "1500000000", "1000", " \"device\": \"large\",",
                               "\"a\"") "," OP("c", "4", "1000", "10", "", "\"b\""),
                 false);
    assert_int_equal(c->n_place, 2);
    assert_string_equal(c->place[1]->name, "large");
    assert_int_equal(c->use[0].weights, 700000000);
    assert_int_equal(c->use[1].weights, 1400000000);
    assert_int_equal(c->use[1].memory, (int64_t)2 << 30);
    assert_int_equal(c->fullest, 1); /* both fit: the fuller one */
    assert_int_equal(cd_network_estimate_fits(c), CD_NETWORK_FITS_YES);
    /* both copies, at 12 GB/s */
    assert_close(c->replay.sum_s - c->ops_s, 2 * 10e-6 + 100000000 / 12e9 + 1000 / 12e9, 1e-9, 0);
    assert_close(c->replay.busy_s[1], 2, 1e-12, 0);
    cd_network_estimate_free(&b.e);
    c = estimate(&b, "little",
                 OP("a", "1", "1200000000", "100000000", " \"device\": \"little\",",
                    "") "," OP("b", "2", "1500000000", "1000", " \"device\": \"large\",", "\"a\""),
                 false);
    assert_int_equal(c->fullest, 0); /* less in it, but too much for it */
    assert_int_equal(cd_network_estimate_fits(c), CD_NETWORK_FITS_NO);
    assert_int_equal(cd_network_estimate_use_fits(&c->use[1]), CD_NETWORK_FITS_YES);
    cd_network_estimate_free(&b.e);
}

/* Results of several files are told apart. */
static void test_names(void **state) {
    bench b;
    (void)state;
    estimate(&b, "little", OP("a", "1", "1", "1", "", ""), true);
    assert_int_equal(b.e.n_item, 2);
    assert_string_equal(b.e.item[0].source->name, "n");
    assert_string_equal(b.e.item[1].source->name, "n#2");
    cd_buf name = {0};
    cd_network_estimate_case_name(&b.e, &b.e.item[1], &name);
    assert_string_equal(name.p, "n#2");
    b.e.graphs = false;
    cd_buf_clear(&name);
    cd_network_estimate_case_name(&b.e, &b.e.item[1], &name);
    assert_string_equal(name.p, "n#2, little, batch 8");
    cd_buf_free(&name);
    cd_network_estimate_free(&b.e);
}

/* The longest way through the graph: a and c here, never b. */
static void test_critical(void **state) {
    bench b;
    (void)state;
    const cd_network_estimate_case *c =
        estimate(&b, "little",
                 OP("a", "1", "1", "1", "", "") "," OP("b", "1", "1", "1", "", "\"a\"") "," OP(
                     "c", "3", "1", "1", "", "\"a\""),
                 false);
    cd_network_estimate_free(&b.e);
    c = estimate(&b, "little",
                 OP("a", "1", "1", "1", "", "") "," OP("b", "1", "1", "1", "", "\"a\"") "," OP(
                     "c", "3", "1", "1", "", "\"a\""),
                 false);
    bool *critical = cd_network_estimate_critical(c);
    assert_true(critical[0]);
    for (uint32_t k = 0; k < 3; k++)
        assert_string_equal(cd_network_estimate_node(c, k)->name, k == 0   ? "a"
                                                                  : k == 1 ? "b"
                                                                           : "c");
    assert_close(c->replay.chain_s, 4, 1e-12, 0);
    assert_close(c->replay.sum_s, 5, 1e-12, 0);
    cd_mem_free(critical);
    cd_network_estimate_free(&b.e);
}

TESTS(set_up, tear_down, test_memory_of_a_chain, test_weights_that_are_said, test_unknown_sizes,
      test_two_devices, test_names, test_critical)
