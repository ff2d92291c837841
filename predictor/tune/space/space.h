/* The door of predictor/tune/space: other rooms include this header and no other of the room.
 *
 * A space says which candidates there are (cd_tune_space_kind, predictor/tune/core/core.h): all
 * programs that Ansor's rules make, the few of them that templates make for a processor, or those
 * that a log has. */
#ifndef CD_TUNE_SPACE_H
#define CD_TUNE_SPACE_H
#include "predictor/tune/core/core.h"
#include "predictor/tune/template/template.h"

/* ---- tune_space_sketch.c ---- */
/* The space of all programs that Ansor's rules make of a task. A task that no rule fits has a space
 * of one candidate, its naive program: *naive (may be NULL). Errors: ENOTASK, ENOMEM. */
cdmpp_status cd_tune_space_sketch(const cd_tune_task *t, uint64_t seed, CD_GIVE cd_tune_space **out,
                                  bool *naive, cdmpp_err *err);

/* ---- tune_space_template.c ---- */
/* At most CD_TUNE_TEMPLATES programs of the space above, those of the best blocks
 * (predictor/tune/template), in the order in which they should be tried. Depends on task and
 * machine alone. follow also gives programs of the space above that are no templates. Errors:
 * EUNSUPPORTED (no template fits the task; the message says why), ENOTASK, ENOMEM. */
enum { CD_TUNE_TEMPLATES = 128 };
cdmpp_status cd_tune_space_template(const cd_tune_task *t, const cd_template_machine *m,
                                    uint64_t seed, CD_GIVE cd_tune_space **out, cdmpp_err *err);
/* Of such a space: the block of each candidate of its list, and what the task sums. As long as the
 * space. */
CD_KEEP const cd_template_block *
cd_tune_space_template_blocks(const cd_tune_space *s, CD_KEEP const cd_template_nest **nest);

/* ---- tune_space_log.c: the candidates of one task's records, and no others ----
 *
 *   step list         class: codes, stages, lengths  numbers
 *   SP 3 0 512 [4,8]  SP 3 [2] ..                    0 512 4 8 ..
 *   SP 3 0 512 [2,8]  SP 3 [2] ..                    0 512 2 8 ..  -> choices: the class, then each
 *     number
 *                                                                     that varies within it, as its
 *     rank
 *   (1) candidates are in the order of their choices, not in that of the log: nothing tells when a
 *       record was found;
 *   (2) change: one of the CD_TUNE_NEAR candidates with the least sum over choices of [differs] +
 *       distance of ranks, a near one more often; of the same class first;
 *   (3) cross: each choice of one parent or the other; the candidate nearest to that, but neither
 *       parent. Parents of different classes: a change of one of them;
 *   (4) draw may give a candidate twice, all are equally likely.
 * One thread. */
enum { CD_TUNE_NEAR = 16 };

/* Order cand (n), different ones, and set choice, n_choice and row, in `a`. Errors: ENOMEM. */
cdmpp_status cd_tune_log_number(cd_arena *a, cd_tune_cand *cand, size_t n, cdmpp_err *err);
/* cand (n) as above. Errors: ENOMEM. */
cdmpp_status cd_tune_space_log(const cd_tune_task *t, CD_KEEP const cd_tune_cand *cand, size_t n,
                               uint64_t seed, CD_GIVE cd_tune_space **out, cdmpp_err *err);
#endif
