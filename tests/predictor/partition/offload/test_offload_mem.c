/* Allocations of rules on a network, of the plan under them and of its sources fail: an error,
 * nothing lost. The first hundred each, then fewer and fewer. */
#include <string.h>

#include "check.h"
#include "fault.h"
#include "predictor/partition/emit/emit.h"

static cd_network_loaded net;

static cdmpp_status plan_and_emit(const cd_offload_net_match *r, cd_offload_net_plan *o,
                                  cdmpp_err *err) {
    static const cd_place_link link[] = {
        {.from = 0, .to = 1, .latency_s = 1e-6, .bytes_per_s = 1e9},
        {.from = 1, .to = 0, .latency_s = 1e-6, .bytes_per_s = 1e9}};
    static const char *const target[] = {"llvm -num-cores=1", "llvm -num-cores=1"};
    static const cd_emit_backend *const back[] = {&cd_emit_c, &cd_emit_json};
    double seconds[400];
    cd_emit_files files = {0};
    cd_buf b = {0};
    for (size_t k = 0; k < 400; k++) seconds[k] = 1e-4;
    assert_true(2 * r->n_group <= 400);
    CD_TRY(cd_offload_plan_make(
        &(cd_offload_plan_options){
            .rules = r, .seconds = seconds, .link = link, .n_link = 2, .mac = true},
        NULL, o, err));
    cd_offload_plan_text(o, &b);
    cd_offload_plan_json(o, &b);
    cdmpp_status st = b.oom ? CDMPP_ENOMEM : CDMPP_OK;
    if (!st)
        st = cd_offload_emit(
            &(cd_offload_emit_options){.plan = o, .backend = back, .target = target, .naive = true},
            &files, err);
    cd_emit_files_free(&files);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status all(cdmpp_err *err) {
    static const char text[] =
        "host cpu\npattern npu two: conv2d -> bias_add -> relu -> max_pool2d\nsupport npu dense "
        "bias_add\nformat npu dtype=int8 layout=nchw\n";
    cd_offload_rules *q = NULL;
    cd_offload_net_match r = {0};
    cd_offload_net_plan o = {0};
    cdmpp_status st = cd_offload_parse("x", text, sizeof text - 1, &q, err);
    if (!st) st = cd_offload_match_apply(&(cd_offload_match_options){&net, q, 0, NULL}, &r, err);
    if (!st) st = plan_and_emit(&r, &o, err);
    cd_offload_net_plan_free(&o);
    cd_offload_match_done(&r);
    cd_offload_free(q);
    return st;
}

static void test_faults(void **state) {
    (void)state;
    cdmpp_err err = {0};
    assert_ok(cd_network_load(
        &(cd_network_load_options){.network = "alexnet", .target = "llvm -num-cores=1"}, &net,
        &err));
    FAULT_SWEEP(f, 50) {
        f.step = 1 + f.k / 100;
        f.st = all(&f.err);
    }
    cd_network_load_free(&net);
}

TESTS(NULL, NULL, test_faults)
