/* place_cut -- minimum cut between two ends. Private to placement.
 *
 *   source ─3─> a ─1─> sink  cut: source | a = 3, source a | sink = 1  -> a is on the source's side
 *
 *   (1) capacities are whole numbers, so the answer is exact for them; a caller that has seconds
 *       scales them;
 *   (2) side: true where the source still reaches: of all minimum cuts the one with the fewest on
 *       the source's side.
 * Dinic 1970: O(V^2 E), near linear on networks. No recursion. One thread. */
#ifndef CD_PLACE_CUT_INTERNAL_H
#define CD_PLACE_CUT_INTERNAL_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

typedef struct cd_place_cut_arc {
    uint32_t from, to;
    int64_t there, back; /* >= 0; together below 2^62 over all arcs */
} cd_place_cut_arc;

#endif
