/* The programs of made_devnet.h as a fixture that all tests of a program share. */
#ifndef MADE_DEVNET_UP_H
#define MADE_DEVNET_UP_H
#include "made_devnet.h"

static md_programs programs;

static inline int md_up(void **state) {
    (void)state;
    md_programs_make(&programs);
    return 0;
}

static inline int md_down(void **state) {
    (void)state;
    md_programs_free(&programs);
    return 0;
}
#endif
