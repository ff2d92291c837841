/* program -- the facade of features/: one record in, rows and tree out.
 *
 *   record + task -> schedule -> bounds -> loop nest (ast) -> rows
 *
 * One cd_program per thread; everything it returns lives until the next build
 * or free. After warm-up a build touches no heap. */
#ifndef CD_PROGRAM_H
#define CD_PROGRAM_H
#include "features/task/task.h"

#include "features/rows/rows.h"

typedef struct cd_program cd_program;

cdmpp_status cd_program_new(CD_GIVE cd_program **out, cdmpp_err *err);
void cd_program_free(cd_program *p); /* NULL is fine */

/* Is the kind, the first word of a target string, one that TVM's auto_scheduler
 * treats as a GPU (and whose programs it verifies)? */
bool cd_program_target_is_gpu(cd_str target);

/* Only the loop nest, for printing. */
cdmpp_status cd_program_lower(cd_program *p, const cd_task *task, const cd_record *r, cdmpp_err *err);
/* As cd_program_lower, but for running: constant matrices keep their elements,
 * where features see the number one. */
cdmpp_status cd_program_lower_code(cd_program *p, const cd_task *task, const cd_record *r, cdmpp_err *err);
/* As cd_program_lower, but loops of extent 1 stay (TVM: tir.debug_keep_trivial_loop), so that the programs of one
 * sketch have the same loops, one for one. */
cdmpp_status cd_program_lower_loops(cd_program *p, const cd_task *task, const cd_record *r, cdmpp_err *err);
/* Replay the record's steps on its task and extract. Errors: EINVALID (steps
 * do not fit the task), EREJECTED (breaks a limit of the GPU: TVM gives no
 * features either), EUNSUPPORTED, ENUMERIC (a feature beyond float), ENOMEM. */
cdmpp_status cd_program_build(cd_program *p, const cd_task *task, const cd_record *r, cd_rows *out, cdmpp_err *err);

/* The loop nest of the last build, as a TVM user would recognise it. */
struct cd_buf;
cdmpp_status cd_program_print(const cd_program *p, struct cd_buf *out, cdmpp_err *err);
/* line (n_leaf): the line of that print, from 0, on which each leaf stands. */
void cd_program_leaf_lines(const cd_program *p, int32_t *line, size_t n_leaf);

/* The other headers of the room that are open to other rooms. */
#include "features/program/program_nest.h"
#endif
