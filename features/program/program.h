/* The door of features/program: one record in; loop nest, rows and tree out. Data sets, predictors and code generators come from a
 * record to a program only through it. Further header of the room: program_nest.h (the nest with its tensors, for code).
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

/* Memory for programs. Errors: ENOMEM. */
cdmpp_status cd_program_new(CD_GIVE cd_program **out, cdmpp_err *err);
void cd_program_free(cd_program *p); /* NULL is fine */

/* Only the loop nest. Errors: as cd_program_build. */
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
