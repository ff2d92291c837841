/* "link measure": this machine, found and measured. */
#include "profiler/machine/machine.h"
#include "predictor/cmd/partition/main_partition_tools.h"

static cdmpp_status contention_of(const cd_partition_link_options *o, cd_machine *m, cdmpp_err *err) {
    cd_arena a = {0};
    cd_corun_row *row;
    size_t n;
    if (o->contention) return cd_machine_measure_contention(0, &m->contention, err);
    if (!o->corun) return CDMPP_OK;
    cdmpp_status st = cd_contention_read(o->corun, &a, &row, &n, err);
    if (!st) st = cd_err_at(err, cd_contention_fit(row, n, &m->contention, err), o->corun, 0);
    cd_arena_free(&a);
    return st;
}

static cdmpp_status measure(const cd_partition_link_options *o, cd_machine *m, cdmpp_err *err) {
    const cd_machine_measure_options a = {.list = o->devices, .own_memory = o->own_memory, .as = o->as, .repeats = (unsigned)o->repeats, .max_bytes = (size_t)o->max_mb << 20};
    CD_TRY(contention_of(o, m, err)); /* forks */
    CD_TRY(cd_machine_measure_find(m, &a, err));
    CD_TRY(cd_machine_measure_time(m, err));
    CD_TRY(cd_machine_measure_links(m, &a, err));
    if (o->out) CD_TRY(cd_machine_write(m, o->out, err));
    return cd_partition_link_print(o, m, err);
}

cdmpp_status cd_partition_link_measure(cd_partition_link_options *o, cdmpp_err *err) {
    cd_machine m;
    cd_machine_init(&m);
    const cdmpp_status st = measure(o, &m, err);
    cd_machine_free(&m);
    return st;
}
