/* game -- operators that are ready at the same time choose their devices, each for itself.
 *
 *     seconds   cpu  gpu   load
 *     a          4    1    cpu: b 3
 *     b          3    2    gpu: a 1
 *
 *   (1) an operator pays the load of its device: the sum of seconds of all operators on it, each
 *       with its own transfer (the device waits for it); without the transfer in the load the proof
 *       of (2) would not hold;
 *   (2) best responses, one after the other, end: each makes the list of loads, largest first,
 *       smaller in the order of words;
 *   (3) the result is an equilibrium, verified again from nothing: nobody gains more than 1e-12 of
 *       its cost by moving alone;
 *   (4) price of anarchy: the largest load of the equilibrium over the smallest possible one.
 *       Branch and bound finds that, exactly up to `most` nodes.
 * Any thread. Seconds. */
#ifndef CD_GAME_H
#define CD_GAME_H
#include <stdint.h>

#include "base/core/core.h"

typedef struct cd_game {
    uint32_t n_op, n_device;
    const char *const *name; /* (n_op) or NULL */
    const double *seconds;   /* (n_op, n_device) infinity: cannot be */
    const double *transfer;  /* (n_op, n_device) or NULL */
} cd_game;

typedef struct cd_game_result {
    cd_arena arena;
    uint32_t *where; /* (n_op) the equilibrium */
    /* (n_op) of the smallest makespan; NULL: not looked for to the end */
    uint32_t *best;
    double *load;              /* (n_device) of the equilibrium */
    double makespan_s, best_s; /* best_s: NaN where best is NULL */
    double price;              /* makespan_s / best_s; NaN */
    double gain;               /* largest relative gain of one player by moving: <= 1e-12 */
    uint32_t n_move;
} cd_game_result;

/* most: nodes of the search for the optimum; 0: 4e6. Errors: ERANGE (NaN, negative: operator,
 * device; no device), ESCHEMA (an operator for which there is no device), ENOMEM. Free `out` after
 * an error too. */
cdmpp_status cd_game_play(const cd_game *g, uint64_t most, cd_game_result *out, cdmpp_err *err);
void cd_game_free(cd_game_result *r);
/* Largest relative gain of a player who moves alone from `where`, and who (NULL: not asked). */
double cd_game_gain(const cd_game *g, const uint32_t *where, uint32_t *who);

/* ---- as a file (game_read.c) ----
 *   CSV   operator,cpu,gpu,transfer:gpu          seconds of the operator there; empty or inf:
 *                                                cannot run there
 *         conv1,4e-3,1e-3,2e-4                   transfer:DEVICE (optional): seconds to bring its
 *                                                input there
 *   JSON  {"devices": ["cpu", "gpu"], "operators": [{"name": "conv1", "seconds": [4e-3, null],
 *         "transfer": [0, 2e-4]}]} */
typedef struct cd_game_file {
    cd_arena arena;
    cd_game g;
    const char **device, **name; /* (n_device), (n_op) */
    double *seconds, *transfer;
} cd_game_file;

/* Into a zeroed one. "-" (standard input) is CSV. Errors, with path: EIO, EPARSE, ESCHEMA, ENODATA,
 * ENOMEM. Free `out` after an error too. */
cdmpp_status cd_game_read(const char *path, cd_game_file *out, cdmpp_err *err);

/* ---- for people and programs (game.c) ---- */
void cd_game_print(const cd_game_file *g, const cd_game_result *r, cd_buf *out);
/* an object */
void cd_game_print_json(const cd_game_file *g, const cd_game_result *r, cd_buf *out);
#endif
