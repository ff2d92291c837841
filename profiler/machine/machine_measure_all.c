/* Everything that a description of this machine holds, measured in the one order that works:
 * contention first, because it forks, and a child of a process in which OpenCL or OpenMP already
 * has threads would hang. */
#include "profiler/machine/machine_measure.h"

static cdmpp_status contention_of(const cd_machine_measure_options *a, cd_machine *m,
                                  cdmpp_err *err) {
    cd_arena own = {0};
    cd_corun_row *row;
    size_t n;
    if (a->contention) return cd_machine_measure_contention(0, &m->contention, err);
    if (!a->corun) return CDMPP_OK;
    cdmpp_status st = cd_contention_read(a->corun, &own, &row, &n, err);
    if (!st) st = cd_err_at(err, cd_contention_fit(row, n, &m->contention, err), a->corun, 0);
    cd_arena_free(&own);
    return st;
}

cdmpp_status cd_machine_measure_all(cd_machine *m, const cd_machine_measure_options *a,
                                    cdmpp_err *err) {
    /* a lot of it is of programs that disturb each other on purpose */
    CD_TRY(contention_of(a, m, err));
    CD_TRY(cd_machine_measure_find(m, a, err));
    cd_noise_begin(&m->noise);
    CD_TRY(cd_machine_measure_time(m, err));
    CD_TRY(cd_machine_measure_links(m, a, err));
    cd_noise_end(&m->noise);
    m->measured = true;
    m->kept = cd_noise_is_much(&m->noise);
    return cd_noise_check(&m->noise, a->keep_noisy, "links", "--keep-noisy", err);
}
