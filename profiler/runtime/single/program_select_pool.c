/* Analytic times of random schedules, to choose which are worth measuring
 * (features/analytic/analytic.h): nothing is learned, nothing is run. */
#include <math.h>

#include "features/analytic/analytic.h"
#include "profiler/runtime/single/single_internal.h"

struct cd_program_pool {
    const cd_device *device;
    uint32_t vector_bytes;
    cd_program *program;
    cd_facts *facts;
};

/* A device that does not say enough is found here, before any schedule is drawn. */
static cdmpp_status check_device(const cd_device *d, cdmpp_err *err) {
    const float none[CD_N_FACTS] = {0};
    cd_analytic_time t;
    return cd_analytic_seconds(none, d, &t, err);
}

cdmpp_status cd_program_pool_new(const cd_device *device, uint32_t vector_bytes,
                                 cd_program_pool **out, cdmpp_err *err) {
    CD_TRY(check_device(device, err));
    cd_program_pool *p = cd_mem_zalloc(1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "programs");
    p->device = device;
    p->vector_bytes = vector_bytes;
    cdmpp_status st = cd_program_new(&p->program, err);
    if (!st) st = cd_facts_new(&p->facts, err);
    if (st) cd_program_pool_free(p);
    else *out = p;
    return st;
}

void cd_program_pool_free(cd_program_pool *p) {
    if (!p) return;
    cd_facts_free(p->facts);
    cd_program_free(p->program);
    cd_mem_free(p);
}

/* Vectors are those that code is generated for: the target of a record need not name them. */
static cdmpp_status seconds_of(cd_program_pool *p, const cd_task *task, const cd_record *r,
                               double *seconds, cdmpp_err *err) {
    float fact[CD_N_FACTS];
    cd_analytic_time t;
    cd_nest nest;
    CD_TRY(cd_program_lower(p->program, task, r, err));
    CD_TRY(cd_program_nest(p->program, &nest, err));
    nest.vector_bytes = p->vector_bytes;
    CD_TRY(cd_facts_cpu(p->facts, &nest, fact, err));
    CD_TRY(cd_analytic_seconds(fact, p->device, &t, err));
    *seconds = t.ecm_s;
    return CDMPP_OK;
}

cdmpp_status cd_program_pool_seconds(cd_program_pool *p, const cd_task *task, const cd_record *r,
                                     double *seconds, cdmpp_err *err) {
    cdmpp_err why = {0};
    const cdmpp_status st = seconds_of(p, task, r, seconds, &why);
    if (st) *seconds = (double)INFINITY;
    if (st == CDMPP_ENOMEM && err) *err = why;
    return st == CDMPP_ENOMEM ? st : CDMPP_OK;
}
