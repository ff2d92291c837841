/* The door of predictor/tune/search: other rooms include this header and no other of the room.
 *
 * A search says which candidates are measured next (cd_tune_search_kind,
 * predictor/tune/core/core.h). It takes a space, and a ranker where it uses one; it gives batches
 * of candidates and learns their seconds. */
#ifndef CD_PREDICTOR_TUNE_SEARCH_DOOR_H
#define CD_PREDICTOR_TUNE_SEARCH_DOOR_H
#include "predictor/tune/core/core.h"

/* in the order of the list, or of the choices */
extern const cd_tune_search_kind cd_tune_search_grid;
extern const cd_tune_search_kind cd_tune_search_random; /* without repetition */
extern const cd_tune_search_kind cd_tune_search_ga;     /* AutoTVM's genetic algorithm */
/* AutoTVM's plans by simulated annealing on the ranker */
extern const cd_tune_search_kind cd_tune_search_anneal;
extern const cd_tune_search_kind cd_tune_search_best;   /* the ranker's best of many draws */
extern const cd_tune_search_kind cd_tune_search_evolve; /* Ansor's evolutionary search */
#endif
