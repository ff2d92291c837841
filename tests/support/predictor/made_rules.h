/* Networks of the zoo and rules for them. */
#ifndef MADE_RULES_H
#define MADE_RULES_H
#include <string.h>

#include "check.h"
#include "predictor/partition/offload/offload.h"

static cdmpp_err err;

static inline cd_network_loaded load(const char *net) {
    cd_network_loaded l;
    assert_ok(cd_network_load(
        &(cd_network_load_options){.network = net, .target = "llvm -num-cores=1"}, &l, &err));
    return l;
}

static inline cd_offload_rules *parsed(const char *text) {
    cd_offload_rules *r;
    assert_ok(cd_offload_parse("x.rules", text, strlen(text), &r, &err));
    return r;
}
#endif
