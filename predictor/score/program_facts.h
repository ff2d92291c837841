/* program_facts -- what a model that reads facts gets of one program beside its rows: facts of the
 * loop nest, and its analytic times on the device that it is asked about. A device that the model
 * does not know, and that is described, has times of its own, though another one answers for the
 * rest. One thread; after warm-up no heap. */
#ifndef CD_PROGRAM_FACTS_H
#define CD_PROGRAM_FACTS_H
#include "features/program/program.h"
#include "learner/inputs/inputs.h"
#include "predictor/score/device_match.h"

typedef struct cd_program_facts {
    cd_facts *scratch; /* NULL: the model reads none */
    const cd_model *m;
    /* what all analytic times are computed with; NULL: with those of the device that is asked
     * about */
    const cd_device_numbers *numbers;
    float fact[CD_N_FACTS], analytic[CD_N_ANALYTIC];
} cd_program_facts;

/* To be freed after an error too. Errors: ENOMEM. */
cdmpp_status cd_program_facts_new(cd_program_facts *f, CD_KEEP const cd_model *m, cdmpp_err *err);
void cd_program_facts_free(cd_program_facts *f);
/* Fills fact and analytic of the program that was just built in p; nothing where the model reads
 * none. rows: there is no program, rows are known alone. Errors: EMODEL (rows alone, a GPU program
 * where the model was trained on CPU programs, or the reverse), those of cd_facts_of and
 * cd_analytic_seconds_of. */
cdmpp_status cd_program_facts_fill(cd_program_facts *f, cd_program *p, bool rows,
                                   const cd_device_pick *which, cdmpp_err *err);
#endif
