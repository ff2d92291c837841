/* schedule_ops_game -- operators that are ready at the same time: who takes which device; how many threads each has.
 *
 *   disjoint devices (game)                   shared processors (cotune)
 *     seconds   cpu  gpu   load               threads   1    2    3        1 + 3:  a 8.0 | b 4.0   -> 8.0 ms
 *     a          4    1    cpu: b 3           a         8.0  4.2  3.0      2 + 2:  a 4.2 | b 5.5   -> 5.5 ms
 *     b          3    2    gpu: a 1           b         9.0  5.5  4.0      one after the other, 4 each: 6.1 ms
 *
 *   game: (1) a player pays the load of its device: the sum of seconds of all on it, each with its own transfer in (the device
 *             waits for it). Without that second part the proof below would not hold;
 *         (2) best responses one after the other end: each makes the list of loads, largest first, smaller in the order of words;
 *         (3) the result is an equilibrium, verified again from nothing: nobody gains more than 1e-12 of its cost by moving alone;
 *         (4) price of anarchy: the equilibrium's largest load over the smallest possible, by branch and bound, exact up to `most` nodes.
 *   cotune: (5) threads >= 1 each, together at most `threads`; time of each from the callback, given all counts; the slowest decides;
 *         (6) every way of sharing is tried up to 1e5 of them, else hill climbing by one thread from equal shares;
 *         (7) refused (accepted false) unless it is below all one after the other with the best number of threads each.
 * Any thread. Seconds. Sources: spec 2.6; IPDPS'19 (Liu et al.) for (6). */
#ifndef CD_STAGE_GAME_H
#define CD_STAGE_GAME_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

typedef struct cd_stage_game {
    uint32_t n_op, n_device;
    const char *const *name;    /* (n_op) or NULL */
    const double *seconds;      /* (n_op, n_device) infinity: cannot be */
    const double *transfer;     /* (n_op, n_device) or NULL */
} cd_stage_game;

typedef struct cd_stage_game_result {
    cd_arena arena;
    uint32_t *where;            /* (n_op) the equilibrium */
    uint32_t *best;             /* (n_op) of the smallest makespan; NULL: not looked for to the end */
    double *load;               /* (n_device) of the equilibrium */
    double makespan_s, best_s;  /* best_s: NaN where best is NULL */
    double price;               /* makespan_s / best_s; NaN */
    double gain;                /* largest relative gain of one player by moving: <= 1e-12 */
    uint32_t n_move;
} cd_stage_game_result;

/* most: nodes of the search for the optimum; 0: 4e6. Errors: ERANGE (NaN, negative: operator, device; no device), ESCHEMA (an operator for which
 * there is no device), ENOMEM. Free `out` after an error too. */
cdmpp_status cd_stage_game_play(const cd_stage_game *g, uint64_t most, cd_stage_game_result *out, cdmpp_err *err);
void cd_stage_game_free(cd_stage_game_result *r);
/* Largest relative gain of a player who moves alone from `where`, and who (NULL: not asked). */
double cd_stage_game_gain(const cd_stage_game *g, const uint32_t *where, uint32_t *who);

typedef double cd_stage_cotune_time(uint32_t op, const uint32_t *threads, uint32_t n_op, void *ctx); /* threads (n_op): 0 does not run */
typedef struct cd_stage_cotune {
    cd_arena arena;
    uint32_t *threads;          /* (n_op) */
    double together_s, sequential_s, equal_s; /* equal_s: equal shares; NaN where threads < n_op */
    bool accepted;              /* run together; else one after the other */
    bool exact;
    uint64_t n_look;
} cd_stage_cotune;
/* Errors: ERANGE (a time that is none: its operator; n_op or threads 0), ENOMEM. Free `out` after an error too. */
cdmpp_status cd_stage_cotune_search(uint32_t n_op, uint32_t threads, cd_stage_cotune_time *time, void *ctx, cd_stage_cotune *out, cdmpp_err *err);
void cd_stage_cotune_free(cd_stage_cotune *c);

/* ---- thread packing (Rammer, OSDI'20, in its simplest form) ----
 * An operator is n equal tasks; units take tasks of all ready operators, of the longest chain first; an operator is ready when all
 * tasks of those before it have ended. One launch for all of it.
 *   chain, work / units <= makespan <= work / units + (1 - 1/units) chain (Graham) */
typedef struct cd_stage_pack_op {
    const char *name;
    uint32_t tasks;             /* >= 1 */
    double task_s;
    uint32_t first, n_after;    /* after[first .. first + n_after) */
} cd_stage_pack_op;
typedef struct cd_stage_pack_run {
    uint32_t op, unit;
    double start_s;
} cd_stage_pack_run;
typedef struct cd_stage_pack {
    cd_arena arena;
    uint32_t n_run;
    cd_stage_pack_run *run;           /* (n_run) in the order of their start */
    double makespan_s, chain_s, work_s;
    double serial_s;            /* an operator behind the other, each on all units */
} cd_stage_pack;
/* Errors: EINVALID (cycle, edge to nowhere), ERANGE (units, tasks 0, a time; more than 1e7 tasks), ENOMEM. Free `out` after an error too. */
cdmpp_status cd_stage_pack_make(const cd_stage_pack_op *op, uint32_t n_op, const uint32_t *after, uint32_t n_after, uint32_t units, cd_stage_pack *out, cdmpp_err *err);
void cd_stage_pack_free(cd_stage_pack *p);
#endif
