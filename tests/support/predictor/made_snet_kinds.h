/* The operators of made_snet.h as a fixture that all tests of a program share. */
#ifndef MADE_SNET_KINDS_H
#define MADE_SNET_KINDS_H
#include "check.h"
#include "made_snet.h"

static ms_kinds kinds;
static cdmpp_err err;

static inline int ms_up(void **state) {
    (void)state;
    assert_ok(ms_load(&kinds, &err));
    return 0;
}

static inline int ms_down(void **state) {
    (void)state;
    cd_task_registry_free(kinds.tasks);
    return 0;
}
#endif
