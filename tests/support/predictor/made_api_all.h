/* The models, tasks and programs of made_api.h as a fixture that all tests of a program share. */
#ifndef MADE_API_ALL_H
#define MADE_API_ALL_H
#include "made_api.h"

static made_api api;
static made_programs all;

static inline int setup(void **state) {
    (void)state;
    if (made_setup(&api)) return 1;
    made_programs_init(&all, cdmpp_tasks_key(api.tasks, 0), MADE_N);
    return 0;
}

static inline int teardown(void **state) {
    (void)state;
    made_programs_free(&all);
    made_teardown(&api);
    return 0;
}
#endif
