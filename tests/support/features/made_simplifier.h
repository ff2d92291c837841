/* A simplifier with its pool for the tests of features/simplify, and the numbers that their random
 * expressions are drawn by. */
#ifndef CD_MADE_SIMPLIFIER_H
#define CD_MADE_SIMPLIFIER_H
#include "check.h"
#include "features/simplify/simplify.h"

static cd_expr_pool pool;
static cd_simplifier *simp;
static cdmpp_err err;

static int made_simplifier(void **state) {
    (void)state;
    assert_ok(cd_expr_pool_init(&pool, NULL, &err));
    assert_ok(cd_simplify_new(&pool, &simp, &err));
    return 0;
}

static int made_simplifier_gone(void **state) {
    (void)state;
    cd_simplify_free(simp);
    cd_expr_pool_free(&pool);
    return 0;
}

/* 0 .. n - 1; `seed` says which numbers follow. */
static uint32_t seed;
static uint32_t rnd(uint32_t n) {
    seed = seed * 1664525U + 1013904223U;
    return (uint32_t)((uint64_t)(seed >> 8) * n >> 24);
}
#endif
