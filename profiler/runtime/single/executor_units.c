/* Threads that run the pieces of a plan, each its own list. Nothing is handed out in a pass: a unit
 * only looks at the counters of what it waits for. */
#include "profiler/runtime/single/single_internal.h"

#include <errno.h>
#include <pthread.h>

static const double SPIN_S = 2e-4; /* before who waits sleeps */

typedef struct {
    _Alignas(64) cd_counter ended; /* a cache line of its own */
} node;

typedef struct {
    cd_executor_units *of;
    uint32_t number;
    pthread_t thread;
} unit;

struct cd_executor_units {
    cd_executor_units_options options;
    unit *unit; /* (n_unit), 0 is nobody's */
    uint32_t n_begun;
    node *node; /* (n_node) in `block` */
    void *block;
    cd_counter pass, out; /* passes begun; units that have left one, over all passes */
    atomic_bool end;
};

/* The calls of a unit in the pass of this number, counted from 1. */
static void work(cd_executor_units *u, uint32_t number, uint32_t pass) {
    const cd_executor_pieces *p = u->options.pieces;
    for (uint32_t k = p->first[number]; k < p->first[number + 1]; k++) {
        for (uint32_t w = p->wait_first[k]; w < p->wait_first[k + 1]; w++)
            (void)cd_counter_wait(&u->node[p->wait[w]].ended, pass * p->n_piece[p->wait[w]],
                                  -SPIN_S);
        u->options.call(u->options.ctx, k, number);
        (void)cd_counter_increment(&u->node[p->node[k]].ended);
    }
}

static void *unit_main(void *arg) {
    unit *me = arg;
    cd_executor_units *u = me->of;
    (void)cd_affinity_one(u->options.pieces->n_unit, me->number);
    if (u->options.begin) u->options.begin(u->options.ctx);
    for (uint32_t pass = 1;; pass++) {
        (void)cd_counter_wait(&u->pass, pass, -SPIN_S);
        if (atomic_load(&u->end)) return NULL;
        work(u, me->number, pass);
        (void)cd_counter_increment(&u->out);
    }
}

/* The caller leaves after all units: the next pass may then write what this one reads. */
void cd_executor_units_pass(cd_executor_units *u) {
    cd_affinity all;
    cd_affinity_get(&all);
    (void)cd_affinity_one(u->options.pieces->n_unit, 0);
    const uint32_t pass = cd_counter_increment(&u->pass);
    work(u, 0, pass);
    (void)cd_counter_wait(&u->out, pass * u->n_begun, -SPIN_S);
    cd_affinity_set(&all, 0);
}

void cd_executor_units_free(cd_executor_units *u) {
    if (!u) return;
    atomic_store(&u->end, true);
    (void)cd_counter_increment(&u->pass);
    for (uint32_t k = 1; k <= u->n_begun; k++) pthread_join(u->unit[k].thread, NULL);
    cd_mem_free(u->unit);
    cd_mem_free(u->block);
    cd_mem_free(u);
}

static cdmpp_status begin_all(cd_executor_units *u, cdmpp_err *err) {
    const cd_executor_pieces *p = u->options.pieces;
    u->unit = cd_mem_zalloc(p->n_unit + 1, sizeof *u->unit);
    u->block = cd_mem_zalloc(p->n_node + 1, sizeof *u->node);
    if (!u->unit || !u->block) return CD_FAIL(err, ENOMEM, "%u units", p->n_unit);
    u->node = (node *)(((uintptr_t)u->block + sizeof(node) - 1) / sizeof(node) * sizeof(node));
    for (uint32_t k = 1; k < p->n_unit; k++, u->n_begun++) {
        u->unit[k] = (unit){.of = u, .number = k};
        const int e = pthread_create(&u->unit[k].thread, NULL, unit_main, &u->unit[k]);
        if (e) return CD_FAIL(err, EIO, "no thread for unit %u: %s", k, strerror(e));
    }
    return CDMPP_OK;
}

cdmpp_status cd_executor_units_new(const cd_executor_units_options *a, cd_executor_units **out,
                                   cdmpp_err *err) {
    cd_executor_units *u = cd_mem_zalloc(1, sizeof *u);
    if (!u) return CD_FAIL(err, ENOMEM, "units");
    u->options = *a;
    const cdmpp_status st = begin_all(u, err);
    if (st) cd_executor_units_free(u);
    else *out = u;
    return st;
}
